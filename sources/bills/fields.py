"""One column at a time: text to the type of raw.bills, with what is wrong and what was respelled.

Belongs here: what a single cell means. Not here: rules over several columns (`rules.py`, `money.py`).
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from sources.bills import words
from sources.bills.chunks import column as position_name
from sources.bills.columns import FOCUS_NAME, HELPING, SPELLINGS, Header
from sources.bills.numbers import Numbers, parse_numbers
from sources.bills.quoting import shown
from sources.bills.sheet import Sheet
from sources.bills.tags import is_json, parse_tags
from sources.bills.times import parse_times
from warehouse.contracts import CONTRACTS

BILLS = CONTRACTS["raw.bills"]
TIMES = tuple(c for c in SPELLINGS if c.endswith("_at"))
NUMBERS = {
    c: (BILLS.field(c).arrow.precision, BILLS.field(c).arrow.scale)
    for c in SPELLINGS
    if pa.types.is_decimal(BILLS.field(c).arrow)
} | {"block_size": (18, 9), "effective_unit_price": (38, 18)}
WORDS = tuple(words.ALLOWED)
# Costs decide what is paid; of a quantity too large for its column the text is kept instead.
COSTS = ("list_cost", "contracted_cost", "billed_cost", "effective_cost", "pricing_currency_effective_cost")


def cleaned(texts: pl.DataFrame) -> pl.DataFrame:
    """Text without surrounding blanks, null where it stands for null."""
    stripped = pl.all().str.strip_chars()
    return texts.select(stripped).select(pl.when(~pl.all().is_in(words.NULLS)).then(pl.all()))


def read_fields(texts: pl.DataFrame, header: Header) -> tuple[Sheet, pa.Array]:
    """Typed columns of cleaned text, helpers included, and the tags; columns that the file lacks are null."""
    height = texts.height
    parts: dict[str, pl.Series] = {}
    for name in SPELLINGS | HELPING:
        positions = header.sources.get(name, ())
        if positions:
            parts[name] = texts.select(pl.coalesce(position_name(p) for p in positions).alias(name))[name]
        else:
            parts[name] = pl.repeat(None, height, dtype=pl.String, eager=True).alias(name)
    sheet = Sheet(pl.DataFrame(parts), {c: header.names[at[0]] for c, at in header.sources.items()})
    for name in TIMES:
        values, problem = parse_times(parts[name])
        _refuse_with_text(sheet, name, problem)
        parts[name] = values
    for name, (precision, scale) in NUMBERS.items():
        parts[name] = _number(sheet, name, parts[name], parse_numbers(parts[name], precision, scale), scale)
    for name in WORDS:
        parts[name] = _word(sheet, name, parts[name])
    parts["billing_currency"] = _currency(sheet, parts["billing_currency"])
    parts["sku_price_details"] = _json_text(sheet, "sku_price_details", parts["sku_price_details"])
    tags, problem = parse_tags(parts.pop("tags"))
    sheet.refuse_because("tags", problem)
    sheet.df = pl.DataFrame(parts)
    return sheet, tags


def _refuse_with_text(sheet: Sheet, name: str, problem: pl.Series) -> None:
    if problem.null_count() < len(problem):
        said = sheet.df.select(pl.concat_str(shown(name), pl.lit(" "), problem.alias("problem")).alias("r"))["r"]
        sheet.refuse_because(name, said)


def _number(sheet: Sheet, name: str, text: pl.Series, read: Numbers, scale: int) -> pl.Series:
    focus = FOCUS_NAME[name]
    if name in HELPING:
        return read.values
    problem = read.problem
    if name.endswith("_quantity"):
        too_large = problem.str.starts_with("is out of range").fill_null(False)
        if too_large.any():
            condition = pl.lit(too_large)
            sheet.note(condition, pl.concat_str(pl.lit(f"{focus} left out: too large for its column ("), shown(name),
                                                pl.lit(")")))  # fmt: skip
            problem = problem.set(too_large, None)
    _refuse_with_text(sheet, name, problem)
    if read.is_rounded.any():
        sheet.note(pl.lit(read.is_rounded), pl.concat_str(pl.lit(f"{focus} rounded to {scale} digits ("),
                                                          shown(name), pl.lit(")")))  # fmt: skip
    if read.is_marked.any():
        sheet.note(pl.lit(read.is_marked), pl.concat_str(pl.lit(f"{focus} had thousands marks ("), shown(name),
                                                         pl.lit(")")))  # fmt: skip
    return read.values


def _word(sheet: Sheet, name: str, text: pl.Series) -> pl.Series:
    focus = FOCUS_NAME[name]
    values, respelled = words.parse_words(text, name)
    unknown = pl.lit(text.is_not_null() & values.is_null())
    if name in words.DECISIVE:
        allowed = ", ".join(words.ALLOWED[name])
        sheet.refuse(unknown, name, pl.concat_str(shown(name), pl.lit(f" is none of {allowed}")))
    else:
        sheet.note(unknown, pl.concat_str(pl.lit(f"{focus} left out: unknown value ("), shown(name), pl.lit(")")))
    if respelled.any():
        sheet.note(pl.lit(respelled), pl.concat_str(pl.lit(f"{focus} respelled ("), shown(name), pl.lit(")")))
    return values.alias(name)


def _currency(sheet: Sheet, text: pl.Series) -> pl.Series:
    values = words.parse_currency(text)
    unknown = pl.lit(text.is_not_null() & values.is_null())
    sheet.refuse(unknown, "billing_currency", pl.concat_str(shown(text.name), pl.lit(" is no ISO 4217 currency")))
    respelled = (values != text).fill_null(False)
    if respelled.any():
        sheet.note(pl.lit(respelled), pl.concat_str(pl.lit("BillingCurrency respelled ("), shown(text.name),
                                                    pl.lit(")")))  # fmt: skip
    return values


def _json_text(sheet: Sheet, name: str, text: pl.Series) -> pl.Series:
    values = words.mapped(text, lambda t: t if is_json(t) else None)
    sheet.note(
        pl.lit(text.is_not_null() & values.is_null()),
        pl.concat_str(pl.lit(f"{FOCUS_NAME[name]} left out: no JSON object ("), shown(name), pl.lit(")")),
    )
    return values.alias(name)
