"""One event of the queue's log as a row of `raw.scheduler_events`: what columns are taken from its payload.

The log keeps an event's own words as JSON; models read columns. What pods run (`template`) is left out: nothing is
decided by it, and command lines may hold secrets. Belongs here: kinds of event and their fields. Not here: the file
(`read.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

Row = dict[str, Any]
_EPOCH = datetime(1970, 1, 1)
# An event outside of these years has a clock that is wrong, or is none of ours.
_FIRST_US, _LAST_US = (round(datetime(y, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000 for y in (2000, 2100))
_MILLI = 1000
# lost work is told in milli-GPU x us
_PER_GPU_SECOND = 1_000_000_000


@dataclass(frozen=True)
class JobFacts:
    """What every event of a job says beside its own: from the submission."""

    team: str
    queue: str
    gpu_milli: int

    @property
    def size_class(self) -> str:
        """Of the GPUs asked for."""
        return "1" if self.gpu_milli <= _MILLI else "2-7" if self.gpu_milli < 8 * _MILLI else "8+"


class BadEvent(ValueError):
    """An event that cannot be a row; the message says which field and why."""


def facts_of(payload: Mapping[str, Any]) -> JobFacts:
    """The facts of a submission; `BadEvent` where they are not there."""
    job = payload.get("job")
    if not isinstance(job, Mapping):
        raise BadEvent("payload: no job in it")
    roles = job.get("roles")
    if not isinstance(roles, list) or not roles:
        raise BadEvent("payload.job.roles: not a list of roles")
    asked = 0
    for role in roles:
        shape = role.get("shape") if isinstance(role, Mapping) else None
        if not isinstance(shape, Mapping):
            raise BadEvent("payload.job.roles: a role without a shape")
        asked += _count(role, "count") * _count(shape, "gpu_milli")
    return JobFacts(_text(job, "team"), _text(job, "queue"), asked)


def instant(at_us: object, name: str) -> datetime:
    """Microseconds since 1970 as a naive UTC instant."""
    if type(at_us) is not int or not _FIRST_US <= at_us < _LAST_US:
        raise BadEvent(f"{name}: {at_us!r} is no instant in microseconds of the years 2000 to 2099")
    return _EPOCH + timedelta(microseconds=at_us)


def payload_of(text: str) -> dict[str, Any]:
    """The payload; `BadEvent` where it is no JSON object."""
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise BadEvent(f"payload: not JSON: {error}") from None
    if not isinstance(payload, dict):
        raise BadEvent("payload: not a JSON object")
    return payload


def columns_of(kind: str, payload: Mapping[str, Any], facts: JobFacts | None) -> Row:
    """The columns that this kind of event fills from its payload. `BadEvent` for an unknown kind or a bad field."""
    if kind not in KINDS:
        raise BadEvent(f"kind: {kind!r} is unknown to this version")
    read = KINDS[kind]
    return {} if read is None else read(payload, facts)


def kept(payload: Mapping[str, Any]) -> str:
    """The payload as the table keeps it."""
    said = {k: v for k, v in payload.items() if k != "template"}
    return json.dumps(said, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise BadEvent(f"payload: {name}: {value!r} is no name")
    return value


def _count(given: Mapping[str, Any], name: str) -> int:
    value = given.get(name)
    if type(value) is not int or not 0 <= value < 1 << 40:
        raise BadEvent(f"payload: {name}: {value!r} is no whole number from 0")
    return value


def _flag(given: Mapping[str, Any], name: str) -> bool | None:
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadEvent(f"payload: {name}: {value!r} is neither true nor false")
    return value


def _held(payload: Mapping[str, Any]) -> int:
    """GPUs of all pods of `places`: [role, index, node, [[device, milli], ...]] each."""
    try:
        return sum(int(milli) for pod in payload["places"]["pods"] for _, milli in pod[3])
    except (KeyError, TypeError, ValueError, IndexError):
        raise BadEvent("payload: places: not pods with devices") from None


def _submitted(_: Mapping[str, Any], facts: JobFacts | None) -> Row:
    return {"gpu_milli": facts.gpu_milli if facts else None}


def _intended(payload: Mapping[str, Any], _: JobFacts | None) -> Row:
    return {"attempt": _count(payload, "attempt"), "gpu_milli": _held(payload)}


def _bound(payload: Mapping[str, Any], _: JobFacts | None) -> Row:
    return {"attempt": _count(payload, "attempt")}


def _resized(payload: Mapping[str, Any], _: JobFacts | None) -> Row:
    return {"gpu_milli": _held(payload)}


def _stopped(payload: Mapping[str, Any], facts: JobFacts | None) -> Row:
    row: Row = {"will_return": _flag(payload, "will_return"), "is_success": _flag(payload, "is_success")}
    if "gpu_milli" in payload:
        row["gpu_milli"] = _count(payload, "gpu_milli")
    if "lost" in payload:
        # of a job without GPUs the work is its time alone, and no GPU's
        lost = _work(payload["lost"]) if facts is not None and facts.gpu_milli else 0
        row["lost_gpu_seconds"] = (Decimal(lost) / _PER_GPU_SECOND).quantize(Decimal("0.000001"))
    return row


def _work(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 69:
        raise BadEvent(f"payload: lost: {value!r} is no whole number from 0")
    return value


def _estimated(payload: Mapping[str, Any], _: JobFacts | None) -> Row:
    def at(name: str) -> datetime | None:
        return None if payload.get(name) is None else instant(payload[name], f"payload: {name}")

    made, bound = payload.get("at_us"), payload.get("bound90_us")
    row: Row = {
        "estimated_at": instant(made, "payload: at_us"), "estimate_method": _text(payload, "method"),
        "p50_at": at("p50_us"), "p90_at": at("p90_us"),
    }  # fmt: skip
    if (row["p50_at"] is None) != (row["p90_at"] is None):
        raise BadEvent("payload: p50_us and p90_us: one without the other")
    if bound is not None and isinstance(made, int):
        row["bound_p90_at"] = instant(made + _count(payload, "bound90_us"), "payload: bound90_us")
    return row


KINDS: Mapping[str, Callable[[Mapping[str, Any], JobFacts | None], Row] | None] = {
    "submitted": _submitted,
    "intended": _intended,
    "bound": _bound,
    "resized": _resized,
    "killed": _stopped,
    "patience_over": _stopped,
    "ended": _stopped,
    "estimated": _estimated,
    "waiting": None,
    "impossible": None,
    "noticed": None,
    "signalled": None,
    "called_off": None,
    "resubmitted": None,
    "cancelled": None,
    "reserved": None,
    "withdrawn": None,
    "policy_set": None,
}
# Kinds that are of no job.
OF_NONE = ("policy_set",)
