"""Values of the Kubernetes API: quantities and timestamps.

Objects made of them are read in `nodes.py` and `pods.py`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Any

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
_SCALE = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1), "k": Decimal(10**3),
    "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    **{f"{c}i": Decimal(1024 ** (i + 1)) for i, c in enumerate("KMGTPE")},
}  # fmt: skip
# Of one device on one object: more is a slip, and would overflow GPU-seconds (DECIMAL(18, 6)) once summed.
MOST_DEVICES = 10_000_000
_LARGEST = Decimal(10) ** 30  # far beyond what Kubernetes holds (2^63 - 1), and safe to multiply


class BadObject(ValueError):
    """A field of an object cannot be read; the message names field and value."""


@lru_cache(maxsize=16384)
def _quantity(text: str) -> Decimal | None:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, exponent, suffix = match.groups()
    try:
        found = Decimal(number + exponent) if exponent else Decimal(number) * _SCALE[suffix or ""]
        return found if abs(found) < _LARGEST else None
    except ArithmeticError:
        return None


def quantity(value: Any, field: str) -> Decimal:
    """A quantity such as 500m, 2Ti or 1e3 (apimachinery `resource.Quantity`); `BadObject` names the field."""
    found = _quantity(str(value)) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None
    if found is None:
        raise BadObject(f"{field}: {value!r} is not a quantity")
    return found


def whole(value: Decimal, field: str, largest: int = 2**63 - 1) -> int:
    """The quantity as an integer, rounded up as the API server does; `BadObject` where it is above `largest`."""
    rounded = int(value.to_integral_value(ROUND_CEILING))
    if not 0 <= rounded <= largest:
        raise BadObject(f"{field}: {value} is out of range")
    return rounded


@lru_cache(maxsize=65536)
def _instant(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
        return at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def instant(value: Any, field: str) -> datetime | None:
    """An RFC 3339 time as naive UTC; None for null and empty; `BadObject` for anything else."""
    if value is None or value == "":
        return None
    at = _instant(value) if isinstance(value, str) else None
    if at is None:
        raise BadObject(f"{field}: {value!r} is not a time")
    return at


def text(value: Any, field: str) -> str | None:
    """A text, or None for null and empty; `BadObject` for anything else."""
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise BadObject(f"{field}: {value!r} is no text")
    return value


def mapping(value: Any, field: str) -> dict[str, Any]:
    """A JSON object, or an empty one for null; `BadObject` for anything else."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadObject(f"{field} is no object")
    return value


def objects(value: Any, field: str) -> list[dict[str, Any]]:
    """A JSON list of objects, or an empty one for null; `BadObject` for anything else."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
        raise BadObject(f"{field} is no list of objects")
    return value


def is_extended(name: str) -> bool:
    """Whether a resource is an extended one (a device): a name with a domain that is not Kubernetes' own."""
    domain = name.rpartition("/")[0]
    return bool(domain) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")
