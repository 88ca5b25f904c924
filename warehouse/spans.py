"""Interval tables: which dates a changed interval touches.

An interval has one row a date, each carrying the whole interval's ends. When an interval turns out to end
earlier or later, its rows of other dates change too, though nothing else of those dates did.
Belongs here: comparing staged rows with those they replace. Does not: recomputing dates (`runner.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from warehouse.sqltypes import quote
from warehouse.staging import Staged
from warehouse.windows import DAY, days

# columns that speak of the whole interval: readers of one date's part do not depend on them
WHOLE_INTERVAL = ("started_at", "finished_at", "valid_to_at", "end_reason")


@dataclass(frozen=True)
class Changes:
    """Dates that changed intervals span, before or after the change, and dates whose own part of one changed."""

    spanned: frozenset[date]
    own: frozenset[date]


def _difference(staged: Staged, before: str, columns: list[str]) -> str:
    chosen = ", ".join(quote(c) for c in columns)
    old = f"select {chosen} from ({before}) where {staged.window.sql}"
    new = f"select {chosen} from {staged.relation}"
    return f"(({old}) except ({new})) union all (({new}) except ({old}))"


def changes(staged: Staged, before: str, newest: date) -> Changes:
    """Compare staged rows with relation `before` inside the staged window.

    An open interval spans to `newest`. Only contracts with `spans` have the columns this reads.
    """
    columns = list(staged.contract.columns)
    everything = _difference(staged, before, columns)
    spans = staged.connection.execute(
        f"select distinct cast(started_at as date), cast(finished_at as date) from ({everything})"
    ).fetchall()
    spanned: set[date] = set()
    for first, last in spans:
        spanned.update(days(first, min(newest, last or newest) + DAY))
    parts = _difference(staged, before, [c for c in columns if c not in WHOLE_INTERVAL])
    own = staged.connection.execute(f"select distinct date from ({parts})").fetchall()
    return Changes(frozenset(spanned), frozenset(row[0] for row in own))
