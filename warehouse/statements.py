"""Cost tables as closed months told them at some date: read from statements, which no retention removes.

A statement is in force from its issue until one that supersedes it is issued. The newest version of the frozen tables
holds them all, so what was told years ago is read from today's files and not from an old version.
Belongs here: which statements were in force, and writing their rows. Does not: issuing them (`assets/closing.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from warehouse import focus
from warehouse.contracts import CONTRACTS
from warehouse.engine import connect
from warehouse.errors import BadInput
from warehouse.export import date_slices, export_query, publication
from warehouse.sqltypes import literal, quote
from warehouse.windows import read_predicate

HEADER = "mart.cost_statement"
# what is asked for -> the frozen table that holds it
FROZEN = {
    HEADER: HEADER,
    "mart.cost_monthly": "mart.cost_monthly_statement",
    "mart.focus_cost_and_usage": "mart.focus_statement",
}


@dataclass(frozen=True)
class StatementsReport:
    """What was written: file, rows, the statements in force, and the months that were not closed by then."""

    path: Path
    rows: int
    statements: tuple[str, ...]
    open_months: tuple[date, ...]


def export_statements(
    root: Path | str,
    table: str,
    format: str,
    out: Path | str,
    as_of: date,
    *,
    start: date | None = None,
    end: date | None = None,
    escape_formulas: bool = True,
    focus_version: str | None = None,
) -> StatementsReport:
    """Write the rows of `table` (a key of `FROZEN`) as the statements in force at the end of `as_of` have them.

    Months that were not closed by then are left out and named in the report. `focus_version` writes a FOCUS dataset in
    that form. `BadInput` where no month was closed by then, and where table, format or window do not fit.
    """
    root, contract, source = Path(root).resolve(), CONTRACTS[table], FROZEN[table]
    if focus_version is not None:
        focus.columns(table, focus_version)
    predicate = read_predicate(contract, start, end)
    until = datetime(as_of.year, as_of.month, as_of.day) + timedelta(days=1)
    connection = connect(root, manifest=publication(root))
    try:
        connection.execute(
            f"create temp table in_force as select month, statement_id from {HEADER} "
            f"where issued_at < {literal(until)} group by month, statement_id, issued_at "
            "qualify row_number() over (partition by month order by issued_at desc, statement_id desc) = 1"
        )
        closed = dict(connection.execute("select month, statement_id from in_force order by month").fetchall())
        if not closed:
            raise BadInput(f"no month was closed by the end of {as_of}; `strandline close MONTH` closes one")
        charged = connection.execute(
            f"select distinct cast(date_trunc('month', date) as date) as m from mart.cost_daily "
            f"where date < {literal(until.date())} order by m"
        ).fetchall()
        told = f"select {', '.join(map(quote, contract.columns))} from {source} as s"
        rows = f"({told} where s.statement_id in (select statement_id from in_force)) as t"
        slices = date_slices(connection, contract, rows, predicate, format)
        statements = [f"select * {where}" for where in slices]
        if focus_version is not None:
            types = {row[0]: row[1] for row in connection.execute(f"describe {quote(source)}").fetchall()}
            zoned = format == "parquet"
            statements = [focus.select(table, focus_version, where, types, zoned=zoned) for where in slices]
        written = export_query(
            connection, statements, format, out,
            escape_formulas=escape_formulas, short_decimals=focus_version is not None,
        )  # fmt: skip
    finally:
        connection.close()
    open_months = tuple(m for (m,) in charged if m not in closed)
    return StatementsReport(written.path, written.rows, tuple(closed.values()), open_months)
