"""Durations and instants as people write them. Belongs here: text to seconds, datetimes and dates, and back.

Not here: settings that hold them (`settings.py`) and the commands that take them.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from warehouse.errors import BadInput
from warehouse.landing import EARLIEST, LATEST

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DATES = date(1970, 1, 1), LATEST.date()  # "from 1970" is a way to say "all"
_LONGEST_S = 100 * 366 * 86400.0
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|)\s*", re.IGNORECASE)


def parse_duration(value: object) -> float:
    """Seconds of "60s", "5m", "1h", "250ms", "2d" or a plain number; `BadInput` on anything else or below zero."""
    match = _DURATION.fullmatch(str(value))
    if match is None:
        raise BadInput(f"{value!r} is no duration; write for example 60s, 5m, 1h or a number of seconds")
    seconds = float(match[1]) * _UNITS[match[2].lower()]
    if seconds > _LONGEST_S:
        raise BadInput(f"{value!r} is longer than a hundred years")
    return seconds


def format_duration(seconds: float) -> str:
    """The shortest exact spelling that `parse_duration` reads back."""
    for unit in ("h", "m"):
        if seconds and seconds % _UNITS[unit] == 0:
            return f"{seconds / _UNITS[unit]:g}{unit}"
    return f"{seconds:g}s"


def parse_instant(value: str, what: str = "time") -> datetime:
    """UTC naive datetime of an ISO 8601 text (without zone it is UTC) or of Unix seconds; `BadInput` names `what`."""
    text = value.strip()
    try:
        if re.fullmatch(r"\d{9,11}(\.\d+)?", text):
            at = datetime.fromtimestamp(float(text), UTC).replace(tzinfo=None)
        else:
            at = datetime.fromisoformat(text)
            at = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    except (ValueError, OverflowError) as e:
        raise BadInput(f"{what}: {value!r} is no ISO 8601 instant, for example 2026-01-31T12:00:00Z") from e
    if not EARLIEST <= at < LATEST:
        raise BadInput(f"{what}: {value!r} is out of range, {EARLIEST:%Y} to {LATEST:%Y}")
    return at


def parse_date(value: str, what: str = "date") -> date:
    """Date of YYYY-MM-DD; `BadInput` names `what`."""
    try:
        day = date.fromisoformat(value.strip())
    except ValueError as e:
        raise BadInput(f"{what}: {value!r} is no date, for example 2026-01-31") from e
    if not _DATES[0] <= day < _DATES[1]:
        raise BadInput(f"{what}: {value!r} is out of range, {_DATES[0]:%Y} to {_DATES[1]:%Y}")
    return day


def parse_month(value: str, what: str = "month") -> date:
    """First day of the month YYYY-MM; `BadInput` names `what`."""
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", value.strip()):
        raise BadInput(f"{what}: {value!r} is no month, for example 2026-01")
    return parse_date(f"{value.strip()}-01", what)


def parse_window(start: str | None, end: str | None) -> tuple[date | None, date | None]:
    """Dates of --from and --to; `BadInput` where one is no date or the window is empty."""
    first = None if start is None else parse_date(start, "--from")
    last = None if end is None else parse_date(end, "--to")
    if first is not None and last is not None and last <= first:
        raise BadInput(f"--to {last} must be after --from {first}: it names the day after the last")
    return first, last
