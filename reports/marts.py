"""What the stranding report shows, read from marts: sums of their columns, and nothing beside.

Belongs here: the queries and the records they fill. Not here: how it looks (`stranding.py`, `bars.py`), and any
figure that no mart holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta

import duckdb

# A curve with more points than this is drawn by the day.
HOURLY_DAYS = 45
TOP = 12
REST = "all others"


@dataclass(frozen=True)
class Parts:
    """The ledger's columns, summed, in GPU-hours."""

    capacity: float = 0.0
    allocated: float = 0.0
    unallocated: float = 0.0
    unavailable: float = 0.0
    utilized: float = 0.0
    stranded: float = 0.0
    unobserved: float = 0.0
    resident: float = 0.0
    rogue: float = 0.0

    def share(self, part: str, of: str = "allocated") -> float | None:
        """`part` as a ratio of `of`; None where there is nothing to divide by."""
        whole = getattr(self, of)
        return getattr(self, part) / whole if whole else None

    def __add__(self, other: Parts) -> Parts:
        return Parts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


NAMES = tuple(f.name for f in fields(Parts))
SUMS = ", ".join(f"coalesce(cast(sum({n}_gpu_seconds) as double), 0) / 3600" for n in NAMES)


@dataclass(frozen=True)
class Run:
    """A row of mart.job_efficiency; hours are GPU-hours, ratios 0 to 1."""

    namespace: str
    pod: str
    team: str | None
    accelerator: str | None
    devices: int
    shape: str
    verdict: str
    allocated: float
    stranded: float
    utilization: float | None
    typical: float | None


@dataclass(frozen=True)
class Findings:
    """Everything on the page. Groups are ordered by what is stranded in them, most first."""

    start: date
    end: date
    clusters: tuple[str, ...]
    step_hours: int
    total: Parts
    teams: tuple[tuple[str, Parts], ...]
    accelerators: tuple[tuple[str, Parts], ...]
    namespaces: tuple[tuple[str, Parts], ...]
    timeline: tuple[tuple[datetime, Parts], ...]
    verdicts: tuple[tuple[str, int, float, float], ...]
    runs: tuple[Run, ...]


def days(con: duckdb.DuckDBPyConnection) -> tuple[date, date] | None:
    """Days [start, end) that mart.stranding_hourly holds; None where it is empty."""
    first, last = con.execute("select min(date), max(date) from mart.stranding_hourly").fetchall()[0]
    return None if first is None else (first, last + timedelta(days=1))


def read(con: duckdb.DuckDBPyConnection, start: date, end: date) -> Findings:
    """What the marts say of the days [start, end). `con` has the views of `warehouse.engine.connect`."""
    where = f"date >= date '{start}' and date < date '{end}'"
    step = 1 if end - start <= timedelta(days=HOURLY_DAYS) else 24
    at = "hour" if step == 1 else "cast(date as timestamp)"
    clusters = con.execute(f"select distinct cluster from mart.gpu_ledger_hourly where {where} order by 1").fetchall()
    return Findings(
        start=start,
        end=end,
        clusters=tuple(r[0] for r in clusters),
        step_hours=step,
        total=dict(_groups(con, "''", where)).get("", Parts()),
        teams=_top(_groups(con, "team", f"{where} and team is not null")),
        accelerators=_top(_groups(con, "coalesce(accelerator, 'unknown')", where)),
        namespaces=_top(_groups(con, "namespace", f"{where} and namespace is not null")),
        timeline=tuple(
            (row[0], Parts(*row[1:]))
            for row in con.execute(
                f"select {at} as since, {SUMS} from mart.stranding_hourly where {where} group by since order by since"
            ).fetchall()
        ),
        verdicts=tuple(
            con.execute(
                "select verdict, count(*), cast(sum(allocated_gpu_seconds) as double) / 3600, "
                "cast(sum(stranded_gpu_seconds) as double) / 3600 as stranded "
                f"from mart.job_efficiency where {where} group by verdict order by stranded desc, verdict"
            ).fetchall()
        ),
        runs=_runs(con, where),
    )


def _groups(con: duckdb.DuckDBPyConnection, by: str, where: str) -> list[tuple[str, Parts]]:
    rows = con.execute(
        f"select {by} as name, {SUMS} from mart.stranding_hourly where {where} "
        "group by name order by sum(stranded_gpu_seconds) desc, name"
    ).fetchall()
    return [(row[0], Parts(*row[1:])) for row in rows]


def _top(groups: Sequence[tuple[str, Parts]]) -> tuple[tuple[str, Parts], ...]:
    """The first TOP groups, and the rest as one, so that a column still adds up to the whole."""
    if len(groups) <= TOP + 1:
        return tuple(groups)
    return (*groups[:TOP], (f"{REST} ({len(groups) - TOP})", _sum(p for _, p in groups[TOP:])))


def _sum(parts: Iterable[Parts]) -> Parts:
    return sum(parts, Parts())


def _runs(con: duckdb.DuckDBPyConnection, where: str) -> tuple[Run, ...]:
    rows = con.execute(
        "select namespace, pod, team, accelerator, devices, shape, verdict, "
        "cast(allocated_gpu_seconds as double) / 3600, cast(stranded_gpu_seconds as double) / 3600, "
        "utilization_ratio, baseline_activity_ratio "
        f"from mart.job_efficiency where {where} and stranded_gpu_seconds > 0 "
        f"order by stranded_gpu_seconds desc, cluster, pod_uid limit {TOP + 3}"
    ).fetchall()
    return tuple(Run(*row) for row in rows)
