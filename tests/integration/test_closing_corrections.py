"""What changes after a month is closed: corrections, statements that supersede, and what was told at the time."""

from __future__ import annotations

import os
import shutil
from datetime import date, datetime, timedelta
from decimal import Decimal as D
from pathlib import Path

import focus_month as made
import pytest
from closing_march import (
    APRIL,
    CHECKS,
    CORRECTED,
    CURRENT,
    LATE,
    MARCH,
    MODELS,
    STATED,
    april_too,
    build,
    check,
    closed,
    late_bill,
    march_known,
    one,
)

from assets.closing import close
from assets.statements import COST, FOCUS, FOCUS_MART
from warehouse.errors import BadInput
from warehouse.lake import Lake
from warehouse.maintenance import vacuum
from warehouse.runner import run_models
from warehouse.statements import export_statements

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return march_known(tmp_path_factory.mktemp("closing") / "data").root


@pytest.fixture
def lake(prepared: Path, tmp_path: Path) -> Lake:
    return Lake(shutil.copytree(prepared, tmp_path / "data"))


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
