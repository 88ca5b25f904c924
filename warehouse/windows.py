"""The window of a write: which rows of a table a replacement may touch, and nothing beyond.

Belongs here: checking window bounds and rendering them as predicates. Does not: reading or writing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from warehouse.contracts.model import Table
from warehouse.errors import BadInput
from warehouse.sqltypes import literal, quote

DAY = timedelta(days=1)


@dataclass(frozen=True)
class WriteWindow:
    """Half-open window [start, end) of a table; both None where the table is replaced whole.

    Bounds are naive UTC datetimes on the hour for `hour` tables and dates for `date` tables.
    """

    column: str | None
    start: date | None
    end: date | None

    @property
    def first_date(self) -> date | None:
        return _as_date(self.start) if self.start is not None else None

    @property
    def last_date(self) -> date | None:
        """Last date that the window touches, inclusive."""
        if self.end is None:
            return None
        if isinstance(self.end, datetime):
            return (self.end - timedelta(microseconds=1)).date()
        return self.end - DAY

    def contains_date(self, day: date) -> bool:
        """Whether the storage partition `day` may hold rows of the window."""
        if self.first_date is None or self.last_date is None:
            return True
        return self.first_date <= day <= self.last_date

    @property
    def sql(self) -> str:
        """The window as a predicate, both for Delta and for DuckDB; `true` for the whole table.

        Only dates and datetimes are rendered, so no text from outside can reach it.
        """
        if self.column is None or self.start is None or self.end is None:
            return "true"
        if isinstance(self.start, datetime) and isinstance(self.end, datetime):
            assert self.first_date and self.last_date
            dates = f"date >= {_iso(self.first_date)} and date <= {_iso(self.last_date)}"
            return f"{dates} and {self.column} >= {_iso(self.start)} and {self.column} < {_iso(self.end)}"
        return f"date >= {_iso(self.start)} and date < {_iso(self.end)}"


def _as_date(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _iso(value: date) -> str:
    if isinstance(value, datetime):
        return f"'{value.isoformat(timespec='microseconds')}'"
    return f"'{value.isoformat()}'"


def write_window(contract: Table, start: date | None, end: date | None) -> WriteWindow:
    """The window [start, end) of a table; `BadInput` where the bounds do not fit the table's window column."""
    where = f"{contract.name}: window [{start}, {end})"
    if contract.window == "whole":
        if start is not None or end is not None:
            raise BadInput(f"{where}: this table is replaced whole, a window cannot be given")
        return WriteWindow(None, None, None)
    if start is None or end is None:
        raise BadInput(f"{where}: both bounds are needed, the table is replaced by {contract.window}")
    wants_time = contract.window == "hour"
    for bound in (start, end):
        if not isinstance(bound, date) or isinstance(bound, datetime) != wants_time:
            raise BadInput(f"{where}: bounds must be {'datetimes' if wants_time else 'dates'}")
        if isinstance(bound, datetime):
            if bound.tzinfo is not None:
                raise BadInput(f"{where}: bounds must be naive UTC, {bound.isoformat()} has a time zone")
            if (bound.minute, bound.second, bound.microsecond) != (0, 0, 0):
                raise BadInput(f"{where}: {bound.isoformat()} is not on the hour")
    if start >= end:
        raise BadInput(f"{where}: the start must be before the end")
    return WriteWindow(contract.window, start, end)


def read_predicate(contract: Table, start: date | None, end: date | None) -> str:
    """A DuckDB predicate for rows of [start, end) by the table's window column; an open side is None.

    Dates and datetimes are taken alike. A table that is replaced whole is read by its `date`, if it has one; else a
    window on it is `BadInput`.
    """
    if start is None and end is None:
        return "true"
    name = contract.window if contract.window != "whole" else "date"
    if name not in contract.columns:
        raise BadInput(f"{contract.name} is replaced whole and has no window to read by")
    column, parts = quote(name), []
    for operator, bound in ((">=", start), ("<", end)):
        if bound is not None:
            parts.append(f"{column} {operator} {literal(bound)}")
    if contract.window == "hour":
        # the partition prunes files, the hour alone would open the footer of each
        if start is not None:
            parts.append(f"date >= {literal(_as_date(start))}")
        if end is not None:
            parts.append(f"date <= {literal(_as_date(end))}")
    return " and ".join(parts)


def days(start: date, end: date) -> Iterator[date]:
    """Every date of [start, end)."""
    while start < end:
        yield start
        start += DAY


def contiguous(dates: Iterable[date]) -> list[tuple[date, date]]:
    """The dates grouped into half-open runs [first, last + 1), in order."""
    runs: list[tuple[date, date]] = []
    for day in sorted(set(dates)):
        if runs and runs[-1][1] == day:
            runs[-1] = (runs[-1][0], day + DAY)
        else:
            runs.append((day, day + DAY))
    return runs


def chunks(start: date, end: date, size: int) -> Iterator[tuple[date, date]]:
    """[start, end) cut into pieces of at most `size` days."""
    while start < end:
        cut = min(end, start + size * DAY)
        yield start, cut
        start = cut
