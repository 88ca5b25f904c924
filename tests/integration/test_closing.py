"""Closing a month: what is frozen with its header, what is refused and why, and what is told of an odd month."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

import focus_month as made
import pytest
from closing_march import CURRENT, MARCH, MODELS, build, check, closed, known_until, late_bill, march_known, one

from assets.closing import close
from assets.sql_checks import load_checks
from assets.statements import COST, FOCUS, FOCUS_MART, MONTHLY
from warehouse.errors import BadInput
from warehouse.lake import Lake

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return march_known(tmp_path_factory.mktemp("closing") / "data").root


@pytest.fixture
def lake(prepared: Path, tmp_path: Path) -> Lake:
    return Lake(shutil.copytree(prepared, tmp_path / "data"))


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
