"""Which dates a build computes: what was asked for, or what changed and a look-back.

Belongs here: choosing dates from marks and from the dates that raw tables hold. Does not: computing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from warehouse.errors import BadInput
from warehouse.lake import Lake
from warehouse.state import Mark
from warehouse.windows import DAY, days

LOOK_BACK = 2 * DAY


def known_dates(lake: Lake) -> frozenset[date]:
    """Dates that raw tables hold rows of."""
    raw = [t.name for t in lake.contracts.values() if t.layer == "raw" and t.window == "hour"]
    return frozenset(day for name in raw for day in lake.dates(name))


def beside(day: date) -> tuple[date, date, date]:
    """A date with its neighbours, which a change of it touches too."""
    # a sample before midnight stands until the first scrape after it, so a changed day touches both its neighbours
    return day - DAY, day, day + DAY


def due_dates(known: frozenset[date], marks: Sequence[Mark], start: date | None, end: date | None) -> set[date]:
    """The dates a build computes: those of [start, end), else what was marked and a look-back of 48 hours.

    An open side of a window reaches to the first or last known date. Marked dates bring their neighbours, where
    there is data. A window brings the date on either side where that date is marked: its samples and lists stand
    into the window and would otherwise be missing or out of date.
    """
    if start is None and end is None:
        marked = {m.date for m in marks}
        newest = max(known, default=None)
        recent = set() if newest is None else set(days(newest - LOOK_BACK + DAY, newest + DAY))
        return marked | ({d for m in marked for d in beside(m)} & known) | (recent & known)
    first = start if start is not None else min(known, default=end)
    last = end if end is not None else max(known, default=first or date.min) + DAY
    assert first is not None
    if start is not None and end is not None and start >= end:
        raise BadInput(f"window [{start}, {end}): the start must be before the end")
    neighbours = {first - DAY, last} & {m.date for m in marks} & known
    return set(days(first, last)) | neighbours
