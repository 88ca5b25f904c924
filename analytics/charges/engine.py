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

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from datetime import time as midnight
from typing import Any

import duckdb
import pyarrow as pa

from analytics.charges.amortize import Plan
from analytics.charges.coverage import Settlement, Settling
from analytics.charges.currency import Exchange
from analytics.charges.metering import meter
from analytics.charges.money import deal
from analytics.charges.node_rows import METERS, details, node_charges
from analytics.charges.other_rows import Books, commitment_columns, label
from analytics.charges.owned import owned_prices
from analytics.charges.pieces import Row, Usage
from analytics.charges.pricing import Card, Kind
from analytics.charges.records import (
    Price,
    date_of,
    first_hour,
    read_commitments,
    read_credits,
    read_currency,
    read_owned,
    read_prices,
    read_rates,
)
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

_HOUR_US = 3_600_000_000
_NODES = """
select * from core.node_hours where date >= ? and date < ? order by hour, resource_id, cluster, node, node_uid
"""
_KINDS = """
select distinct provider, region, instance_type, accelerator, coalesce(capacity_type, '') = 'spot' as is_spot
from node_hours order by all
"""
_CLASS = "kind_id, rate_id, gpu_count"
_INT, _TEXT, _BOOL = pa.int64(), pa.string(), pa.bool_()


def compute(connection: duckdb.DuckDBPyConnection, start: date, end: date) -> pa.Table:
    """Charges whose period begins in [start, end). Raises `BadInput` where a price or commitment makes no sense."""
    contract = CONTRACTS["core.computed_charges"]
    first, last = span = _hour(start), _hour(end)
    card = Card(read_prices(connection), owned_prices(read_owned(connection)))
    exchange, currency = Exchange(read_rates(connection)), read_currency(connection)
    plans = [Plan(c, exchange, currency) for c in read_commitments(connection)]
    credits = read_credits(connection)
    nodes = connection.sql(_NODES, params=[start, end]).to_arrow_table()
    known = connection.execute("select min(hour), max(hour) from core.node_hours").fetchall()[0]
    settled = _known_hours(known, first, last)

    # a connection of its own: names of temporary relations must not meet the caller's
    with connection.cursor() as work:
        work.register("node_hours", nodes.append_column("node_row", pa.array(range(len(nodes)), _INT)))
        usages = _meter(work, card, exchange, currency, span)
        settling = Settling(plans, usages, Market(card, exchange, currency))
        settlement = settling.settle(_rows(work, settling.coverable()), *settled)
        work.register("pieces", _pieces(work, settlement))
        work.register("plans", _plans(plans))
        charged = node_charges(work, contract.columns).cast(contract.arrow_schema)

    ids = Counter(p.commitment.commitment_id for p in plans)
    books = Books(card, exchange, currency, frozenset(i for i, n in ids.items() if n > 1))
    rows: list[dict[str, Any]] = [books.unused(plans[u.plan], u) for u in settlement.unused]
    for plan in plans:
        rows += books.purchases(plan, *(settled if plan.commitment.hourly else span))
    rows += books.credits(credits, start, end)
    return pa.concat_tables([charged, pa.Table.from_pylist(rows, contract.arrow_schema)])


def _meter(
    work: duckdb.DuckDBPyConnection, card: Card, exchange: Exchange, currency: str, span: tuple[int, int]
) -> list[Usage]:
    """Fill metered, rates, rate_days and usages; the classes of usage by their number."""
    kinds = [Kind(*row) for row in work.execute(_KINDS).fetchall()]
    rates: dict[Price, int] = {}
    segments = []
    for number, kind in enumerate(kinds):
        for since, until in card.eras(*span):
            for n, price in enumerate(card.of_node(kind, since) or (_unknown(kind),)):
                rate = rates.setdefault(price, len(rates))
                segments.append((number, n, rate, since * _HOUR_US, until * _HOUR_US))
    work.register("kinds", _table(
        [(i, *k) for i, k in enumerate(kinds)], kind_id=_INT, provider=_TEXT, region=_TEXT, instance_type=_TEXT,
        accelerator=_TEXT, is_spot=_BOOL,
    ))  # fmt: skip
    work.register("segments", _table(segments, kind_id=_INT, n=_INT, rate_id=_INT, from_us=_INT, to_us=_INT))
    work.register("rates", _rates(rates, currency))
    work.register("rate_days", _rate_days(rates, exchange, currency, span))
    meter(work)
    classes = work.execute(f"select distinct {_CLASS} from metered order by all").fetchall()
    prices = list(rates)
    usages = [Usage(kinds[kind], prices[rate], gpus) for kind, rate, gpus in classes]
    work.register("usages", _table(
        [(i, *c, details(usages[i])) for i, c in enumerate(classes)], usage=_INT, kind_id=_INT, rate_id=_INT,
        gpu_count=_INT, details=_TEXT,
    ))  # fmt: skip
    work.execute("""
        create or replace temp view measured as
        select m.*, u.usage from metered as m
        inner join usages as u
            on m.kind_id = u.kind_id and m.rate_id = u.rate_id and m.gpu_count is not distinct from u.gpu_count
    """)
    return usages


def _rows(work: duckdb.DuckDBPyConnection, coverable: set[int]) -> dict[int, list[Row]]:
    """Hour to its rows that a commitment may cover, in the order of resources."""
    rows: defaultdict[int, list[Row]] = defaultdict(list)
    if coverable:
        query = f"""
            select hour_us // {_HOUR_US} as hour, row_id, usage, quantity, is_reserved
            from measured where quantity > 0 and usage in ({", ".join(map(str, sorted(coverable)))}) order by row_id
        """
        found = work.sql(query).to_arrow_table()
        for hour, *row in zip(*(c.to_pylist() for c in found.columns), strict=True):
            rows[hour].append(Row(*row))
    return rows


def _pieces(work: duckdb.DuckDBPyConnection, s: Settlement) -> pa.Table:
    """Pieces with the consumed quantity of each row dealt among them."""
    work.register("touched", _table([(r,) for r in sorted(set(s.row_id))], row_id=_INT))
    found = work.sql("select row_id, consumed from metered semi join touched using (row_id)").to_arrow_table()
    consumed = dict(zip(found["row_id"].to_pylist(), found["consumed"].to_pylist(), strict=True))
    parts = [consumed[row] for row in s.row_id]
    several: defaultdict[int, list[int]] = defaultdict(list)
    divided = {row for row, piece in zip(s.row_id, s.piece, strict=True) if piece}
    for place, row in enumerate(s.row_id):
        if row in divided:
            several[row].append(place)
    for row, places in several.items():
        for place, part in zip(places, deal(consumed[row], [s.quantity[p] for p in places]), strict=True):
            parts[place] = part
    columns = {
        "row_id": (s.row_id, _INT),
        "piece": (s.piece, _INT),
        "quantity": (s.quantity, _INT),
        "consumed": (parts, _INT),
        "plan": (s.plan, _INT),
        "used": (s.used, _INT),
        "effective": (s.effective, _INT),
        "effective_in_own": (s.effective_in_own, _INT),
        "is_unconverted": (s.is_unconverted, _BOOL),
    }
    return pa.table({name: pa.array(values, type_) for name, (values, type_) in columns.items()})


def _rates(rates: dict[Price, int], currency: str) -> pa.Table:
    rows = [
        (
            i, p.pricing_unit, 1 if p.rounding == "none" else p.metering_s * 10**6, p.minimum_s * 10**6, p.rounding,
            p.sku_id, p.sku_price_id, METERS[p.pricing_unit], p.billing_model, p.billing_account_id,
            p.description or _description(p), p.currency, currency, p.list_price, p.contracted_price,
        )
        for p, i in rates.items()
    ]  # fmt: skip
    return _table(
        rows, rate_id=_INT, pricing_unit=_TEXT, unit_us=_INT, minimum_us=_INT, rounding=_TEXT, sku_id=_TEXT,
        sku_price_id=_TEXT, sku_meter=_TEXT, billing_model=_TEXT, billing_account_id=_TEXT, price_description=_TEXT,
        currency=_TEXT, billing_currency=_TEXT, own_list_price=_INT, own_contracted_price=_INT,
    )  # fmt: skip


def _description(price: Price) -> str | None:
    if price.list_price is None:
        return None
    return f"{price.instance_type or price.accelerator or 'node'} {price.billing_model.replace('_', ' ')}"


def _rate_days(rates: dict[Price, int], exchange: Exchange, currency: str, span: tuple[int, int]) -> pa.Table:
    """Prices of each date in the reporting currency."""
    rows = []
    day, until = date_of(span[0]), date_of(span[1])
    while day < until:
        for price, i in rates.items():
            listed = exchange.price(price.list_price, price.currency, currency, day)
            agreed = exchange.price(price.contracted_price, price.currency, currency, day)
            unpriced = price.list_price is None
            rows.append((i, day, listed, agreed, unpriced, not unpriced and listed is None))
        day += timedelta(days=1)
    return _table(
        rows, rate_id=_INT, date=pa.date32(), list_price=_INT, contracted_price=_INT, is_unpriced=_BOOL,
        is_unrated=_BOOL,
    )  # fmt: skip


def _plans(plans: Sequence[Plan]) -> pa.Table:
    rows = [
        (i, p.commitment.currency, label(p.commitment), *commitment_columns(p.commitment).values())
        for i, p in enumerate(plans)
    ]
    return _table(
        rows, plan=_INT, commitment_currency=_TEXT, commitment_label=_TEXT, commitment_id=_TEXT, commitment_name=_TEXT,
        commitment_type=_TEXT, commitment_category=_TEXT, commitment_unit=_TEXT, capacity_reservation_id=_TEXT,
    )  # fmt: skip


def _unknown(kind: Kind) -> Price:
    """What stands for the price of a node that no card knows: its hours without a price."""
    model = "spot" if kind.is_spot else "unknown"
    return Price(kind.provider or "", None, None, model, "Hours", None, None, None)


def _known_hours(known: tuple[datetime | None, ...] | None, first: int, last: int) -> tuple[int, int]:
    if known is None or known[0] is None or known[1] is None:
        return first, last
    return max(first, first_hour(known[0])), min(last, first_hour(known[1]) + 1)


def _hour(day: date) -> int:
    return first_hour(datetime.combine(day, midnight()))


def _table(rows: Sequence[tuple[Any, ...]], **columns: pa.DataType) -> pa.Table:
    arrays = list(zip(*rows, strict=True)) or [()] * len(columns)
    return pa.table({name: pa.array(a, type_) for (name, type_), a in zip(columns.items(), arrays, strict=True)})
