"""Times of a bill to UTC: without a zone they are UTC, with an offset they are converted, dates are midnights.

Belongs here: syntax of dates and times. Not here: which periods make sense together.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import polars as pl

_TIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?"
    r"\s*(Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?)?",
    re.IGNORECASE | re.ASCII,
)
FIRST_YEAR, LAST_YEAR = 2000, 2199  # 0001-01-01 and 9999-12-31 are how some exports write "none"
TIMESTAMP = pl.Datetime("us")


def parse_times(text: pl.Series) -> tuple[pl.Series, pl.Series]:
    """UTC times (naive, microseconds) of `text` (null or stripped), and what is wrong where there is none."""
    distinct = text.drop_nulls().unique().to_list()
    read = [(t, *_time(t)) for t in distinct]
    answers = pl.DataFrame(
        {"t": distinct, "v": [r[1] for r in read], "p": [r[2] for r in read]},
        schema={"t": pl.String, "v": TIMESTAMP, "p": pl.String},
    )
    joined = pl.DataFrame({"t": text}).join(answers, on="t", how="left", maintain_order="left")
    return joined["v"].alias(text.name), joined["p"].alias(text.name)


def _time(text: str) -> tuple[datetime | None, str | None]:
    match = _TIME.fullmatch(text)
    if match is None:
        return None, "is no ISO 8601 date or time"
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        at = datetime(int(year), int(month), int(day))
    except ValueError as e:
        return None, f"is no date: {e}"
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    micros = int((fraction or "0").ljust(6, "0")[:6])
    # 24:00:00 is ISO 8601's name of the next midnight; any other hour above 23 is nobody's.
    if hours > 24 or minutes > 59 or seconds > 59 or (hours == 24 and (minutes or seconds or micros)):
        return None, f"has an impossible time of day, {hours:02}:{minutes:02}:{seconds:02}"
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        return None, f"is not between {FIRST_YEAR} and {LAST_YEAR}"
    at += timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=micros)
    if zone is not None and zone[0] in "+-":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]) if len(zone) > 3 else 0)
        if offset > timedelta(hours=14):
            return None, f"has an impossible offset, {zone}"
        at = at - offset if zone[0] == "+" else at + offset
    return at, None
