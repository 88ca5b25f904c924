"""Parquet to rows of text: every type becomes the text that a careful CSV export would hold.

So both formats go through the same rules. Doubles give their shortest decimal text, which is what they stand for.
Belongs here: Arrow types. Not here: what the text means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sources.bills import columns
from sources.bills.chunks import LONGEST_TEXT, Chunk, Refusal, column
from sources.bills.quoting import cut
from warehouse.errors import BadInput

ROWS = 20_000  # of a chunk


def read_parquet(path: Path, source: str) -> Iterator[columns.Header | Chunk]:
    """First the header of the file, then its rows in chunks; `lines` are row numbers from 1."""
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as e:
        raise BadInput(f"{source}: is no readable Parquet file: {_brief(e)}") from None
    with file:
        header = columns.header(file.schema_arrow.names, source)
        yield header
        first = 1
        try:
            for batch in file.iter_batches(batch_size=ROWS, use_threads=False):
                yield _chunk(batch, header, first, source)
                first += batch.num_rows
        except (pa.ArrowException, OSError) as e:
            raise BadInput(f"{source}: is no readable Parquet file: after row {first - 1}: {_brief(e)}") from None


def _brief(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:200]


def _chunk(batch: pa.RecordBatch, header: columns.Header, first: int, source: str) -> Chunk:
    damaged: list[Refusal] = []
    wrong: set[int] = set()
    texts = {}
    for i, array in enumerate(batch.columns):
        try:
            texts[column(i)] = text_of(array)
        except (pa.ArrowException, UnicodeDecodeError, ValueError, OverflowError):
            values: list[str | None] = []
            for row in range(len(array)):
                try:
                    values.append(text_of(array[row : row + 1])[0].as_py())
                except (pa.ArrowException, UnicodeDecodeError, ValueError, OverflowError) as e:
                    values.append(None)
                    if row not in wrong:
                        reason = f"cannot be read as text: {_brief(e)}"
                        damaged.append(Refusal(source, first + row, cut(header.names[i]), reason))
                    wrong.add(row)
            texts[column(i)] = pa.array(values, pa.string())
    frame = pl.from_arrow(pa.table(texts))
    assert isinstance(frame, pl.DataFrame)
    lines = pl.Series("source_line", range(first, first + batch.num_rows), dtype=pl.Int64)
    if wrong:
        sound = pl.Series([i not in wrong for i in range(batch.num_rows)])
        frame, lines = frame.filter(sound), lines.filter(sound)

    def shown(i: int) -> str:
        row = {header.names[j]: v for j, v in enumerate(frame.row(i)) if v is not None}
        return orjson.dumps(row).decode()[:LONGEST_TEXT]

    return Chunk(frame, lines, shown, damaged)


def text_of(array: pa.Array) -> pa.Array:
    """Arrow values of any type as text; maps, lists and structs as JSON, times as ISO 8601 in UTC."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return text_of(array.dictionary_decode())
    if pa.types.is_timestamp(kind):
        # With a zone the stored instants are UTC already; without one they are taken for it.
        moments = pc.cast(array, pa.timestamp("us", kind.tz), safe=False).cast(pa.timestamp("us"))
        return pc.strftime(moments, format="%Y-%m-%dT%H:%M:%SZ")
    if pa.types.is_nested(kind):
        return pa.array([None if v is None else _json(v, kind) for v in array.to_pylist()], pa.string())
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        array = array.cast(pa.binary())
    elif pa.types.is_date(kind):
        array = array.cast(pa.date32())
    return array.cast(pa.string())


def _json(value: Any, kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        value = {str(k): v for k, v in value}
    return orjson.dumps(value, default=_other, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SORT_KEYS).decode()


_OTHER: dict[type, Callable[[Any], str]] = {
    Decimal: lambda v: format(v, "f"),
    datetime: lambda v: v.astimezone(UTC).isoformat(),
    date: lambda v: v.isoformat(),
    bytes: lambda v: v.decode("utf-8", "backslashreplace"),
}


def _other(value: object) -> str:
    return _OTHER.get(type(value), str)(value)
