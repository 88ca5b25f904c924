"""How a delimited file separates and quotes, and the cells of one record under it.

Belongs here: one record. Not here: where records begin and end in a file (`delimited.py`).
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

_MARKS = range(0xE000, 0x110000)  # code points to stand for a carriage return, those of private use first


@dataclass(frozen=True)
class Dialect:
    """How the file separates and quotes; `has_escapes` where quotes inside cells are written with a backslash."""

    separator: str
    has_escapes: bool

    def cells(self, text: str) -> list[str] | None:
        """The cells of one record; None where a quote is left open or followed by what cannot follow it.

        A carriage return inside the record is a character of its cell, quoted or not: writers that end lines with a
        line feed do not quote it, and csv would take it for a line end.
        """
        mark = ""
        if "\r" in text:
            mark = next(c for c in map(chr, _MARKS) if c not in text)
            text = text.replace("\r", mark)
        try:
            rows = list(
                csv.reader(
                    io.StringIO(text, newline=""), delimiter=self.separator, doublequote=not self.has_escapes,
                    escapechar="\\" if self.has_escapes else None, strict=True,
                )
            )  # fmt: skip
        except csv.Error:
            return None
        if len(rows) != 1:
            return None
        return [cell.replace(mark, "\r") for cell in rows[0]] if mark else rows[0]
