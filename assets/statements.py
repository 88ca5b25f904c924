"""What a billing month comes to at this moment: the rows that a statement freezes, and a digest of them.

Costs are those of the charges billed in the month; FOCUS rows are those whose billing period it is, corrections of
earlier months among them; and the month's rows of mart.cost_monthly. All from what is published.
Belongs here: collecting and comparing. Not here: whether a month may be closed, writing (`closing.py`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from types import TracebackType

import duckdb

from warehouse.contracts import CONTRACTS
from warehouse.engine import connect, manifest_relation
from warehouse.models import Model
from warehouse.sqltypes import literal, quote
from warehouse.state import Manifest

COST, FOCUS, MONTHLY = "mart.cost_statement", "mart.focus_statement", "mart.cost_monthly_statement"
FOCUS_MART, MONTHLY_MART = "mart.focus_cost_and_usage", "mart.cost_monthly"
# the header of a statement stands on every row of mart.cost_statement
HEADER = (
    "date", "month", "statement_id", "issued_at", "supersedes", "complete_until_at", "statement_digest",
    "statement_rows",
)  # fmt: skip
_KEY = ("team", "accelerator", "provider", "cost_part")
# amounts that only the model of corrections leaves without a ratio: a bill's own corrections have one
CORRECTED = "\"ChargeClass\" = 'Correction' and x_allocated_ratio is null"


@dataclass(frozen=True)
class Statement:
    """A statement as issued."""

    month: date
    statement_id: str
    issued_at: datetime
    digest: str
    supersedes: str | None = None


def next_month(month: date) -> date:
    """First day of the month after that of `month`."""
    return (month.replace(day=1) + timedelta(days=32)).replace(day=1)


def statements(con: duckdb.DuckDBPyConnection) -> list[Statement]:
    """Every statement issued, oldest first."""
    rows = con.execute(
        f"select distinct month, statement_id, issued_at, statement_digest, supersedes from {COST} order by issued_at"
    ).fetchall()
    return [Statement(*row) for row in rows]


class Draft:
    """The rows of a month, in tables `draft_cost`, `draft_focus` and `draft_monthly` of a connection of its own.

    `charged`: rows of costs, none where nothing was billed in the month. `rows`: FOCUS rows. `dates`: charge dates
    whose rows of mart.focus_cost_and_usage a new statement touches. Use as a context.
    """

    def __init__(
        self,
        root: Path,
        manifest: Manifest,
        month: date,
        focus: Model,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
    ) -> None:
        self.month, self._root, self._manifest, self._focus = month, root, manifest, focus
        self.connection = connect(root, manifest=manifest, memory_limit=memory_limit, threads=threads)
        try:
            self.issued = statements(self.connection)
            self.previous = next((s for s in reversed(self.issued) if s.month == month), None)
            self._collect()
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> Draft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()

    def _collect(self) -> None:
        month = literal(self.month)
        summed = [c for c in CONTRACTS[COST].columns if c not in (*HEADER, *_KEY, "billing_currency")]
        sums = ", ".join(f"sum(h.{c}) as {c}" for c in summed)
        self.connection.execute(
            f"create temp table draft_cost as select h.team, h.accelerator, h.provider, h.cost_part, "
            f"min(h.billing_currency) as billing_currency, {sums} from mart.cost_hourly as h "
            "inner join core.charges as c on c.date = h.date and c.charge_id = h.charge_id "
            f"where cast(date_trunc('month', c.billing_period_start_at) as date) = {month} group by all"
        )
        self.connection.execute(
            f"create temp table draft_monthly as select * from {MONTHLY_MART} where month = {month}"
        )
        self.dates = self._touched()
        source, given = self._told()
        self.connection.execute(
            f"create temp table draft_focus as select * from ({source}\n) "
            f"where cast(date_trunc('month', \"BillingPeriodStart\") as date) = {month}",
            given or None,
        )
        self.dates |= {row[0] for row in self.connection.execute("select distinct date from draft_focus").fetchall()}
        self.charged = self._one("select count(*) from draft_cost")
        self.rows = self._one("select count(*) from draft_focus")
        self.digest = self._digest()

    def _touched(self) -> set[date]:
        """Charge dates of the last statement of the month, and of corrections that no statement holds yet."""
        found = self.connection.execute(
            f"select distinct date from {FOCUS_MART} where {CORRECTED} and x_statement_id is null union "
            f"select distinct date from {FOCUS} where month = {literal(self.month)}"
        ).fetchall()
        return {row[0] for row in found}

    def _told(self) -> tuple[str, dict[str, datetime]]:
        """FOCUS rows of the month as if it were open: as published, or computed anew where a statement stands."""
        if self.previous is None:
            return f"select * from {FOCUS_MART}", {}
        for table in (COST, FOCUS):
            stored = manifest_relation(self._root, CONTRACTS[table], self._manifest)
            self.connection.execute(
                f"create or replace view {quote(table)} as select * from ({stored}) "
                f"where month <> {literal(self.month)}"
            )
        charged = self.connection.execute(
            "select distinct date from core.charges "
            f"where cast(date_trunc('month', billing_period_start_at) as date) = {literal(self.month)}"
        ).fetchall()
        days = self.dates | {row[0] for row in charged} or {self.month}
        bounds = {
            "start_at": datetime.combine(min(days), time()),
            "end_at": datetime.combine(max(days) + timedelta(days=1), time()),
        }
        return self._focus.sql, {p: bounds[p] for p in self._focus.parameters}

    def _digest(self) -> str:
        """A hash of the rows, whatever their order; a column that is null everywhere adds nothing to it."""
        whole = hashlib.sha256()
        for table in ("draft_cost", "draft_focus", "draft_monthly"):
            names = [r[0] for r in self.connection.execute(f"describe {table}").fetchall() if r[0] != "x_statement_id"]
            cells = ", ".join(f"{literal(n + '=')} || cast({quote(n)} as varchar)" for n in names)
            rows = f"select sha256(concat_ws(chr(31), {cells})) as h from {table}"
            whole.update(
                str(self._one(f"select sha256(coalesce(string_agg(h, '' order by h), '')) from ({rows})")).encode()
            )
        return whole.hexdigest()

    def _one(self, query: str) -> int:
        return self.connection.execute(query).fetchall()[0][0]
