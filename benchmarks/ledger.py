"""The ledger of one day of a large fleet, beside a bare scan-and-sum of the same columns.

A made-up day is written to a scratch lake: GPUs sampled every 15 s and pods that come and go. Then the models
core.gpu_segments and mart.gpu_ledger_hourly run in a process of their own, whose seconds and peak memory are shown, at
one and at four times the size. Run: `python benchmarks/ledger.py [--gpus 1000] [--pods 5000] [--times 1,4]`.
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

DAY = date(2026, 3, 2)
GPUS_PER_NODE = 8
SPACING_S = 15
TABLES = ("core.gpu_segments", "mart.gpu_ledger_hourly")

UNITS = """
select date '{day}' as date, 'bench' as cluster, 'node-' || (g // 8) as node,
    '0000:' || lpad((g % 8)::varchar, 2, '0') as pci_bus_id,
    null::bigint as gi_id, timestamp '{day}' as interval_start_at,
    timestamp '{day}' + interval 1 day as interval_end_at,
    null::varchar as mig_profile, null::varchar as mig_layout, null::bigint as slices, 0::bigint as share_start,
    1::bigint as share_end, 1::bigint as share_parts, false as is_uncarved, 'nvidia.com/gpu' as resource,
    1::bigint as replicas,
    'GPU-' || g as gpu_uuid, 'NVIDIA H100 80GB HBM3' as model, 'H100-80GB-HBM3' as accelerator, 'bench' as provider,
    'r1' as region, 'r1-a' as zone, 'bench-8' as instance_type, false as is_unseen
from range({gpus}) as r(g)
"""

# Every GPU is held by pods / GPUs pods one after the other, each with a short gap before the next.
HOLDS = """
select date '{day}' as date, 'bench' as cluster, 'node-' || (g // 8) as node,
    '0000:' || lpad((g % 8)::varchar, 2, '0') as pci_bus_id,
    null::bigint as gi_id, 'pod-' || p as pod_uid, 'nvidia.com/gpu' as resource,
    timestamp '{day}' + interval 1 second * (k * {span} + hash(p) % 600) as interval_start_at,
    timestamp '{day}' + interval 1 second * ((k + 1) * {span} - 1 - hash(p + 1) % 300) as interval_end_at,
    1::bigint as parts, 1::bigint as of_parts, 1.0::double as share_ratio, 'exporter_labels' as method,
    timestamp '{day}' + interval 1 second * (k * {span} + hash(p) % 600) as started_at,
    timestamp '{day}' + interval 1 second * ((k + 1) * {span} - 1 - hash(p + 1) % 300) as finished_at
from (select p, p % {gpus} as g, p // {gpus} as k from range({pods}) as r(p)) as pods
"""

ALLOCATIONS = """
select date, cluster, pod_uid, resource, 1::bigint as quantity, 'ns-' || hash(pod_uid) % 20 as namespace,
    pod_uid as pod, node,
    'team-' || hash(pod_uid) % 6 as team, 'pod_label:team' as team_source, 'Job' as workload_kind,
    null::varchar as owner_name,
    null::bigint as priority, null::varchar as priority_class, null::bigint as cpu_milli, null::bigint as memory_bytes,
    started_at as created_at, started_at, finished_at, 'finished' as end_reason, 'kubernetes' as source,
    interval_start_at, interval_end_at
from ({holds})
"""

SAMPLES = """
select 'bench' as cluster, 'node-' || (g // 8) as node, '0000:' || lpad((g % 8)::varchar, 2, '0') as pci_bus_id,
    null::bigint as gi_id, timestamp '{day}' + interval 1 second * (t * {spacing} + 7) as sampled_at,
    timestamp '{day}' + interval 1 second * ((t + 1) * {spacing} + 7) as covers_until_at,
    (hash(g * 100003 + t) % 1000000) / 1000000.0 as util_ratio, 'sm_active' as util_source,
    'node-' || (g // 8) as target,
    'GPU-' || g as gpu_uuid, (g % 8)::bigint as gpu_index, 'NVIDIA H100 80GB HBM3' as model, false as is_clamped,
    (hash(g * 100019 + t) % 101) * 0.01 as gpu_util_ratio, 70.0 + hash(g + t) % 600 as power_w, date '{day}' as date
from range({gpus}) as a(g) cross join range({scrapes}) as b(t)
order by g, t
"""


def prepare(root: Path, gpus: int, pods: int) -> int:
    """Write the day's core tables; returns the number of sample rows."""
    import duckdb  # noqa: PLC0415  the parent process only starts others

    from warehouse.contracts import CONTRACTS  # noqa: PLC0415
    from warehouse.lake import Lake  # noqa: PLC0415
    from warehouse.sqltypes import duckdb_type  # noqa: PLC0415

    scrapes = 86_400 // SPACING_S
    numbers = {
        "day": DAY,
        "gpus": gpus,
        "pods": pods,
        "span": 86_400 * gpus // pods,
        "spacing": SPACING_S,
        "scrapes": scrapes,
    }
    holds = HOLDS.format(**numbers)
    queries = {
        "core.gpu_units": UNITS.format(**numbers),
        "core.device_assignments": holds,
        "core.pod_allocations": ALLOCATIONS.format(holds=holds),
        "core.gpu_samples": SAMPLES.format(**numbers),
    }
    lake, con = Lake(root), duckdb.connect()
    con.execute("set memory_limit = '3GB'")
    for name, query in queries.items():
        given = {d[0] for d in con.execute(f"describe {query}").fetchall()}
        missing = "".join(
            f", null::{duckdb_type(f.arrow)} as {f.name}" for f in CONTRACTS[name].fields if f.name not in given
        )
        reader = con.sql(f"select *{missing} from ({query})").to_arrow_reader(500_000)
        lake.replace(name, reader, DAY, DAY + timedelta(days=1), "bench")
    return gpus * scrapes


def measure(root: Path, what: str) -> dict[str, float]:
    """The ledger or the bare scan, in this process: seconds and peak memory."""
    from warehouse.engine import open_database  # noqa: PLC0415
    from warehouse.lake import Lake  # noqa: PLC0415
    from warehouse.runner import run_models  # noqa: PLC0415

    lake = Lake(root)
    begun = time.perf_counter()
    if what == "ledger":
        run_models(lake, TABLES, DAY, DAY + timedelta(days=1), "bench", memory_limit="2500MB")
    else:
        con = open_database(root, memory_limit="2500MB")
        con.execute(
            "select node, pci_bus_id, date_trunc('hour', sampled_at), sum(util_ratio), sum(gpu_util_ratio),"
            " max(covers_until_at)"
            f" from ({lake.relation('core.gpu_samples')}) group by all"
        ).fetchall()
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def child(root: Path, what: str, gpus: int, pods: int) -> dict[str, float]:
    """One step in a process of its own; peak memory is inherited from a large parent, so this one stays small."""
    command = [sys.executable, __file__, "--step", what, "--root", str(root), "--gpus", str(gpus), "--pods", str(pods)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--times", default="1,4")
    parser.add_argument("--step", choices=("prepare", "ledger", "scan"), help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        rows = prepare(args.root, args.gpus, args.pods) if args.step == "prepare" else 0
        print(json.dumps({"rows": rows} if rows else measure(args.root, args.step)))
        return
    titles = ("GPUs", "pods", "samples", "ledger s", "peak MB", "scan s", "ratio", "of linear")
    print("".join(f"{t:>12}" for t in titles))
    base = 0.0
    for factor in (int(x) for x in args.times.split(",")):
        with tempfile.TemporaryDirectory() as scratch:
            size = (Path(scratch), args.gpus * factor, args.pods * factor)
            rows = int(child(size[0], "prepare", *size[1:])["rows"])
            scan, ledger = child(size[0], "scan", *size[1:]), child(size[0], "ledger", *size[1:])
        base = base or ledger["seconds"] / factor
        figures = (
            f"{args.gpus * factor}",
            f"{args.pods * factor}",
            f"{rows:,}",
            f"{ledger['seconds']:.2f}",
            f"{ledger['peak_mb']:.0f}",
            f"{scan['seconds']:.2f}",
            f"{ledger['seconds'] / scan['seconds']:.1f}",
            f"{ledger['seconds'] / (base * factor):.2f}",
        )
        print("".join(f"{f:>12}" for f in figures), flush=True)


if __name__ == "__main__":
    main()
