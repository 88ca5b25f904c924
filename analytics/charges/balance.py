"""core.commitment_terms_daily: what the terms of each commitment say of each date.

The balance of a term is what its schedule has charged and its hours have not yet used up. It is made here and not in
SQL because fees, their conversion and their hours are those of the engine's `Plan`, which has them once.
Belongs here: balances by the terms alone. Not here: what was charged in fact (`sql/mart/commitment_balance_daily.sql`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from analytics.charges.amortize import COST_PER_FEE, Plan
from analytics.charges.currency import Exchange
from analytics.charges.records import (
    Commitment,
    first_hour,
    hour_at,
    month_of,
    read_commitments,
    read_currency,
    read_rates,
)
from warehouse.contracts import CONTRACTS

TABLE = "core.commitment_terms_daily"
INPUTS = ("raw.commitments", "raw.exchange_rates", "raw.settings")
HEADER = """What the terms of each commitment say of each date: units committed, what is paid and not yet amortized.
grain: date, commitment
key: date, provider, commitment_id
invariant: scheduled_balance = the next date's scheduled_opening_balance, and zero when the term ends"""
DAY = timedelta(days=1)


def compute(connection: duckdb.DuckDBPyConnection, start: date, end: date) -> pa.Table:
    """Rows of the dates [start, end) that the term of a commitment touches."""
    exchange, currency = Exchange(read_rates(connection)), read_currency(connection)
    rows: list[dict[str, Any]] = []
    for commitment in read_commitments(connection):
        rows += _rows(commitment, Plan(commitment, exchange, currency), currency, start, end)
    return pa.Table.from_pylist(rows, schema=CONTRACTS[TABLE].arrow_schema)


def _rows(commitment: Commitment, plan: Plan, currency: str, start: date, end: date) -> Iterator[dict[str, Any]]:
    day = max(start, hour_at(commitment.start).date())
    while day < end and first_hour(_midnight(day)) < commitment.end:
        opens, closes = first_hour(_midnight(day)), first_hour(_midnight(day + DAY))
        hours = min(closes, commitment.end) - max(opens, commitment.start)
        yield {
            "date": day,
            "provider": commitment.provider,
            "billing_account_id": commitment.account,
            "commitment_id": commitment.commitment_id,
            "commitment_name": commitment.name,
            "commitment_category": commitment.category,
            "commitment_type": commitment.type,
            "owner_team": commitment.owner_team,
            "region": commitment.region,
            "eligible_instance_types": ",".join(commitment.types) or None,
            "billing_currency": currency,
            "commitment_unit": commitment.unit,
            "committed_quantity": Decimal(commitment.quantity * hours).scaleb(-9),
            "starts_at": hour_at(commitment.start),
            "ends_at": hour_at(commitment.end),
            "scheduled_opening_balance": _cost(balance(plan, opens)),
            "scheduled_balance": _cost(balance(plan, closes)),
        }
        day += DAY


def balance(plan: Plan, hour: int) -> int | None:
    """Paid before `hour` and not amortized by then, in 1e-10 of the reporting currency; None: no rate converts a fee.

    An upfront fee T over N hours is amortized floor(n T / N) after n of them; a recurring purchase is the sum of its
    hours, so of it the hours still to come are left.
    """
    c, left = plan.commitment, 0
    if hour <= c.start or hour >= c.end:
        return 0
    # of recurring purchases only the newest can reach beyond `hour`
    since = hour if c.hourly else month_of(hour - 1)[0]
    for purchase in (*plan.purchases(c.start, c.start + 1), *plan.purchases(max(since, c.start + 1), hour)):
        if purchase.price is None:
            return None
        if purchase.is_upfront:
            total = purchase.price * COST_PER_FEE
            left += total - (hour - c.start) * total // c.hours
        else:
            left += max(0, purchase.end - hour) * purchase.price * COST_PER_FEE
    return left


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def _cost(value: int | None) -> Decimal | None:
    return None if value is None else Decimal(value).scaleb(-10)
