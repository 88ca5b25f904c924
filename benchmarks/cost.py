"""One month of a large fleet's cost attributed to teams, beside a bare scan-and-sum of the inputs, and its export.

A made-up month is written to a scratch lake: GPUs by the hour, pods of 200 teams on them, requests, energy and charges,
most nodes partly covered by a commitment. Then the models from core.energy_shares to mart.cost_monthly run in a process
of their own, whose seconds and peak memory are shown; mart.focus_cost_and_usage is built and exported as CSV and as
Parquet. Targets: 20 s, 2 GB; 40 s for both files. Run: `python benchmarks/cost.py [--gpus 1000] [--days 30]`.
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

START = date(2026, 6, 1)
TEAMS = 200
MEMORY = "1500MB"
ATTRIBUTION = (
    "core.energy_shares", "core.cost_shares", "mart.cost_hourly", "mart.cost_daily", "mart.cost_monthly",
)  # fmt: skip
FOCUS = "mart.focus_cost_and_usage"

# Each GPU-hour; on even nodes pods of one GPU, on odd nodes of four, each for about half a day. A third of the hours
# begin with time that nobody holds.
PLACES = """
select hour, cast(hour as date) as date, 'bench' as cluster, 'node-' || (g // 8) as node, g, g // 8 as n,
    '0000:' || lpad((g % 8)::varchar, 2, '0') as pci_bus_id, epoch(hour)::bigint // 3600 as h,
    case when (g // 8) % 2 = 0 then g else g - g % 4 end as lead_gpu,
    case when hash(g, epoch(hour)::bigint // 3600) % 3 = 0 then hash(g, hour) % 3600000000 else 0 end::bigint as free_us
from range({gpus}) as r(g)
cross join range(timestamp '{start}', timestamp '{end}', interval 1 hour) as t(hour)
"""
PODS = """
select *, 'pod-' || lead_gpu || '-' || (h + lead_gpu % 12) // 12 as holder,
    hash(lead_gpu, (h + lead_gpu % 12) // 12) % {teams} as team_number
from ({places})
"""
LEDGER = """
select date, hour, cluster, node, pci_bus_id, holder, 'ns-' || team_number as namespace, holder as pod,
    'team-' || team_number as team, 'Job' as workload_kind, 'H100-80GB-HBM3' as accelerator,
    cast((3600000000 - free_us) / 1000000.0 as decimal(18, 6)) as capacity_gpu_seconds,
    cast((3600000000 - free_us) / 1000000.0 as decimal(18, 6)) as allocated_gpu_seconds,
    cast((3600000000 - free_us) // 2 / 1000000.0 as decimal(18, 6)) as utilized_gpu_seconds,
    cast((3600000000 - free_us - (3600000000 - free_us) // 2) / 1000000.0 as decimal(18, 6)) as stranded_gpu_seconds
from ({pods})
union all by name
select date, hour, cluster, node, pci_bus_id, 'H100-80GB-HBM3' as accelerator,
    cast(free_us / 1000000.0 as decimal(18, 6)) as capacity_gpu_seconds,
    cast(free_us / 1000000.0 as decimal(18, 6)) as unallocated_gpu_seconds
from ({pods}) where free_us > 0
"""
REQUESTS = """
select distinct date, hour, cluster, node, holder as pod_uid, 'ns-' || team_number as namespace, holder as pod,
    'team-' || team_number as team, 'Job' as workload_kind, 36000000::bigint as cpu_milli_seconds,
    235929600::bigint as memory_mib_seconds
from ({pods})
union all
select date, hour, cluster, node, 'daemon-' || k || '-' || n, 'kube-system', 'daemon-' || k || '-' || n, '(unmapped)',
    'DaemonSet', 360000, 943718
from ({places}) cross join range(5) as d(k) where g % 8 = 0
"""
ENERGY = """
select date, hour, cluster, node, pci_bus_id,
    cast(1080000 + hash(g, h) % 1440000 as decimal(18, 6)) as metered_energy_j,
    3600.0::decimal(18, 6) as metered_gpu_seconds
from ({places})
"""
NODES = """
select date, hour, cluster, node, 'uid-' || n as node_uid, 'i-' || n as resource_id, 'bench' as provider,
    'r1' as region, 'bench-8' as instance_type, 'H100-80GB-HBM3' as accelerator, 8::bigint as gpu_count,
    192000::bigint as cpu_milli, 2199023255552 as memory_bytes, 3600000000 as running_us
from ({places}) where g % 8 = 0
"""
# Two nodes of three have half of each hour covered by a reservation.
CHARGES = """
select date, hour, 'computed/i-' || n || '/' || h || '/' || k as charge_id, 'computed' as charge_origin,
    'node' as charge_scope, cluster, node, 'i-' || n as resource_id, 'bench' as provider, '1' as billing_account_id,
    'r1' as region, 'bench-8' as instance_type, 'H100-80GB-HBM3' as accelerator, 8::bigint as gpu_count,
    'Usage' as charge_category, hour as charge_period_start_at, hour + interval 1 hour as charge_period_end_at,
    timestamp '{start}' as billing_period_start_at, timestamp '{end}' as billing_period_end_at,
    'bench' as service_provider, 'bench' as invoice_issuer, 'Compute' as service_category,
    'Virtual Machines' as service_subcategory, 'Machines' as service_name, 'sku-8' as sku_id,
    'sku-8/od' as sku_price_id,
    case when covered and k = 0 then 'Committed' else 'Standard' end as pricing_category, quantity as pricing_quantity,
    'Hours' as pricing_unit, quantity as consumed_quantity, 'Hours' as consumed_unit,
    55.04::decimal(20, 9) as list_unit_price, 52.288::decimal(20, 9) as contracted_unit_price,
    55.04::decimal(20, 9) * quantity as list_cost, 52.288::decimal(20, 9) * quantity as contracted_cost,
    case when covered and k = 0 then 0 else 52.288::decimal(20, 9) * quantity end::decimal(28, 10) as billed_cost,
    (case when covered and k = 0 then 33.3333333333 else 52.288 end * quantity)::decimal(28, 10) as effective_cost,
    'USD' as billing_currency, case when covered and k = 0 then 'ri' end as commitment_id,
    case when covered and k = 0 then 'Used' end as commitment_discount_status,
    case when covered and k = 0 then 'Usage' end as commitment_category,
    case when covered and k = 0 then quantity end as commitment_quantity,
    case when covered and k = 0 then 'Hours' end as commitment_unit
from (
    select p.*, n % 3 > 0 as covered, k, case when n % 3 > 0 then 0.5 else 1.0 end::decimal(18, 9) as quantity
    from ({places}) as p cross join range(2) as d(k) where g % 8 = 0 and k <= n % 3
)
"""
SCAN = """
select (select sum(allocated_gpu_seconds + utilized_gpu_seconds) from ({ledger})),
    (select sum(list_cost) + sum(effective_cost) from ({charges})), (select sum(cpu_milli_seconds) from ({requests})),
    (select sum(metered_energy_j) from ({energy}))
"""


def prepare(root: Path, gpus: int, days: int) -> int:
    """Write the month's tables; returns their rows."""
    import duckdb  # noqa: PLC0415  the parent process only starts others

    from warehouse.contracts import CONTRACTS  # noqa: PLC0415
    from warehouse.lake import Lake  # noqa: PLC0415
    from warehouse.sqltypes import duckdb_type  # noqa: PLC0415

    end = START + timedelta(days=days)
    places = PLACES.format(gpus=gpus, start=START, end=end)
    pods = PODS.format(places=places, teams=TEAMS)
    queries = {
        "mart.gpu_ledger_hourly": LEDGER, "core.pod_request_hours": REQUESTS, "core.gpu_energy_hourly": ENERGY,
        "core.node_hours": NODES, "core.charges": CHARGES,
    }  # fmt: skip
    lake, con, rows = Lake(root), duckdb.connect(), 0
    con.execute("set memory_limit = '3GB'")
    for name, query in queries.items():
        sql = query.format(places=places, pods=pods, start=START, end=end)
        given = {d[0] for d in con.execute(f"describe {sql}").fetchall()}
        columns = ", ".join(
            f.name
            if f.name in given and not f.name.endswith("_gpu_seconds")
            else f"coalesce({f.name}, 0) as {f.name}"
            if f.name in given
            else f"{'0' if f.name.endswith('_gpu_seconds') else 'null'}::{duckdb_type(f.arrow)} as {f.name}"
            for f in CONTRACTS[name].fields
        )
        con.execute(f"create or replace temp table made as select {columns} from ({sql})")
        rows += con.execute("select count(*) from made").fetchall()[0][0]
        lake.replace(name, con.sql("select * from made").to_arrow_reader(500_000), START, end, "bench")
    return rows


def measure(root: Path, what: str, days: int) -> dict[str, float]:
    """One step in this process: seconds, peak memory and, where it makes some, rows."""
    from warehouse.engine import open_database  # noqa: PLC0415
    from warehouse.export import export_table  # noqa: PLC0415
    from warehouse.lake import Lake  # noqa: PLC0415
    from warehouse.models import load_models  # noqa: PLC0415
    from warehouse.runner import run_models  # noqa: PLC0415

    lake, rows = Lake(root), 0
    models = load_models()
    begun = time.perf_counter()
    if what == "scan":
        con = open_database(root, memory_limit=MEMORY)
        tables = {
            "ledger": "mart.gpu_ledger_hourly", "charges": "core.charges", "requests": "core.pod_request_hours",
            "energy": "core.gpu_energy_hourly",
        }  # fmt: skip
        con.execute(SCAN.format(**{k: lake.relation(t) for k, t in tables.items()})).fetchall()
    elif what in ("attribute", "focus"):
        names = ATTRIBUTION if what == "attribute" else (FOCUS,)
        end = START + timedelta(days=days)
        reports = run_models(lake, names, START, end, "bench", models=models, memory_limit=MEMORY)
        rows = sum(r.rows for r in reports)
        lake.publish("bench")
    else:
        rows = export_table(root, FOCUS, what, root / f"focus.{what}", focus_version="1.4").rows
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "rows": rows}


def child(root: Path, what: str, gpus: int, days: int) -> dict[str, float]:
    """One step in a process of its own; peak memory is inherited from a large parent, so this one stays small."""
    command = [sys.executable, __file__, "--step", what, "--root", str(root), "--gpus", str(gpus), "--days", str(days)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpus", type=int, default=1000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--root", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        made = args.step == "prepare"
        done = {"rows": prepare(args.root, args.gpus, args.days)} if made else measure(args.root, args.step, args.days)
        print(json.dumps(done))
        return
    print("".join(f"{t:>12}" for t in ("step", "rows", "seconds", "peak MB", "x scan")))
    with tempfile.TemporaryDirectory() as scratch:
        size = (args.gpus, args.days)
        rows = child(Path(scratch), "prepare", *size)["rows"]
        scan = child(Path(scratch), "scan", *size)
        for step in ("scan", "attribute", "focus", "csv", "parquet"):
            done = scan if step == "scan" else child(Path(scratch), step, *size)
            shown = (
                step,
                f"{int(done['rows'] or rows):,}",
                f"{done['seconds']:.2f}",
                f"{done['peak_mb']:.0f}",
                f"{done['seconds'] / scan['seconds']:.1f}",
            )
            print("".join(f"{f:>12}" for f in shown), flush=True)


if __name__ == "__main__":
    main()
