"""Delta tables: opening, creating from a contract, listing files, committing a window.

Only features that DuckDB, Polars and Spark read from a file list are used: no deletion vectors, no column mapping.
Belongs here: everything that calls `deltalake` for a single table. Does not: validation, locks, publishing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, WriterProperties
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import RemoveAction

from warehouse.contracts.model import Table
from warehouse.errors import BadInput
from warehouse.files import ROW_GROUP_ROWS, NewFile, skipping_columns
from warehouse.windows import WriteWindow

# for compaction, the one job in which deltalake writes files
WRITER = WriterProperties(compression="ZSTD", compression_level=3, max_row_group_size=ROW_GROUP_ROWS)
EVOLVED = "strandline.evolved"


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a table version.

    `path` is relative to the table, `day` its date partition (None if none), `first` and `last` the range of its
    `hour` column where the log knows it.
    """

    path: str
    rows: int
    size: int
    day: date | None
    first: datetime | None = None
    last: datetime | None = None

    def may_overlap(self, window: WriteWindow) -> bool:
        """Whether the file may hold rows of the window."""
        if self.day is not None and not window.contains_date(self.day):
            return False
        if not isinstance(window.start, datetime) or not isinstance(window.end, datetime):
            return True
        if self.first is None or self.last is None:
            return True
        return self.first < window.end and self.last >= window.start

    def is_inside(self, window: WriteWindow) -> bool:
        """Whether the file surely holds no rows outside the window."""
        if not isinstance(window.start, datetime) or not isinstance(window.end, datetime):
            return True  # dates are whole partitions
        if self.first is None or self.last is None:
            return False
        return self.first >= window.start and self.last < window.end


def table_path(root: Path, name: str) -> Path:
    """Directory of table `layer.table` in the lake at `root`."""
    layer, table = name.split(".", 1)
    return root / "lake" / layer / table


def open_table(root: Path, name: str, version: int | None = None) -> DeltaTable | None:
    """The Delta table at its newest or the given version; None where it was never committed.

    `BadInput` where the table has no such version, or no longer.
    """
    path = table_path(root, name)
    if not (path / "_delta_log").is_dir():
        return None
    try:
        return DeltaTable(str(path), version=version)
    except TableNotFoundError:
        # a process died between making the directory and the first commit
        return None
    except DeltaError as error:
        if version is None:
            raise
        raise BadInput(f"{name} has no version {version}: {error}") from error


def partition_day(path: str) -> date | None:
    """The date in a partitioned file's path (`date=2026-03-01/part-….parquet`)."""
    head = path.split("/", 1)[0]
    return date.fromisoformat(head.removeprefix("date=")) if head.startswith("date=") else None


def data_files(table: DeltaTable) -> list[DataFile]:
    """The files of the opened version, ordered by path."""
    actions = pa.table(table.get_add_actions(flatten=True))
    wanted = ["path", "num_records", "size_bytes", "min.hour", "max.hour"]
    rows = actions.select([c for c in wanted if c in actions.column_names]).to_pylist()
    files = [
        DataFile(
            r["path"],
            r["num_records"] or 0,
            r["size_bytes"],
            partition_day(r["path"]),
            r.get("min.hour"),
            r.get("max.hour"),
        )
        for r in rows
    ]
    return sorted(files, key=lambda f: f.path)


def is_evolved(table: DeltaTable, contract: Table) -> bool:
    """Whether columns were, or are about to be, added after the first rows, so that older files lack them."""
    if table.metadata().configuration.get(EVOLVED) == "true":
        return True
    return not {f.name for f in table.schema().fields}.issuperset(contract.columns)


def _constraints(contract: Table) -> dict[str, str]:
    # the bounds are part of the name, so that a changed range is a different constraint
    rendered = {}
    for field in contract.fields:
        parts = []
        if field.low is not None:
            parts.append(f"{field.name} >= {field.low:g}")
        if field.high is not None:
            parts.append(f"{field.name} <= {field.high:g}")
        if parts:
            name = re.sub(r"\W", "_", f"{field.name}_{field.low}_{field.high}").lower()
            rendered[name] = f"{field.name} is null or ({' and '.join(parts)})"
    return rendered


def _create(path: Path, contract: Table) -> DeltaTable:
    return DeltaTable.create(
        str(path),
        schema=contract.arrow_schema,
        partition_by=contract.partition_by,
        description=f"{contract.grain}. {contract.description}",
        configuration={
            # by default only the first 32 columns get statistics, which misses the window column of wide tables
            "delta.dataSkippingStatsColumns": ",".join(skipping_columns(contract)),
            "delta.enableDeletionVectors": "false",
        },
    )


def _types(schema: pa.Schema) -> dict[str, object]:
    return {f.name: f.type for f in DeltaSchema.from_arrow(schema).fields}


def _evolve(table: DeltaTable, contract: Table) -> bool:
    current = {f.name: f.type for f in table.schema().fields}
    wanted = _types(contract.arrow_schema)
    dropped = [n for n in current if n not in wanted]
    retyped = [n for n in wanted if n in current and current[n] != wanted[n]]
    added = [f for f in contract.fields if f.name not in current]
    required = [f.name for f in added if f.name in contract.required]
    if dropped or retyped or required:
        raise BadInput(
            f"{contract.name}: the table in the lake does not fit its contract any more "
            f"(dropped: {dropped}, retyped: {retyped}, new in the key: {required}); "
            f"remove {table.table_uri} and fill the table anew"
        )
    if added:
        schema = DeltaSchema.from_arrow(pa.schema([pa.field(f.name, f.arrow) for f in added]))
        table.alter.set_table_properties({EVOLVED: "true"}, raise_if_not_exists=False)
        table.alter.add_columns(list(schema.fields))
    return bool(added)


def _sync_constraints(table: DeltaTable, contract: Table) -> bool:
    prefix = "delta.constraints."
    current = {k.removeprefix(prefix) for k in table.metadata().configuration if k.startswith(prefix)}
    wanted = _constraints(contract)
    for name in wanted.keys() - current:
        table.alter.add_constraint({name: wanted[name]})
    for name in current - wanted.keys():
        table.alter.drop_constraint(name)
    return current != wanted.keys()


def ensure_table(root: Path, contract: Table) -> DeltaTable:
    """The table, made from its contract where missing and brought up to it where columns were added.

    `BadInput` where columns were dropped or retyped: derived tables are then rebuilt, raw ones migrated by hand.
    """
    path = table_path(root, contract.name)
    table = open_table(root, contract.name) or _create(path, contract)
    changed = _evolve(table, contract)
    changed = _sync_constraints(table, contract) or changed
    return DeltaTable(str(path)) if changed else table


def commit_files(
    table: DeltaTable, added: Sequence[NewFile], removed: Sequence[DataFile], metadata: Mapping[str, str]
) -> int:
    """Add and remove files in one commit; returns the new version. The writer lock keeps others out."""
    now_ms = int(time.time() * 1000)
    removals = [
        RemoveAction(f.path, True, now_ms, f.size, {"date": f.day.isoformat()} if f.day is not None else {})
        for f in removed
    ]
    table.create_write_transaction(
        [*(f.action for f in added), *removals],
        mode="append",
        schema=table.schema(),
        partition_by=table.metadata().partition_columns,
        commit_properties=CommitProperties(custom_metadata=dict(metadata), max_commit_retries=0),
    )
    table.update_incremental()
    return table.version()
