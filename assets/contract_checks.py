"""The contract of a table as one aggregate query: key, required columns, ranges; and its types. No Dagster in it.

Belongs here: rendering the query and reading its answer. Not here: when it runs (`checks.py`).
"""

from __future__ import annotations

from datetime import date, datetime

import duckdb
import pyarrow as pa

from warehouse.contracts import CONTRACTS, Table
from warehouse.sqltypes import quote
from warehouse.windows import read_predicate


def violations(
    con: duckdb.DuckDBPyConnection, table: str, start: date | datetime | None = None, end: date | datetime | None = None
) -> dict[str, int]:
    """What of the contract the rows of [start, end) break: rule to number of rows; empty where all is well."""
    contract = CONTRACTS[table]
    found: dict[str, int] = {}
    rules = _rules(contract)
    where = "true" if contract.window == "whole" else read_predicate(contract, start, end)
    counts = ", ".join(f"count(*) filter (where {condition})" for condition in rules.values())
    if rules:
        row = con.execute(f"select {counts} from {table} where {where}").fetchall()[0]
        found |= {rule: n for rule, n in zip(rules, row, strict=True) if n}
    key = ", ".join(quote(c) for c in contract.key)
    groups = f"select count(*) as n from {table} where {where} group by {key}"
    twins = con.execute(f"select coalesce(sum(n - 1), 0)::bigint from ({groups}) where n > 1").fetchall()[0][0]
    if twins:
        found[f"key ({', '.join(contract.key)}) is unique"] = twins
    return found


def rule_count(table: str) -> int:
    """How many rules `violations` looks at, the key included."""
    return len(_rules(CONTRACTS[table])) + 1


def schema_differences(stored: pa.Schema, contract: Table) -> list[str]:
    """Where the stored columns differ from the contract, as sentences; empty where they do not."""
    out = []
    for f in contract.fields:
        index = stored.get_field_index(f.name)
        if index < 0:
            out.append(f"column {f.name} exists")
        elif stored.field(index).type != f.arrow:
            out.append(f"column {f.name} is {f.arrow}, not {stored.field(index).type}")
    return out


def _rules(contract: Table) -> dict[str, str]:
    """Rule as a sentence to the condition under which a row breaks it."""
    rules = {f"{c} is not null": f"{quote(c)} is null" for c in contract.required}
    for f in contract.fields:
        column = quote(f.name)
        if f.low is not None:
            rules[f"{f.name} >= {f.low:g}"] = f"{column} < {f.low:g}"
        if f.high is not None:
            rules[f"{f.name} <= {f.high:g}"] = f"{column} > {f.high:g}"
        if f.type == "double" and contract.layer != "raw":
            # NaN compares in a way that nobody means; raw keeps what the exporter said.
            rules[f"{f.name} is a number"] = f"isnan({column})"
        if f.values:
            allowed = ", ".join("'" + v.replace("'", "''") + "'" for v in f.values)
            rules[f"{f.name} in ({allowed})"] = f"{column} not in ({allowed})"
    if contract.window == "hour":
        rules["hour is on the hour, date its day"] = "hour <> date_trunc('hour', hour) or date <> cast(hour as date)"
    return rules
