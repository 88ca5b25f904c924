"""Small rate cards and fleets for tests of charges: rows with sensible defaults, in an engine without a lake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from analytics.charges import engine
from warehouse.contracts import CONTRACTS

HOUR = timedelta(hours=1)
HOUR_US = 3_600_000_000
DAY = date(2026, 3, 2)
START = datetime(2026, 3, 2)
Row = dict[str, Any]


def dec(value: str | int | Decimal) -> Decimal:
    return Decimal(value)


def price(list_price: str | int, **more: Any) -> Row:
    """A row of raw.prices: on demand, per node-hour, metered by the second."""
    row = {
        "provider": "aws", "sku_id": "SKU", "sku_price_id": "SKU.od", "region": "*", "instance_type": "p5.48xlarge",
        "billing_model": "on_demand", "pricing_unit": "Hours", "currency": "USD", "list_unit_price": dec(list_price),
        "metering_s": 1, "minimum_s": 0, "rounding": "up", "valid_from_at": datetime(2020, 1, 1),
        "as_of": date(2026, 1, 1), "source": "card.yaml", "source_line": 1,
    }  # fmt: skip
    return row | more


def commitment(**more: Any) -> Row:
    """A row of raw.commitments: one node-hour an hour over the first day, no upfront, invoiced monthly."""
    row = {
        "provider": "aws", "commitment_id": "ri-1", "commitment_name": "RI", "commitment_category": "Usage",
        "commitment_type": "Reserved Instance", "precedence": 1, "committed_quantity": dec(1),
        "commitment_unit": "Hours", "currency": "USD", "payment_model": "No Upfront", "upfront_cost": dec(0),
        "recurring_cost": dec(0), "payment_interval": "Monthly", "starts_at": START, "ends_at": START + 24 * HOUR,
        "is_capacity_reservation": False, "as_of": date(2026, 1, 1), "source": "card.yaml", "source_line": 2,
    }  # fmt: skip
    return row | more


def plan(**more: object) -> Row:
    """A Spend commitment as in the FOCUS appendix: the year 2023, a dollar an hour, invoiced hourly."""
    usual = {
        "commitment_id": "cd", "commitment_category": "Spend", "commitment_type": "plan", "committed_quantity": None,
        "committed_spend": dec(1), "commitment_unit": "USD", "starts_at": datetime(2023, 1, 1),
        "ends_at": datetime(2024, 1, 1),
        "recurring_cost": dec(1), "payment_interval": "Hourly",
    }  # fmt: skip
    return commitment(**{**usual, **more})


def run(node: str, begin: datetime, end: datetime, *, is_open: bool = False, **more: Any) -> list[Row]:
    """Rows of core.node_hours of a node that is there from `begin` to `end`; `is_open`: still there at the end."""
    rows, hour = [], begin.replace(minute=0, second=0, microsecond=0)
    while hour < end:
        present = min(end, hour + HOUR) - max(begin, hour)
        row = {
            "date": hour.date(), "hour": hour, "cluster": "c", "node": node, "node_uid": f"uid-{node}",
            "resource_id": f"i-{node}", "provider": "aws", "region": "us-east-1", "zone": "us-east-1a",
            "instance_type": "p5.48xlarge", "accelerator": "H100", "gpu_count": 8, "capacity_type": "on-demand",
            "cpu_milli": 192_000, "memory_bytes": 2048 * 2**30, "created_at": begin,
            "node_finished_at": None if is_open else end, "running_us": present // timedelta(microseconds=1),
        }  # fmt: skip
        rows.append(row | more)
        hour += HOUR
    return rows


def engine_with(tables: Mapping[str, Iterable[Row]]) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection that holds these rows in the engine's input tables."""
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    for name in engine.INPUTS:
        layer, table = name.split(".")
        contract = CONTRACTS[name]
        schema = pa.schema([pa.field(f.name, f.type) for f in contract.arrow_schema])
        rows = [{c: r.get(c) for c in contract.columns} for r in tables.get(name, ())]
        connection.register("given", pa.Table.from_pylist(rows, schema=schema))
        connection.execute(f"create schema if not exists {layer}")
        connection.execute(f"create table {layer}.{table} as select * from given")
        connection.unregister("given")
    return connection


def charges(
    tables: Mapping[str, Iterable[Row]], start: date = DAY, days: int = 1, step: int | None = None
) -> list[Row]:
    """Charges of `days` dates, computed together or `step` dates at a time, in the order of charge_id."""
    with engine_with(tables) as connection:
        rows: list[Row] = []
        for first in range(0, days, step or days):
            until = min(days, first + (step or days))
            found = engine.compute(connection, start + timedelta(days=first), start + timedelta(days=until))
            assert found.schema.equals(CONTRACTS["core.computed_charges"].arrow_schema)
            rows += found.to_pylist()
    repeated = [k for k, n in Counter((r["date"], r["charge_id"]) for r in rows).items() if n > 1]
    assert not repeated, repeated
    return sorted(rows, key=lambda r: (r["date"], r["charge_id"]))


def total(rows: Iterable[Row], column: str, **where: Any) -> Decimal:
    """Sum of a column over the rows that have these values."""
    return sum((r[column] or Decimal(0) for r in pick(rows, **where)), Decimal(0))


def pick(rows: Iterable[Row], **where: Any) -> list[Row]:
    """The rows that have these values."""
    return [r for r in rows if all(r[k] == v for k, v in where.items())]


def only(rows: Iterable[Row], **where: Any) -> Row:
    """The one row that has these values."""
    found = pick(rows, **where)
    assert len(found) == 1, found
    return found[0]


def columns(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[n] for n in names)


def one_hour(prices: list[Row], commitments: list[Row] | None = None, **node: Any) -> list[Row]:
    """Charges of the first day with one node that is there for its first hour."""
    tables = {
        "core.node_hours": run("a", START, START + HOUR, is_open=True, **node),
        "raw.prices": prices,
        "raw.commitments": commitments or [],
    }
    return charges(tables)


def rates(*given: tuple[str, str, str, str]) -> list[Row]:
    """Rows of raw.exchange_rates: from, to, date, rate."""
    return [
        {"from_currency": a, "to_currency": b, "rate_date": date.fromisoformat(d), "exchange_rate": dec(r)}
        for a, b, d, r in given
    ]
