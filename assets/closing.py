"""Closing a billing month: its statement is written once and never changes; what changes later supersedes or corrects.

Publishing the statement's tables together is what closes the month. Before that nobody sees any of it, and what a
writer that died left behind is taken back (`warehouse/settling.py`); the dates it touched are marked beforehand, so a
build repairs what follows from them. No Dagster in it.
Belongs here: whether a month may be closed, and the order of writes. Not here: the rows (`statements.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import duckdb

from assets import contract_checks
from assets.sql_checks import SqlCheck, run_check
from assets.statements import COST, FOCUS, FOCUS_MART, MONTHLY, MONTHLY_MART, Draft, Statement, next_month
from warehouse.contracts import CONTRACTS
from warehouse.engine import connect
from warehouse.errors import BadInput
from warehouse.lake import Lake
from warehouse.models import Model, upstream
from warehouse.runner import run_models
from warehouse.settling import settle
from warehouse.sqltypes import literal
from warehouse.state import Manifest, Mark
from warehouse.windows import contiguous

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
Progress = Callable[[str], None]


@dataclass(frozen=True)
class CloseReport:
    """What closing did: the statement in force, FOCUS rows it holds, and whether it is new; warnings for people."""

    statement: Statement
    rows: int
    is_new: bool
    warnings: tuple[str, ...] = ()


def close(
    lake: Lake,
    month: date,
    models: Mapping[str, Model],
    checks: Mapping[str, SqlCheck],
    *,
    is_partial: bool = False,
    now: datetime | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    progress: Progress = lambda _: None,
) -> CloseReport:
    """Freeze the billing month that begins on `month`, as published; `now` (naive UTC) is when it is issued.

    Without a change since the last statement nothing is written. `is_partial` closes a month that the lake does not
    know to its end. `BadInput` says why a month cannot be closed.
    """
    with lake.writer():
        settle(lake)
        manifest = lake.published()
        if manifest is None:
            raise BadInput(f"{month:%Y-%m} cannot be closed: nothing has been published yet; run `strandline build`")
        own = _refuse_unbuilt(lake, manifest, month, models)
        focus = models[FOCUS_MART]
        with Draft(lake.root, manifest, month, focus, memory_limit=memory_limit, threads=threads) as draft:
            if not draft.charged:  # corrections of other months alone wait for a month with charges
                raise BadInput(f"{month:%Y-%m} cannot be closed: no charge of that billing month is published")
            until = _known_until(draft.connection, month, is_partial)
            warnings = _warnings(draft.connection, month, until)
            if draft.previous is not None and draft.previous.digest == draft.digest:
                if own:  # an earlier closing died after its statement was published
                    _follow(
                        lake, draft.dates, focus, f"close-{draft.previous.statement_id}", memory_limit=memory_limit,
                        threads=threads,
                    )  # fmt: skip
                    lake.clear(own)
                return CloseReport(draft.previous, draft.rows, False, warnings)
            _refuse_superseded(draft)
            progress("checking what is published")
            with connect(lake.root, manifest=manifest, memory_limit=memory_limit, threads=threads) as con:
                _refuse_failing(con, month, models, checks)
            statement = _new_statement(draft, now or datetime.now(UTC).replace(tzinfo=None))
            progress(f"writing statement {statement.statement_id}")
            marks = lake.mark(draft.dates, _reason(month))
            run_id = f"close-{statement.statement_id}"
            _write(lake, draft, statement, until, run_id)
            # what makes it a statement: from here on all of it is seen, before none
            _publish(lake, (COST, FOCUS, MONTHLY), run_id, f"{month:%Y-%m} closed")
            progress(FOCUS_MART)
            _follow(lake, draft.dates, focus, run_id, memory_limit=memory_limit, threads=threads)
            lake.clear([*own, *marks])
            return CloseReport(statement, draft.rows, True, warnings)


def _reason(month: date) -> str:
    return f"closing {month:%Y-%m}"


def _refuse_unbuilt(lake: Lake, manifest: Manifest, month: date, models: Mapping[str, Model]) -> list[Mark]:
    """Marks that an earlier closing left. `BadInput` where what changed in the month is not built or not published."""
    marks = lake.marks()
    own = [m for m in marks if m.reason == _reason(month)]
    waiting = [m for m in marks if month <= m.date < next_month(month) and m not in own]
    if waiting:
        raise BadInput(
            f"{month:%Y-%m} cannot be closed: {len({m.date for m in waiting})} of its days changed since the last "
            f"build (first: {waiting[0].date}, {waiting[0].reason}); run `strandline build`"
        )
    behind = upstream(models, FOCUS_MART) | upstream(models, MONTHLY_MART) | {FOCUS_MART, MONTHLY_MART}
    read = {
        i for name in behind for i in models[name].inputs if CONTRACTS[i].layer != "raw" and not CONTRACTS[i].frozen
    }
    for name in sorted(read | {MONTHLY_MART}):
        newest, told = lake.newest_version(name), manifest.tables.get(name)
        if set(newest.files if newest else ()) != set(told.files if told else ()):
            raise BadInput(
                f"{month:%Y-%m} cannot be closed: {name} was built and not published, because a check failed or the "
                "build was stopped; run `strandline build`"
            )
    return own


def _known_until(con: duckdb.DuckDBPyConnection, month: date, is_partial: bool) -> datetime:
    """How far the lake knows the month; `BadInput` where that is not its end, unless it `is_partial`."""
    seen = con.execute(
        "select greatest((select max(hour) + interval 1 hour from core.node_hours), "
        "(select max(snapshot_at) from raw.kube_snapshots), (select max(scrape_at) from raw.scrapes))"
    ).fetchall()[0][0]
    if seen is None:  # a lake of bills alone: a day that is billed is over
        seen = con.execute("select cast(max(date) as timestamp) + interval 1 day from core.charges").fetchall()[0][0]
    end = datetime.combine(next_month(month), time())
    if seen is not None and seen + HOUR >= end:
        return end
    if not is_partial:
        raise BadInput(
            f"{month:%Y-%m} cannot be closed: it is not over, what is published reaches to {seen:%Y-%m-%d %H:%M} UTC; "
            "--partial closes it all the same and says so in the statement"
        )
    assert seen is not None
    return max(seen, datetime.combine(month, time()))


def _refuse_superseded(draft: Draft) -> None:
    later = [s for s in draft.issued if s.month > draft.month]
    if draft.previous is not None and later:
        raise BadInput(
            f"{draft.month:%Y-%m} has changed since {draft.previous.statement_id}, but {later[-1].month:%Y-%m} is "
            "closed too and may hold its corrections: the rest is in the Correction rows of the open month"
        )


def _refuse_failing(
    con: duckdb.DuckDBPyConnection, month: date, models: Mapping[str, Model], checks: Mapping[str, SqlCheck]
) -> None:
    """`BadInput` names the blocking checks of the tables behind a statement that do not hold for the month."""
    end, failing = next_month(month), []
    tables = upstream(models, FOCUS_MART) | upstream(models, MONTHLY_MART) | {FOCUS_MART, MONTHLY_MART}
    for table in sorted(tables):
        window = (None, None) if CONTRACTS[table].window == "whole" else (month, end)
        broken = contract_checks.violations(con, table, *window)
        failing += [f"{table}: {rule} ({n} rows)" for rule, n in broken.items()]
    for check in checks.values():
        if check.table in tables and (found := run_check(con, check, month, end)).rows:
            failing.append(f"{check.table}: {check.name} ({found.rows} rows, first {found.shown[0]})")
    if failing:
        raise BadInput(f"{month:%Y-%m} cannot be closed: checks do not hold: {'; '.join(failing)}")


def _warnings(con: duckdb.DuckDBPyConnection, month: date, until: datetime) -> tuple[str, ...]:
    end, told = next_month(month), []
    if until < datetime.combine(end, time()):
        told.append(f"PARTIAL: the month is known to {until:%Y-%m-%d %H:%M} UTC only; what comes later will correct it")
    for flag, what in (("no_price", "no price"), ("no_rate", "no conversion rate")):
        unknown = con.execute(
            "select count(*) from core.charges where cast(date_trunc('month', billing_period_start_at) as date) = "
            f"{literal(month)} and contains(coalesce(flags, ''), '{flag}')"
        ).fetchall()[0][0]
        if unknown:
            told.append(f"{unknown:,} charges have {what}: their cost is unknown and not in the total")
    return tuple(told)


def _new_statement(draft: Draft, now: datetime) -> Statement:
    number = sum(s.month == draft.month for s in draft.issued) + 1
    newest = max((s.issued_at for s in draft.issued), default=datetime.min)
    # the newest statement of a month is in force, so a clock that went back must not reorder them
    issued_at = max(now, newest + timedelta(microseconds=1))
    previous = draft.previous.statement_id if draft.previous else None
    return Statement(draft.month, f"{draft.month:%Y-%m}-{number}", issued_at, draft.digest, previous)


def _write(lake: Lake, draft: Draft, statement: Statement, until: datetime, run_id: str) -> None:
    """Add the statement's rows to the three tables, which nobody sees before they are published."""
    month, issued = literal(statement.month), literal(statement.issued_at)
    identity = f"{literal(statement.statement_id)} as statement_id, {issued} as issued_at"
    supersedes = f"cast({literal(statement.supersedes) if statement.supersedes else 'null'} as varchar)"
    cost = (
        f"select {month} as date, {month} as month, {identity}, {supersedes} as supersedes, "
        f"{literal(until)} as complete_until_at, {literal(statement.digest)} as statement_digest, "
        f"{draft.rows} as statement_rows, * from draft_cost"
    )
    focus = (
        f"select {identity}, {month} as month, * exclude (x_statement_id), "
        f"{literal(statement.statement_id)} as x_statement_id from draft_focus"
    )
    monthly = f"select {month} as date, {identity}, * from draft_monthly"
    for table, rows in ((FOCUS, focus), (MONTHLY, monthly), (COST, cost)):
        days = {r[0] for r in draft.connection.execute(f"select distinct date from ({rows})").fetchall()}
        for start, end in contiguous(days):
            with lake.stage(table, start, end, draft.connection) as staged:
                held = lake.relation(table)
                staged.add_query(
                    f"select * from (select * from ({held}) union all by name {rows}) where {staged.window.sql}",
                    {},
                    table,
                )
                lake.commit(staged, run_id)


def _follow(
    lake: Lake,
    dates: Iterable[date],
    focus: Model,
    run_id: str,
    *,
    memory_limit: str | None,
    threads: int | None,
) -> None:
    """Bring mart.focus_cost_and_usage in line with the statements: frozen rows, and corrections in the open month."""
    chosen = {FOCUS_MART: focus}
    for start, end in contiguous(dates):
        run_models(lake, (), start, end, run_id, models=chosen, memory_limit=memory_limit, threads=threads)
    _publish(lake, (FOCUS_MART,), f"{run_id}-focus", "FOCUS rows after a closing")


def _publish(lake: Lake, tables: Iterable[str], build_id: str, note: str) -> None:
    """Publish the newest version of these tables beside what is published of all others."""
    published = lake.published()
    entries = dict(published.tables) if published else {}
    for table in tables:
        version = lake.newest_version(table)
        assert version is not None
        entries[table] = version
    lake.publish_tables(build_id, entries, note)
