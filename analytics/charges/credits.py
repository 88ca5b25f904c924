"""Credits as granted: what raw.credits says.

Belongs here: the record and reading it. Not here: the rows they make (`other_rows.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import duckdb

from analytics.charges.money import COST, units
from analytics.charges.records import table_rows
from warehouse.errors import BadInput


@dataclass(frozen=True)
class Credit:
    """Money granted, in 1e-10 of `currency`, positive; charged once, at the start of its period."""

    provider: str
    credit_id: str
    account: str | None
    description: str | None
    amount: int
    currency: str
    start: datetime
    end: datetime | None


def read_credits(connection: duckdb.DuckDBPyConnection) -> list[Credit]:
    """raw.credits. `BadInput` names a credit without a start or with a negative amount."""
    credits = []
    for r in table_rows(connection, "raw.credits", "provider, credit_id"):
        if r["charge_period_start_at"] is None or r["amount"] is None or r["amount"] < 0:
            raise BadInput(
                f"raw.credits: {r['provider']} {r['credit_id']} ({r['source']}:{r['source_line']}): "
                "amount must be positive and charge_period_start_at given"
            )
        credits.append(
            Credit(
                provider=r["provider"],
                credit_id=r["credit_id"],
                account=r["billing_account_id"],
                description=r["credit_description"],
                amount=units(r["amount"], COST),
                currency=r["currency"],
                start=r["charge_period_start_at"],
                end=r["charge_period_end_at"],
            )
        )
    return credits
