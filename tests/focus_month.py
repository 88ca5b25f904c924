"""A small sound month of charges and their division, made by hand: every kind of charge that a FOCUS file may hold.

Shared by tests of the FOCUS model, its checks and its exports. Two hours of 2026-03-01 and one of 2026-03-02; the term
of the reservation `res-1` is those two hours, so its balance closes. Shares of `spot-1` are thirds, which do not divide
evenly; all others do. What a month is made of is found here too: `charge`, `divided`, `commitments` and the hours.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal as D
from pathlib import Path

from focus_charges import FIRST, NO_NODE, NO_SKU, SECOND, THIRD, Part, Row, charge, divided, rows_to_table, whole
from focus_commitments import PLAN, RESERVATION, YEAR, commitments, covered, fee, unused

from warehouse.contracts import CONTRACTS
from warehouse.lake import Lake
from warehouse.runner import run_models

DAY, END = date(2026, 3, 1), date(2026, 3, 3)
MODELS = ("mart.focus_cost_and_usage", "mart.focus_contract_commitment")


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
