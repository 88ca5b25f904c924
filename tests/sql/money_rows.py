"""Money tables in one DuckDB for tests of SQL: rows by name, models run over them and checked against their contract.

What a row does not name is zero where a mart sums it, else null. No lake: what a build adds is tested elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from assets.sql_checks import load_checks, run_check
from warehouse.contracts import CONTRACTS
from warehouse.models import SQL_DIRECTORY, read_model
from warehouse.sqltypes import conforming_columns, quote

SUMMED = ("quantity", "cost", "exact_cost")
# parsing a model costs more than running it over a few rows
_model = lru_cache(read_model)
_checks = lru_cache(load_checks)


def rows(table: str, given: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Arrow rows of `table`; text and numbers become Decimal where the contract says so."""
    contract, out = CONTRACTS[table], []
    for row in given:
        if unknown := row.keys() - set(contract.columns):
            raise KeyError(f"{table} has no {unknown}")
        full: dict[str, Any] = {}
        for f in contract.fields:
            value = row.get(f.name, 0 if f.type in SUMMED and contract.layer == "mart" else None)
            full[f.name] = Decimal(str(value)) if value is not None and pa.types.is_decimal(f.arrow) else value
        out.append(full)
    return pa.Table.from_pylist(out, schema=contract.arrow_schema)


def at(text: str) -> datetime:
    """A naive UTC instant."""
    return datetime.fromisoformat(text)


class Money:
    """Every contract table in memory, empty at first."""

    def __init__(self) -> None:
        self.con = duckdb.connect()
        for layer in ("raw", "core", "mart"):
            self.con.execute(f"create schema {layer}")
        for name in CONTRACTS:
            self.put(name, [])

    def put(self, table: str, given: Iterable[Mapping[str, Any]]) -> None:
        """Make the table hold these rows."""
        incoming = rows(table, given)
        self.con.register("incoming", incoming)
        self.con.execute(f"create or replace table {quote(table)} as select * from incoming")
        self.con.unregister("incoming")

    def run(
        self, name: str, start: date = date(2026, 1, 1), end: date = date(2027, 1, 1), sql: Path = SQL_DIRECTORY
    ) -> list[dict[str, Any]]:
        """Run one model over [start, end), keep its rows as the table, and return them by key; the key is unique."""
        contract, model = CONTRACTS[name], _model(sql / f"{name.replace('.', '/')}.sql", name)
        bounds = {"start_at": datetime.combine(start, time()), "end_at": datetime.combine(end, time())}
        given = {p: bounds[p] for p in model.parameters}
        described = [(r[0], r[1]) for r in self.con.execute(f"describe {model.sql}", given or None).fetchall()]
        columns = ", ".join(f"{e} as {quote(c)}" for c, e in conforming_columns(contract, described, name).items())
        made = self.con.sql(f"select {columns} from ({model.sql}\n)", params=given or None).to_arrow_table()
        found = made.cast(contract.arrow_schema).to_pylist()
        keys = [tuple(str(r[c]) for c in contract.key) for r in found]
        assert len(set(keys)) == len(keys), f"{name}: key is not unique"
        self.put(name, found)
        return [row for _, row in sorted(zip(keys, found, strict=True), key=lambda pair: pair[0])]

    def check(self, name: str, start: date = date(2026, 1, 1), end: date = date(2027, 1, 1)) -> list[dict[str, Any]]:
        """Rows that a check of sql/check finds wrong."""
        return run_check(self.con, _checks(SQL_DIRECTORY / "check")[name], start, end).shown
