"""A CSV file as rows of texts with their lines: one kind of row a file, told by its header.

Belongs here: delimiters, quotes, headers, kinds. Not here: what the texts mean.
"""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterator

from sources.prices.given import Given, GivenRow, Problem, shown
from sources.prices.kinds import KINDS, Kind
from warehouse.errors import BadInput


def read_csv(text: str, file: str, kind: Kind | None = None) -> list[GivenRow]:
    """The rows of a file of `kind` (default: the one whose header it has); empty cells say nothing.

    `BadInput` where the header cannot be used or quotes are broken; what is wrong with a row is in it.
    """
    lines = _records(text, file)
    start, header = next(lines, (1, []))
    names = [name.strip() for name in header]
    if not any(names):
        raise BadInput(f"{file}:{start}: is empty: a header of column names is expected")
    kind = kind or _told(names, file, start)
    _check_header(names, kind, file, start)
    rows = [_row(kind, line, names, cells) for line, cells in lines if any(cell.strip() for cell in cells)]
    if not rows:
        raise BadInput(f"{file}: holds no rows below its header")
    return rows


def _records(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise BadInput(f"{file}:{line}: not CSV: {error}") from None
        if cells:
            yield line, cells
        line = reader.line_num + 1


def _told(names: list[str], file: str, line: int) -> Kind:
    kinds = [k for k in KINDS.values() if k.sign in names]
    if len(kinds) != 1:
        signs = ", ".join(f"{k.name} by {k.sign}" for k in KINDS.values())
        hint = "; columns are separated by commas" if len(names) == 1 and ";" in names[0] else ""
        raise BadInput(f"{file}:{line}: the header tells no kind of card ({signs}){hint}; correct it or give --kind")
    return kinds[0]


def _check_header(names: list[str], kind: Kind, file: str, line: int) -> None:
    for name in names:
        if name not in kind.columns:
            close = difflib.get_close_matches(name, kind.columns, 1, 0.5)
            meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(kind.columns)}"
            raise BadInput(
                f"{file}:{line}: {name or 'a column without a name'}: {kind.name} has no such column; {meant}"
            )
        if names.count(name) > 1:
            raise BadInput(f"{file}:{line}: {shown(name)}: stands twice in the header")
    missing = [c for c in kind.required if c not in names]
    if missing:
        raise BadInput(f"{file}:{line}: {', '.join(missing)}: missing in the header of {kind.name}")


def _row(kind: Kind, line: int, names: list[str], cells: list[str]) -> GivenRow:
    row = GivenRow(kind, line, {n: Given(c, line) for n, c in zip(names, cells, strict=False) if c.strip()})
    if len(cells) != len(names):
        at = names[min(len(cells), len(names) - 1)]
        row.problems.append(Problem(line, at, f"the row has {len(cells)} cells, the header {len(names)}"))
    return row
