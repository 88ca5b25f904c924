"""Files of bills to rows of raw.bills on disk: any number of rows in bounded memory.

Belongs here: opening files, telling formats apart, hashes, the spool. Not here: parsing, and the lake, into which
floor 4 takes the spooled rows (`assets/bills.py`).
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from sources.bills import columns
from sources.bills.chunks import Chunk, Refusal
from sources.bills.delimited import read_delimited
from sources.bills.parquet import read_parquet
from sources.bills.parse import REJECTED, Parsed, parse_chunk
from warehouse.errors import BadInput

SHOWN = 20  # refusals that are kept to be shown; all of them are in the spool
NO_MONTH = date(1970, 1, 1)  # of a refused line in a file that never says a month
_PARQUET, _GZIP = b"PAR1", b"\x1f\x8b"


@dataclass
class Spooled:
    """A bill's file, read: `bills` and `rejected` are Parquet files of the two raw tables, None where they would be
    empty. `rows` landed there, `refused` lines did not; `refusals` are the first of them."""

    source: str
    sha256: str
    bills: Path | None = None
    rejected: Path | None = None
    rows: int = 0
    refused: int = 0
    refusals: list[Refusal] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether the file is a header without a line."""
        return not self.rows and not self.refused


def spool(path: Path, directory: Path, provider: str | None = None) -> Spooled:
    """Read a FOCUS file (CSV, gzipped CSV or Parquet, told by its content) into Parquet files in `directory`.

    `provider` overrides what the file says. `BadInput` where the file as a whole cannot be used; what was written by
    then is left in `directory`, which the caller removes.
    """
    source = str(path)
    hashed = hash_of(path)
    out = Spooled(source, hashed)
    bills, rejected = directory / f"{hashed}.bills.parquet", directory / f"{hashed}.rejected.parquet"
    writer = _Writer(bills)
    refused = _Writer(rejected)
    header: columns.Header | None = None
    month: date | None = None
    with writer, refused:
        for part in _parts(path, source):
            if isinstance(part, columns.Header):
                header = part
                continue
            assert header is not None
            parsed = parse_chunk(part, header, source, provider)
            month = month or _month(parsed)
            out.rows += parsed.rows.num_rows
            out.refused += len({r.line for r in parsed.refusals})
            out.refusals += parsed.refusals[: SHOWN - len(out.refusals)]
            writer.write(_with_hash(parsed.rows, hashed))
            refused.write(_rejected(parsed, hashed, month))
    out.bills = bills if writer.rows else None
    out.rejected = rejected if refused.rows else None
    return out


class _Writer:
    """A Parquet file that is made when the first rows come."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, 0
        self._writer: pq.ParquetWriter | None = None

    def write(self, rows: pa.Table) -> None:
        if rows.num_rows:
            if self._writer is None:
                self._writer = pq.ParquetWriter(self.path, rows.schema, compression="lz4")
            self._writer.write_table(rows)
            self.rows += rows.num_rows

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()


def _parts(path: Path, source: str) -> Iterator[columns.Header | Chunk]:
    if _begins(path, source) == _PARQUET:
        yield from read_parquet(path, source)
        return
    with _text_stream(path, source) as stream:
        try:
            yield from read_delimited(stream, source)
        except (EOFError, zlib.error, gzip.BadGzipFile) as e:
            raise BadInput(f"{source}: is a damaged gzip file: {e}") from None


def _begins(path: Path, source: str) -> bytes:
    try:
        with path.open("rb") as f:
            return f.read(4)
    except OSError as e:
        raise BadInput(f"{source}: {e.strerror or e}") from None


def _text_stream(path: Path, source: str) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if _begins(path, source)[:2] == _GZIP else path.open("rb")


def hash_of(path: Path) -> str:
    """SHA-256 of the content, of gzipped text as if it were not: packing makes no other bill."""
    source = str(path)
    digest = hashlib.sha256()
    with _text_stream(path, source) as stream:
        try:
            while block := stream.read(1 << 20):
                digest.update(block)
        except (EOFError, zlib.error, gzip.BadGzipFile) as e:
            raise BadInput(f"{source}: is a damaged gzip file: {e}") from None
        except OSError as e:
            raise BadInput(f"{source}: {e.strerror or e}") from None
    return digest.hexdigest()


def _with_hash(rows: pa.Table, hashed: str) -> pa.Table:
    position = rows.schema.get_field_index("source_sha256")
    return rows.set_column(position, rows.schema.field(position), pa.array([hashed] * rows.num_rows, pa.string()))


def _month(parsed: Parsed) -> date | None:
    """A month for lines that are too damaged to tell theirs: the file's first."""
    if parsed.rows.num_rows:
        found = parsed.rows["date"][0].as_py()
        assert isinstance(found, date)
        return found
    return next((d for d in parsed.dates if d is not None), None)


def _rejected(parsed: Parsed, hashed: str, month: date | None) -> pa.Table:
    rows = [
        {"date": at or month or NO_MONTH, "source_sha256": hashed, "source": r.source, "source_line": r.line,
         "field": r.field, "reason": r.reason, "line": r.text}
        for r, at in zip(parsed.refusals, parsed.dates, strict=True)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=REJECTED.arrow_schema)
