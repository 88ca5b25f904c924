"""core.computed_charges: what the nodes cost by the rate cards, hour by hour.

Order: list price, negotiated price, Usage commitments, Spend commitments, credits as rows of their own. Each hour
stands for itself and depends on nothing outside of it but rate cards, commitments and the node's own life, so dates
computed apart or together give the same rows.

Commitments are settled in the hours that the lake knows, from the first to the last hour of core.node_hours (all
hours asked for while it is empty): what comes after the newest list is not unused yet. Purchases and credits belong
to the date they are charged on; those of dates that are not computed, such as the part of a month before the lake's
first date, make no rows, and mart.commitment_balance_daily carries what they paid as its opening balance.

Belongs here: reading the inputs of a span of dates and putting the charges' rows together. Not here: how a price is
found, metered or discounted.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from datetime import time as midnight
from typing import Any

import duckdb
import pyarrow as pa

from analytics.charges.amortize import Plan
from analytics.charges.coverage import Settling
from analytics.charges.credits import read_credits
from analytics.charges.currency import Exchange
from analytics.charges.node_rows import node_charges
from analytics.charges.other_rows import Books
from analytics.charges.owned import owned_prices
from analytics.charges.pricing import Card
from analytics.charges.records import (
    first_hour,
    read_commitments,
    read_currency,
    read_owned,
    read_prices,
    read_rates,
)
from analytics.charges.relations import meter_nodes, pieces_of, plans_of, rows_by_hour
from analytics.charges.spend import Market
from warehouse.contracts import CONTRACTS

INPUTS = (
    "core.node_hours",
    "raw.commitments",
    "raw.credits",
    "raw.exchange_rates",
    "raw.owned_hardware",
    "raw.prices",
    "raw.settings",
)
HEADER = """Charges computed from node-hours, rate cards, commitments and credits.
grain: charge
key: date, charge_id
invariant: list_cost = list_unit_price x pricing_quantity; contracted_cost likewise"""

_NODES = """
select * from core.node_hours where date >= ? and date < ? order by hour, resource_id, cluster, node, node_uid
"""


def compute(connection: duckdb.DuckDBPyConnection, start: date, end: date) -> pa.Table:
    """Charges whose period begins in [start, end). Raises `BadInput` where a price or commitment makes no sense."""
    contract = CONTRACTS["core.computed_charges"]
    first, last = span = _hour(start), _hour(end)
    card = Card(read_prices(connection, *span), owned_prices(read_owned(connection)), first, last)
    exchange, currency = Exchange(read_rates(connection)), read_currency(connection)
    plans = [Plan(c, exchange, currency) for c in read_commitments(connection)]
    credits = read_credits(connection)
    nodes = connection.sql(_NODES, params=[start, end]).to_arrow_table()
    known = connection.execute("select min(hour), max(hour) from core.node_hours").fetchall()[0]
    settled = _known_hours(known, first, last)

    # a connection of its own: names of temporary relations must not meet the caller's
    with connection.cursor() as work:
        work.register("node_hours", nodes.append_column("node_row", pa.array(range(len(nodes)), pa.int64())))
        usages = meter_nodes(work, card, exchange, currency, span)
        settling = Settling(plans, usages, Market(card, exchange, currency))
        settlement = settling.settle(rows_by_hour(work, settling.coverable), *settled)
        work.register("pieces", pieces_of(work, settlement))
        work.register("plans", plans_of(plans))
        charged = node_charges(work, contract.columns).cast(contract.arrow_schema)

    ids = Counter(p.commitment.commitment_id for p in plans)
    books = Books(card, exchange, currency, frozenset(i for i, n in ids.items() if n > 1))
    rows: list[dict[str, Any]] = [books.unused(plans[u.plan], u) for u in settlement.unused]
    for plan in plans:
        rows += books.purchases(plan, *(settled if plan.commitment.hourly else span))
    rows += books.credits(credits, start, end)
    return pa.concat_tables([charged, pa.Table.from_pylist(rows, contract.arrow_schema)])


def _known_hours(known: tuple[datetime | None, ...] | None, first: int, last: int) -> tuple[int, int]:
    if known is None or known[0] is None or known[1] is None:
        return first, last
    return max(first, first_hour(known[0])), min(last, first_hour(known[1]) + 1)


def _hour(day: date) -> int:
    return first_hour(datetime.combine(day, midnight()))
