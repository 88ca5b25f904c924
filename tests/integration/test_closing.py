"""Closing a month: what is frozen, what is refused, what comes after, and what a kill leaves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # focus_month is shared by several rooms

import focus_month as made

from assets.closing import CloseReport, close
from assets.sql_checks import load_checks, run_check
from assets.statements import COST, FOCUS, FOCUS_MART, MONTHLY
from warehouse.engine import connect
from warehouse.errors import BadInput
from warehouse.lake import Lake
from warehouse.maintenance import vacuum
from warehouse.models import SQL_DIRECTORY, read_model
from warehouse.runner import run_models
from warehouse.settling import settle
from warehouse.statements import export_statements

pytestmark = pytest.mark.integration

MARCH, APRIL = date(2026, 3, 1), date(2026, 4, 1)
NAMES = ("mart.cost_daily", "mart.cost_monthly", "mart.focus_cost_and_usage")
MODELS = {n: read_model(SQL_DIRECTORY / f"{n.replace('.', '/')}.sql", n) for n in NAMES}
CHECKS = {n: c for n, c in load_checks(SQL_DIRECTORY / "check").items() if n == "closed_months"}
LATE = D("12.5")


def build(lake: Lake, start: date = MARCH, end: date = date(2026, 5, 1)) -> None:
    run_models(lake, (), start, end, models=MODELS)
    lake.publish("built")


def known_until(lake: Lake, hour: datetime) -> None:
    row = {"date": hour.date(), "hour": hour, "cluster": "c", "node": "n", "node_uid": "u", "running_us": 3600000000}
    lake.replace("core.node_hours", made.rows_to_table("core.node_hours", [row]), MARCH, date(2026, 6, 1))


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake that knows all of March, built and published."""
    lake = Lake(tmp_path_factory.mktemp("closing") / "data")
    made.put(lake, *made.month())
    known_until(lake, datetime(2026, 4, 3))
    build(lake)
    return lake.root


@pytest.fixture
def lake(prepared: Path, tmp_path: Path) -> Lake:
    return Lake(shutil.copytree(prepared, tmp_path / "data"))


def closed(lake: Lake, month: date = MARCH, day: int = 5, **more: Any) -> CloseReport:
    return close(lake, month, MODELS, CHECKS, now=datetime(2026, 4, day, 9), **more)


def one(lake: Lake, query: str) -> Any:
    with connect(lake.root) as con:
        return con.execute(query).fetchall()[0][0]


def check(lake: Lake) -> list[dict[str, Any]]:
    with connect(lake.root) as con:
        return run_check(con, CHECKS["closed_months"], MARCH, date(2026, 6, 1)).shown


def late_bill(lake: Lake) -> None:
    """A charge of March that comes after all, and one that is dearer than it was."""
    charges, division = made.month()
    row = made.charge("bill/late", made.SECOND, charge_scope="other_services", charge_origin="bill",
                      **{m: LATE for m in ("list_cost", "contracted_cost", "billed_cost", "effective_cost")},
                      list_unit_price=LATE, contracted_unit_price=LATE)  # fmt: skip
    for rows in (charges, division):
        changed = next(r for r in rows if r["charge_id"] == "bill/disk")
        changed["billed_cost"] += 1
        changed["effective_cost"] += 1
    made.put(lake, [*charges, row], [*division, *made.whole(row, "other_services")])


def april_too(lake: Lake) -> None:
    """A charge in April, and all of April known."""
    hour = datetime(2026, 4, 20, 5)
    row = made.charge("april", hour, billing_period_start_at=datetime(2026, 4, 1),
                      billing_period_end_at=datetime(2026, 5, 1))  # fmt: skip
    for table, rows in (("core.charges", [row]), ("mart.cost_hourly", made.divided(row, [("ml/april", 8)]))):
        lake.replace(table, made.rows_to_table(table, rows), hour.date(), date(2026, 4, 21))
    known_until(lake, datetime(2026, 5, 2))
    build(lake)


CURRENT = "select sum(effective_cost) from mart.cost_daily where date < '2026-04-01'"
STATED = f"select sum(effective_cost) from {COST} where statement_id = "
CORRECTED = f'select coalesce(sum("EffectiveCost"), 0) from {FOCUS_MART} where "BillingPeriodStart" >= \'2026-04-01\''


def test_a_month_is_frozen_with_its_header(lake: Lake) -> None:
    report = closed(lake)
    assert report.is_new
    assert report.statement.statement_id == "2026-03-1"
    rows = lake.read(COST).to_pylist()
    assert {(r["date"], r["month"], r["issued_at"], r["supersedes"], r["statement_rows"]) for r in rows} == {
        (MARCH, MARCH, datetime(2026, 4, 5, 9), None, report.rows)
    }
    assert {r["complete_until_at"] for r in rows} == {datetime(2026, 4, 1)}
    assert sum(r["effective_cost"] for r in rows) == one(lake, CURRENT)
    assert one(lake, f"select count(*) from {FOCUS}") == report.rows == one(lake, f"select count(*) from {FOCUS_MART}")
    assert one(lake, f"select count(*) from {FOCUS_MART} where x_statement_id = '2026-03-1'") == report.rows
    assert one(lake, f"select sum(total_effective_cost) from {MONTHLY}") == one(lake, CURRENT)
    assert check(lake) == []
    assert lake.marks() == []


def test_closing_again_without_a_change_writes_nothing(lake: Lake) -> None:
    first = closed(lake)
    versions = {t: lake.version(t) for t in (COST, FOCUS, MONTHLY, FOCUS_MART)}
    manifest = lake.published()
    again = closed(lake, day=9)
    assert not again.is_new
    assert again.statement == first.statement
    assert {t: lake.version(t) for t in versions} == versions
    assert lake.published() == manifest
    build(lake)
    assert not closed(lake, day=10).is_new


def test_what_comes_late_is_a_correction_and_the_statement_stays(lake: Lake) -> None:
    closed(lake)
    told, before = lake.read(COST).to_pylist(), one(lake, CURRENT)
    late_bill(lake)
    build(lake)
    assert lake.read(COST).to_pylist() == told
    assert one(lake, CURRENT) == before + LATE + 1
    assert one(lake, CORRECTED) == LATE + 1
    assert one(lake, STATED + "'2026-03-1'") + one(lake, CORRECTED) == one(lake, CURRENT)
    later = f"from {FOCUS_MART} where \"BillingPeriodStart\" = '2026-04-01'"
    assert one(lake, f"select string_agg(distinct \"ChargeClass\", ',') {later}") == "Correction"
    assert check(lake) == []


def test_a_second_statement_supersedes_and_takes_the_corrections_in(lake: Lake) -> None:
    closed(lake)
    late_bill(lake)
    build(lake)
    report = closed(lake, day=9)
    assert report.is_new
    assert (report.statement.statement_id, report.statement.supersedes) == ("2026-03-2", "2026-03-1")
    assert one(lake, STATED + "'2026-03-2'") == one(lake, CURRENT)
    assert one(lake, STATED + "'2026-03-1'") == one(lake, CURRENT) - LATE - 1
    assert one(lake, CORRECTED) == 0
    assert one(lake, f"select count(*) from {FOCUS_MART} where x_statement_id is distinct from '2026-03-2'") == 0
    assert check(lake) == []
    build(lake)
    assert check(lake) == []
    assert not closed(lake, day=10).is_new


def test_corrections_are_frozen_with_the_month_that_told_them(lake: Lake) -> None:
    closed(lake)
    late_bill(lake)
    build(lake)
    with pytest.raises(BadInput, match="no charge of that billing month"):
        close(lake, APRIL, MODELS, CHECKS, now=datetime(2026, 5, 3))  # corrections alone make no statement
    april_too(lake)
    april = close(lake, APRIL, MODELS, CHECKS, now=datetime(2026, 5, 3))
    assert april.statement.statement_id == "2026-04-1"
    assert one(lake, f"select count(*) from {FOCUS} where statement_id = '2026-04-1' and date < '2026-04-01'") == 2
    assert one(lake, f"select count(*) from {FOCUS_MART} where x_statement_id is null") == 0
    assert check(lake) == []
    # March would now be told twice: in a second statement and in April's corrections
    with pytest.raises(BadInput, match="2026-04 is closed too"):
        closed(lake, day=20)
    # what changes back is corrected once more, in May
    made.put(lake, *made.month())
    build(lake)
    assert (
        one(lake, f'select sum("EffectiveCost") from {FOCUS_MART} where "BillingPeriodStart" = \'2026-05-01\'')
        == -LATE - 1
    )
    assert check(lake) == []


def test_a_change_that_nobody_corrects_is_found(lake: Lake) -> None:
    closed(lake)
    late_bill(lake)
    run_models(lake, ["mart.cost_daily"], MARCH, APRIL, models=MODELS)
    lake.publish("without-the-focus-rows")
    assert {r["what"] for r in check(lake)} == {"a change of a closed month is in no correction"}


def test_a_frozen_row_that_changed_is_found(lake: Lake) -> None:
    closed(lake)
    rows = lake.read(COST).to_pylist()
    rows[0]["effective_cost"] += D("1e-10")
    lake.replace(COST, made.rows_to_table(COST, rows), MARCH, date(2026, 3, 2))
    lake.publish_tables("forged", {**lake.published().tables, COST: lake.newest_version(COST)})  # type: ignore[union-attr]
    assert {r["what"] for r in check(lake)} == {"the costs of a statement are not its FOCUS rows"}


NEVER = """-- Costs are as they were.
-- table: mart.focus_cost_and_usage
select 1 as wrong from (select sum(effective_cost) as e from mart.cost_hourly)
where e <> (select sum("EffectiveCost") from mart.focus_cost_and_usage)
"""


def nothing(lake: Lake) -> None:
    made.put(lake, [], [])
    build(lake)


def marked(lake: Lake) -> None:
    lake.mark([date(2026, 3, 17)], "raw.bills")


def unpublished(lake: Lake) -> None:
    late_bill(lake)


def early(lake: Lake) -> None:
    known_until(lake, datetime(2026, 3, 31, 20))
    build(lake)


def broken(lake: Lake) -> None:
    charges, division = made.month()
    division[0]["effective_cost"] += 1
    made.put(lake, charges, division)
    lake.publish("broken")  # the FOCUS rows were not made anew


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (nothing, "no charge of that billing month"),
        (marked, "1 of its days changed since the last build .first: 2026-03-17, raw.bills"),
        (unpublished, "core.charges was built and not published"),
        (early, "it is not over, what is published reaches to 2026-03-31 21:00 UTC; --partial"),
        (broken, "checks do not hold: .*closed_never"),
    ],
)
def test_what_cannot_be_closed_says_why(lake: Lake, spoil: Callable[[Lake], None], says: str, tmp_path: Path) -> None:
    spoil(lake)
    (tmp_path / "check").mkdir()
    (tmp_path / "check" / "closed_never.sql").write_text(NEVER)
    with pytest.raises(BadInput, match=rf"2026-03 cannot be closed: {says}"):
        close(lake, MARCH, MODELS, load_checks(tmp_path / "check"), now=datetime(2026, 4, 5))
    assert lake.version(COST) is None
    assert [m.reason for m in lake.marks()] in ([], ["raw.bills"])


def test_an_unfinished_month_may_be_closed_with_a_flag_that_it_keeps(lake: Lake) -> None:
    early(lake)
    report = closed(lake, is_partial=True)
    assert "PARTIAL" in report.warnings[0]
    assert one(lake, f"select distinct complete_until_at from {COST}") == datetime(2026, 3, 31, 21)


def test_charges_without_a_price_are_told(lake: Lake) -> None:
    charges, division = made.month()
    charges[0]["flags"] = "no_price"
    made.put(lake, charges, division)
    build(lake)
    assert closed(lake).warnings == ("1 charges have no price: their cost is unknown and not in the total",)


def test_what_a_dead_writer_left_is_taken_back(lake: Lake) -> None:
    closed(lake)
    held = sorted(map(str, lake.read(COST).to_pylist()))
    rows = lake.read(COST).to_pylist()
    half = [{**r, "date": APRIL, "month": APRIL, "statement_id": "x"} for r in rows]
    lake.replace(COST, made.rows_to_table(COST, half), APRIL, date(2026, 4, 2))
    lake.replace(COST, made.rows_to_table(COST, rows[:1]), MARCH, date(2026, 3, 2))
    lake.publish("by-a-build")
    assert one(lake, f"select count(*) from {COST}") == len(held)  # a build publishes no frozen table
    assert settle(lake) == [COST]
    assert sorted(map(str, lake.read(COST).to_pylist())) == held
    assert settle(lake) == []


# commits of a closing: FOCUS, monthly and cost rows, then the FOCUS mart
@pytest.mark.parametrize(("last", "is_built"), [(1, True), (2, False), (3, True), (3, False), (4, True), (4, False)])
def test_after_a_kill_half_a_closing_is_never_seen_and_the_next_completes_it(
    lake: Lake, last: int, is_built: bool
) -> None:
    worker = Path(__file__).with_name("closing_worker.py")
    assert subprocess.run([sys.executable, worker, lake.root, str(last)], check=False).returncode == -signal.SIGKILL
    told = one(lake, f"select count(distinct statement_id) from {COST}")
    assert told == (1 if last == 4 else 0)
    assert one(lake, f"select count(*) from {FOCUS}") == told * one(lake, f"select count(*) from {FOCUS_MART}")
    assert {m.reason for m in lake.marks()} == {"closing 2026-03"}
    if is_built:
        build(lake)
        assert check(lake) == []
    report = closed(lake, day=9)
    assert report.statement.statement_id == "2026-03-1"
    assert one(lake, f"select count(*) from {FOCUS_MART} where x_statement_id = '2026-03-1'") == report.rows
    assert check(lake) == []
    assert lake.marks() == []


def test_what_was_told_is_exported_when_its_files_are_gone(lake: Lake, tmp_path: Path) -> None:
    closed(lake)
    first = one(lake, CURRENT)
    late_bill(lake)
    build(lake)
    closed(lake, day=9)
    for path in lake.root.glob("lake/**/*.parquet"):
        os.utime(path, (0, 0))
    for path in (lake.state / "manifests").glob("*.json"):
        path.rename(path.with_name(f"20200101T000000000000--{path.name.split('--')[1]}"))
    assert vacuum(lake, timedelta(0)).files > 0
    for day, cost in ((5, first), (9, first + LATE + 1)):
        as_of = date(2026, 4, day)
        report = export_statements(lake.root, "mart.cost_monthly", "parquet", tmp_path / "months.parquet", as_of)
        assert one(lake, f"select sum(effective_cost) from '{report.path}'") == cost
        report = export_statements(lake.root, FOCUS_MART, "parquet", tmp_path / "focus.parquet", as_of)
        assert one(lake, f"select sum(\"EffectiveCost\") from '{report.path}'") == cost
        assert report.open_months == ()


def test_two_closings_at_once_give_one_statement(lake: Lake) -> None:
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda day: closed(lake, day=day), [5, 6]))
    assert sorted(r.is_new for r in reports) == [False, True]
    assert one(lake, f"select count(distinct statement_id) from {COST}") == 1
