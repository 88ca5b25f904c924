"""Commitments made by hand for tests of FOCUS: their terms, their purchase, what they cover and what they could have.

The term of the reservation `res-1` is the first two hours of March 2026, so its balance closes.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal as D
from typing import Any

from focus_charges import FIRST, HOUR, NO_NODE, SECOND, Row, charge

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
