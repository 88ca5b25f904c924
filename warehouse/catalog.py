"""The table catalogue: every contract as text, Markdown or JSON, with rows and versions where a lake is given.

Belongs here: rendering contracts for people. Does not: contracts themselves, colours of a terminal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from warehouse.contracts import CONTRACTS
from warehouse.contracts.model import Field, Table
from warehouse.errors import BadInput
from warehouse.export import find_contract
from warehouse.lake import Lake

FORMATS = ("text", "markdown", "json")
_WINDOWS = {"hour": "by the hour", "date": "by the date", "whole": "whole"}


def describe(
    tables: Iterable[str] = (), *, lake: Lake | None = None, contracts: Mapping[str, Table] = CONTRACTS
) -> list[dict[str, Any]]:
    """One dictionary a table: name, layer, grain, key, window, description, columns, and published rows and version.

    `rows` and `version` are None where no lake is given or the table is not published. No `tables` mean all.
    """
    chosen = [find_contract(t, contracts) for t in tables] or list(contracts.values())
    manifest = lake.published() if lake else None
    published = manifest.tables if manifest else {}
    described = []
    for contract in chosen:
        entry = published.get(contract.name)
        described.append(
            {
                "table": contract.name,
                "layer": contract.layer,
                "grain": contract.grain,
                "key": list(contract.key),
                "window": contract.window,
                "description": contract.description,
                "rows": entry.rows if entry else None,
                "version": entry.version if entry else None,
                "columns": [_column(contract, f) for f in contract.fields],
            }
        )
    return described


def _column(contract: Table, field: Field) -> dict[str, Any]:
    return {
        "column": field.name,
        "type": field.type,
        "nullable": field.name not in contract.required,
        "low": field.low,
        "high": field.high,
        "values": list(field.values),
        "description": field.description,
    }


def render(
    format: str = "text",
    tables: Iterable[str] = (),
    *,
    lake: Lake | None = None,
    contracts: Mapping[str, Table] = CONTRACTS,
) -> str:
    """The catalogue as `text`, `markdown` or `json`; `BadInput` on another format or an unknown table."""
    if format not in FORMATS:
        raise BadInput(f"unknown format {format!r}; there are {', '.join(FORMATS)}")
    described = describe(tables, lake=lake, contracts=contracts)
    if format == "json":
        return json.dumps(described, indent=1)
    return "\n\n".join(_markdown(t) if format == "markdown" else _text(t) for t in described) + "\n"


def _size(table: Mapping[str, Any]) -> str:
    return "" if table["rows"] is None else f"{table['rows']:,} rows at version {table['version']}"


def _remarks(column: Mapping[str, Any]) -> str:
    bounds = []
    if column["low"] is not None:
        bounds.append(f"from {column['low']:g}")
    if column["high"] is not None:
        bounds.append(f"to {column['high']:g}")
    if column["values"]:
        bounds.append("one of " + ", ".join(column["values"]))
    if not column["nullable"]:
        bounds.append("never null")
    return f"{column['description']}{' (' + ' '.join(bounds) + ')' if bounds else ''}"


def _text(table: Mapping[str, Any]) -> str:
    width = max(len(c["column"]) for c in table["columns"])
    kind = max(len(c["type"]) for c in table["columns"])
    lines = [
        f"{table['table']}{'  ' + _size(table) if _size(table) else ''}",
        f"  {table['description']}",
        f"  grain: {table['grain']}",
        f"  key: {', '.join(table['key'])}; replaced {_WINDOWS[table['window']]}",
    ]
    lines += [f"    {c['column'].ljust(width)}  {c['type'].ljust(kind)}  {_remarks(c)}" for c in table["columns"]]
    return "\n".join(lines)


def _markdown(table: Mapping[str, Any]) -> str:
    lines = [
        f"### {table['table']}",
        "",
        f"{table['description']} {_size(table)}".rstrip(),
        "",
        f"Grain: {table['grain']}. Key: {', '.join(f'`{k}`' for k in table['key'])}. "
        f"Replaced {_WINDOWS[table['window']]}.",
        "",
        "| column | type | meaning |",
        "|---|---|---|",
    ]
    lines += [
        f"| `{c['column']}` | {c['type']} | {_remarks(c).replace('|', chr(92) + '|')} |" for c in table["columns"]
    ]
    return "\n".join(lines)
