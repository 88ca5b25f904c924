"""DuckDB over the lake: in-memory connections, never a database file that is written in place.

A published manifest holds the file list of every table, so connecting reads one JSON file and no Delta log.
Belongs here: connections and the views over tables. Does not: models, writing tables.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from warehouse.contracts import CONTRACTS
from warehouse.contracts.model import Table
from warehouse.delta import table_path
from warehouse.durable import write_atomically
from warehouse.scratch import spill_directory
from warehouse.sqltypes import duckdb_type, literal, quote
from warehouse.state import Manifest, read_published

LAYERS = ("raw", "core", "mart")
MEMORY_CAP_BYTES = 4 * 2**30
SPILL_CAP = "50GB"


def default_memory_limit() -> str:
    """4 GB or half of the machine's memory, whichever is less, as DuckDB spells it."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{min(MEMORY_CAP_BYTES, total // 2) // 2**20}MiB"


def open_database(
    root: Path, *, memory_limit: str | None = None, threads: int | None = None
) -> duckdb.DuckDBPyConnection:
    """An empty in-memory database with caps set: UTC, memory, its own spill directory under the lake's state."""
    connection = duckdb.connect(":memory:")
    settings: dict[str, str | int | bool] = {
        "TimeZone": "UTC",
        "memory_limit": memory_limit or default_memory_limit(),
        "temp_directory": str(spill_directory(root)),
        "max_temp_directory_size": SPILL_CAP,
        "preserve_insertion_order": False,
        "enable_progress_bar": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if threads is not None:
        settings["threads"] = threads
    for name, value in settings.items():
        rendered = literal(value) if isinstance(value, str) else str(value).lower()
        connection.execute(f"set {name} = {rendered}")
    return connection


def escape_glob(path: str) -> str:
    """The path as DuckDB has to be given it: a list of files is still a list of globs to it."""
    return "".join(f"[{c}]" if c in "[*?" else c for c in path)


def relation_sql(contract: Table, directory: Path, files: Sequence[str], *, evolved: bool = False) -> str:
    """A SELECT over exactly these Parquet files with the contract's columns and types, in its order.

    `files` are relative to `directory`. No files: an empty relation of the same shape. `evolved`: some or all files
    may lack columns, which read as null.
    """
    types = [(f.name, duckdb_type(f.arrow)) for f in contract.fields]
    nulls = ", ".join(f"cast(null as {type_}) as {quote(name)}" for name, type_ in types)
    empty = f"select {nulls} where false"
    if not files:
        return empty
    columns = ", ".join(f"cast({quote(name)} as {type_}) as {quote(name)}" for name, type_ in types)
    paths = ", ".join(literal(escape_glob(str(directory / f))) for f in files)
    options = ["hive_partitioning = false"]
    if contract.partition_by:
        options = ["hive_partitioning = true", "hive_types = {'date': DATE}"]
    if not evolved:
        return f"select {columns} from read_parquet([{paths}], {', '.join(options)})"
    options.append("union_by_name = true")
    rows = f"select * from read_parquet([{paths}], {', '.join(options)})"
    return f"select {columns} from ({empty} union all by name {rows})"


def manifest_relation(root: Path, contract: Table, manifest: Manifest | None, *, older: bool = False) -> str:
    """The SELECT of a table as the manifest has it; an unbuilt table is empty. `older`: as `evolved` above."""
    entry = manifest.tables.get(contract.name) if manifest else None
    files = entry.files if entry else ()
    evolved = older or bool(entry and entry.evolved)
    return relation_sql(contract, table_path(root, contract.name), files, evolved=evolved)


def create_views(
    connection: duckdb.DuckDBPyConnection, root: Path, manifest: Manifest | None, contracts: Mapping[str, Table]
) -> None:
    """Create schemas raw, core, mart and a view for every contract."""
    for layer in LAYERS:
        connection.execute(f"create schema if not exists {layer}")
    for name, contract in contracts.items():
        create = f"create or replace view {quote(name)} as "
        try:
            connection.execute(create + manifest_relation(root, contract, manifest))
        except duckdb.BinderException:
            # published before its contract gained a column; the next build brings the table up to it
            connection.execute(create + manifest_relation(root, contract, manifest, older=True))


def connect(
    root: Path | str,
    *,
    manifest: Manifest | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    contracts: Mapping[str, Table] = CONTRACTS,
) -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB connection with views `raw.*`, `core.*`, `mart.*` of the published tables.

    `manifest` reads an older publication. Every contract has a view; unbuilt tables are empty. Close it when done.
    """
    root = Path(root).resolve()
    connection = open_database(root, memory_limit=memory_limit, threads=threads)
    try:
        create_views(connection, root, manifest or read_published(root / "state"), contracts)
    except BaseException:
        connection.close()
        raise
    return connection


def write_view_database(root: Path, manifest: Manifest, contracts: Mapping[str, Table]) -> Path:
    """Replace `strandline.duckdb` (views only, absolute paths) by rename, for the DuckDB command line and UI."""
    root = root.resolve()
    path = root / "strandline.duckdb"
    # Made elsewhere: DuckDB cannot write a database whose path holds a question mark.
    with tempfile.TemporaryDirectory(prefix="strandline-") as folder:
        made = Path(folder) / path.name
        with duckdb.connect(str(made)) as connection:
            create_views(connection, root, manifest, contracts)
            connection.execute("checkpoint")
        content = made.read_bytes()
    # the log of a session that wrote into the old file does not belong to the new one
    path.with_name(path.name + ".wal").unlink(missing_ok=True)
    write_atomically(path, content)
    return path
