"""The demo: a simulated fleet from its first job to the headline table.

Belongs here: the order of its steps, and the GPU-hours it prints. Not here: writing the history (`simulated.py`), money
(`billing.py`, `costs.py`), assets and checks (the main job runs them).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path

from fleet.model import FleetSpec, TraceJob
from fleet.world import World
from pipelines import billing, building, console, simulated
from pipelines.costs import print_costs
from pipelines.reporting import write_cost, write_stranding
from pipelines.settings import Settings, load
from sources.traces import Job, read_trace
from warehouse import runner
from warehouse.contracts import CONTRACTS
from warehouse.engine import connect
from warehouse.errors import BadInput
from warehouse.export import export_table
from warehouse.lake import Lake
from warehouse.windows import DAY

DAY_S = 86_400
# Where a trace ramps up, its first weeks say little about a fleet: take the first week that is about as busy as any.
BUSY_SHARE = 0.85
HISTORY = "core.pod_allocations"
FIGURES = ("capacity", "allocated", "utilized", "resident", "stranded", "unobserved")
TITLES = ("capacity", "allocated", "utilized (SM)", "resident (GPU_UTIL)", "stranded", "unobserved")

Progress = Callable[[str], None]


def jobs_of_trace(path: Path, days: int, first: date | None) -> tuple[tuple[TraceJob, ...], float]:
    """The trace's jobs for the fleet, and from which second of it the demo starts."""
    jobs = [j for j in read_trace(path) if j.num_gpus > 0]
    if not jobs:
        raise BadInput(f"{path}: no job in it asks for a GPU")
    start = busy_start(jobs, days) if first is None else (first - date(1970, 1, 1)).days * float(DAY_S)
    return tuple(TraceJob(j.submit_s, j.duration_s, j.num_gpus, j.group or "all") for j in jobs), start


def busy_start(jobs: Sequence[Job], days: int) -> float:
    """The first Monday from which `days` days hold BUSY_SHARE of the jobs of the busiest such window, in seconds.

    Weekdays stay weekdays that way. A trace without dates, or shorter than that, starts with its first job.
    """
    submits = sorted(j.submit_s for j in jobs)
    first, last = submits[0], submits[-1]
    week = 7 * DAY_S
    monday = 4 * DAY_S  # 1970-01-05
    start = monday + -(-(first - monday) // week) * week
    starts = []
    while start + days * DAY_S <= last + DAY_S:
        starts.append(start)
        start += week
    if first < 1e8 or not starts:
        return first
    counts = [sum(s <= t < s + days * DAY_S for t in submits) for s in starts]
    return next(s for s, n in zip(starts, counts, strict=True) if n >= BUSY_SHARE * max(counts))


def run(settings: Settings, spec: FleetSpec, out: Path | None, progress: Progress) -> None:
    """Simulate, write, build, publish, export and print. Replaces an earlier demo in the folder, nothing else."""
    lake = Lake(settings.data)
    if settings.data.is_dir():
        simulated.check_replaceable(lake)
    progress("inventing the fleet")
    world = World.build(spec)  # before anything is touched: it refuses a spec that makes no sense
    with lake.writer():
        simulated.check_replaceable(lake)
        start, end = simulated.spec_window(spec)
        first = (spec.end_at - timedelta(days=spec.days + spec.history_days + 30)).date()
        simulated.write_settings(lake, world, min(first, settings.partitions_start))
        settings = load(
            {"data": settings.data, "memory_limit": settings.memory_limit, "threads": settings.threads}
        ).settings
        written = simulated.write_history(lake, world, progress)
        written |= billing.write_money(lake, world, progress)
        about = simulated.describe(world)
        del world  # its telemetry is worth a gigabyte, which the build can use
        past = written.get("raw.allocation_history", set())
        simulated.clear_beyond(lake, {**written, HISTORY: past}, (start, end))
        build(lake, settings, start, end, past, progress)
    progress("exporting")
    folder = out or settings.data / "exports"
    paths = export_marts(settings.data, folder)
    pages = [p for p in (write_stranding(settings, None, start, end), write_cost(settings, None, start, end)) if p]
    print_headline(settings, spec, about, (start, end), paths, pages)


def build(lake: Lake, settings: Settings, start: date, end: date, past: set[date], progress: Progress) -> None:
    """Run the models over the days [start, end) as the main job in Dagster, allocation history before them directly."""
    from pipelines import running

    building.record_settings(lake, settings, "demo")
    if past:
        progress("allocation history")
        # One table over months: as partitions of a Dagster run it would cost more in events than in work.
        runner.run_models(
            lake, [HISTORY], min(past), start, "demo", memory_limit=settings.memory_limit, threads=settings.threads
        )
    progress(f"building {start} to {end - DAY} (Dagster job {running.MAIN})")
    running.run_main_job(settings, start, end)
    # Everything there is has just been built.
    lake.clear(lake.marks())


def export_marts(data: Path, folder: Path) -> list[Path]:
    """Every mart as CSV and Parquet."""
    marts = [t.name for t in CONTRACTS.values() if t.layer == "mart"]
    return [
        export_table(data, name, form, folder / f"{name}.{form}").path for name in marts for form in ("csv", "parquet")
    ]


def headline(settings: Settings, start: date, end: date) -> list[list[object]]:
    """Rows of the headline table in GPU-hours: each team, who holds nothing, and the total."""
    sums = ", ".join(f"sum({f}_gpu_seconds) / 3600 as {f}" for f in FIGURES)
    share = "sum(stranded_gpu_seconds) / nullif(sum(allocated_gpu_seconds), 0)"
    where = f"date >= date '{start}' and date < date '{end}'"
    with connect(settings.data, memory_limit=settings.memory_limit, threads=settings.threads) as con:
        rows = con.execute(
            f"select team, {sums}, {share} from mart.stranding_hourly where {where} "
            "group by team order by sum(stranded_gpu_seconds) desc, team"
        ).fetchall()
        total = con.execute(f"select 'all', {sums}, {share} from mart.stranding_hourly where {where}").fetchall()
    teams = [r for r in rows if r[0] is not None]
    nobody = [("held by nobody", *r[1:]) for r in rows if r[0] is None]
    return [
        [name, *(f"{float(v or 0):,.0f}" for v in values), "" if ratio is None else f"{float(ratio):.0%}"]
        for name, *values, ratio in [*teams, *nobody, *total]
    ]


def remainders(settings: Settings, start: date, end: date) -> str:
    """What the table leaves open: the rest of the capacity, and the hours that no exporter could have shown."""
    where = f"l.date >= date '{start}' and l.date < date '{end}'"
    with connect(settings.data, memory_limit=settings.memory_limit, threads=settings.threads) as con:
        unallocated, unavailable, unseen = con.execute(
            "select sum(l.unallocated_gpu_seconds) / 3600, sum(l.unavailable_gpu_seconds) / 3600, "
            "coalesce(sum(l.unobserved_gpu_seconds) filter (where l.pci_bus_id like 'unseen-%'), 0) / 3600 "
            f"from mart.gpu_ledger_hourly as l where {where}"
        ).fetchall()[0]
    return (
        f"of the capacity {float(unallocated or 0):,.0f} GPU-hours were unallocated and "
        f"{float(unavailable or 0):,.0f} unavailable; {float(unseen):,.0f} unobserved GPU-hours are of accelerators "
        "without a DCGM exporter (TPU)"
    )


def print_headline(
    settings: Settings,
    spec: FleetSpec,
    about: Mapping[str, int],
    window: tuple[date, date],
    paths: Sequence[Path],
    pages: Sequence[Path],
) -> None:
    """The result on stdout."""
    source = "a job trace" if spec.jobs is not None else f"seed {spec.seed}"
    print(
        f"SIMULATED fleet ({source}): {about['nodes']} nodes, {about['accelerators']} accelerators, "
        f"{about['providers']} providers, {about['regions']} regions, {about['pods']:,} pods, "
        f"{about['faults']} faults; {window[0]} to {window[1] - DAY}, one scrape each {spec.interval_s} s"
    )
    print()
    console.table(
        ("team", *TITLES, "stranded share"), headline(settings, *window), title="GPU-hours by team (simulated)"
    )
    print()
    print("capacity = allocated + unallocated + unavailable; allocated = utilized + stranded + unobserved")
    print(remainders(settings, *window))
    print()
    print_costs(settings, *window)
    print()
    forms = sorted({p.suffix for p in paths})
    print(f"exports (simulated), each as {' and '.join(forms)}:")
    for path in dict.fromkeys(p.with_suffix("") for p in paths):
        print(f"  {path}")
    print("reports (simulated):", *pages, sep="\n  ")
    sys.stdout.flush()
    data = "" if settings.data == Path("data") else f" --data {settings.data}"
    console.say(f'next: strandline query "select * from mart.stranding_hourly limit 10"{data}   strandline ui{data}')
