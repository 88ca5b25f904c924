"""Values of a bill as messages and notes quote them: cut where they are long.

Belongs here: how much of a value is quoted. Not here: what is said about it.
"""

from __future__ import annotations

import polars as pl

LONGEST_VALUE = 80  # characters of a quoted value, the sign of the cut among them
_CUT = "…"


def cut(text: str) -> str:
    """The text, or its beginning and `…` where it is longer than `LONGEST_VALUE`."""
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + _CUT


def shown(column: str) -> pl.Expr:
    """The value of `column` as text, cut as `cut` does; null stays null."""
    text = pl.col(column).cast(pl.String)
    short = pl.concat_str(text.str.slice(0, LONGEST_VALUE - 1), pl.lit(_CUT))
    return pl.when(text.str.len_chars() > LONGEST_VALUE).then(short).otherwise(text).alias(column)
