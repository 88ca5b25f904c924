"""Tables and query results as files: CSV, Parquet, JSON or aligned text, written beside their place and renamed.

CSV: comma, header, UTF-8. A null is an empty cell, an empty string is `""`. Instants are ISO 8601 in UTC with `Z`,
dates ISO 8601, decimals with all their digits, nested values JSON text. Text cells and headers that a spreadsheet
would run as a formula (starting with one of `FORMULA_STARTS`) get a leading apostrophe; numbers do not.
FOCUS datasets (`focus.py`) have decimals without trailing zeros, but always one digit after the point, so that readers
that guess types see a decimal in a column of whole numbers.
JSON: an array of objects, instants as in CSV, NaN and infinities null. Parquet keeps the types.
Belongs here: rendering and safe writing. Does not: stdout, progress, choosing file names.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path

import duckdb

from warehouse import focus
from warehouse.contracts import CONTRACTS
from warehouse.contracts.model import Table
from warehouse.delta import table_path
from warehouse.engine import connect
from warehouse.errors import BadInput
from warehouse.sqltypes import literal, quote
from warehouse.state import Manifest, manifest_as_of, read_published
from warehouse.windows import read_predicate

FORMATS = ("csv", "parquet", "json", "table")
# What makes spreadsheets run a cell; East Asian Excel takes the full-width forms too (OWASP, CSV Injection).
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NESTED = ("MAP(", "STRUCT(", "UNION(")
ROW_GROUP_ROWS = 100_000


@dataclass(frozen=True)
class ExportReport:
    """What was written: file, rows, and the publication it was read from (empty for a query)."""

    path: Path
    rows: int
    build_id: str = ""


def find_contract(table: str, contracts: Mapping[str, Table] = CONTRACTS) -> Table:
    """The contract of `layer.table`; `BadInput` lists close names where there is none."""
    if table in contracts:
        return contracts[table]
    last = table.rsplit(".", maxsplit=1)[-1]
    short = {name.split(".", 1)[1]: name for name in contracts}
    close = get_close_matches(table, contracts, n=3, cutoff=0.5)
    close += [short[s] for s in get_close_matches(last, short, n=3) if short[s] not in close]
    hint = f"did you mean {', '.join(close)}?" if close else "`strandline catalog` lists them"
    raise BadInput(f"there is no table {table!r}; {hint}")


def publication(root: Path, as_of: date | None = None) -> Manifest:
    """The published manifest, or the newest one at the end of the UTC date `as_of`; `BadInput` where none is."""
    if as_of is None:
        manifest = read_published(root / "state")
        if manifest is None:
            raise BadInput(f"{root}: nothing has been published yet; run `strandline build`")
        return manifest
    following = datetime(as_of.year, as_of.month, as_of.day) + timedelta(days=1)
    manifest = manifest_as_of(root / "state", following)
    if manifest is None:
        raise BadInput(f"{root}: nothing that was published by {as_of} is kept")
    return manifest


def export_table(
    root: Path | str,
    table: str,
    format: str,
    out: Path | str,
    *,
    as_of: date | None = None,
    start: date | None = None,
    end: date | None = None,
    escape_formulas: bool = True,
    focus_version: str | None = None,
    contracts: Mapping[str, Table] = CONTRACTS,
) -> ExportReport:
    """Write [start, end) of a published table to `out`, ordered by its key.

    `as_of` reads what was published at the end of that UTC date; `focus_version` writes a FOCUS dataset in the form of
    that version. `BadInput` on an unknown table, format or path, and where the files of an old publication are not kept
    any more.
    """
    root = Path(root).resolve()
    contract = find_contract(table, contracts)
    if focus_version is not None:
        focus.columns(table, focus_version)
    manifest = publication(root, as_of)
    entry = manifest.tables.get(table)
    directory = table_path(root, table)
    if entry and not all((directory / f).exists() for f in entry.files):
        raise BadInput(f"{table} as published {manifest.created_at:%Y-%m-%d %H:%M} UTC is not kept any more")
    if start is not None and end is not None and start >= end:
        raise BadInput(f"window [{start}, {end}): the start must be before the end")
    predicate = read_predicate(contract, start, end)
    connection = connect(root, manifest=manifest, contracts={table: contract})
    try:
        slices = date_slices(connection, contract, quote(table), predicate, format)
        statements = [f"select * {source}" for source in slices]
        if focus_version is not None:
            types = {row[0]: row[1] for row in connection.execute(f"describe {quote(table)}").fetchall()}
            zoned = format == "parquet"
            statements = [focus.select(table, focus_version, source, types, zoned=zoned) for source in slices]
        report = export_query(
            connection, statements, format, out,
            escape_formulas=escape_formulas, short_decimals=focus_version is not None,
        )  # fmt: skip
    finally:
        connection.close()
    return ExportReport(report.path, report.rows, manifest.build_id)


def date_slices(
    connection: duckdb.DuckDBPyConnection, contract: Table, source: str, predicate: str, format: str
) -> list[str]:
    """`from … where … order by …` clauses that one after another yield the rows of `source` in the order of the key.

    One for each date where table and format allow it, since sorting many wide rows at once takes gigabytes.
    """
    order = ", ".join(quote(c) for c in dict.fromkeys([*contract.partition_by, *contract.key]))
    if not contract.partition_by or format not in ("csv", "parquet"):
        return [f"from {source} where {predicate} order by {order}"]
    days = connection.execute(f"select distinct date from {source} where {predicate} order by date").fetchall()
    conditions = [f"date = {literal(day)}" for (day,) in days] or ["false"]
    return [f"from {source} where {predicate} and {condition} order by {order}" for condition in conditions]


def export_query(
    connection: duckdb.DuckDBPyConnection,
    sql: str | Sequence[str],
    format: str,
    out: Path | str,
    *,
    escape_formulas: bool = True,
    short_decimals: bool = False,
) -> ExportReport:
    """Write the rows of one SELECT to `out`, replacing it whole or not at all; CSV and Parquet of several in turn.

    `short_decimals` leaves the trailing zeros of decimals out of a CSV.
    """
    if format not in FORMATS:
        raise BadInput(f"unknown format {format!r}; there are {', '.join(FORMATS)}")
    path = Path(out)
    if path.is_dir():
        raise BadInput(f"{path} is a directory; give a file name")
    statements = [sql] if isinstance(sql, str) else list(sql)
    described = [(row[0], row[1]) for row in connection.execute(f"describe {statements[0]}").fetchall()]
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = _write(
            connection, statements, format, described, temporary,
            escape=escape_formulas, short_decimals=short_decimals,
        )  # fmt: skip
        os.replace(temporary, path)
    except (OSError, duckdb.IOException) as error:
        raise BadInput(f"{path}: cannot be written: {error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
    return ExportReport(path, rows)


def _write(
    connection: duckdb.DuckDBPyConnection,
    statements: Sequence[str],
    format: str,
    described: Sequence[tuple[str, str]],
    path: Path,
    *,
    escape: bool,
    short_decimals: bool,
) -> int:
    if format == "table":
        return _write_text(connection, f"select {_selected(described)} from ({statements[0]}\n)", described, path)
    if format == "json":
        return _copy(connection, statements[0], _selected(described, is_json=True), path, "format json, array true")
    if format == "parquet" and len(statements) > 1:
        return _append_parquet(connection, statements, path)
    if format == "parquet":
        return _copy(connection, statements[0], "*", path, "format parquet, compression zstd")
    columns = _selected(described, escape=escape, short_decimals=short_decimals)
    options = "format csv, nullstr '', header"
    rows = _copy(connection, statements[0], columns, path, f"{options} true")
    part = path.with_name(f"{path.name}.part")
    try:
        for sql in statements[1:]:
            rows += _copy(connection, sql, columns, part, f"{options} false")
            with path.open("ab") as whole, part.open("rb") as piece:
                shutil.copyfileobj(piece, whole, 1 << 20)
    finally:
        part.unlink(missing_ok=True)
    return rows


_PLACE = "place__in_the_query"


def _copy(connection: duckdb.DuckDBPyConnection, sql: str, columns: str, path: Path, options: str) -> int:
    # DuckDB 2.0.1 keeps no order under a COPY whose select list computes something: rows get a number in the order of
    # the query, and the file is sorted by it. Only then is a file the same on every machine.
    numbered = f"select {columns} from (select row_number() over () as {_PLACE}, * from ({sql}\n)) order by {_PLACE}"
    if columns == "*":
        numbered = f"select * exclude ({_PLACE}) from ({numbered})"
    copied = connection.execute(f"copy ({numbered}) to {literal(str(path))} ({options})")
    return int(copied.fetchall()[0][0])


def _append_parquet(connection: duckdb.DuckDBPyConnection, statements: Sequence[str], path: Path) -> int:
    # imported here: most exports are CSV, and this costs a tenth of a second
    from pyarrow.parquet import ParquetWriter  # noqa: PLC0415

    rows, writer = 0, None
    try:
        for sql in statements:
            reader = connection.sql(sql).to_arrow_reader(ROW_GROUP_ROWS)
            if writer is None:
                writer = ParquetWriter(path, reader.schema, compression="zstd")
            for batch in reader:
                writer.write_batch(batch)
                rows += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    return rows


def _selected(
    described: Sequence[tuple[str, str]], *, escape: bool = False, is_json: bool = False, short_decimals: bool = False
) -> str:
    """A select list that renders each column as the module's docstring says."""
    items = []
    for name, type_ in described:
        header = f"'{name}" if escape and name.startswith(FORMULA_STARTS) else name
        column = _quote_column(name)
        if short_decimals and re.fullmatch(r"DECIMAL\(\d+,\s*[1-9]\d*\)", type_):
            short = f"rtrim(cast({column} as varchar), '0')"
            value = f"case when suffix({short}, '.') then {short} || '0' else {short} end"
        else:
            value = _rendered(column, type_, escape, is_json)
        items.append(f"{value} as {_quote_column(header)}")
    return ", ".join(items)


def _quote_column(name: str) -> str:
    """A column name as a quoted identifier; unlike a table name it is not split at dots."""
    return '"' + name.replace('"', '""') + '"'


def _rendered(column: str, type_: str, escape: bool, is_json: bool) -> str:
    if type_.startswith("TIMESTAMP"):
        instant = f"cast({column} as timestamp)" if "TIME ZONE" not in type_ else f"{column} at time zone 'UTC'"
        whole = f"strftime({instant}, '%Y-%m-%dT%H:%M:%SZ')"
        exact = f"strftime({instant}, '%Y-%m-%dT%H:%M:%S.%fZ')"
        return f"case when date_trunc('second', {instant}) = {instant} then {whole} else {exact} end"
    if is_json:
        return f"case when isfinite({column}) then {column} end" if type_ in ("DOUBLE", "FLOAT") else column
    if type_.startswith(_NESTED) or type_.endswith("]"):
        return f"cast(to_json({column}) as varchar)"
    if escape and (type_ == "VARCHAR" or type_.startswith("ENUM(")):
        starts = ", ".join(f"chr({ord(c)})" for c in FORMULA_STARTS)
        text = f"cast({column} as varchar)"
        return f"case when left({text}, 1) in ({starts}) then '''' || {text} else {text} end"
    return column


def _write_text(
    connection: duckdb.DuckDBPyConnection, sql: str, described: Sequence[tuple[str, str]], path: Path
) -> int:
    rows = connection.execute(sql).fetchall()
    cells = [["" if v is None else str(v) for v in row] for row in rows]
    names = [name for name, _ in described]
    widths = [max([len(n), *(len(row[i]) for row in cells)]) for i, n in enumerate(names)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in [names, *cells]]
    lines.insert(1, "  ".join("-" * w for w in widths))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(rows)
