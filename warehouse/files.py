"""Data files of tables: Parquet written by DuckDB, with the statistics that a Delta log keeps about them.

DuckDB encodes row groups on all cores, which for wide tables is several times faster than the writer inside
`deltalake`; that one only commits. Belongs here: one SELECT to one file. Does not: which rows, the commit.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
from deltalake.transaction import AddAction

from warehouse.contracts.model import Table
from warehouse.sqltypes import literal, quote

# zstd level 1 costs no more than lz4 here; 250,000 rows a group let several threads read a day of a large fleet
# while an hour of it prunes to a few groups
ROW_GROUP_ROWS = 250_000
PARQUET = f"format parquet, compression zstd, compression_level 1, row_group_size {ROW_GROUP_ROWS}, return_stats true"
# rows of a file are sorted by key up to this number; beyond, a sort costs more than the pruning it brings, and rows
# come in about the order of time anyway
SORT_ROWS = 1_000_000
_LONGEST_STATISTIC = 64


@dataclass(frozen=True)
class NewFile:
    """A file that is written and not yet committed: the log's entry, where it lies, its rows."""

    action: AddAction
    path: Path
    rows: int


def skipping_columns(contract: Table) -> list[str]:
    """Columns whose ranges the log keeps: the key and every date or instant."""
    instants = [f.name for f in contract.fields if f.type in ("timestamp", "date")]
    return list(dict.fromkeys([*contract.key, *instants]))


def write_file(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    *,
    rows: int,
    contract: Table,
    directory: Path,
    day: date | None,
) -> NewFile:
    """Write the rows of SELECT `source` (`rows` of them, all of date `day`) to a new file under the table."""
    columns = ", ".join(quote(c) for c in contract.columns if c not in contract.partition_by)
    order = f"order by {', '.join(quote(c) for c in contract.key)}" if rows <= SORT_ROWS else ""
    return copy_to_file(connection, f"select {columns} from ({source}) {order}", {}, contract, directory, day)


def copy_to_file(  # noqa: PLR0917
    connection: duckdb.DuckDBPyConnection,
    query: str,
    parameters: Mapping[str, Any],
    contract: Table,
    directory: Path,
    day: date | None,
) -> NewFile:
    """Write what `query` yields, all columns but the partition in their final types, to a new file of date `day`."""
    partition = f"date={day.isoformat()}/" if day is not None else ""
    relative = f"{partition}part-{uuid.uuid4()}.parquet"
    path = directory / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    statement = f"copy ({query}) to {literal(str(path))} ({PARQUET})"
    try:
        copied = connection.execute(statement, dict(parameters) or None).fetchall()
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    _, count, size, _, columns_found, *_ = copied[0]
    action = AddAction(
        relative,
        size,
        {"date": day.isoformat()} if day is not None else {},
        int(time.time() * 1000),
        True,
        json.dumps(_statistics(contract, count, columns_found)),
    )
    return NewFile(action, path, count)


def _statistics(contract: Table, rows: int, found: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    lowest: dict[str, Any] = {}
    highest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in skipping_columns(contract):
        column = found.get(quote(name)) or found.get(name)
        if column is None:
            continue
        if "null_count" in column:
            nulls[name] = int(column["null_count"])
        low, high = (_statistic(contract.field(name).type, column, end) for end in ("min", "max"))
        if low is not None and high is not None:
            lowest[name], highest[name] = low, high
    return {"numRecords": rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}


def _statistic(type_: str, column: Mapping[str, str], end: str) -> str | int | None:
    text = column.get(end)
    if text is None or column.get(f"{end}_is_exact", "true") != "true" or len(text) > _LONGEST_STATISTIC:
        return None
    if type_ == "integer":
        return int(text)
    if type_ == "timestamp":
        moment = text.replace(" ", "T")
        return moment if "." in moment else f"{moment}.000000"
    return text if type_ in ("string", "date") else None
