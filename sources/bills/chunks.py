"""What the readers of file formats hand on: rows of text with the lines they came from, and lines that are damaged.

Belongs here: these two shapes. Not here: how a format is read, and what the text means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl

LONGEST_TEXT = 2_000  # characters of a refused line that are kept


@dataclass(frozen=True)
class Refusal:
    """Why a line of a bill did not land: `field` is the FOCUS column at fault, or `line` where the line itself is."""

    source: str
    line: int
    field: str
    reason: str
    text: str = ""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.field}: {self.reason}"


@dataclass
class Chunk:
    """Consecutive rows of a file: `texts` has a column of text per column of the file (by position, `c0`, `c1`, …),
    `lines` the line (or row, in Parquet) of each, `text_of` gives the raw text of the row at a position."""

    texts: pl.DataFrame
    lines: pl.Series
    text_of: Callable[[int], str]
    damaged: list[Refusal] = field(default_factory=list)


def column(position: int) -> str:
    """Name of the column at `position` in `Chunk.texts`."""
    return f"c{position}"
