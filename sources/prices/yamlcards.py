"""A YAML document as rows of texts with their lines.

Numbers stay the text they are written in: nothing goes through float, `010` is ten and `1:30` no number. Read from the
parser's events, so that nesting, aliases and tags are refused before they cost anything. Belongs here: the shape of the
document and its defaults. Not here: what the texts mean.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from sources.prices.given import Given, GivenRow, Problem, shown
from sources.prices.kinds import DOCUMENT_DEFAULTS, KINDS, LIST_COLUMNS, Kind
from warehouse.errors import BadInput

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_DEEPEST = 8
_LIKE = 0.5  # similarity from which a name is taken for a slip of the pen
# slice: what it says of the row that it stands for
_SLICE = {
    "from": "valid_from_at",
    "to": "valid_to_at",
    "price": "list_unit_price",
    "contracted_price": "contracted_unit_price",
}
# kinds without as_of: the column that the document's as_of stands in for
_FROM_AS_OF = {"exchange_rates": "rate_date", "energy_factors": "valid_from_at"}


@dataclass(frozen=True)
class _Node:
    """A value: text (None for null), list, or pairs of key and value; `line` from 1."""

    line: int
    text: str | None = None
    items: tuple[_Node, ...] | None = None
    pairs: tuple[tuple[_Node, _Node], ...] | None = None

    @property
    def is_scalar(self) -> bool:
        return self.items is None and self.pairs is None

    @property
    def what(self) -> str:
        return "a list" if self.items is not None else "a mapping" if self.pairs is not None else "a single value"


def read_yaml(text: str, file: str) -> list[GivenRow]:
    """The rows of all sections. `BadInput` where the document is no card at all; what is wrong with a row is in it."""
    top = _document(text, file)
    if top.pairs is None:
        raise BadInput(f"{file}:{top.line}: {top.what} is no card: a mapping with sections such as prices: is expected")
    seen: dict[str, _Node] = {}
    for key, value in top.pairs:
        name = _key(key, file)
        if name in seen:
            raise BadInput(f"{file}:{key.line}: {name}: stands twice at the top of the document")
        if name not in KINDS and name not in DOCUMENT_DEFAULTS:
            known = (*DOCUMENT_DEFAULTS, *KINDS)
            raise BadInput(f"{file}:{key.line}: {name}: no such section or default{_meant(name, known)}")
        if name in DOCUMENT_DEFAULTS and not value.is_scalar:
            raise BadInput(f"{file}:{key.line}: {name}: {value.what}, where a single value is expected")
        if name in KINDS and value.items is None and not (value.is_scalar and value.text is None):
            raise BadInput(f"{file}:{key.line}: {name}: {value.what}, where a list of rows is expected")
        seen[name] = value
    defaults = {n: Given(v.text, v.line) for n, v in seen.items() if n in DOCUMENT_DEFAULTS and v.text is not None}
    rows = [
        row
        for name, section in seen.items()
        if name in KINDS
        for item in section.items or ()
        for row in _rows(KINDS[name], item, defaults)
    ]
    if not rows:
        raise BadInput(f"{file}: holds no rows; sections are {', '.join(KINDS)}")
    return rows


def _rows(kind: Kind, item: _Node, defaults: dict[str, Given]) -> Iterator[GivenRow]:
    row = GivenRow(kind, item.line, {n: g for n, g in defaults.items() if n in kind.columns})
    if "as_of" in defaults and "as_of" not in kind.columns:
        as_of = defaults["as_of"]
        row.fields[_FROM_AS_OF[kind.name]] = Given(as_of.text, as_of.line, "as_of")
    if item.pairs is None:
        row.problems.append(Problem(item.line, kind.name, f"a row is a mapping of columns, not {item.what}"))
        yield row
        return
    slices: tuple[int, _Node] | None = None
    seen = set()
    for key, value in item.pairs:
        name = key.text if key.is_scalar and key.text is not None else ""
        if name in seen:
            row.problems.append(Problem(key.line, shown(name), "stands twice in one row"))
        seen.add(name)
        if name == "slices" and kind.name == "prices":
            slices = (key.line, value)
            continue
        if name not in kind.columns:
            meant = _meant(name, kind.columns)
            row.problems.append(Problem(key.line, shown(name) or "?", f"{kind.name} has no such column{meant}"))
            continue
        _give(row, name, value)
    if slices is None:
        yield row
    else:
        yield from _sliced(row, *slices)


def _give(row: GivenRow, column: str, value: _Node, name: str | None = None) -> None:
    if value.items is not None and column in LIST_COLUMNS and all(i.is_scalar for i in value.items):
        row.fields[column] = Given(",".join(i.text or "" for i in value.items), value.line, name)
    elif not value.is_scalar:
        row.problems.append(Problem(value.line, name or column, f"{value.what}, where a single value is expected"))
    elif value.text is not None:
        row.fields[column] = Given(value.text, value.line, name)


def _sliced(row: GivenRow, line: int, slices: _Node) -> Iterator[GivenRow]:
    """One row for each slice of a price that changes with time."""
    clash = [c for c in _SLICE.values() if c in row.fields]
    if clash:
        row.problems.append(row.problem(clash[0], "stands beside slices, which say it themselves"))
    if not slices.items:
        row.problems.append(Problem(line, "slices", "a list of mappings with from, to and price is expected"))
        yield row
        return
    for item in slices.items:
        part = GivenRow(row.kind, item.line, dict(row.fields), list(row.problems))
        if item.pairs is None:
            part.problems.append(Problem(item.line, "slices", f"a mapping is expected, not {item.what}"))
            yield part
            continue
        seen = set()
        for key, value in item.pairs:
            name = key.text if key.is_scalar and key.text is not None else ""
            if name in seen:
                part.problems.append(Problem(key.line, f"slices.{shown(name)}", "stands twice in one slice"))
            seen.add(name)
            if name not in _SLICE:
                part.problems.append(
                    Problem(key.line, f"slices.{shown(name)}", f"a slice has {', '.join(_SLICE)} only")
                )
            else:
                _give(part, _SLICE[name], value, f"slices.{name}")
        for name in ("from", "price"):
            if _SLICE[name] not in part.fields and name not in seen:
                part.problems.append(Problem(item.line, f"slices.{name}", "is missing"))
        yield part


def _key(key: _Node, file: str) -> str:
    if not key.is_scalar or key.text is None:
        raise BadInput(f"{file}:{key.line}: a name is expected, not {key.what if key.text is None else key.text!r}")
    return shown(key.text)


def _meant(name: str, known: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, known, 1, _LIKE)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(known)}"


def _document(text: str, file: str) -> _Node:
    try:
        return _only_document(yaml.parse(text, Loader=_LOADER), file)
    except yaml.reader.ReaderError as error:
        at = error.position if isinstance(error.position, int) else 0
        line = text[:at].count("\n") + 1
        raise BadInput(f"{file}:{line}: not YAML: character {error.character!r} is not allowed") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f":{mark.line + 1}" if mark else ""
        raise BadInput(f"{file}{where}: not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise BadInput(f"{file}: not YAML: {error}") from None


def _only_document(events: Iterator[Any], file: str) -> _Node:
    found = None
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            if found is not None:
                line = event.start_mark.line + 1
                raise BadInput(f"{file}:{line}: a second document (---): a card is one document")
            found = _node(next(events), events, file, 1)
    if found is None:
        raise BadInput(f"{file}: is empty")
    return found


def _node(event: Any, events: Iterator[Any], file: str, depth: int) -> _Node:
    line = event.start_mark.line + 1
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise BadInput(f"{file}:{line}: anchors and aliases are not read: write the values out")
    if event.tag is not None:
        raise BadInput(f"{file}:{line}: tag {event.tag} is not read")
    if depth > _DEEPEST:
        raise BadInput(f"{file}:{line}: nested deeper than any card")
    if isinstance(event, yaml.ScalarEvent):
        return _Node(line, None if event.implicit[0] and event.value in _NULLS else event.value)
    closed = yaml.SequenceEndEvent if isinstance(event, yaml.SequenceStartEvent) else yaml.MappingEndEvent
    children = []
    while not isinstance(following := next(events), closed):
        children.append(_node(following, events, file, depth + 1))
    if closed is yaml.SequenceEndEvent:
        return _Node(line, items=tuple(children))
    return _Node(line, pairs=tuple(zip(children[::2], children[1::2], strict=True)))
