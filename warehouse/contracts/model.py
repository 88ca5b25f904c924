"""What a table contract is: fields with units and ranges, a grain, a key and a window column.

The declarations themselves stand in `raw.py`, `core.py` and `mart.py`; everything rendered from a
contract (Arrow schema, constraints, expectations, catalogue) stands in the modules that need it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

Layer = Literal["raw", "core", "mart"]
Window = Literal["hour", "date", "whole"]

ARROW_TYPES: dict[str, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us"),
    "date": pa.date32(),
    "quantity": pa.decimal128(18, 6),
    "amount": pa.decimal128(18, 9),
    "price": pa.decimal128(20, 9),
    "cost": pa.decimal128(28, 10),
    "exact_cost": pa.decimal128(38, 18),
    "ratio12": pa.decimal128(18, 12),
    "labels": pa.map_(pa.string(), pa.string()),
}


@dataclass(frozen=True)
class Field:
    """One column, defined once in `fields.py` and named by the tables that use it.

    `type` is a key of `ARROW_TYPES`. `low` and `high` bound every non-null value, both inclusive.
    """

    name: str
    type: str
    description: str
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()

    @property
    def arrow(self) -> pa.DataType:
        return ARROW_TYPES[self.type]


@dataclass(frozen=True)
class Table:
    """The contract of one table.

    `name` is `layer.table`. `key` names columns that together are unique (nulls compare equal);
    those in `required` (by default the key) may not be null. `window` is the column that a write
    replaces whole: `hour` for raw, `date` for core and mart, `whole` for small reference tables.
    Tables with a window carry `date`, the storage partition. `spans` is true where a row is one
    date's part of an interval whose ends are `started_at` and `finished_at`. `frozen` is true where
    rows are told once and stay: only the writer of such a table publishes it, no build does.
    """

    name: str
    grain: str
    key: tuple[str, ...]
    fields: tuple[Field, ...]
    window: Window
    description: str
    nullable_key: tuple[str, ...] = ()
    spans: bool = False
    frozen: bool = False

    @property
    def layer(self) -> str:
        return self.name.split(".", 1)[0]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(c for c in self.key if c not in self.nullable_key)

    @property
    def partition_by(self) -> list[str]:
        return [] if self.window == "whole" else ["date"]

    def field(self, name: str) -> Field:
        """The field of that name; `KeyError` names table and field."""
        for f in self.fields:
            if f.name == name:
                return f
        raise KeyError(f"{self.name} has no field {name}")

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([pa.field(f.name, f.arrow, nullable=f.name not in self.required) for f in self.fields])
