"""Rate cards: a YAML or CSV file as rows of raw.prices and the tables beside it.

A bad row costs itself and nothing else; a document that cannot be read as a card costs all of it. Belongs here: files,
encodings, and rows from texts. Not here: tables of the lake (floor 4).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from sources.prices.csvcards import read_csv
from sources.prices.given import GivenRow, Problem
from sources.prices.kinds import DOCUMENT_DEFAULTS, KINDS, Kind, kind_named
from sources.prices.overlaps import Row, clashes, repeated
from sources.prices.rules import broken, complete
from sources.prices.values import parse_value
from sources.prices.yamlcards import read_yaml
from warehouse.errors import BadInput

# a node of a YAML document takes many times its text
_LARGEST_FILE = {".csv": 64 << 20, ".yaml": 8 << 20, ".yml": 8 << 20}
_BOMS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


@dataclass
class Cards:
    """What a file holds: sound rows by kind, with Python values for the contract's columns, and what was refused."""

    file: str
    rows: dict[str, list[Row]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def refused(self) -> list[str]:
        """A message for each problem, in the order of the file: `file:line: field: what is wrong`."""
        ordered = sorted(dict.fromkeys(self.problems), key=lambda p: p.line)
        return [p.text(self.file) for p in ordered]

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The sound rows as Arrow tables by contract name; kinds without rows are left out."""
        return {f"raw.{k}": arrow(KINDS[k], rows) for k, rows in self.rows.items() if rows}


def arrow(kind: Kind, rows: Iterable[Row]) -> pa.Table:
    """Rows as an Arrow table of the kind's contract."""
    return pa.Table.from_pylist(list(rows), schema=kind.table.arrow_schema)


def read_cards(path: Path | str, kind: str | None = None) -> Cards:
    """Read a card; `kind` names the kind of a CSV file whose header does not tell it.

    YAML by .yaml and .yml, CSV by .csv. `BadInput` names file (and line) where the document as a whole cannot be used;
    what is wrong with single rows is in the result.
    """
    path = Path(path)
    chosen = None if kind is None else kind_named(kind)
    suffix = path.suffix.lower()
    if suffix not in _LARGEST_FILE:
        raise BadInput(f"{path}: neither .yaml nor .csv")
    if suffix != ".csv" and chosen is not None:
        raise BadInput(f"{path}: --kind is for CSV files; a YAML card names its kinds by sections")
    text = _text(path, _LARGEST_FILE[suffix])
    given = read_csv(text, str(path), chosen) if suffix == ".csv" else read_yaml(text, str(path))
    cards = Cards(str(path))
    for row in given:
        values, problems = _typed(row, path.name)
        cards.problems.extend(problems)
        if not problems:
            cards.rows.setdefault(row.kind.name, []).append(values)
    for name, rows in cards.rows.items():
        cards.rows[name] = _compatible(KINDS[name], rows, cards.problems)
    return cards


def _text(path: Path, largest: int) -> str:
    try:
        if path.stat().st_size > largest:
            raise BadInput(f"{path}: larger than {largest >> 20} MiB")
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    for mark, name in _BOMS.items():
        if data.startswith(mark):
            raise BadInput(f"{path}:1: is {name} text; save it as UTF-8")
    data = data.removeprefix(codecs.BOM_UTF8)  # what Excel puts before a CSV
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}:{line}: byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8") from None
    if not text.strip():
        raise BadInput(f"{path}: is empty")
    if "\0" in text:
        raise BadInput(f"{path}:{text[: text.index(chr(0))].count(chr(10)) + 1}: a null character: no text file")
    return text


def _typed(row: GivenRow, source: str) -> tuple[Row, list[Problem]]:
    """The row's values, or all that is wrong with it."""
    problems = list(row.problems)
    values: dict[str, Any] = {}
    for column in row.kind.columns:
        given = row.fields.get(column)
        text = given.text if given else row.kind.defaults.get(column)
        values[column] = None
        if text is not None:
            try:
                values[column] = parse_value(row.kind.table.field(column), text)
            except BadInput as error:
                problems.append(row.problem(column, str(error)))
        elif column in row.kind.required and not row.problems:  # else it may be missing because of those
            problems.append(Problem(row.line, column, _missing(column)))
    if problems:
        return values, problems
    values["source"] = values["source"] or source
    values["source_line"] = row.line
    complete(row.kind.name, values)
    return values, [row.problem(column, reason) for column, reason in broken(row.kind.name, values)]


def _missing(column: str) -> str:
    return "is missing in the row" + (" and at the top of the document" if column in DOCUMENT_DEFAULTS else "")


def _compatible(kind: Kind, rows: list[Row], problems: list[Problem]) -> list[Row]:
    """The rows that can stand beside each other; of what cannot, a problem each."""
    columns = kind.table.key
    refused: set[int] = set()
    for row, other, same in repeated(kind, rows):
        refused.add(id(row))
        said = "is the same row" if same else "has the same key and says something else"
        key = ", ".join(str(row[c]) for c in columns)
        problems.append(Problem(row["source_line"], ", ".join(columns), f"{key}: line {other['source_line']} {said}"))
    rows = [r for r in rows if id(r) not in refused]
    refused = set()
    for one, two in clashes(kind, rows):
        for row, other in ((one, two), (two, one)):
            if id(row) not in refused:
                refused.add(id(row))
                problems.append(Problem(row["source_line"], "valid_from_at", overlap(row, other)))
    return [r for r in rows if id(r) not in refused]


def overlap(row: Row, other: Row, where: str | None = None) -> str:
    """What is said of a row that holds at the same time as another; `where` that other stands."""
    spans = " and ".join(f"[{r['valid_from_at'].isoformat()}, {_until(r)})" for r in (row, other))
    as_of = f" with the same as_of {row['as_of']}" if "as_of" in row else ""
    return f"holds at the same time as {where or 'line ' + str(other['source_line'])}{as_of}: {spans}"


def _until(row: Row) -> str:
    return row["valid_to_at"].isoformat() if row["valid_to_at"] else "without end"
