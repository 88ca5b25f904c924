"""Rows on their way from text to raw.bills: values so far, why rows are refused, and what was changed on the way.

Belongs here: collecting refusals and notes. Not here: the rules that give rise to them.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from sources.bills.columns import FOCUS_NAME
from sources.bills.quoting import cut, shown

Text = pl.Expr | str


class Sheet:
    """A chunk of rows in `df`. Rules replace its columns, refuse rows and note changes; nothing is dropped here.

    `headers` are the file's own names of columns, for refusals; notes speak FOCUS.
    """

    def __init__(self, df: pl.DataFrame, headers: Mapping[str, str] | None = None) -> None:
        self.df = df
        self.headers = headers or {}
        self.refusals: list[tuple[str, pl.Series]] = []
        self.notes: list[pl.Series] = []

    def field(self, column: str) -> str:
        """The column under the name by which whoever mends the file finds it."""
        return cut(self.headers.get(column) or FOCUS_NAME.get(column, column))

    def has(self, condition: pl.Expr) -> bool:
        """Whether the condition is true of any row."""
        return bool(self.df.select(condition.fill_null(False).any()).item())

    def refuse(self, condition: pl.Expr, column: str, reason: Text) -> None:
        """Rows of which the condition is true do not land; `column` is the one at fault."""
        if self.has(condition):
            reasons = self.df.select(pl.when(condition).then(_expr(reason)).alias("r"))["r"]
            self.refusals.append((self.field(column), reasons))

    def refuse_because(self, column: str, reasons: pl.Series) -> None:
        """Rows with a reason do not land."""
        if reasons.null_count() < len(reasons):
            self.refusals.append((self.field(column), reasons))

    def note(self, condition: pl.Expr, text: Text) -> None:
        """Say in `extra` of rows of which the condition is true what was changed."""
        if self.has(condition):
            self.notes.append(self.df.select(pl.when(condition).then(_expr(text)).alias("n"))["n"])

    def change(self, condition: pl.Expr, column: str, value: pl.Expr, text: Text) -> None:
        """Set `column` to `value` where the condition is true, and note it: `text`, and what stood there before."""
        if not self.has(condition):
            return
        name, kind = FOCUS_NAME[column], self.df.schema[column]
        before = pl.concat_str(pl.lit(" ("), shown(column), pl.lit(")"))
        said = pl.concat_str(pl.lit(f"{name} "), _expr(text), pl.coalesce(before, pl.lit("")))
        self.note(condition, said)
        self.df = self.df.with_columns(
            pl.when(condition).then(value.cast(kind)).otherwise(pl.col(column)).alias(column)
        )

    def drop(self, condition: pl.Expr, column: str, text: str) -> None:
        """Empty `column` where the condition is true and something stands there; noted with what stood there."""
        self.change(condition & pl.col(column).is_not_null(), column, pl.lit(None), f"left out: {text}")

    @property
    def is_refused(self) -> pl.Series:
        """Whether each row has been refused."""
        refused = pl.repeat(False, self.df.height, eager=True)
        for _, reasons in self.refusals:
            refused = refused | reasons.is_not_null()
        return refused

    def noted(self) -> pl.Series:
        """The notes of each row as a JSON list; null where there are none."""
        if not self.notes:
            return pl.repeat(None, self.df.height, dtype=pl.String, eager=True)
        frame = pl.DataFrame([s.alias(f"n{i}") for i, s in enumerate(self.notes)])
        quoted = frame.select(quoted_json(c) for c in frame.columns)
        joined = pl.concat_str(quoted.columns, separator=",", ignore_nulls=True)
        has_any = pl.any_horizontal(pl.all().is_not_null())
        return quoted.select(pl.when(has_any).then(pl.concat_str(pl.lit("["), joined, pl.lit("]"))).alias("n"))["n"]


def quoted_json(name: str) -> pl.Expr:
    """The text column `name` as JSON strings; null stays null."""
    encoded = pl.struct(pl.col(name).alias("")).struct.json_encode()  # {"":"…"}
    inner = encoded.str.slice(4).str.strip_suffix("}")
    return pl.when(pl.col(name).is_not_null()).then(inner).alias(name)


def _expr(text: Text) -> pl.Expr:
    return pl.lit(text) if isinstance(text, str) else text
