"""Rightsizing of 100,000 runs, beside a bare scan of the tables it reads.

Four weeks of made-up runs are written to a scratch lake: jobs of one to eight GPUs by templates of about 40 runs, what
each device did on each date, and how each pod was last listed. Then core.run_peaks and mart.rightsizing run in a
process of their own, whose seconds and peak memory are shown. What stands before them, core.pod_unit_days, is computed
with each date's samples and costs what the ledger's bench costs. Run: `python benchmarks/rightsizing.py [--runs N]`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

START, DAYS = date(2026, 3, 2), 28
TABLES = ("core.run_peaks", "mart.rightsizing")

# Every 20th run fails; a third of the templates ask for eight devices and use as many, four or one.
RUNS = """
select
    date '{start}' + (p % {days})::integer as date, 'bench' as cluster, 'uid-' || p as pod_uid,
    'ns-' || t % 20 as namespace, 'job-' || t || '-' || lpad(p::varchar, 8, '0') as owner_name,
    'job-' || t || '-' || lpad(p::varchar, 8, '0') || '-0-abcde' as pod, 'team-' || t % 6 as team,
    'Job' as workload_kind, 'Job' as owner_kind, 'nvidia.com/gpu' as resource,
    ['H100-80GB-HBM3', 'A100-SXM4-80GB', 'L40S'][t % 3 + 1] as accelerator,
    (case when t % 3 = 0 then 8 else 1 end)::bigint as devices,
    (case when t % 3 = 0 then [8, 4, 1][t % 7 % 3 + 1] else 1 end)::bigint as busy,
    timestamp '{start}' + interval 1 day * (p % {days}) + interval 1 minute * (p % 600) as started_at,
    timestamp '{start}' + interval 1 day * (p % {days}) + interval 1 minute * (p % 600 + 120) as finished_at,
    case when p % 20 = 0 then 'Failed' else 'Succeeded' end as phase, 'training' as shape, 0.2::double as dram_p95,
    (t % 10) / 10.0 as activity_mean, 7200.0 * devices as allocated_gpu_seconds, 0 as stranded_gpu_seconds,
    0 as unobserved_gpu_seconds, 120::bigint as samples, t
from (select p, p // 40 as t from range({runs}) as r(p)) as runs
"""

UNITS = """
select
    date, cluster, pod_uid, 'node' as node, lpad(slot::varchar, 2, '0') as pci_bus_id, null::bigint as gi_id,
    1.0::double as share_ratio, 120::bigint as samples, 7200000000::bigint as cover_us, 120::bigint as known_samples,
    (case when slot < busy then 110 else 0 end)::bigint as active_samples, 0::bigint as util_only_samples,
    (case when slot < busy then t % 120 else 0 end)::bigint as over_1_of_7_samples, 0::bigint as over_2_of_7_samples,
    0::bigint as over_3_of_7_samples, 0::bigint as over_4_of_7_samples, 0.9::double as activity_max,
    30000000::bigint as activity_micros, 120::bigint as resident_samples, 60000000::bigint as resident_micros,
    0::bigint as occupancy_samples, 0::bigint as pcie_samples,
    case when slot < busy then (1 + t % 30) * 1e9 else 5e8 end as fb_used_max_bytes, 85.9e9::double as fb_total_bytes,
    busy as peak_busy_devices
from ({runs}) as r cross join lateral range(devices) as d(slot)
"""


def prepare(root: Path, runs: int) -> int:
    """Write the tables that are read; returns their rows."""
    import duckdb  # noqa: PLC0415  the parent process only starts others

    from warehouse.contracts import CONTRACTS  # noqa: PLC0415
    from warehouse.lake import Lake  # noqa: PLC0415
    from warehouse.sqltypes import duckdb_type  # noqa: PLC0415

    made = RUNS.format(start=START, days=DAYS, runs=runs)
    queries = {"mart.job_efficiency": made, "core.pod_states": made, "core.pod_unit_days": UNITS.format(runs=made)}
    lake, con, rows = Lake(root), duckdb.connect(), 0
    con.execute("set memory_limit = '2GB'")
    for name, query in queries.items():
        given = {d[0] for d in con.execute(f"describe {query}").fetchall()}
        columns = ", ".join(
            f"{f.name if f.name in given else 'null'}::{duckdb_type(f.arrow)} as {f.name}"
            for f in CONTRACTS[name].fields
        )
        reader = con.sql(f"select {columns} from ({query}) order by date").to_arrow_reader(500_000)
        lake.replace(name, reader, START, START + timedelta(days=DAYS), "bench")
        rows += int(con.execute(f"select count(*) from ({query})").fetchall()[0][0])
    return rows


def measure(root: Path, what: str) -> dict[str, float]:
    """The models or the bare scan, in this process: seconds, rows and peak memory."""
    from warehouse.engine import open_database  # noqa: PLC0415
    from warehouse.lake import Lake  # noqa: PLC0415
    from warehouse.runner import run_models  # noqa: PLC0415

    lake, rows = Lake(root), 0
    begun = time.perf_counter()
    if what == "models":
        rows = run_models(lake, TABLES, START, START + timedelta(days=DAYS), "bench", memory_limit="2GB")[-1].rows
    else:
        con = open_database(root, memory_limit="2GB")
        for name, columns in (
            ("mart.job_efficiency", "sum(devices), sum(activity_mean), max(owner_name), max(finished_at)"),
            ("core.pod_states", "max(owner_kind), max(phase), max(pod)"),
            ("core.pod_unit_days", "sum(samples), sum(active_samples), max(fb_used_max_bytes), sum(cover_us)"),
        ):
            grouped = f"select pod_uid, {columns} from ({lake.relation(name)}) group by all"
            con.execute(f"select max(columns(*)) from ({grouped})").fetchall()
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "rows": rows, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def child(root: Path, what: str, runs: int) -> dict[str, float]:
    """One step in a process of its own; peak memory is inherited from a large parent, so this one stays small."""
    command = [sys.executable, __file__, "--step", what, "--root", str(root), "--runs", str(runs)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--step", choices=("prepare", "models", "scan"), help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        done = {"rows": prepare(args.root, args.runs)} if args.step == "prepare" else measure(args.root, args.step)
        print(json.dumps(done))
        return
    print("".join(f"{t:>12}" for t in ("runs", "rows read", "templates", "seconds", "peak MB", "scan s", "ratio")))
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        rows = child(root, "prepare", args.runs)["rows"]
        scan, models = child(root, "scan", args.runs), child(root, "models", args.runs)
    figures = (
        f"{args.runs:,}",
        f"{rows:,}",
        f"{models['rows']:,}",
        f"{models['seconds']:.2f}",
        f"{models['peak_mb']:.0f}",
        f"{scan['seconds']:.2f}",
        f"{models['seconds'] / scan['seconds']:.1f}",
    )
    print("".join(f"{f:>12}" for f in figures), flush=True)


if __name__ == "__main__":
    main()
