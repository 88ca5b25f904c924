"""Checks that are SQL: each file of sql/check is a query that must return no row. No Dagster in it.

The header comment says in prose what it proves and names on a line `-- table: layer.table` the table it
belongs to. Parameters are those of the models, `$start_at` and `$end_at`. Not here: when checks run (`checks.py`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput

# Rows of a failed check that are shown; their number is always told.
SHOWN_ROWS = 20


@dataclass(frozen=True)
class SqlCheck:
    """One file of sql/check: its name, the table it checks, the tables it reads, prose and query."""

    name: str
    table: str
    inputs: tuple[str, ...]
    header: str
    sql: str


def load_checks(folder: Path) -> dict[str, SqlCheck]:
    """Every check by name; `BadInput` names the file whose header or SQL is wrong."""
    return {path.stem: _load(path) for path in sorted(folder.glob("*.sql"))}


def _load(path: Path) -> SqlCheck:
    text = path.read_text("utf-8")
    lines = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").strip())
    named = [m[1] for line in lines if (m := re.fullmatch(r"table:\s*(\w+\.\w+)", line))]
    if len(named) != 1 or named[0] not in CONTRACTS:
        raise BadInput(f"{path}: the header needs one line `-- table: layer.table` that names a contract")
    try:
        tree = sqlglot.parse_one(text, read="duckdb")
    except sqlglot.ParseError as e:
        raise BadInput(f"{path}: {e}") from e
    inputs = {f"{t.db}.{t.name}" for t in tree.find_all(exp.Table) if t.db}
    header = "\n".join(line for line in lines if not line.startswith("table:"))
    return SqlCheck(path.stem, named[0], tuple(sorted(inputs)), header, text)


@dataclass(frozen=True)
class Finding:
    """What a check returned: the number of rows and the first of them as dictionaries."""

    rows: int
    shown: list[dict[str, Any]]


def run_check(con: duckdb.DuckDBPyConnection, check: SqlCheck, start: date, end: date) -> Finding:
    """Run over the days [start, end); no row means the check holds."""
    bounds = {"start_at": datetime.combine(start, time()), "end_at": datetime.combine(end, time())}
    con.execute(check.sql, {k: v for k, v in bounds.items() if f"${k}" in check.sql})
    names = [d[0] for d in con.description or ()]
    shown = con.fetchmany(SHOWN_ROWS)
    rows = len(shown)
    while batch := con.fetchmany(10_000):
        rows += len(batch)
    return Finding(rows, [dict(zip(names, row, strict=True)) for row in shown])
