"""Bills into the lake: which import replaces which, and which days have to be built again.

A bill is what one provider asks of one account for one billing period. The newest import of it counts, whole; files
given together are its parts. Belongs here: raw.bills and raw.rejected_bill_lines. Not here: reading files
(`sources/bills`). No Dagster in it: the command calls it.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import duckdb

from assets.recorded import known_dates
from sources.bills import Refusal, Spooled, spool
from warehouse.contracts import CONTRACTS
from warehouse.engine import escape_glob, open_database
from warehouse.lake import Lake
from warehouse.scratch import spill_directory
from warehouse.sqltypes import literal, quote

BILLS, REJECTED = "raw.bills", "raw.rejected_bill_lines"
SHOWN = 20
# Of the engine that compares and replaces. Row groups are 250,000 wide rows, and each thread holds one.
MEMORY, THREADS = "900MiB", 1
# Lines of a bill's second file count on from here, of its third from twice that: source_line stays unique in a bill.
LINES_OF_A_PART = 1_000_000_000


@dataclass
class BillReport:
    """What an import did: `rows` landed or were there already, `refused` lines did not land (`refusals` are the
    first); of `bills`, `replaced` took the place of another import and `unchanged` were in the lake as they are;
    `parts` counts the files of bills that came in several, `empty` names files that hold a header and no line.
    `dates` are the days marked to be built again."""

    rows: int = 0
    refused: int = 0
    replaced: int = 0
    unchanged: int = 0
    bills: int = 0
    parts: int = 0
    empty: list[str] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    dates: list[date] = field(default_factory=list)


def load_bills(lake: Lake, paths: Sequence[Path], run_id: str = "", provider: str | None = None) -> BillReport:
    """Import FOCUS files; each bill in them replaces the lake's of the same provider, account and billing period.

    Nothing is written while a file is unreadable (`BadInput`), and no table gets a new version where nothing changes.
    `provider` overrides what the files say.
    """
    scratch = spill_directory(lake.root)
    scratch.mkdir(parents=True)
    try:
        files: dict[str, Spooled] = {}
        for path in paths:
            read = spool(path, scratch, provider)
            files.setdefault(read.sha256, read)
        report = BillReport()
        for read in files.values():
            report.rows += read.rows
            report.refused += read.refused
            report.empty += [read.source] if read.is_empty else []
            report.refusals += read.refusals[: SHOWN - len(report.refusals)]
        with lake.writer(), open_database(lake.root, memory_limit=MEMORY, threads=THREADS) as connection:
            _Import(lake, connection, list(files.values()), report, run_id).run()
        return report
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Import:
    def __init__(
        self, lake: Lake, connection: duckdb.DuckDBPyConnection, files: list[Spooled], report: BillReport, run_id: str
    ) -> None:
        self.lake, self.connection, self.files, self.report, self.run_id = lake, connection, files, report, run_id

    def run(self) -> None:
        self._new_bills()
        self.connection.execute(f"create temp view old_bills as {self.lake.relation(BILLS)}")
        self._compare()
        months = [m for (m,) in self._all("select distinct date from touched order by date")]
        if months:
            self.report.dates = self._days()
            self.lake.mark(self.report.dates, f"{BILLS} changed")
        orphans = self._orphans()
        for month in months:
            self._replace(BILLS, month, f"""
                select * from new_bills where date = {literal(month)}
                union all
                select * from old_bills
                where date = {literal(month)} and bill_id not in (select bill_id from stale)""")  # fmt: skip
        self._refused_lines(orphans)

    def _new_bills(self) -> None:
        """View `new_bills`: all rows of the files, their lines numbered through the parts of each bill."""
        new = self._spooled(BILLS, [f.bills for f in self.files])
        self.connection.execute(f"""
            create temp table parts as
            select bill_id, source_sha256,
            {LINES_OF_A_PART} * (row_number() over (partition by bill_id order by source_sha256) - 1) as first_line
            from (select distinct bill_id, source_sha256 from {new})""")
        chosen = ", ".join("n.source_line + p.first_line as source_line" if c == "source_line" else f"n.{quote(c)}"
                           for c in CONTRACTS[BILLS].columns)  # fmt: skip
        self.connection.execute(f"""
            create temp view new_bills as
            select {chosen} from {new} as n inner join parts as p using (bill_id, source_sha256)""")

    def _spooled(self, table: str, paths: list[Path | None]) -> str:
        found = [literal(escape_glob(str(p))) for p in paths if p is not None]
        if found:
            return f"read_parquet([{', '.join(found)}])"
        return f"({self.lake.relation(table)} limit 0)"

    def _compare(self) -> None:
        """Temporary tables `fresh` (bills of the files), `stale` (bills of the lake that go) and `touched` (months).

        A bill whose content is the lake's already is left alone. With it go, of the same account and period, bills
        of other providers that came in the same file as a bill now replaced: a newer export of a marketplace's
        account may name other sellers.
        """
        self.connection.execute(f"create temp table fresh as {_fingerprints('new_bills')}")
        self.connection.execute(f"""create temp table held as {_fingerprints("old_bills")}""")
        self.connection.execute("""
            create temp table stale as
            select distinct o.bill_id, o.date
            from held as o
            where o.bill_id in (select bill_id from fresh) or exists (
                select 1 from held as replaced
                where replaced.bill_id in (select bill_id from fresh)
                and replaced.billing_account_id = o.billing_account_id
                and replaced.billing_period_start_at = o.billing_period_start_at
                and list_has_any(replaced.files, o.files)
            )""")
        self.connection.execute("""
            create temp table touched as
            select f.bill_id, f.date from fresh as f left join held as h using (bill_id)
            where h.bill_id is null or h.rows <> f.rows or h.content <> f.content
            union
            select s.bill_id, s.date from stale as s where s.bill_id not in (select bill_id from fresh)""")
        bills, parts = self._all("""
            select count(*), coalesce(sum(len(files)) filter (where len(files) > 1), 0) from fresh""")[0]
        changed, replaced = self._all("""
            select count(*) filter (where bill_id in (select bill_id from fresh)),
            count(*) filter (where bill_id in (select bill_id from held)) from touched""")[0]
        self.report.bills, self.report.parts = bills, int(parts)
        self.report.unchanged, self.report.replaced = bills - changed, replaced

    def _days(self) -> list[date]:
        """Days that changed bills concern: those of telemetry in between, and those that their charges lie on.

        A Usage line lies on all of its days, any other on the first. Days without telemetry are among them: what was
        billed for them counts all the same.
        """
        billed = [d for (d,) in self._all("""
            with lines as (
                select charge_category, charge_period_start_at as start_at, charge_period_end_at as end_at
                from (select * from new_bills union all select * from old_bills)
                where bill_id in (select bill_id from touched)
            ),
            spans as (
                select distinct cast(start_at as date) as first,
                cast(case
                    when charge_category = 'Usage' and end_at > start_at then end_at - interval 1 microsecond
                    else start_at
                end as date) as last
                from lines
            )
            select distinct cast(day as date) as day
            from spans,
            unnest(generate_series(cast(first as timestamp), cast(last as timestamp), interval 1 day)) as d(day)
            order by day""")]  # fmt: skip
        return sorted({*billed, *(d for d in known_dates(self.lake) if billed and billed[0] <= d <= billed[-1])})

    def _orphans(self) -> list[str]:
        """Files of which no row is left once the stale bills are gone."""
        return [h for (h,) in self._all("""
            select distinct source_sha256 from old_bills where bill_id in (select bill_id from stale)
            except select source_sha256 from old_bills where bill_id not in (select bill_id from stale)
            except select source_sha256 from new_bills""")]  # fmt: skip

    def _refused_lines(self, orphans: list[str]) -> None:
        """Refused lines stand beside the bills they were refused from, and go with them, month by month."""
        self.connection.execute(f"create temp view old_lines as {self.lake.relation(REJECTED)}")
        new = self._spooled(REJECTED, [f.rejected for f in self.files])
        self.connection.execute(f"create temp view new_lines as select * from {new}")
        given = f"source_sha256 in ({_list([f.sha256 for f in self.files])})"
        named = f"source in ({_list([f.source for f in self.files])})"
        replaced = f"source_sha256 in ({_list(orphans)}) and date in (select date from stale)"
        gone = f"({given} or {named} or ({replaced}))"
        months = self._all(f"""
            select date from (
                select date, {_content(REJECTED)} as content from new_lines group by date
                union all
                select date, -{_content(REJECTED)} as content from old_lines where {gone} group by date
            ) group by date having sum(content) <> 0 order by date""")
        for (month,) in months:
            self._replace(
                REJECTED,
                month,
                f"""
                select * from new_lines where date = {literal(month)}
                union all
                select * from old_lines where date = {literal(month)} and not {gone}""",
            )

    def _replace(self, table: str, month: date, query: str) -> None:
        with self.lake.stage(table, month, month + timedelta(days=1), self.connection) as staged:
            staged.write_query(query, {}, f"{table} of {month:%Y-%m}", month)
            self.lake.commit(staged, self.run_id)

    def _all(self, query: str) -> list[tuple]:
        return self.connection.execute(query).fetchall()


def _content(table: str) -> str:
    """Fingerprint of a group of rows, in whatever order; where a file lay is not part of it."""
    columns = ", ".join(quote(c) for c in CONTRACTS[table].columns if c != "source")
    return f"sum(cast(hash({columns}) as hugeint))"


def _fingerprints(view: str) -> str:
    return f"""
        select bill_id, date, any_value(billing_account_id) as billing_account_id,
        any_value(billing_period_start_at) as billing_period_start_at, count(*) as rows, {_content(BILLS)} as content,
        list_sort(list_distinct(list(source_sha256))) as files
        from {view} group by bill_id, date"""


def _list(values: Sequence[str]) -> str:
    return ", ".join(literal(v) for v in values) or "null"
