"""Rate cards in the lake: rows upserted by key, and the days that a change concerns marked for the next build.

Belongs here: merging what a card says with what the tables hold. Not here: reading files (`sources/prices/`). No
Dagster in it: `strandline ingest prices` calls it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from assets.recorded import known_dates
from sources.prices.cards import Cards, arrow, overlap, read_cards
from sources.prices.given import Problem
from sources.prices.kinds import KINDS, Kind, kind_named
from sources.prices.overlaps import Row, clashes, content, key_of
from sources.prices.values import LATEST, midnight
from warehouse.errors import BadInput
from warehouse.lake import Lake

_INSTANT, _DAY = timedelta(microseconds=1), timedelta(days=1)
Held = dict[tuple[Any, ...], Row]


@dataclass
class CardReport:
    """What cards brought, by table name.

    `rows` are the sound rows read, `changed` those of them that were new or said something else than the lake did;
    `refused` a message for every bad row or file; `versions` the newest versions of the tables written; `dates` the
    days marked.
    """

    rows: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)
    dates: set[date] = field(default_factory=set)


def load_cards(lake: Lake, paths: Sequence[Path | str], kind: str | None = None, run_id: str = "") -> CardReport:
    """Bring the sound rows of these files into the lake and report them with what was refused.

    Files in their order: a later row replaces an earlier one of the same key. `kind` is that of CSV files whose header
    does not tell it. A table whose rows do not change gets no new version. Publishing is left to the build. `BadInput`
    only for an unknown `kind`.
    """
    if kind is not None:
        kind_named(kind)
    report = CardReport()
    cards: list[Cards] = []
    for path in paths:
        try:
            cards.append(read_cards(path, kind))
        except BadInput as error:
            report.refused.append(str(error))
    if not any(c.tables for c in cards):
        report.refused.extend(message for c in cards for message in c.refused)
        return report
    with lake.writer():
        for name in KINDS:
            _load_kind(lake, KINDS[name], cards, report, run_id)
        for c in cards:
            report.refused.extend(c.refused)
    return report


def _load_kind(lake: Lake, kind: Kind, cards: Sequence[Cards], report: CardReport, run_id: str) -> None:
    if not any(c.rows.get(kind.name) for c in cards):
        return
    table = kind.table.name
    before: Held = {key_of(kind, row): row for row in lake.read(table).to_pylist()}
    after = before
    for c in cards:
        if c.rows.get(kind.name):
            after = _merged(kind, after, c)
            report.rows[table] = report.rows.get(table, 0) + len(c.rows[kind.name])
    changed = [key for key, row in after.items() if key not in before or content(before[key]) != content(row)]
    report.changed[table] = len(changed)
    if after == before:
        return
    touched = [row for key in changed for row in (before.get(key), after[key]) if row is not None]
    if kind.name == "commitments":
        # a newer version ends the one that held before, also beyond its own term
        ids = {(r["provider"], r["commitment_id"]) for r in touched}
        touched = [r for r in (*before.values(), *after.values()) if (r["provider"], r["commitment_id"]) in ids]
    dates = _dates(known_dates(lake), _validity(kind.name, touched))
    if dates:
        lake.mark(dates, f"{table} changed")  # before the commit: a death between the two costs a build, not a change
        report.dates |= set(dates)
    ordered = sorted(after.values(), key=lambda r: tuple(map(str, key_of(kind, r))))
    report.versions[table] = lake.replace(table, arrow(kind, ordered), run_id=run_id)


def _merged(kind: Kind, held: Held, cards: Cards) -> Held:
    """`held` with the rows of a card on top; those that clash with what is held are refused, in `cards`."""
    new = {key_of(kind, row): row for row in cards.rows[kind.name]}
    # a refused row leaves the one that it would have replaced, which may clash with another new one
    while True:
        merged = {**held, **new}
        ours = {id(row): key for key, row in new.items()}
        refused: dict[tuple[Any, ...], Row] = {}
        for one, two in clashes(kind, list(merged.values())):
            for row, other in ((one, two), (two, one)):
                if id(row) in ours:
                    refused.setdefault(ours[id(row)], other)
        if not refused:
            break
        for key, other in refused.items():
            where = f"a row of {other['source']}, line {other['source_line']}, in the lake"
            remedy = "; a newer as_of would count instead of it" if "as_of" in other else ""
            reason = overlap(new[key], other, where) + remedy
            cards.problems.append(Problem(new[key]["source_line"], "valid_from_at", reason))
            del new[key]
    cards.rows[kind.name] = list(new.values())
    return merged


def _validity(kind: str, rows: Sequence[Row]) -> list[tuple[datetime, datetime]]:
    """[from, until) in which each of these rows has a bearing on charges."""
    if kind == "commitments":
        return [(r["starts_at"], r["ends_at"]) for r in rows]
    if kind == "credits":
        return [(r["charge_period_start_at"], r["charge_period_start_at"] + _INSTANT) for r in rows]
    if kind == "exchange_rates":
        # without an end: what was paid ahead or begun under a rate keeps it for as long as it lasts
        return [(midnight(r["rate_date"]), LATEST) for r in rows]
    return [(r["valid_from_at"], r["valid_to_at"] or LATEST) for r in rows]


def _dates(known: Iterable[date], spans: Sequence[tuple[datetime, datetime]]) -> list[date]:
    """The known dates that some span touches."""
    joined: list[tuple[datetime, datetime]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return [day for day in known if any(s < midnight(day + _DAY) and midnight(day) < e for s, e in joined)]


def messages(report: CardReport) -> Iterator[str]:
    """What a person is told of a load, line by line; refusals are not among it."""
    for table, rows in report.rows.items():
        yield f"{table}: {rows} row{'s' if rows != 1 else ''} landed, {report.changed.get(table, 0)} new or changed"
    if report.versions:
        days = f"; {len(report.dates)} days are to be computed anew" if report.dates else ""
        yield f"`strandline build` brings them into the tables{days}"
