"""SQL text of a contract: identifiers, literals, DuckDB types, and which types may become which.

A value is only ever converted without loss or not at all; a query that yields DOUBLE for a quantity is
refused, because rounding belongs where the quantity is made.
Belongs here: pure text and type rules. Does not: connections or execution.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime

import pyarrow as pa

from warehouse.contracts.model import Table
from warehouse.errors import BadInput

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_SIMPLE = {
    pa.string(): "VARCHAR",
    pa.int64(): "BIGINT",
    pa.int32(): "INTEGER",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.timestamp("us"): "TIMESTAMP",
    pa.date32(): "DATE",
}


def quote(name: str) -> str:
    """`name` as a quoted SQL identifier; a dotted table name is quoted part by part."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in name.split("."))


def literal(value: str | date | datetime) -> str:
    """A SQL literal of a string, a date or a naive timestamp."""
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat(sep=' ', timespec='microseconds')}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    return "'" + value.replace("'", "''") + "'"


def duckdb_type(arrow: pa.DataType) -> str:
    """DuckDB's name of an Arrow type that a contract may use; `KeyError` on any other."""
    if pa.types.is_decimal(arrow):
        return f"DECIMAL({arrow.precision},{arrow.scale})"
    if pa.types.is_map(arrow):
        return f"MAP({duckdb_type(arrow.key_type)}, {duckdb_type(arrow.item_type)})"
    if pa.types.is_list(arrow):
        return f"{duckdb_type(arrow.value_type)}[]"
    return _SIMPLE[arrow]


def is_convertible(source: str, target: str) -> bool:
    """Whether a column of DuckDB type `source` may be stored in one of `target` (both as `describe` names them).

    Numeric conversions that can overflow are allowed here and fail on the value; those that can round are not.
    """
    if source in (target, '"NULL"', "NULL"):
        return True
    source_decimal, target_decimal = _DECIMAL.fullmatch(source), _DECIMAL.fullmatch(target)
    if target_decimal:
        return source in _INTEGERS or (source_decimal is not None and int(source_decimal[2]) <= int(target_decimal[2]))
    if target in _INTEGERS:
        return source in _INTEGERS or (source_decimal is not None and source_decimal[2] == "0")
    if target == "DOUBLE":
        return source in _INTEGERS or source == "FLOAT" or source_decimal is not None
    if target == "TIMESTAMP":
        return source in ("TIMESTAMP_S", "TIMESTAMP_MS")
    return target == "VARCHAR" and source.startswith("ENUM(")


def conforming_columns(contract: Table, described: Sequence[tuple[str, str]], origin: str) -> dict[str, str]:
    """For each column of the contract the expression that brings columns `described` (name, DuckDB type) into its type.

    `origin` names the data in errors. `BadInput` on a missing, unknown or unconvertible column.
    """
    types = dict(described)
    unknown = sorted(types.keys() - set(contract.columns))
    missing = [c for c in contract.columns if c not in types]
    if unknown or missing:
        parts = [f"columns missing: {', '.join(missing)}"] if missing else []
        parts += [f"columns not in the contract: {', '.join(unknown)}"] if unknown else []
        raise BadInput(f"{origin}: does not fit the contract of {contract.name}: {'; '.join(parts)}")
    items = {}
    for field in contract.fields:
        target = duckdb_type(field.arrow)
        if not is_convertible(types[field.name], target):
            raise BadInput(f"{origin}: {contract.name}.{field.name} is {types[field.name]}, the contract says {target}")
        items[field.name] = f"cast({quote(field.name)} as {target})"
    return items
