"""One charge and its division, made by hand for tests of FOCUS: defaults, and the shares that its holders bear.

Belongs here: rows of core.charges and of mart.cost_hourly for any one charge. Not here: which charges a month has.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal as D
from typing import Any

import pyarrow as pa

from warehouse.contracts import CONTRACTS

FIRST, SECOND, THIRD = datetime(2026, 3, 1, 0), datetime(2026, 3, 1, 1), datetime(2026, 3, 2, 5)
HOUR = timedelta(hours=1)
MONTH = datetime(2026, 3, 1), datetime(2026, 4, 1)
# part or holder, accelerators out of the node's: what a charge of a node is divided into
Part = tuple[str, int]
Row = dict[str, Any]


def rows_to_table(name: str, rows: list[Row]) -> pa.Table:
    """Rows as Arrow under the contract of table `name`; columns not given are null."""
    schema = CONTRACTS[name].arrow_schema
    if unknown := {c for row in rows for c in row} - set(schema.names):
        raise KeyError(f"{name} has no {sorted(unknown)}")
    return pa.Table.from_pylist([{c: row.get(c) for c in schema.names} for row in rows], schema=schema)


def charge(charge_id: str, hour: datetime, **given: Any) -> Row:
    """A charge on demand of one node-hour, 8 USD listed and 6 USD negotiated, unless `given` says otherwise."""
    row: Row = {
        "date": hour.date(), "hour": hour, "charge_id": charge_id, "charge_origin": "computed", "charge_scope": "node",
        "cluster": "east", "node": "gpu-1", "resource_id": "aurora:///gpu-1", "resource_name": "gpu-1",
        "resource_type": "Virtual Machine", "provider": "aurora", "billing_account_id": "a-100",
        "sub_account_id": "p-7", "invoice_id": "inv-2026-03", "invoice_issuer": "aurora", "service_provider": "aurora",
        "host_provider": "aurora", "region": "east-1", "zone": "east-1a", "instance_type": "h8", "accelerator": "H100",
        "gpu_count": 8, "charge_category": "Usage", "charge_description": "h8 on demand",
        "charge_frequency": "Usage-Based", "commitment_id": None, "commitment_quantity": None,
        "charge_period_start_at": hour, "charge_period_end_at": hour + HOUR, "billing_period_start_at": MONTH[0],
        "billing_period_end_at": MONTH[1], "service_category": "Compute", "service_subcategory": "Virtual Machines",
        "service_name": "Aurora Compute", "sku_id": "h8", "sku_price_id": "h8-od", "sku_meter": "Compute Instance",
        "sku_price_details": '{"InstanceType":"h8","GpuCount":8,"x_GpuModel":"H100"}', "pricing_category": "Standard",
        "pricing_quantity": D(1), "pricing_unit": "Hours", "consumed_quantity": D(1), "consumed_unit": "Hours",
        "list_unit_price": D(8), "contracted_unit_price": D(6), "billing_currency": "USD", "pricing_currency": "USD",
        "owner_team": "platform", "tags": {"Application": "search", 'qu"ote': "back\\slash"}, "list_cost": D(8),
        "contracted_cost": D(6), "billed_cost": D(6), "effective_cost": D(6),
    }  # fmt: skip
    row |= given
    row["pricing_currency_list_unit_price"] = given.get("pricing_currency_list_unit_price", row["list_unit_price"])
    row["pricing_currency_contracted_unit_price"] = given.get(
        "pricing_currency_contracted_unit_price", row["contracted_unit_price"]
    )
    row["pricing_currency_effective_cost"] = given.get("pricing_currency_effective_cost", row["effective_cost"])
    return row


def whole(row: Row, cost_part: str) -> list[Row]:
    """The division of a charge that is not divided."""
    return [_share(row, cost_part, None, D(1), D(0), {}, seconds={})]


def divided(row: Row, parts: list[Part], *, gpu: D = D(1)) -> list[Row]:
    """The division of a node's charge over accelerators held; `gpu` is their part of the price, the rest overhead.

    A part is `team/pod` or the kind of what nobody held. Ratios at 1e-12, the last part takes what is left; half of a
    holder's seconds are utilized, a quarter stranded, a quarter unobserved.
    """
    count = row["gpu_count"]
    ratios = [(gpu * n / count).quantize(D("1e-12")) for _, n in parts]
    ratios[-1] += gpu - sum(ratios)
    shares = list(zip([p for p, _ in parts], ratios, [n for _, n in parts], strict=True))
    if gpu < 1:
        shares.append(("node_overhead", 1 - gpu, 0))
    left = {m: row[m] for m in _SUMMED if row[m] is not None}
    rows = []
    for place, (part, ratio, n) in enumerate(shares):
        is_last = place == len(shares) - 1
        dealt = {m: v if is_last else (row[m] * ratio).quantize(_SUMMED[m]) for m, v in left.items()}
        # list and contracted cost follow the quantity exactly
        if row["list_unit_price"] is not None:
            dealt |= {
                "list_cost": row["list_unit_price"] * dealt["pricing_quantity"],
                "contracted_cost": row["contracted_unit_price"] * dealt["pricing_quantity"],
            }
        left = {m: left[m] - dealt[m] for m in left}
        holder = part if "/" in part else None
        kind = "holder" if holder else part
        rows.append(_share(row, kind, holder, ratio, ratio if n else D(0), dealt, seconds={kind: n * 3600}))
    return rows


_SUMMED = {
    "pricing_quantity": D("1e-9"), "consumed_quantity": D("1e-9"), "commitment_quantity": D("1e-9"),
    "list_cost": D("1e-18"), "contracted_cost": D("1e-18"), "billed_cost": D("1e-10"), "effective_cost": D("1e-10"),
}  # fmt: skip


def _share(
    row: Row, part: str, name: str | None, ratio: D, gpu_ratio: D, dealt: Row, *, seconds: dict[str, int]
) -> Row:
    held = seconds.get("holder", 0)
    team, pod = name.split("/") if name else (None, None)
    amounts = {m: dealt.get(m, row[m] if not dealt else None) for m in _SUMMED}
    effective = amounts["effective_cost"] if name else D(0)
    utilized, stranded = (effective / 2).quantize(D("1e-10")), (effective / 4).quantize(D("1e-10"))
    same = """date hour charge_id charge_origin charge_scope cluster node resource_id provider billing_account_id region
              instance_type accelerator charge_category pricing_category commitment_id owner_team pricing_unit
              billing_currency"""
    return {c: row[c] for c in same.split()} | amounts | {
        "cost_part": part, "holder": f"uid-{pod}" if pod else None, "namespace": f"ns-{team}" if team else None,
        "pod": pod, "team": team, "workload_kind": "Job" if pod else None, "bearer": "team" if pod else "central",
        "method_id": "strandline-whole-node-1" if row["charge_scope"] == "node" else None, "allocated_ratio": ratio,
        "gpu_ratio": gpu_ratio, "utilized_cost": utilized, "stranded_cost": stranded,
        "unobserved_cost": effective - utilized - stranded, "allocated_gpu_seconds": held,
        "utilized_gpu_seconds": held // 2, "stranded_gpu_seconds": held // 4,
        "unobserved_gpu_seconds": held - held // 2 - held // 4,
        "unallocated_gpu_seconds": seconds.get("unallocated", 0),
        "unavailable_gpu_seconds": seconds.get("unavailable", 0),
    }  # fmt: skip


_SKU = """
sku_id sku_price_id sku_meter sku_price_details pricing_category pricing_quantity pricing_unit consumed_quantity
consumed_unit list_unit_price contracted_unit_price
"""
_NODE = "cluster node zone instance_type accelerator gpu_count"
NO_SKU: Row = {c: None for c in _SKU.split()}
NO_NODE: Row = {c: None for c in _NODE.split()}
