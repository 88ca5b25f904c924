"""Published worked examples of commitments in the FOCUS appendix; each test names its sample.

The figures are those of specification/data/commitment_discount_scenarios and .../commitment_discount_flexibility of
FOCUS_Spec v1.2. Its slips are not repeated: the text's 8,670 for 8,760 and 182.50 a month for 365, sample rows that
end at T30:00, a consumed quantity on an unused row, and 0.75 for 0.667 hours on demand in the one-resource example.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from small_card import HOUR, START, Row, charges, columns, commitment, dec, only, pick, plan, price, run

YEAR = date(2023, 1, 1)
NEW_YEAR = datetime(2023, 1, 1)
USAGE = (
    "pricing_category", "resource_id", "billed_cost", "effective_cost", "consumed_quantity", "consumed_unit",
    "commitment_id", "commitment_quantity", "commitment_discount_status", "commitment_unit",
)  # fmt: skip


def card(rate: str) -> list[Row]:
    """An instance type at this price, committed and on demand."""
    return [
        price(rate),
        price(rate, sku_price_id="SKU.c", billing_model="committed", commitment_type="plan"),
    ]


def spend_hour(rate: str) -> list[Row]:
    """Usage rows of the first hour of 2023 with one node at `rate` an hour (none: no node) and the plan."""
    node = run("vm", NEW_YEAR, NEW_YEAR + HOUR) if rate else run("other", NEW_YEAR, NEW_YEAR + HOUR, provider="x")
    tables = {"core.node_hours": node, "raw.prices": card(rate or "1"), "raw.commitments": [plan()]}
    return [r for r in pick(charges(tables, YEAR), charge_category="Usage", provider="aws")]


USED = ("Committed", "i-vm", 0, 1, 1, "Hours", "cd", 1, "Used", "USD")


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        ("1", [USED]),
        ("", [("Committed", "cd", 0, 1, None, None, "cd", 1, "Unused", "USD")]),
        ("0.75", [
            ("Committed", "i-vm", 0, dec("0.75"), 1, "Hours", "cd", dec("0.75"), "Used", "USD"),
            ("Committed", "cd", 0, dec("0.25"), None, None, "cd", dec("0.25"), "Unused", "USD"),
        ]),
    ],
)  # fmt: skip
def test_focus_usage_scenarios_1_to_3(rate: str, expected: list[tuple[object, ...]]) -> None:
    """FOCUS appendix, commitment_discount_usage_scenario_1, _2 and _3: used, unused, three quarters used."""
    assert sorted([columns(r, USAGE) for r in spend_hour(rate)], key=str) == sorted(expected, key=str)


def test_focus_usage_scenario_4() -> None:
    """FOCUS appendix, commitment_discount_usage_scenario_4: 1.00 from the commitment, 0.50 on demand."""
    rows = spend_hour("1.5")
    used = only(rows, commitment_discount_status="Used")
    rest = only(rows, commitment_discount_status=None)
    assert columns(used, ("billed_cost", "effective_cost", "commitment_quantity")) == (0, 1, 1)
    # 1.00 buys 0.666666666 h at 1.50; what 1e-9 h cut off costs stays on demand
    assert columns(rest, ("pricing_category", "pricing_quantity", "billed_cost", "effective_cost")) == (
        "Standard", dec("0.333333334"), dec("0.500000001"), dec("0.500000001"),
    )  # fmt: skip
    assert used["consumed_quantity"] + rest["consumed_quantity"] == 1


def purchases(**terms: object) -> list[Row]:
    node = run("vm", NEW_YEAR, NEW_YEAR + 3 * HOUR)
    tables = {"core.node_hours": node, "raw.prices": card("1"), "raw.commitments": [plan(**terms)]}
    return pick(charges(tables, YEAR), charge_category="Purchase")


PURCHASE = (
    "charge_frequency", "pricing_category", "resource_id", "billed_cost", "effective_cost", "commitment_id",
    "commitment_quantity", "commitment_unit", "charge_period_start_at", "charge_period_end_at",
    "billing_period_start_at", "billing_period_end_at",
)  # fmt: skip
JANUARY = (datetime(2023, 1, 1), datetime(2023, 2, 1))


def test_focus_purchase_scenario_1_all_upfront() -> None:
    """FOCUS appendix, commitment_discount_purchase_scenario_1: 8,760.00 once, for the whole term."""
    row = only(purchases(payment_model="All Upfront", upfront_cost=dec(8760), recurring_cost=dec(0)))
    assert columns(row, PURCHASE) == (
        "One-Time", "Standard", "cd", 8760, 0, "cd", 8760, "USD", NEW_YEAR, datetime(2024, 1, 1), *JANUARY
    )  # fmt: skip


def test_focus_purchase_scenario_2_no_upfront() -> None:
    """FOCUS appendix, commitment_discount_purchase_scenario_2: its first three of 8,760 hourly rows of 1.00."""
    assert [columns(r, PURCHASE) for r in purchases()] == [
        ("Recurring", "Standard", "cd", 1, 0, "cd", 1, "USD", NEW_YEAR + i * HOUR, NEW_YEAR + (i + 1) * HOUR, *JANUARY)
        for i in range(3)
    ]


def test_focus_purchase_scenario_3_partial_upfront() -> None:
    """FOCUS appendix, commitment_discount_purchase_scenario_3: 4,380.00 once and 0.50 an hour."""
    rows = purchases(payment_model="Partial Upfront", upfront_cost=dec(4380), recurring_cost=dec("0.5"))
    assert sorted(columns(r, ("charge_frequency", "billed_cost", "commitment_quantity")) for r in rows) == [
        ("One-Time", 4380, 4380), *[("Recurring", dec("0.5"), dec("0.5"))] * 3
    ]  # fmt: skip


FLEXIBLE = ("resource_id", "pricing_quantity", "list_unit_price", "list_cost", "billed_cost", "effective_cost",
            "commitment_quantity", "commitment_discount_status")  # fmt: skip


def flexible(reserved: Row, size: int, nodes: dict[str, int]) -> list[Row]:
    """VMs of the flexibility examples: 1.00 for each normalized unit, here an accelerator; committed at half."""
    hours, prices = [], []
    for name, units in nodes.items():
        kind = f"VM_{units}"
        hours += run(name, START, START + HOUR, instance_type=kind, gpu_count=units)
        prices.append(price(units, sku_price_id=kind, sku_id=kind, instance_type=kind))
    fee = Decimal(size) / 2
    tables = {
        "core.node_hours": hours, "raw.prices": prices,
        "raw.commitments": [commitment(**{"recurring_cost": fee, "payment_interval": "Hourly", **reserved})],
    }  # fmt: skip
    return [r for r in charges(tables) if r["hour"] == START]


def test_focus_full_utilization_without_flexibility() -> None:
    """FOCUS, one_hundred_percent_utilization_without_commitment_discount_flexibility: a large VM, reserved."""
    rows = flexible({"eligible_instance_types": "VM_3"}, 3, {"large": 3})
    assert columns(only(rows, charge_category="Usage"), FLEXIBLE) == ("i-large", 1, 3, 3, 0, dec("1.5"), 1, "Used")
    assert columns(only(rows, charge_category="Purchase"), ("billed_cost", "effective_cost")) == (dec("1.5"), 0)


def test_focus_no_utilization_without_flexibility() -> None:
    """FOCUS, zero_percent_utilization_without_commitment_discount_flexibility: a medium VM, a large one reserved.

    The unused row states the unused hour at the list price of the SKU that was reserved. The sample's consumed
    quantity on it contradicts the column's own rule; ours is null.
    """
    other = price(3, sku_price_id="VM_3", sku_id="VM_3", instance_type="VM_3")
    hours = run("medium", START, START + HOUR, instance_type="VM_2")
    reserved = commitment(
        eligible_instance_types="VM_3", recurring_cost=dec("1.5"), payment_interval="Hourly", commitment_id="cd"
    )
    tables = {
        "core.node_hours": hours,
        "raw.prices": [other, price(2, sku_price_id="VM_2", instance_type="VM_2")],
        "raw.commitments": [reserved],
    }
    rows = charges(tables)
    unused = only(rows, commitment_discount_status="Unused")
    assert columns(unused, FLEXIBLE) == ("cd", 1, 3, 3, 0, dec("1.5"), 1, "Unused")
    assert columns(unused, ("sku_id", "pricing_category", "consumed_quantity", "consumed_unit")) == (
        "VM_3", "Committed", None, None
    )  # fmt: skip
    medium = only(rows, resource_id="i-medium")
    assert columns(medium, ("pricing_category", "list_cost", "billed_cost", "effective_cost")) == ("Standard", 2, 2, 2)


def test_focus_flexibility_with_two_resources() -> None:
    """FOCUS, ..._with_commitment_discount_flexibility_with_2_resources: 4 normalized hours for two medium VMs."""
    rows = flexible({"commitment_unit": "GPU-Hours", "committed_quantity": dec(4)}, 4, {"m1": 2, "m2": 2})
    assert [columns(r, FLEXIBLE) for r in pick(rows, charge_category="Usage")] == [
        ("i-m1", 1, 2, 2, 0, 1, 2, "Used"), ("i-m2", 1, 2, 2, 0, 1, 2, "Used")
    ]  # fmt: skip


def test_focus_flexibility_with_one_resource() -> None:
    """FOCUS, ..._with_1_resource: one small VM's commitment covers a third of a large VM.

    The rest is two thirds of an hour: 2.00 on demand, where the sample has 0.75 h and 2.25.
    """
    rows = flexible({"commitment_unit": "GPU-Hours", "committed_quantity": dec(1)}, 1, {"large": 3})
    used = only(rows, commitment_discount_status="Used")
    assert columns(used, FLEXIBLE) == (
        "i-large", dec("0.333333333"), 3, dec("0.999999999"), 0, dec("0.5"), 1, "Used"
    )  # fmt: skip
    rest = only(rows, charge_category="Usage", commitment_discount_status=None)
    assert rest["pricing_quantity"] == dec("0.666666667")
    assert round(rest["billed_cost"], 6) == 2
