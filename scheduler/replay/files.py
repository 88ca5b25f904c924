"""Rows of a small file that a person wrote: CSV with a header, or a YAML list of mappings, each with its line.

Belongs here: reading a field, and saying which one is wrong. Not here: what the fields mean (`fleets.py`).
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from warehouse.errors import BadInput

_LINE = "\0line"
_MOST = 1 << 60


@dataclass(frozen=True)
class Row:
    """Fields as given: texts from CSV, YAML values otherwise. `where` is file and line."""

    where: str
    fields: Mapping[str, Any]

    def wrong(self, name: str, what: str) -> BadInput:
        """What to raise for a field."""
        return BadInput(f"{self.where}: {name}: {what}")

    def has(self, name: str) -> bool:
        """Whether the field is there and not empty."""
        return self.fields.get(name) not in (None, "")

    def text(self, name: str, default: str | None = None) -> str:
        """A text; without a default it must be there."""
        if not self.has(name):
            if default is None:
                raise self.wrong(name, "is missing")
            return default
        value = self.fields[name]
        if isinstance(value, bool | dict | list):
            raise self.wrong(name, f"{value!r} is no text")
        return str(value).strip()

    def scaled(self, name: str, scale: int, default: int | None = None) -> int:
        """A number that is not negative, times `scale`, which must come out whole."""
        if not self.has(name):
            if default is None:
                raise self.wrong(name, "is missing")
            return default
        value = self.fields[name]
        try:
            number = float(value) if not isinstance(value, bool | dict | list) else -1.0
            scaled = round(number * scale)
        except (ValueError, OverflowError):
            raise self.wrong(name, f"{value!r} is no number") from None
        if not 0 <= scaled <= _MOST or abs(scaled - number * scale) > 1e-6 * max(scaled, 1):
            kind = "whole number" if scale == 1 else f"number with at most {len(str(scale)) - 1} decimals"
            raise self.wrong(name, f"{value!r} is no {kind} of 0 or more")
        return scaled

    def whole(self, name: str, default: int | None = None) -> int:
        """A whole number of 0 or more."""
        return self.scaled(name, 1, default)

    def rows(self, name: str) -> list[Row]:
        """The rows of a list inside a YAML row; empty where it is not there."""
        value = self.fields.get(name) or []
        if not isinstance(value, list) or not all(isinstance(v, dict) for v in value):
            raise self.wrong(name, "is no list of mappings")
        return [_row(self.where.rpartition(":")[0], v) for v in value]

    def only(self, known: Iterable[str]) -> None:
        """Refuse a field that is not known, so that a slip of the pen does not pass for a default."""
        for name in self.fields:
            if name not in (names := list(known)):
                like = difflib.get_close_matches(str(name), names, 1)
                raise self.wrong(str(name), "no such field" + (f"; {like[0]}?" if like else f"; {', '.join(names)}"))


def read_rows(path: Path, section: str) -> list[Row]:
    """The rows of a CSV file, or of a YAML file: a list, or a mapping with the list under `section`.

    `BadInput` names the file and the line of what cannot be read.
    """
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not readable as text: {error}") from None
    rows = _from_yaml(path, text, section) if path.suffix.lower() in (".yaml", ".yml") else _from_csv(path, text)
    if not rows:
        raise BadInput(f"{path}: no rows")
    return rows


def _from_csv(path: Path, text: str) -> list[Row]:
    reader = csv.DictReader(text.splitlines(keepends=True))
    rows = []
    for given in reader:
        if None in given or None in given.values():
            raise BadInput(f"{path}:{reader.line_num}: not as many fields as the header has")
        fields = {str(k).strip(): v.strip() for k, v in given.items()}
        rows.append(Row(f"{path}:{reader.line_num}", fields))
    return rows


class _Loader(yaml.SafeLoader):
    """Plain YAML whose mappings know their line."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    found = loader.construct_mapping(node, deep=True)
    if len(found) < len(node.value):
        raise yaml.constructor.ConstructorError(None, None, "a key stands twice", node.start_mark)
    found[_LINE] = node.start_mark.line + 1
    return found


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def _from_yaml(path: Path, text: str, section: str) -> list[Row]:
    try:
        top = yaml.load(text, _Loader)  # noqa: S506  (a SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "not readable"
        raise BadInput(f"{path}:{mark.line + 1 if mark else 1}: no YAML: {problem}") from None
    if isinstance(top, dict):
        row = _row(str(path), top)
        row.only([section])
        top = top.get(section)
    if not isinstance(top, list):
        raise BadInput(f"{path}:1: {section}: a list of mappings is expected")
    for i, value in enumerate(top):
        if not isinstance(value, dict):
            raise BadInput(f"{path}: {section}[{i}]: {value!r} is no mapping")
    return [_row(str(path), v) for v in top]


def _row(file: str, value: dict[Any, Any]) -> Row:
    return Row(f"{file}:{value.get(_LINE, 1)}", plain(value))


def plain(value: dict[Any, Any]) -> dict[str, Any]:
    """A YAML mapping without its line."""
    return {str(k): v for k, v in value.items() if k != _LINE}
