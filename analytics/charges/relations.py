"""The relations that the engine's SQL reads: kinds of nodes, price segments, rates, commitments, pieces.

Belongs here: records to Arrow tables and back. Not here: reading the lake, choosing prices, the SQL of charges.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from analytics.charges.amortize import Plan
from analytics.charges.coverage import Settlement
from analytics.charges.currency import Exchange
from analytics.charges.metering import meter
from analytics.charges.money import deal
from analytics.charges.node_rows import METERS, details
from analytics.charges.other_rows import commitment_columns, label
from analytics.charges.pieces import Row, Usage
from analytics.charges.pricing import Card, Kind
from analytics.charges.records import Price, date_of

_HOUR_US = 3_600_000_000
_KINDS = """
select distinct provider, region, instance_type, accelerator, coalesce(capacity_type, '') = 'spot' as is_spot
from node_hours order by all
"""
_CLASS = "kind_id, rate_id, gpu_count"
_INT, _TEXT, _BOOL = pa.int64(), pa.string(), pa.bool_()


def meter_nodes(
    work: duckdb.DuckDBPyConnection, card: Card, exchange: Exchange, currency: str, span: tuple[int, int]
) -> list[Usage]:
    """Fill metered, rates, rate_days and usages; the classes of usage by their number."""
    kinds = [Kind(*row) for row in work.execute(_KINDS).fetchall()]
    rates: dict[Price, int] = {}
    segments, days = [], set[tuple[int, int]]()
    for number, kind in enumerate(kinds):
        for since, until, held in _held(card, kind, span):
            for n, price in enumerate(held):
                rate = rates.setdefault(price, len(rates))
                segments.append((number, n, rate, since * _HOUR_US, until * _HOUR_US))
                days |= {(rate, day) for day in range(since // 24, (until + 23) // 24)}
    work.register("kinds", _table(
        [(i, *k) for i, k in enumerate(kinds)], kind_id=_INT, provider=_TEXT, region=_TEXT, instance_type=_TEXT,
        accelerator=_TEXT, is_spot=_BOOL,
    ))  # fmt: skip
    work.register("segments", _table(segments, kind_id=_INT, n=_INT, rate_id=_INT, from_us=_INT, to_us=_INT))
    work.register("rates", _rates(rates, currency))
    work.register("rate_days", _rate_days(list(rates), days, exchange, currency))
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


def rows_by_hour(work: duckdb.DuckDBPyConnection, coverable: Collection[int]) -> dict[int, list[Row]]:
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


def pieces_of(work: duckdb.DuckDBPyConnection, s: Settlement) -> pa.Table:
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


def _rate_days(prices: Sequence[Price], days: Iterable[tuple[int, int]], exchange: Exchange, currency: str) -> pa.Table:
    """Prices in the reporting currency on the dates they are used; `days`: rate and day since 1970-01-01."""
    rows = []
    for rate, number in sorted(days):
        price, day = prices[rate], date_of(24 * number)
        listed = exchange.price(price.list_price, price.currency, currency, day)
        agreed = exchange.price(price.contracted_price, price.currency, currency, day)
        unpriced = price.list_price is None
        rows.append((rate, day, listed, agreed, unpriced, not unpriced and listed is None))
    return _table(
        rows, rate_id=_INT, date=pa.date32(), list_price=_INT, contracted_price=_INT, is_unpriced=_BOOL,
        is_unrated=_BOOL,
    )  # fmt: skip


def plans_of(plans: Sequence[Plan]) -> pa.Table:
    rows = [
        (i, p.commitment.currency, label(p.commitment), *commitment_columns(p.commitment).values())
        for i, p in enumerate(plans)
    ]
    return _table(
        rows, plan=_INT, commitment_currency=_TEXT, commitment_label=_TEXT, commitment_id=_TEXT, commitment_name=_TEXT,
        commitment_type=_TEXT, commitment_category=_TEXT, commitment_unit=_TEXT, capacity_reservation_id=_TEXT,
    )  # fmt: skip


def _held(card: Card, kind: Kind, span: tuple[int, int]) -> list[tuple[int, int, tuple[Price, ...]]]:
    """Hours [since, until) and the prices that a kind of node has in them, over the span."""
    found: list[tuple[int, int, tuple[Price, ...]]] = []
    for since, until in card.eras(*span):
        prices = card.of_node(kind, since) or (_unknown(kind),)
        is_same = bool(found) and found[-1][2] == prices
        found.append((found.pop()[0] if is_same else since, until, prices))
    return found


def _unknown(kind: Kind) -> Price:
    """What stands for the price of a node that no card knows: its hours without a price."""
    model = "spot" if kind.is_spot else "unknown"
    return Price(kind.provider or "", None, None, model, "Hours", None, None, None)


def _table(rows: Sequence[tuple[Any, ...]], **columns: pa.DataType) -> pa.Table:
    arrays = list(zip(*rows, strict=True)) or [()] * len(columns)
    return pa.table({name: pa.array(a, type_) for (name, type_), a in zip(columns.items(), arrays, strict=True)})
