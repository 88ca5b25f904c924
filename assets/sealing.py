"""Sealing: what the collectors landed becomes raw tables, whole hours at a time.

The order makes it safe to die anywhere: days are marked as changed, then raw tables replaced, then the
landed files forgotten. Until that last step everything is still in the spool, and doing it again gives
the same tables. What is merged how stands in `merging.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

import pyarrow as pa

from assets import rescaling
from assets.merging import DCGM_TABLES, Tables, merge_lists, merge_scrapes
from sources.dcgm import Scrape
from sources.kubernetes import KubeList
from sources.kubernetes.parse import KUBE_TABLES
from warehouse.contracts import CONTRACTS
from warehouse.lake import Lake
from warehouse.landing import Landed, Landing, Record

_HOUR = timedelta(hours=1)
_BATCH_BYTES = 192 << 20  # of bodies, uncompressed: bounds what one pass holds
_BATCH_HOURS = 24


@dataclass
class SealReport:
    """What was sealed. `versions` are the newest versions of the tables that changed; `dates` those marked."""

    files: int = 0
    damaged_files: int = 0
    scrapes: int = 0
    lists: int = 0
    samples: int = 0
    rejected_lines: int = 0
    duplicate_lines: int = 0
    errors: list[str] = field(default_factory=list)
    dates: set[date] = field(default_factory=set)
    versions: dict[str, int] = field(default_factory=dict)


def seal(  # noqa: PLR0917  (settings with defaults, given by name)
    lake: Lake,
    until: datetime | None = None,
    run_id: str = "",
    overrides: Mapping[str, str] | None = None,
    tolerance_s: float = 300.0,
    progress: Callable[[str], None] | None = None,
) -> SealReport:
    """Seal what has landed (hours that start before `until`, naive UTC; default all) and report it.

    Holds the lake's writer lock. `overrides` and `tolerance_s` are those of `parse_scrapes`. `progress` is
    told each step before it is taken. Publishing is left to the caller.
    """
    report = SealReport()
    landing = Landing(lake.root)
    tell = progress or (lambda step: None)
    with lake.writer():
        rescaling.recover(lake, run_id)
        for files, records in _batches(landing, until, report):
            _seal_batch(lake, records, report, run_id, overrides, tolerance_s, tell)
            tell("delete")
            landing.delete(files)
            report.files += len(files)
        tell("done")
    return report


def _batches(
    landing: Landing, until: datetime | None, report: SealReport
) -> Iterator[tuple[list[Landed], list[Record]]]:
    """Files and their records, a day or some megabytes at a time, in order of hours."""
    files: list[Landed] = []
    records: list[Record] = []
    size = 0
    for landed in landing.files(until):
        if files and (size >= _BATCH_BYTES or landed.hour - files[0].hour >= _BATCH_HOURS * _HOUR):
            yield files, records
            files, records, size = [], [], 0
        found = landing.read(landed)
        if found is None:
            report.damaged_files += 1
            report.errors.append(
                f"landing file {landed.path.name} of hour {landed.hour} is damaged or out of time; "
                "moved to landing/damaged"
            )
            continue
        files.append(landed)
        records += found
        size += sum(len(r.body or b"") for r in found)
    if files:
        yield files, records


def _seal_batch(  # noqa: PLR0917
    lake: Lake, records: list[Record], report: SealReport, run_id: str, overrides: Mapping[str, str] | None,
    tolerance_s: float, tell: Callable[[str], None],
) -> None:  # fmt: skip
    hours = [r.at.replace(minute=0, second=0, microsecond=0) for r in records]
    # A sample may carry a time of its own, up to the tolerance before its scrape.
    start, end = _floor(min(r.at for r in records) - timedelta(seconds=tolerance_s)), max(hours) + _HOUR
    scrapes = [Scrape.of(r) for r in records if r.kind == "dcgm"]
    lists = [KubeList.of(r) for r in records if r.kind != "dcgm"]
    merged: Tables = {}
    rescales: list[rescaling.Rescale] = []
    held: Tables = {}
    if scrapes:
        held |= {t: lake.read(t, start=start, end=end) for t in DCGM_TABLES}
        tables, rescales = merge_scrapes(held, scrapes, overrides, tolerance_s)
        merged |= tables
    if lists:
        held |= {t: lake.read(t, start=start, end=end) for t in KUBE_TABLES}
        merged |= merge_lists(held, lists)
    changed = {t: rows for t, rows in ((t, _ordered(t, m)) for t, m in merged.items())
               if not rows.equals(_ordered(t, held[t]))}  # fmt: skip
    _count(report, records, merged)
    dates = {(h + step).date() for h in set(hours) for step in (-_HOUR, timedelta(0), _HOUR)}
    report.dates |= dates
    if changed:
        tell("mark")
        # The hours before and after too: a sample stands until the next scrape, which may be over midnight.
        lake.mark(dates, "sealed")
    if rescales:
        tell("journal")
        rescaling.journal(lake, rescales)
    for table, rows in changed.items():
        tell(f"replace {table}")
        report.versions[table] = lake.replace(table, rows, start, end, run_id, mark=False)
    if rescales:
        tell("forget")
        rescaling.forget(lake)


def _floor(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _ordered(table: str, rows: pa.Table) -> pa.Table:
    """Rows in key order: the layout of files, and the ground for seeing that nothing changed."""
    return rows.sort_by([(c, "ascending") for c in CONTRACTS[table].key]).combine_chunks()


def _count(report: SealReport, records: list[Record], merged: Tables) -> None:
    report.scrapes += len({(r.cluster, r.target, r.at) for r in records if r.kind == "dcgm"})
    report.lists += len({(r.cluster, r.at, r.kind, r.target, r.body) for r in records if r.kind != "dcgm"})
    mine = {(r.cluster, r.at, r.target) for r in records if r.kind == "dcgm"}
    columns = ("cluster", "scrape_at", "target", "samples", "rejected_lines", "duplicate_lines", "error")
    attempts = merged.get("raw.scrapes")
    for row in attempts.select(list(columns)).to_pylist() if attempts is not None else ():
        if (row["cluster"], row["scrape_at"], row["target"]) in mine:
            report.samples += row["samples"] or 0
            report.rejected_lines += row["rejected_lines"] or 0
            report.duplicate_lines += row["duplicate_lines"] or 0
    stamps = {(r.cluster, r.at) for r in records if r.kind != "dcgm"}
    snapshots = merged.get("raw.kube_snapshots")
    for row in snapshots.to_pylist() if snapshots is not None else ():
        if row["error"] and (row["cluster"], row["snapshot_at"]) in stamps:
            report.errors.append(f"{row['kind']} list of {row['cluster']} at {row['snapshot_at']}: {row['error']}")
