"""Query results on stdout or in a file, as table, CSV, JSON or Parquet.

Belongs here: the four forms, written batch by batch. Not here: running the query (`reading.py`), and
exports of whole tables (`warehouse/export.py`).
"""

from __future__ import annotations

import contextlib
import csv
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Literal

import duckdb

from pipelines import console
from warehouse.errors import BadInput
from warehouse.export import FORMULA_STARTS

Format = Literal["table", "csv", "json", "parquet"]
BATCH = 10_000
TABLE_ROWS = 1_000


def write(con: duckdb.DuckDBPyConnection, format_: Format, out: Path | None, *, escape_formulas: bool = True) -> None:
    """Write what `con` has just executed as `format_`, to `out` or stdout.

    JSON is an array of objects: decimals are numbers with all their digits, instants ISO 8601 in UTC
    with a Z, NaN and infinities null. CSV text that a spreadsheet would run gets an apostrophe, unless
    `escape_formulas` is false. Raises `BadInput` for Parquet on a terminal, a table in a file, and a file
    that cannot be opened.
    """
    if out and format_ != "table":
        try:
            out.open("ab").close()
        except OSError as e:
            raise BadInput(f"--out {out}: {e.strerror or e}") from e
    if format_ == "parquet":
        _parquet(con, out)
        return
    names = _unique([d[0] for d in con.description or ()])
    if format_ == "table":
        _table(con, names, out)
        return
    with out.open("wb") if out else contextlib.nullcontext(sys.stdout.buffer) as stream:
        if format_ == "json":
            _json(stream, names, _batches(con))
        else:
            _csv(stream, names, _batches(con), _inert if escape_formulas else str)
        stream.flush()


def _batches(con: duckdb.DuckDBPyConnection) -> Iterator[list[tuple[Any, ...]]]:
    while batch := con.fetchmany(BATCH):
        yield batch


def _unique(names: Sequence[str]) -> list[str]:
    """Names as they are, later twins with a number: an object cannot hold one key twice."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        n = seen.get(name, 0)
        seen[name] = n + 1
        out.append(f"{name}_{n}" if n else name)
    return out


def _json(stream: BinaryIO, names: list[str], batches: Iterator[list[tuple[Any, ...]]]) -> None:
    import orjson

    def other(value: object) -> object:
        if isinstance(value, Decimal):
            return orjson.Fragment(format(value, "f")) if value.is_finite() else None
        if isinstance(value, bytes):
            return value.hex()
        return str(value)

    options = orjson.OPT_NAIVE_UTC | orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS
    separator = b"["
    for batch in batches:
        for row in batch:
            stream.write(separator + orjson.dumps(dict(zip(names, row, strict=True)), default=other, option=options))
            separator = b",\n"
    stream.write(b"]\n" if separator != b"[" else b"[]\n")


def _inert(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _csv(
    stream: BinaryIO, names: list[str], batches: Iterator[list[tuple[Any, ...]]], escaped: Callable[[str], str]
) -> None:
    import io

    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([escaped(n) for n in names])
    for batch in batches:
        writer.writerows([[escaped(v) if isinstance(v, str) else _text(v) for v in row] for row in batch])
    text.flush()
    text.detach()


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat() + ("Z" if value.tzinfo is None else "")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _table(con: duckdb.DuckDBPyConnection, names: list[str], out: Path | None) -> None:
    if out:
        raise BadInput("--out needs --format csv, json or parquet: a table is for the eye")
    rows = con.fetchmany(TABLE_ROWS + 1)
    shown = [[_shown(v) for v in row] for row in rows[:TABLE_ROWS]]
    console.table(names, shown)
    if len(rows) > TABLE_ROWS:
        console.say(f"first {TABLE_ROWS} rows; --format csv or json gives them all")
    else:
        console.say(f"{len(rows)} row{'' if len(rows) == 1 else 's'}")


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, datetime):
        return str(value)
    return _text(value)


def _parquet(con: duckdb.DuckDBPyConnection, out: Path | None) -> None:
    if out is None and sys.stdout.isatty():
        raise BadInput("Parquet is binary: give --out PATH or redirect stdout")
    import pyarrow as pa
    import pyarrow.parquet as pq

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the result has been executed: one copy of it more is fine
        reader = con.to_arrow_reader(100_000)
    assert reader is not None  # something was executed
    schema = pa.schema([f.with_name(n) for f, n in zip(reader.schema, _unique(reader.schema.names), strict=True)])
    sink = pa.PythonFile(sys.stdout.buffer, mode="w") if out is None else str(out)
    with pq.ParquetWriter(sink, schema) as writer:
        for batch in reader:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
