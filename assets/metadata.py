"""What Dagster shows about a table: its schema, column lineage, rows and time span.

Everything is rendered from contracts, models and one aggregate query. Not here: checks.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import dagster as dg
import duckdb

from warehouse.contracts import CONTRACTS, Table
from warehouse.models import Model
from warehouse.windows import read_predicate


def asset_key(table: str) -> dg.AssetKey:
    """`layer.table` as an asset key of two parts."""
    return dg.AssetKey(table.split("."))


def table_schema(contract: Table) -> dg.TableSchema:
    """The contract as Dagster's table schema."""
    columns = []
    for f in contract.fields:
        other = []
        if f.low is not None:
            other.append(f">= {f.low:g}")
        if f.high is not None:
            other.append(f"<= {f.high:g}")
        constraints = dg.TableColumnConstraints(
            nullable=f.name not in contract.required, unique=contract.key == (f.name,), other=other
        )
        columns.append(dg.TableColumn(f.name, f.type, f.description, constraints))
    grain = dg.TableConstraints(other=[f"unique: {', '.join(contract.key)}"])
    return dg.TableSchema(columns=columns, constraints=grain)


def column_lineage(model: Model) -> dg.TableColumnLineage:
    """Column lineage as sqlglot reads it from the model's SQL."""
    deps = {}
    for column, sources in model.lineage.items():
        found = [dg.TableColumnDep(asset_key(table), source) for table, source in sources]
        if found:
            deps[column] = found
    return dg.TableColumnLineage(deps)


def time_column(contract: Table) -> str | None:
    """The column that says how far a table reaches."""
    names = ("sampled_at", "scrape_at", "snapshot_at", "interval_start_at", "hour", "date", "month")
    return next((n for n in names if n in contract.columns), None)


def statistics(
    con: duckdb.DuckDBPyConnection, table: str, start: date | datetime | None = None, end: date | datetime | None = None
) -> dict[str, Any]:
    """Rows and first and last time of a table's window [start, end), as Dagster metadata."""
    contract = CONTRACTS[table]
    column = time_column(contract)
    extent = f"min({column}), max({column})" if column else "null, null"
    where = "true" if contract.window == "whole" else read_predicate(contract, start, end)
    rows, first, last = con.execute(f"select count(*), {extent} from {table} where {where}").fetchall()[0]
    metadata: dict[str, Any] = {"dagster/row_count": rows}
    if first is not None:
        metadata |= {"first": dg.MetadataValue.text(f"{first} UTC"), "last": dg.MetadataValue.text(f"{last} UTC")}
    return metadata
