"""A small sound month of charges and their division, made by hand: every kind of charge that a FOCUS file may hold.

Shared by tests of the FOCUS model, its checks and its exports. Two hours of 2026-03-01 and one of 2026-03-02; the term
of the reservation `res-1` is those two hours, so its balance closes. Shares of `spot-1` are thirds, which do not divide
evenly; all others do.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pyarrow as pa

from warehouse.contracts import CONTRACTS
from warehouse.lake import Lake
from warehouse.runner import run_models

DAY, NEXT, END = date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 3)
FIRST, SECOND, THIRD = datetime(2026, 3, 1, 0), datetime(2026, 3, 1, 1), datetime(2026, 3, 2, 5)
HOUR = timedelta(hours=1)
MONTH = datetime(2026, 3, 1), datetime(2026, 4, 1)
MODELS = ("mart.focus_cost_and_usage", "mart.focus_contract_commitment")
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
RESERVATION: Row = {
    "commitment_id": "res-1", "commitment_name": "h8 reserved", "commitment_type": "Reservation",
    "commitment_category": "Usage", "commitment_unit": "Hours",
}  # fmt: skip
# Paid for a year in advance: what is paid and not yet amortized bridges billed and effective cost.
YEAR: Row = RESERVATION | {"commitment_id": "res-2", "commitment_name": "h8 reserved for a year"}
BLOCK: Row = {
    "commitment_id": "block-1", "commitment_name": "h8 capacity block", "commitment_type": "Capacity Block",
    "commitment_category": "Usage", "commitment_unit": "Hours",
}  # fmt: skip
PLAN: Row = {
    "commitment_id": "plan-1", "commitment_name": "Compute plan", "commitment_type": "Savings Plan",
    "commitment_category": "Spend", "commitment_unit": "USD",
}  # fmt: skip
FEE: Row = NO_NODE | {
    "charge_scope": "commitment", "charge_category": "Purchase", "consumed_quantity": None, "consumed_unit": None,
    "resource_type": "Commitment", "effective_cost": D(0), "sku_price_details": None,
}  # fmt: skip


def fee(charge_id: str, hour: datetime, commitment: Row, amount: D, quantity: D, frequency: str) -> Row:
    """The purchase of a commitment."""
    return charge(
        charge_id, hour, **(FEE | commitment), resource_id=commitment["commitment_id"],
        resource_name=commitment["commitment_name"], charge_frequency=frequency, charge_description="Fee",
        sku_id=commitment["commitment_id"], sku_price_id=f"{commitment['commitment_id']}-fee",
        commitment_quantity=quantity, pricing_unit="Fee", list_unit_price=amount, contracted_unit_price=amount,
        list_cost=amount, contracted_cost=amount, billed_cost=amount,
    )  # fmt: skip


def covered(charge_id: str, hour: datetime, commitment: Row, effective: D, **given: Any) -> Row:
    """Usage that a commitment covers."""
    return charge(
        charge_id, hour, **commitment, **given, pricing_category="Committed", commitment_discount_status="Used",
        billed_cost=D(0), effective_cost=effective, charge_description="h8 covered",
    )  # fmt: skip


def unused(charge_id: str, hour: datetime, commitment: Row, effective: D, quantity: D) -> Row:
    """What a commitment could have covered and did not."""
    return charge(
        charge_id, hour, **commitment, **NO_NODE, charge_scope="commitment", pricing_category="Committed",
        commitment_discount_status="Unused", resource_id=commitment["commitment_id"], resource_type="Commitment",
        resource_name=commitment["commitment_name"], billed_cost=D(0), effective_cost=effective,
        consumed_quantity=None, consumed_unit=None, commitment_quantity=quantity, charge_description="Not used",
    )  # fmt: skip


def month() -> tuple[list[Row], list[Row]]:
    """(rows of core.charges, rows of mart.cost_hourly)."""
    parts: list[Part] = [("ml/train-1", 3), ("nlp/serve-1", 2), ("unallocated", 2), ("unavailable", 1)]
    node2: Row = {"node": "gpu-2", "resource_id": "aurora:///gpu-2", "resource_name": "gpu-2"}
    spot: Row = {
        "cluster": "west", "node": "spot-1", "resource_id": "borealis:///spot-1", "resource_name": "spot-1",
        "provider": "borealis", "billing_account_id": "b-1", "sub_account_id": None, "invoice_issuer": "borealis",
        "service_provider": "borealis", "host_provider": "metalhall", "region": "west-1", "zone": None,
        "instance_type": "l4", "accelerator": "L4", "gpu_count": 3, "pricing_category": "Dynamic", "sku_id": "l4",
        "sku_price_id": "l4-spot", "sku_price_details": '{"InstanceType":"l4","GpuCount":3}',
        "list_unit_price": D("1.1"), "contracted_unit_price": D("1.1"),
        "list_cost": D("1.1"), "contracted_cost": D("1.1"), "billed_cost": D("1.1"),
        "effective_cost": D("1.1"), "pricing_currency": "EUR", "pricing_currency_list_unit_price": D(1),
        "pricing_currency_contracted_unit_price": D(1), "pricing_currency_effective_cost": D(1), "invoice_id": None,
        "service_name": "Borealis Machines",
    }  # fmt: skip
    owned: Row = {
        "cluster": "hall", "node": "own-1", "resource_id": "hall/own-1", "resource_name": "own-1", "provider": "hall",
        "billing_account_id": None, "sub_account_id": None, "invoice_issuer": None, "service_provider": None,
        "host_provider": None, "region": "hall-1", "zone": None, "instance_type": "a4", "accelerator": "A100",
        "gpu_count": 4, "list_unit_price": D("3.141592653"), "contracted_unit_price": D("3.141592653"),
        "list_cost": D("3.141592653"), "contracted_cost": D("3.141592653"), "billed_cost": D("3.1415926530"),
        "effective_cost": D("3.1415926530"), "tags": None, "invoice_id": None, "service_name": None,
    }  # fmt: skip
    bill: Row = {"charge_origin": "bill", "tags": None, **NO_NODE}
    credit = {m: D(-2) for m in ("list_cost", "contracted_cost", "billed_cost", "effective_cost")}
    tax = {m: D("0.35") for m in ("list_cost", "contracted_cost", "billed_cost", "effective_cost")}
    refund = {m: D("-0.5") for m in ("list_cost", "contracted_cost", "billed_cost", "effective_cost")}
    entries: list[tuple[Row, list[Row]]] = []

    def add(row: Row, division: list[Row]) -> None:
        entries.append((row, division))

    add(c := charge("od-1", FIRST), divided(c, parts))
    add(c := charge("od-2", SECOND), divided(c, [("ml/train-1", 8)], gpu=D("0.7")))
    add(c := charge("od-3", THIRD), divided(c, [("unledgered", 8)]))
    add(
        c := covered("res-used", FIRST, RESERVATION, D(4), commitment_quantity=D(1), **node2),
        divided(c, [("ml/train-2", 8)]),
    )
    add(c := unused("res-unused", SECOND, RESERVATION, D(4), D(1)), whole(c, "committed_unused"))
    add(c := fee("res-fee", FIRST, RESERVATION, D(8), D(2), "One-Time"), whole(c, "commitment_purchase"))
    add(
        c := covered("plan-used", SECOND, PLAN, D(3), commitment_quantity=D(3), **node2),
        divided(c, [("nlp/serve-2", 3), ("unallocated", 5)]),
    )
    add(
        c := unused("plan-unused", SECOND, PLAN, D(1), D(1)) | {"sku_price_details": None}, whole(c, "committed_unused")
    )
    add(c := fee("plan-fee", SECOND, PLAN, D(4), D(4), "Recurring"), whole(c, "commitment_purchase"))
    add(c := fee("year-fee", FIRST, YEAR, D(17520), D(8760), "One-Time"), whole(c, "commitment_purchase"))
    add(
        c := covered("year-used", THIRD, YEAR, D(2), commitment_quantity=D(1), **node2),
        divided(c, [("ml/train-2", 4), ("unallocated", 4)]),
    )
    add(c := charge("spot-1", FIRST, **spot), divided(c, [("nlp/batch-1", 1), ("ml/batch-2", 1), ("unallocated", 1)]))
    add(c := charge("own-1", FIRST, **owned), divided(c, [("ml/note-1", 3), ("unallocated", 1)]))
    add(
        c := charge(
            "held-1",
            FIRST,
            capacity_reservation_id="cr-1",
            capacity_reservation_status="Used",
            **(node2 | {"node": "gpu-3", "resource_id": "aurora:///gpu-3"}),
        ),
        divided(c, [("ml/train-3", 8)]),
    )
    add(
        c := charge(
            "held-2",
            SECOND,
            capacity_reservation_id="cr-1",
            capacity_reservation_status="Unused",
            **NO_NODE,
            resource_id="cr-1",
            charge_scope="other_services",
        ),
        whole(c, "other_services"),
    )
    add(
        c := charge(
            "credit-1",
            FIRST,
            charge_scope="credit",
            charge_category="Credit",
            charge_frequency="One-Time",
            resource_id=None,
            resource_name=None,
            resource_type=None,
            **NO_SKU,
            **NO_NODE,
            **credit,
        ),
        whole(c, "credit"),
    )
    add(
        c := charge(
            "bill/tax",
            FIRST,
            charge_scope="tax",
            charge_category="Tax",
            charge_frequency="Recurring",
            resource_id=None,
            resource_name=None,
            resource_type=None,
            **NO_SKU,
            **bill,
            **tax,
        ),
        whole(c, "tax"),
    )
    add(
        c := charge("bill/other-vm", FIRST, charge_scope="not_in_cluster", resource_id="vm-9", **bill),
        whole(c, "not_in_cluster"),
    )
    add(
        c := charge(
            "bill/disk",
            FIRST,
            charge_scope="other_services",
            resource_id="disk-1",
            resource_type="Disk",
            service_category="Storage",
            service_subcategory="Block Storage",
            service_name="Aurora Disks",
            **bill,
        ),
        whole(c, "other_services"),
    )
    add(
        c := charge(
            "bill/refund",
            THIRD,
            charge_scope="other_services",
            charge_class="Correction",
            resource_id="disk-1",
            charge_frequency="One-Time",
            service_category="Storage",
            service_subcategory="Block Storage",
            service_name="Aurora Disks",
            **NO_SKU,
            **bill,
            **refund,
        ),
        whole(c, "other_services"),
    )
    return [c for c, _ in entries], [row for _, division in entries for row in division]


def commitments() -> list[Row]:
    """Rows of raw.commitments: a reservation of two hours, one of a year, a plan of a year, a block not used here."""
    common: Row = {"provider": "aurora", "billing_account_id": "a-100", "currency": "USD", "as_of": date(2026, 2, 1),
                   "source": "card.yaml", "is_capacity_reservation": False, "owner_team": "platform"}  # fmt: skip
    return [
        common | RESERVATION | {
            "precedence": 1, "region": "east-1", "eligible_instance_types": "h8, h8x", "committed_quantity": D(1),
            "payment_model": "All Upfront", "upfront_cost": D(8), "recurring_cost": D(0), "payment_interval": "Monthly",
            "starts_at": FIRST, "ends_at": FIRST + 2 * HOUR, "source_line": 3,
        },
        common | YEAR | {
            "precedence": 1, "region": "east-1", "committed_quantity": D(1), "payment_model": "All Upfront",
            "upfront_cost": D(17520), "recurring_cost": D(0), "starts_at": FIRST, "ends_at": datetime(2027, 3, 1),
            "source_line": 5,
        },
        common | BLOCK | {
            "precedence": 0, "region": "east-1", "eligible_instance_types": "h8", "committed_quantity": D(1),
            "payment_model": "Partial Upfront", "upfront_cost": D(100), "recurring_cost": D(2),
            "is_capacity_reservation": True, "starts_at": datetime(2026, 5, 1), "ends_at": datetime(2026, 5, 4),
            "source_line": 7,
        },
        common | PLAN | {
            "precedence": 2, "committed_spend": D(4), "payment_model": "No Upfront", "upfront_cost": D(0),
            "recurring_cost": D(4), "payment_interval": "Hourly", "starts_at": SECOND,
            "ends_at": datetime(2027, 3, 1, 1), "source_line": 9,
        },
    ]  # fmt: skip


def fill(root: Path) -> Lake:
    """A lake with the month's charges, their division, commitments, and the FOCUS tables built; published."""
    lake = Lake(root)
    charges, division = month()
    put(lake, charges, division)
    lake.replace("raw.commitments", rows_to_table("raw.commitments", commitments()))
    build(lake)
    return lake


def put(lake: Lake, charges: list[Row], division: list[Row]) -> None:
    """Write charges and their division."""
    lake.replace("core.charges", rows_to_table("core.charges", charges), DAY, END)
    lake.replace("mart.cost_hourly", rows_to_table("mart.cost_hourly", division), DAY, END)


def build(lake: Lake) -> None:
    """Build the FOCUS tables and publish."""
    run_models(lake, MODELS, DAY, END)
    lake.publish(f"built-{datetime.now(UTC):%H%M%S%f}")


def focus_rows(lake: Lake) -> list[Row]:
    """All rows of mart.focus_cost_and_usage, ordered by its key."""
    rows = lake.read("mart.focus_cost_and_usage").to_pylist()
    return sorted(rows, key=lambda r: [str(r[c]) for c in CONTRACTS["mart.focus_cost_and_usage"].key])
