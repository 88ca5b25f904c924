"""Great Expectations over our tables: expectations rendered from contracts, run on a bounded frame.

Belongs here: the bridge from a contract to a suite and from a result to findings. No Dagster in it. Great
Expectations has no DuckDB source, so DuckDB hands it a bounded pandas frame; and an empty frame passes every
expectation about values, so the number of rows is itself an expectation. Importing it takes seconds: it is
imported inside the functions only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

import duckdb
import pyarrow as pa

from warehouse.contracts import CONTRACTS, Table
from warehouse.windows import read_predicate

MAX_ROWS = 20_000


@dataclass(frozen=True)
class Outcome:
    """What a suite found: rows of the frame and of the window, declared and evaluated expectations, failures."""

    rows: int
    rows_in_window: int
    declared: int
    evaluated: int
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Every declared expectation was evaluated and held; one that was skipped is no success."""
        return not self.failures and self.evaluated == self.declared


def frame(
    con: duckdb.DuckDBPyConnection, table: str, start: date | datetime | None, end: date | datetime | None
) -> tuple[Any, int]:
    """(pandas frame of at most MAX_ROWS rows of [start, end), rows there are). A sample is spread by row hash."""
    contract = CONTRACTS[table]
    where = "true" if contract.window == "whole" else read_predicate(contract, start, end)
    rows = int(con.execute(f"select count(*) from {table} where {where}").fetchall()[0][0])
    columns = ", ".join(
        f'cast("{f.name}" as double) as "{f.name}"' if pa.types.is_decimal(f.arrow) else f'"{f.name}"'
        for f in contract.fields
        if f.type != "labels"
    )
    # By hash of the row and not by chance: the same data give the same frame.
    pick = "" if rows <= MAX_ROWS else f" order by hash(t) limit {MAX_ROWS}"
    return con.sql(f"select {columns} from {table} as t where {where}{pick}").df(), rows


def render(contract: Table, rows: int) -> list[Any]:
    """Expectations of a contract for a frame of `rows` rows: row count, nulls, ranges, values, key."""
    import great_expectations.expectations as gxe

    out: list[Any] = [gxe.ExpectTableRowCountToEqual(value=rows)]
    for f in contract.fields:
        if f.type == "labels":
            continue
        if f.name in contract.required:
            out.append(gxe.ExpectColumnValuesToNotBeNull(column=f.name))
        if f.low is not None or f.high is not None:
            out.append(gxe.ExpectColumnValuesToBeBetween(column=f.name, min_value=f.low, max_value=f.high))
        if f.values:
            out.append(gxe.ExpectColumnValuesToBeInSet(column=f.name, value_set=list(f.values)))
    if len(contract.key) > 1:
        out.append(gxe.ExpectCompoundColumnsToBeUnique(column_list=list(contract.key), ignore_row_if="never"))
    else:
        out.append(gxe.ExpectColumnValuesToBeUnique(column=contract.key[0]))
    return out


def validate(
    con: duckdb.DuckDBPyConnection,
    table: str,
    start: date | datetime | None = None,
    end: date | datetime | None = None,
) -> Outcome:
    """Run the contract's expectations over the window of a table."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    contract = CONTRACTS[table]
    data, in_window = frame(con, table, start, end)
    expected = min(in_window, MAX_ROWS)
    # A context of its own for each check: nothing of it is kept, and contexts share global state otherwise.
    config = DataContextConfig(
        store_backend_defaults=InMemoryStoreBackendDefaults(),
        progress_bars=ProgressBarsConfig(globally=False),
        analytics_enabled=False,  # no word about a run leaves the machine
    )
    context = gx.get_context(mode="ephemeral", project_config=config)
    asset = context.data_sources.add_pandas("duckdb").add_dataframe_asset(name=table)
    batch = asset.add_batch_definition_whole_dataframe("window").get_batch({"dataframe": data})
    declared = render(contract, expected)
    suite = gx.ExpectationSuite(name=table, expectations=declared)
    result = batch.validate(suite)
    failures = []
    for r in result.results:
        if not r.success and r.expectation_config is not None:
            kwargs = {k: v for k, v in r.expectation_config.kwargs.items() if k != "batch_id"}
            seen = {k: v for k, v in (r.result or {}).items() if k in ("unexpected_count", "observed_value")}
            problem = str((r.exception_info or {}).get("exception_message") or "")
            failures.append({"expectation": r.expectation_config.type, **kwargs, **seen, "error": problem})
    return Outcome(len(data), in_window, len(declared), len(result.results), failures)
