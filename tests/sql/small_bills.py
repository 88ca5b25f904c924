"""Lines of bills and computed charges made by hand, for the models that bring the two together.

Belongs here: defaults of lines and charges, and totals of what came of them. Not here: what is to be true of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from small_cloud import HOUR, put, rows

from warehouse.lake import Lake

BILLS = ("core.node_lives", "core.node_hours", "core.bill_resources", "core.bill_spreads", "core.billed_charges")
CHARGES = (*BILLS, "core.charges")
MARCH = datetime(2026, 3, 1)
APRIL = datetime(2026, 4, 1)
SUMMED = (
    "pricing_quantity", "consumed_quantity", "commitment_quantity", "list_cost", "contracted_cost", "billed_cost",
    "effective_cost",
)  # fmt: skip


def line(
    resource: str | None, start: datetime, end: datetime | None = None, cost: str = "1", /, **more: Any
) -> dict[str, Any]:
    """A line of usage of a virtual machine: `cost` an hour's price, list 1.5 times as much unless said otherwise."""
    end = end or start + HOUR
    hours = Decimal((end - start) // HOUR) or Decimal(1)
    price = Decimal(cost)
    listed = (price * 3 / 2).quantize(Decimal("1e-9"))
    usage: dict[str, Any] = {
        "resource_id": resource, "provider": "aws", "billing_account_id": "acct", "charge_category": "Usage",
        "charge_frequency": "Usage-Based", "charge_period_start_at": start, "charge_period_end_at": end,
        "billing_period_start_at": MARCH, "billing_period_end_at": APRIL, "service_category": "Compute",
        "service_name": "Virtual machines", "pricing_category": "Standard", "pricing_quantity": hours,
        "pricing_unit": "Hours", "consumed_quantity": hours, "consumed_unit": "Hours", "list_unit_price": listed,
        "contracted_unit_price": price, "list_cost": listed * hours, "contracted_cost": price * hours,
        "billed_cost": price * hours, "effective_cost": price * hours, "billing_currency": "USD", "tags": [],
    }  # fmt: skip
    return usage | more


def flat(category: str, start: datetime, end: datetime, cost: str, /, **more: Any) -> dict[str, Any]:
    """A line without price and quantity: a tax, a credit, a purchase."""
    money = dict.fromkeys(("list_cost", "contracted_cost", "billed_cost", "effective_cost"), Decimal(cost))
    empty = dict.fromkeys(
        ("pricing_quantity", "pricing_unit", "consumed_quantity", "consumed_unit", "list_unit_price",
         "contracted_unit_price"),
    )  # fmt: skip
    return line(None, start, end) | empty | money | {"charge_category": category} | more


def put_bills(lake: Lake, lines: Iterable[dict[str, Any]], **bill: Any) -> None:
    """All bills of the lake: lines are numbered from 2 in their order; one bill an account and month."""
    found = []
    for number, given in enumerate(lines, start=2):
        row = bill | given
        account = f"{row['billing_account_id']}-{row['billing_period_start_at']:%Y%m}"
        found.append({
            "date": row["billing_period_start_at"].date(), "bill_id": account, "source_line": number,
            "source": "bill.csv", "source_sha256": "0", "focus_version": "1.0", **row,
        })  # fmt: skip
    put(lake, "raw.bills", found)


def computed(resource: str | None, hour: datetime, cost: str = "1", /, **more: Any) -> dict[str, Any]:
    """A computed charge of a node for an hour."""
    price = Decimal(cost)
    charge = {
        "date": hour.date(), "hour": hour, "charge_id": f"computed/{resource}/{hour:%Y%m%dT%H}/0",
        "charge_scope": "node",
        "cluster": "c", "resource_id": resource, "provider": "aws", "charge_category": "Usage",
        "charge_frequency": "Usage-Based", "charge_period_start_at": hour, "charge_period_end_at": hour + HOUR,
        "billing_period_start_at": MARCH, "billing_period_end_at": APRIL, "service_category": "Compute",
        "pricing_category": "Standard", "pricing_quantity": Decimal(1), "pricing_unit": "Hours", "gpu_count": 8,
        "list_unit_price": price, "contracted_unit_price": price, "billing_currency": "USD", "list_cost": price,
        "contracted_cost": price, "billed_cost": price, "effective_cost": price, "tags": [],
    }  # fmt: skip
    return charge | more


def total(lake: Lake, column: str, table: str = "core.billed_charges", **wanted: Any) -> Decimal:
    """Sum of a column over the rows with the wanted values."""
    return sum((r[column] for r in rows(lake, table, **wanted) if r[column] is not None), Decimal(0))


def by_hour(
    lake: Lake, column: str = "billed_cost", table: str = "core.billed_charges", **wanted: Any
) -> dict[int, Decimal]:
    """The column by hour of the day."""
    found: dict[int, Decimal] = {}
    for row in rows(lake, table, **wanted):
        found[row["hour"].hour] = found.get(row["hour"].hour, Decimal(0)) + row[column]
    return found


def put_rates(lake: Lake, *rates: tuple[str, str, int, str]) -> None:
    """Exchange rates: from, to, day of March, rate."""
    put(lake, "raw.exchange_rates", [
        {"from_currency": a, "to_currency": b, "rate_date": date(2026, 3, day), "exchange_rate": Decimal(rate),
         "source": "test", "source_line": i}
        for i, (a, b, day, rate) in enumerate(rates)
    ])  # fmt: skip
