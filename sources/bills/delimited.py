"""Delimited text to rows: records, their line numbers, and the lines that are damaged, block by block.

A record is a line, unless a quoted cell holds line breaks. A quote that is opened and never closed must not swallow
the rest of the file: a record that does not close within some lines is given up at its first line.
Belongs here: bytes, separators, quotes. Not here: what the cells mean.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv

from sources.bills import columns
from sources.bills.chunks import LONGEST_TEXT, Chunk, Refusal, column
from sources.bills.dialect import Dialect
from warehouse.errors import BadInput

BLOCK_BYTES = 12 << 20
LONGEST_RECORD = 64 << 20  # a block without a line end longer than that is no delimited text
MOST_LINES = 100  # of one record with line breaks inside quotes
_SEPARATORS = (",", ";", "\t", "|")
_BLANK = b' \t\r,;|"'
_BOM = b"\xef\xbb\xbf"
# Within a record; elsewhere it ends a line together with the line feed.
_LONE_RETURN = re.compile(rb"\r(?!\n|\Z)")
OPEN_QUOTE = "a quote is opened and never closed"
MISPLACED_QUOTE = "a quote stands where none may stand"


@dataclass
class _Record:
    line: int
    body: bytes


def read_delimited(stream: BinaryIO, source: str) -> Iterator[columns.Header | Chunk]:
    """First the header of the file, then its rows in blocks. `BadInput` where it is no delimited text."""
    header: columns.Header | None = None
    dialect = Dialect(",", False)
    for block, begins_at in _blocks(stream, source):
        lines, first = block, begins_at
        if header is None:
            start = next((i for i, body in enumerate(lines) if body.strip(b" \t\r")), None)
            if start is None:
                continue
            names, dialect = _header(lines[start], lines, source)
            header = columns.header(names, source)
            yield header
            lines, first = block[start + 1 :], begins_at + start + 1
        records, damaged = _records(lines, first, header.width, dialect)
        yield _chunk(records, damaged, header, dialect, source)
    if header is None:
        raise BadInput(f"{source}: is empty")


def _blocks(stream: BinaryIO, source: str) -> Iterator[tuple[list[bytes], int]]:
    """Lines without their ends, and the number of the first.

    A block ends where the number of quotes so far is even, so that no record is cut, unless none such place comes
    within a record's greatest length.
    """
    pending, line, is_start = b"", 1, True
    while True:
        read = stream.read(BLOCK_BYTES)
        if is_start and read:
            _refuse_other_formats(read, source)
            read = read.removeprefix(_BOM)
            is_start = False
        data = pending + read
        if not read:
            if data:
                yield data.removesuffix(b"\n").split(b"\n"), line
            return
        cut = _cut(data)
        if cut < 0:
            if len(data) > LONGEST_RECORD:
                raise BadInput(f"{source}:{line}: no line end within {LONGEST_RECORD >> 20} MiB: no CSV file")
            pending = data
            continue
        pending = data[cut + 1 :]
        lines = data[:cut].split(b"\n")
        yield lines, line
        line += len(lines)


def _cut(data: bytes) -> int:
    """Position of the last line end outside quotes; the last one at all where a quote seems to be left open."""
    last = data.rfind(b"\n")
    quotes, at = data.count(b'"', 0, last + 1), last
    for _ in range(MOST_LINES):
        if at < 0 or quotes % 2 == 0:
            break
        earlier = data.rfind(b"\n", 0, at)
        quotes -= data.count(b'"', earlier + 1, at)
        at = earlier
    return at if at >= 0 and quotes % 2 == 0 else last


def _refuse_other_formats(start: bytes, source: str) -> None:
    if start.startswith(b"PK\x03\x04"):
        raise BadInput(f"{source}: is a zip archive or a workbook; unpack it or save it as CSV")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadInput(f"{source}: is UTF-16; save it as UTF-8")
    if start.startswith(b"version https://git-lfs"):
        raise BadInput(f"{source}: is a Git LFS pointer; fetch the file it stands for")
    if start.lstrip()[:1] in (b"{", b"[", b"<"):
        raise BadInput(f"{source}: is no CSV file: it begins with {start.lstrip()[:1].decode()!r}")


def _header(line: bytes, sample: list[bytes], source: str) -> tuple[list[str], Dialect]:
    try:
        text = line.decode().rstrip("\r")
    except UnicodeDecodeError as e:
        raise BadInput(f"{source}:1: the header is not UTF-8: {e}") from None
    if "\r" in text and '"' not in text:
        raise BadInput(f"{source}:1: lines end in a carriage return alone; save the file with line feeds")
    start = b"\n".join(sample[:200])
    has_escapes = b'\\"' in start and b'""' not in start.replace(b',""', b"")
    found: list[tuple[int, list[str], Dialect]] = []
    for separator in _SEPARATORS:
        dialect = Dialect(separator, has_escapes)
        names = dialect.cells(text)
        if names:
            found.append((columns.known(names), names, dialect))
    if not found:
        raise BadInput(f"{source}:1: the header cannot be read as CSV")
    _, names, dialect = max(found, key=lambda f: f[0])
    return names, dialect


def _records(
    lines: list[bytes], first: int, width: int, dialect: Dialect
) -> tuple[list[_Record], list[tuple[_Record, str]]]:
    """Records of lines, and damaged ones with what is wrong; blank lines are nothing."""
    records: list[_Record] = []
    damaged: list[tuple[_Record, str]] = []
    i = 0
    while i < len(lines):
        body = lines[i]
        if not body.strip(_BLANK):
            i += 1
            continue
        if body.count(b'"') % 2 == 0 or dialect.has_escapes:
            records.append(_Record(first + i, body))
            i += 1
            continue
        taken = _longer(lines, i, width, dialect)
        if taken == 0:
            damaged.append((_Record(first + i, body), OPEN_QUOTE))
            i += 1
        else:
            records.append(_Record(first + i, b"\n".join(lines[i : i + taken])))
            i += taken
    return records, damaged


def _longer(lines: list[bytes], start: int, width: int, dialect: Dialect) -> int:
    """How many lines from `start` make one sound record; 0 where none do."""
    quotes = 0
    for n in range(1, min(MOST_LINES, len(lines) - start) + 1):
        here = lines[start + n - 1].count(b'"')
        quotes += here
        if n > 1 and (quotes % 2 or not here):
            continue
        text = b"\n".join(lines[start : start + n]).decode("utf-8", "replace").rstrip("\r")
        cells = dialect.cells(text)
        if cells is not None and len(cells) == width:
            return n
    return 0


def _chunk(
    records: list[_Record], damaged: list[tuple[_Record, str]], header: columns.Header, dialect: Dialect, source: str
) -> Chunk:
    records, wrong = _sound_bytes(records)
    damaged += wrong
    names = [column(i) for i in range(header.width)]
    parsed = _parsed(records, names, dialect)
    if parsed is None:
        # A quote where none may stand, or a carriage return, has shifted the lines: record by record it cannot.
        rows = []
        for record in records:
            cells = dialect.cells(record.body.decode().rstrip("\r"))
            rows.append(cells if cells is not None else [])
        ragged = [(i, len(r)) for i, r in enumerate(rows) if len(r) != header.width]
        sound = [r for r in rows if len(r) == header.width]
        texts = pl.DataFrame(sound, schema=dict.fromkeys(names, pl.String), orient="row")
    else:
        texts, ragged = parsed
    for position, count in ragged:
        what = f"{count} cells where the header has {header.width}" if count else MISPLACED_QUOTE
        damaged.append((records[position], what))
    dropped = {position for position, _ in ragged}
    kept = [r for i, r in enumerate(records) if i not in dropped] if dropped else records
    return Chunk(
        texts,
        pl.Series("source_line", [r.line for r in kept], dtype=pl.Int64),
        lambda i: _shown(kept[i]),
        [Refusal(source, record.line, "line", reason, _shown(record)) for record, reason in damaged],
    )


def _shown(record: _Record) -> str:
    return record.body.decode("utf-8", "backslashreplace").rstrip("\r")[:LONGEST_TEXT]


def _parsed(
    records: list[_Record], names: list[str], dialect: Dialect
) -> tuple[pl.DataFrame, list[tuple[int, int]]] | None:
    """Cells of the records as text, and (position, cells) of those with too few or too many; None where the parser
    may not find the rows that the records are."""
    if not records:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String)), []
    joined = b"\n".join(r.body for r in records)
    if _LONE_RETURN.search(joined):
        return None
    ragged: list[tuple[int, int]] = []

    def on_ragged(row: pacsv.InvalidRow) -> str:
        ragged.append((row.number - 1, row.actual_columns))
        return "skip"

    try:
        table = pacsv.read_csv(
            io.BytesIO(joined),
            read_options=pacsv.ReadOptions(use_threads=False, column_names=names, block_size=len(joined) + 1),
            parse_options=pacsv.ParseOptions(
                delimiter=dialect.separator, double_quote=not dialect.has_escapes,
                escape_char="\\" if dialect.has_escapes else False, newlines_in_values=True,
                invalid_row_handler=on_ragged, ignore_empty_lines=False,
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=False
            ),
        )  # fmt: skip
    except pa.ArrowInvalid:
        return None
    if table.num_rows + len(ragged) != len(records):
        return None
    texts = pl.from_arrow(table)
    assert isinstance(texts, pl.DataFrame)
    return texts, ragged


def _sound_bytes(records: list[_Record]) -> tuple[list[_Record], list[tuple[_Record, str]]]:
    """Records that are text, and the others with what is wrong."""
    joined = b"\n".join(r.body for r in records)
    try:
        joined.decode()
        if b"\x00" not in joined:
            return records, []
    except UnicodeDecodeError:
        pass
    good: list[_Record] = []
    wrong: list[tuple[_Record, str]] = []
    for record in records:
        try:
            record.body.decode()
        except UnicodeDecodeError as e:
            wrong.append((record, f"is not UTF-8 at byte {e.start + 1}"))
            continue
        if b"\x00" in record.body:
            wrong.append((record, "holds a NUL byte"))
            continue
        good.append(record)
    return good, wrong
