"""Decimal text to exact decimals, column by column.

Plain numerals are converted vectorised; whatever else a tool writes (exponents, thousands marks) is looked at one
by one, and what could mean two numbers is refused. Belongs here: syntax and rounding of numbers. Not here: which
values make sense.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation

import polars as pl

# Digits are those of ASCII: \d and Decimal would also read full-width and other scripts' digits.
_PLAIN = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)$"
_EXPONENT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]{1,3}")
# 1,234.56 and 1,234,567 can be read in one way only; 1,234 in two.
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(?:(?:,[0-9]{3})+\.[0-9]*|(?:,[0-9]{3}){2,})")
_COMMA = re.compile(r"[+-]?[0-9.\s]*,[0-9]*(?:[eE][+-]?[0-9]+)?")
_EXACT = Context(prec=400)
MOST_DIGITS = 60  # of a plain numeral that the vectorised conversion is asked to read


@dataclass(frozen=True)
class Numbers:
    """`values` in DECIMAL(precision, scale), null where the text is null or wrong; `problem` says what is wrong;
    `is_rounded` where the text has more digits than the column, `is_marked` where thousands marks were taken out."""

    values: pl.Series
    problem: pl.Series
    is_rounded: pl.Series
    is_marked: pl.Series


def parse_numbers(text: pl.Series, precision: int, scale: int) -> Numbers:
    """Numbers of `text` (null or stripped), rounded half-even at `scale` digits where they have more."""
    name, kind = text.name, pl.Decimal(precision, scale)
    whole_digits = precision - scale
    table = pl.DataFrame({"t": text})
    fast = (pl.col("t").str.contains(_PLAIN)) & (pl.col("t").str.len_bytes() <= MOST_DIGITS)
    out = table.select(
        pl.col("t"),
        fast.alias("fast"),
        pl.when(fast).then(pl.col("t")).cast(kind, strict=False).alias("v"),
        (fast & pl.col("t").str.contains(rf"\.[0-9]{{{scale}}}[0-9]*[1-9]")).fill_null(False).alias("rounded"),
    )
    slow = out.filter(pl.col("t").is_not_null() & (~pl.col("fast") | pl.col("v").is_null()))
    problem = pl.repeat(None, len(text), dtype=pl.String, eager=True)
    marked = pl.repeat(False, len(text), eager=True)
    values, rounded = out["v"], out["rounded"]
    if slow.height:
        read = [(t, *_number(t, whole_digits, scale)) for t in slow["t"].unique().to_list()]
        answers = pl.DataFrame(
            {"t": [r[0] for r in read], "w": [r[1] for r in read], "p": [r[2] for r in read],
             "r": [r[3] for r in read], "m": [r[4] for r in read]},
            schema={"t": pl.String, "w": kind, "p": pl.String, "r": pl.Boolean, "m": pl.Boolean},
        )  # fmt: skip
        joined = out.join(answers, on="t", how="left", maintain_order="left").select(
            pl.coalesce("v", "w").alias("v"),
            pl.when(pl.col("v").is_null()).then(pl.col("p")).alias("p"),
            pl.coalesce("r", "rounded").alias("rounded"),
            pl.col("m").fill_null(False),
        )
        values, problem, rounded, marked = joined["v"], joined["p"], joined["rounded"], joined["m"]
    return Numbers(values.alias(name), problem.alias(name), rounded.alias(name), marked.alias(name))


def _number(text: str, whole_digits: int, scale: int) -> tuple[Decimal | None, str | None, bool, bool]:
    """Value, problem, whether rounded, whether thousands marks were taken out."""
    marked = bool(_THOUSANDS.fullmatch(text))
    numeral = text.replace(",", "") if marked else text
    if not (marked or re.fullmatch(_PLAIN, numeral) or _EXPONENT.fullmatch(numeral)):
        if _COMMA.fullmatch(text):
            return None, "a comma may mark decimals or thousands; write the number with a decimal point", False, False
        return None, "is not a decimal number", False, False
    too_large = f"is out of range: more than {whole_digits} digits before the point"
    try:
        value = Decimal(numeral)
        if value and value.adjusted() >= whole_digits:  # before rounding, which has only so many digits to work with
            return None, too_large, False, False
        fitted = round_half_even(value, scale)
    except InvalidOperation:
        return None, "is not a decimal number", False, False
    if abs(fitted) >= Decimal(10) ** whole_digits:
        return None, too_large, False, False
    return fitted, None, fitted != value, marked


def round_half_even(value: Decimal, scale: int) -> Decimal:
    """`value` at `scale` digits after the point; the only rounding that an import does."""
    return value.quantize(Decimal(1).scaleb(-scale), rounding=ROUND_HALF_EVEN, context=_EXACT)
