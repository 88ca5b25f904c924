"""A FOCUS file read back and checked: its form, and the rules of `sql/check/focus_*.sql` on its rows.

The checks of the lake prove the tables; this proves the file that somebody is sent, whoever wrote it. No Dagster in it.
Belongs here: reading a file of a FOCUS version back into the contract's columns, rules on its text. Not here: rules on
rows (`sql/check`), writing files (`warehouse/export.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import duckdb

from assets.sql_checks import SqlCheck, run_check
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput
from warehouse.focus import CONTRACT_COMMITMENT, COST_AND_USAGE, columns
from warehouse.sqltypes import duckdb_type, literal, quote

# Attributes Date/Time Format and Numeric Format of FOCUS 1.2 and 1.4; we write no exponents.
INSTANT = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z"
NUMBER = r"-?\d+(\.\d+)?"
SHOWN = 5


@dataclass(frozen=True)
class FileFinding:
    """What is wrong with a file: the rule or check, how many rows, and examples as text."""

    rule: str
    rows: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.rule}: {self.rows:,} rows, e.g. {'; '.join(self.examples)}"


def check_file(
    path: Path, version: str, checks: Mapping[str, SqlCheck], commitments: Path | None = None
) -> list[FileFinding]:
    """Everything wrong with a Cost and Usage file of FOCUS `version`, CSV or Parquet by its suffix; empty if sound.

    `commitments` is the Contract Commitment file beside it; without it balances over a term are not judged. `BadInput`
    where the file cannot be read or lacks columns.
    """
    with duckdb.connect() as con:
        for setting in ("autoinstall_known_extensions", "autoload_known_extensions"):
            con.execute(f"set {setting} = false")
        con.execute("set TimeZone = 'UTC'")
        con.execute("create schema mart")
        findings = _load(con, path, COST_AND_USAGE, version)
        known = {COST_AND_USAGE}
        if commitments is not None:
            findings += _load(con, commitments, CONTRACT_COMMITMENT, "1.4")
            known.add(CONTRACT_COMMITMENT)
        first, last = con.execute(f"select min(date), max(date) from {quote(COST_AND_USAGE)}").fetchall()[0]
        if first is None:
            return findings
        for name, check in checks.items():
            if check.table == COST_AND_USAGE and set(check.inputs) <= known:
                findings += _run(con, name, check, first, last)
        return findings


def _run(con: duckdb.DuckDBPyConnection, name: str, check: SqlCheck, first: date, last: date) -> Iterator[FileFinding]:
    found = run_check(con, check, first, last + timedelta(days=1))
    if found.rows:
        examples = tuple(", ".join(f"{k} {v}" for k, v in row.items()) for row in found.shown[:SHOWN])
        yield FileFinding(name, found.rows, examples)


def _load(con: duckdb.DuckDBPyConnection, path: Path, table: str, version: str) -> list[FileFinding]:
    """Make `table` hold the file's rows in the contract's types, null where they do not fit; findings on its form."""
    source = _source(path)
    try:
        described = {row[0]: row[1] for row in con.execute(f"describe select * from {source}").fetchall()}
    except duckdb.Error as error:
        raise BadInput(f"{path}: {error}") from error
    wanted = columns(table, version)
    if missing := [new for new, _ in wanted if new not in described]:
        raise BadInput(f"{path}: not a file of FOCUS {version} as we write it: lacks {', '.join(missing)}")
    findings = []
    if list(described) != [new for new, _ in wanted]:
        findings.append(FileFinding("columns", 0, (f"they stand as {', '.join(described)}",)))
    origin = {old: new for new, old in wanted}
    fields = [f for f in CONTRACTS[table].fields if f.name != "date"]
    findings += _forms(con, source, {origin[f.name]: f.type for f in fields}, described)
    items = [f"try_cast({quote(origin[f.name])} as {duckdb_type(f.arrow)}) as {quote(f.name)}" for f in fields]
    if "date" in CONTRACTS[table].columns:
        items.insert(0, 'cast(try_cast("ChargePeriodStart" as timestamp) as date) as date')
    con.execute(f"create table {quote(table)} as select {', '.join(items)} from {source}")
    return findings


def _source(path: Path) -> str:
    if path.suffix == ".parquet":
        return f"read_parquet({literal(str(path))})"
    return (
        f"read_csv({literal(str(path))}, all_varchar = true, header = true, quote = '\"', escape = '\"', delim = ',')"
    )


def _forms(
    con: duckdb.DuckDBPyConnection, source: str, kinds: Mapping[str, str], types: Mapping[str, str]
) -> list[FileFinding]:
    """What is wrong with how instants and numbers are written; null is never. `kinds` are contract types by column."""
    findings, patterns = [], {}
    for column, kind in kinds.items():
        if kind == "string":
            continue
        rule, marked = ("times", ("TIMESTAMP WITH",)) if kind == "timestamp" else ("numbers", ("DECIMAL", "BIGINT"))
        if types[column] == "VARCHAR":
            patterns[column] = rule, INSTANT if rule == "times" else NUMBER
        elif not types[column].startswith(marked):
            findings.append(FileFinding(rule, 0, (f"{column} is {types[column]}",)))
    if not patterns:
        return findings
    wrong = {c: f"not regexp_full_match({quote(c)}, {literal(pattern)})" for c, (_, pattern) in patterns.items()}
    counted = ", ".join(f"count(*) filter (where {condition})" for condition in wrong.values())
    counts = con.execute(f"select {counted} from {source}").fetchall()[0]
    for (column, (rule, _)), rows in zip(patterns.items(), counts, strict=True):
        if rows:
            shown = con.execute(
                f"select distinct {quote(column)} from {source} where {wrong[column]} order by 1 limit {SHOWN}"
            ).fetchall()
            findings.append(FileFinding(rule, rows, tuple(f"{column} {value!r}" for (value,) in shown)))
    return findings
