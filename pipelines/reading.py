"""Read-only SQL for people: one connection that sees the published tables and nothing else.

Belongs here: locking the connection down, and refusing what is no query. Not here: how the views are
made (`warehouse/engine.py`) and how results are written (`results.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb

from pipelines.settings import Settings
from warehouse.errors import BadInput

# PIVOT parses as several statements (it makes an enum of the values first), CALL and PRAGMA can change
# things; plain SELECT also covers WITH, VALUES, FROM, DESCRIBE, SHOW and SUMMARIZE.
READING = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
_EXPLAIN = re.compile(
    r"\s*explain\b(\s*analyze\b)?(\s*\((\s*(analyze|format|text|json|html|graphviz|yaml)\b,?)+\s*\))?", re.I
)


def open_reader(settings: Settings) -> duckdb.DuckDBPyConnection:
    """A connection over the published manifest that can read the lake's own files and no other.

    The views read Parquet, so file access cannot be off altogether: DuckDB is told the lake's folder as
    the only one allowed, external access is switched off, and the configuration is locked. Together with
    `statements`, which lets only queries through, nothing typed here can read or write anything else.
    """
    from warehouse.engine import connect

    con = connect(settings.data, memory_limit=settings.memory_limit, threads=settings.threads)
    lake = str((settings.data / "lake").resolve()).replace("'", "''")
    con.execute(f"set allowed_directories = ['{lake}/']")
    con.execute("set enable_external_access = false")
    con.execute("set lock_configuration = true")
    return con


def statements(con: duckdb.DuckDBPyConnection, sql: str) -> Sequence[duckdb.Statement]:
    """The queries in `sql`; `BadInput` on a syntax error and on whatever is no query."""
    try:
        # Where the locale is not UTF-8, Python hands over the bytes of an argument as surrogates.
        sql = sql.encode("utf-8", "surrogateescape").decode()
    except UnicodeError as e:
        raise BadInput(f"the query is not UTF-8: {e}") from None
    try:
        found = con.extract_statements(sql)
        for statement in found:
            refused = _refused(con, statement)
            if refused:
                raise BadInput(f"{refused} is refused: this reads only (select, with, values, describe, show)")
    except duckdb.Error as e:
        raise BadInput(_message(e)) from e
    return found


def _refused(con: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> str | None:
    """The name of what must not run. EXPLAIN ANALYZE runs what it explains, so that has to be a query as well."""
    if statement.type not in READING:
        return statement.type.name
    if statement.type == duckdb.StatementType.EXPLAIN:
        prefix = _EXPLAIN.match(statement.query)
        explained = con.extract_statements(statement.query[prefix.end() :]) if prefix else []
        if [s.type for s in explained] != [duckdb.StatementType.SELECT]:
            return f"EXPLAIN of {explained[0].type.name if explained else 'this'}"
    return None


def one_statement(con: duckdb.DuckDBPyConnection, sql: str) -> duckdb.Statement:
    """The single query in `sql`; `BadInput` where there is none or more than one."""
    found = statements(con, sql)
    if len(found) != 1:
        raise BadInput(f"expected one query, found {len(found)}")
    return found[0]


def run(con: duckdb.DuckDBPyConnection, statement: duckdb.Statement) -> None:
    """Execute; `BadInput` carries what DuckDB says is wrong with the query."""
    try:
        # The text, not the statement: DuckDB 2.0 hears Ctrl-C only while it runs a text.
        con.execute(statement.query)
    except (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.InternalException):
        raise  # the machine's fault or ours, not the query's
    except duckdb.Error as e:
        raise BadInput(_message(e)) from e


def _message(error: duckdb.Error) -> str:
    return str(error).strip()
