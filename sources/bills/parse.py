"""A chunk of a bill's text to rows of raw.bills and raw.rejected_bill_lines.

Belongs here: putting fields, rules, notes and refusals together. Not here: the rules themselves, and files.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import date

import orjson
import polars as pl
import pyarrow as pa

from sources.bills import money, rules
from sources.bills.chunks import Chunk, Refusal
from sources.bills.chunks import column as position_name
from sources.bills.columns import Header
from sources.bills.fields import BILLS, cleaned, read_fields
from sources.bills.sheet import Sheet, quoted_json
from warehouse.contracts import CONTRACTS

REJECTED = CONTRACTS["raw.rejected_bill_lines"]
ID_DIGITS = 24  # of a bill's hash: 96 bits


@dataclass
class Parsed:
    """Rows of raw.bills (without `source_sha256`, which is known at the end of the file) and what did not land;
    `dates` are the billing months of refused lines, where the line still tells it."""

    rows: pa.Table
    refusals: list[Refusal] = field(default_factory=list)
    dates: list[date | None] = field(default_factory=list)


def parse_chunk(chunk: Chunk, header: Header, source: str, provider: str | None = None) -> Parsed:
    """The rows of a chunk, typed and put right, and its refused lines in the order of the file."""
    texts = cleaned(chunk.texts)
    sheet, tags = read_fields(texts, header)
    rules.apply(sheet, provider)
    money.apply(sheet)
    refused = sheet.is_refused
    extra = _extra(texts, header, sheet.noted())
    kept = ~refused
    df = sheet.df.with_columns(
        _bill_ids(sheet.df), chunk.lines.alias("source_line"), extra.alias("extra"),
        pl.lit(source).alias("source"), pl.lit(header.version).alias("focus_version"),
    ).filter(kept)  # fmt: skip
    arrow = df.to_arrow()
    columns = []
    for f in BILLS.arrow_schema:
        if f.name == "tags":
            columns.append(tags.filter(kept.to_arrow()))
        elif f.name == "source_sha256":
            columns.append(pa.nulls(df.height, pa.string()))
        else:
            columns.append(arrow[f.name].cast(f.type))
    rows = pa.table(columns, schema=BILLS.arrow_schema)
    refusals = [(r, None) for r in chunk.damaged] + _refusals(sheet, refused, chunk, source)
    refusals.sort(key=lambda r: r[0].line)
    return Parsed(rows, [r for r, _ in refusals], [d for _, d in refusals])


def _refusals(sheet: Sheet, refused: pl.Series, chunk: Chunk, source: str) -> list[tuple[Refusal, date | None]]:
    """One refusal for each field of each refused row."""
    found: list[tuple[Refusal, date | None]] = []
    for i in refused.arg_true().to_list():
        fields: set[str] = set()
        for name, reasons in sheet.refusals:
            reason = reasons[i]
            if reason is not None and name not in fields:
                fields.add(name)
                text = chunk.text_of(i)
                found.append((Refusal(source, chunk.lines[i], name, reason, text), sheet.df["date"][i]))
    return found


def _bill_ids(df: pl.DataFrame) -> pl.Series:
    """The hash of provider, account and start of the billing period: what a newer export replaces."""
    keys = df.select(
        pl.concat_str("provider", "billing_account_id", pl.col("billing_period_start_at").cast(pl.String),
                      separator="\x1f").alias("k")
    )["k"]  # fmt: skip
    distinct = keys.drop_nulls().unique()
    hashes = pl.Series([hashlib.sha256(k.encode()).hexdigest()[:ID_DIGITS] for k in distinct], dtype=pl.String)
    if not len(distinct):
        return keys.alias("bill_id")
    return keys.replace_strict(distinct, hashes, default=None, return_dtype=pl.String).alias("bill_id")


def _extra(texts: pl.DataFrame, header: Header, notes: pl.Series) -> pl.Series:
    """JSON of the columns that raw.bills has no place for, without nulls, and of the notes; null where there is
    nothing."""
    pieces: list[pl.Series] = []
    for name, position in header.extra:
        column = position_name(position)
        if texts[column].null_count() < texts.height:
            key = orjson.dumps(name).decode() + ":"
            pieces.append(texts.select(pl.concat_str(pl.lit(key), quoted_json(column)).alias(column))[column])
    if notes.null_count() < len(notes):
        pieces.append(notes.to_frame("n").select(pl.concat_str(pl.lit('"notes":'), "n").alias("notes"))["notes"])
    if not pieces:
        return pl.repeat(None, texts.height, dtype=pl.String, eager=True).alias("extra")
    frame = pl.DataFrame(pieces)
    joined = pl.concat_str(frame.columns, separator=",", ignore_nulls=True)
    has_any = pl.any_horizontal(pl.all().is_not_null())
    return frame.select(pl.when(has_any).then(pl.concat_str(pl.lit("{"), joined, pl.lit("}"))).alias("extra"))["extra"]
