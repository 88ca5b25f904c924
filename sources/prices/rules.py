"""What the columns of one row must be to each other, and defaults that follow from other columns.

Belongs here: rules within a row. Not here: single values (`values.py`), rules between rows (`overlaps.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sources.prices.kinds import LARGEST_AMOUNT, WORDS
from sources.prices.values import midnight, next_month

_HOUR = timedelta(hours=1)
Row = dict[str, Any]
Broken = Iterator[tuple[str, str]]

# reservations before savings plans; what holds capacity is used by its own nodes before anything else
_PRECEDENCE = {"reservation": 5, "Usage": 10, "Spend": 20}


def complete(kind: str, row: Row) -> None:
    """Fill what follows from other columns, where the row does not say it."""
    if "valid_from_at" in row and row["valid_from_at"] is None and row.get("as_of") is not None:
        row["valid_from_at"] = midnight(row["as_of"])
    _COMPLETE.get(kind, lambda row: None)(row)


def broken(kind: str, row: Row) -> Broken:
    """(column, what is wrong) for every rule that a complete row breaks."""
    for start, end in _SPANS:
        if row.get(start) is not None and row.get(end) is not None and row[end] <= row[start]:
            yield end, f"must be after {start} {row[start].isoformat()}Z"
    yield from _BROKEN.get(kind, lambda row: iter(()))(row)


_SPANS = (
    ("valid_from_at", "valid_to_at"),
    ("starts_at", "ends_at"),
    ("charge_period_start_at", "charge_period_end_at"),
)


def _complete_price(row: Row) -> None:
    if row["contracted_unit_price"] is None:
        row["contracted_unit_price"] = row["list_unit_price"]
    if row["sku_id"] is None:
        row["sku_id"] = row["instance_type"] or row["accelerator"]
    if row["sku_price_id"] is None and row["sku_id"] is not None:
        unit = row["pricing_unit"] if row["pricing_unit"] != "Hours" else None
        parts = (row["sku_id"], row["billing_model"], row["commitment_type"], unit)
        row["sku_price_id"] = ".".join(p for p in parts if p)


def _broken_price(row: Row) -> Broken:
    if row["instance_type"] is None and row["accelerator"] is None:
        yield "instance_type", "missing, and accelerator too: nothing says what the price is for"
    if row["billing_model"] == "committed" and row["commitment_type"] is None:
        yield "commitment_type", "missing: a committed price names the kind of commitment that it belongs to"
    if row["billing_model"] != "committed" and row["commitment_type"] is not None:
        yield "commitment_type", f"stands on a price that is {row['billing_model']}; only committed prices have one"


def _complete_commitment(row: Row) -> None:
    category = row["commitment_category"]
    if row["precedence"] is None:
        row["precedence"] = _PRECEDENCE["reservation" if row["is_capacity_reservation"] else category]
    if row["commitment_unit"] is None:
        row["commitment_unit"] = row["currency"] if category == "Spend" else "Hours"
    if row["commitment_name"] is None:
        row["commitment_name"] = row["commitment_id"]
    for column, absent in (("upfront_cost", "No Upfront"), ("recurring_cost", "All Upfront")):
        if row[column] is None and row["payment_model"] == absent:
            row[column] = Decimal(0)
    if row["payment_interval"] is None and row["recurring_cost"]:
        row["payment_interval"] = "Monthly"


def _broken_commitment(row: Row) -> Broken:
    usage = row["commitment_category"] == "Usage"
    wanted, other = ("committed_quantity", "committed_spend") if usage else ("committed_spend", "committed_quantity")
    if row[wanted] is None:
        yield wanted, f"missing: a {row['commitment_category']} commitment says it"
    if row[other] is not None:
        yield other, f"stands on a {row['commitment_category']} commitment, which has {wanted} instead"
    units = WORDS["pricing_unit"] if usage else (row["currency"],)
    if row["commitment_unit"] not in units:
        yield "commitment_unit", f"must be {' or '.join(units)} for a {row['commitment_category']} commitment"
    hours = -((row["starts_at"] - row["ends_at"]) // _HOUR)  # rounded up
    if row[wanted] is not None and row[wanted] * hours >= LARGEST_AMOUNT:
        yield wanted, f"over a term of {hours} hours is more than a FOCUS quantity holds; split the commitment"
    if row["is_capacity_reservation"] and not usage:
        yield "is_capacity_reservation", "true on a Spend commitment: money holds no capacity"
    yield from _broken_payment(row)


def _broken_payment(row: Row) -> Broken:
    model, upfront, recurring = row["payment_model"], row["upfront_cost"], row["recurring_cost"]
    if model == "No Upfront" and upfront:
        yield "upfront_cost", "contradicts payment_model No Upfront"
    if model == "All Upfront" and recurring:
        yield "recurring_cost", "contradicts payment_model All Upfront"
    if model != "No Upfront" and not upfront:
        yield "upfront_cost", f"missing or 0 with payment_model {model}"
    if model == "No Upfront" and recurring is None:
        yield "recurring_cost", "missing with payment_model No Upfront; write 0 for a commitment that is free"
    if model == "Partial Upfront" and not recurring:
        yield "recurring_cost", "missing or 0 with payment_model Partial Upfront"


def _complete_credit(row: Row) -> None:
    if row["charge_period_end_at"] is None:
        row["charge_period_end_at"] = next_month(row["charge_period_start_at"])


def _broken_rate(row: Row) -> Broken:
    if row["from_currency"] == row["to_currency"]:
        yield "to_currency", "is from_currency itself"


def _complete_owned(row: Row) -> None:
    if row["billing_account_id"] is None:
        row["billing_account_id"] = row["provider"]


def _broken_owned(row: Row) -> Broken:
    if row["residual"] > row["capex"]:
        yield "residual", f"is above capex {row['capex']}"
    if row["gpu_count"] == 0:
        yield "gpu_count", "must be 1 or more"


def _broken_energy(row: Row) -> Broken:
    if row["valid_from_at"] is None:
        yield "valid_from_at", "missing, and the document has no as_of"


_COMPLETE: Mapping[str, Callable[[Row], None]] = {
    "prices": _complete_price,
    "commitments": _complete_commitment,
    "credits": _complete_credit,
    "owned_hardware": _complete_owned,
}
_BROKEN: Mapping[str, Callable[[Row], Broken]] = {
    "prices": _broken_price,
    "commitments": _broken_commitment,
    "exchange_rates": _broken_rate,
    "owned_hardware": _broken_owned,
    "energy_factors": _broken_energy,
}
