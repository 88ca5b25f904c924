"""Builds: windows, marks, changed intervals, repetition."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from small_lake import CONTRACTS, DAYS, at, contents, published, put, small_models

from warehouse.due import due_dates
from warehouse.errors import BadInput
from warehouse.lake import Lake
from warehouse.runner import build, run_models
from warehouse.state import Mark


def day(number: int) -> date:
    return date(2026, 3, number)


def windows(report, name):
    return next(m.windows for m in report.models if m.name == name)


@pytest.fixture
def filled(lake):
    put(lake, at(1), ["a", "b"])
    put(lake, at(2), ["a"])
    for number in (3, 4, 5, 6, 7):
        put(lake, at(number), ["c"])
    return lake


def test_a_first_build_takes_up_every_mark(filled, models):
    report = build(filled, models=models)
    assert windows(report, "core.stays") == ((day(1), day(8)),)
    assert windows(report, "mart.totals") == ()
    assert filled.marks() == []
    assert published(filled, "select pods from mart.days order by date") == [(2,), (1,), (1,), (1,), (1,), (1,), (1,)]
    assert published(filled, "select pod, days from mart.totals order by pod") == [("a", 2), ("b", 1), ("c", 5)]


def test_building_twice_gives_the_same_tables(filled, models):
    build(filled, models=models)
    once = {t: contents(filled, t) for t in CONTRACTS}
    report = build(filled, models=models)
    assert windows(report, "mart.days") == ((day(6), day(8)),)
    build(filled, day(1), day(8), models=models)
    assert {t: contents(filled, t) for t in CONTRACTS} == once


@pytest.mark.parametrize("chunk_days", [1, 3, 100])
def test_pieces_of_a_window_make_no_difference_and_one_commit(filled, models, chunk_days):
    build(filled, day(1), day(8), models=models, chunk_days=chunk_days)
    assert [r["pods"] for r in contents(filled, "mart.days")] == [2, 1, 1, 1, 1, 1, 1]
    # creation, the constraints of two columns, and the one commit of seven dates
    assert filled.version("mart.days") == 3


def test_heavy_dates_go_straight_to_files_and_make_no_difference(filled, models):
    build(filled, models=models)
    expected = {t: contents(filled, t) for t in CONTRACTS}
    direct = Lake(filled.root.parent / "direct", CONTRACTS)
    direct.replace("raw.events", filled.read("raw.events"), at(1), at(8))
    for _ in range(2):
        build(direct, day(1), day(8), models=models, heavy_rows=1)
        assert {t: contents(direct, t) for t in CONTRACTS} == expected
    put(direct, at(7, 12), ["a"])
    put(filled, at(7, 12), ["a"])
    build(direct, models=models, heavy_rows=1)
    build(filled, models=models)
    assert {t: contents(direct, t) for t in CONTRACTS} == {t: contents(filled, t) for t in CONTRACTS}


def test_a_heavy_date_is_checked_and_leaves_no_file_when_refused(filled, models, tmp_path):
    path = tmp_path / "sql/mart/days.sql"
    good = path.read_text()
    path.write_text(good.replace("where date >= cast($start_at as date) and", "where"))
    with pytest.raises(BadInput, match=r"days\.sql: .*yields rows outside"):
        build(filled, models=small_models_without_rewriting(tmp_path / "sql"), heavy_rows=1)
    path.write_text(good.replace("count(*) as pods", "-1 as pods"))
    with pytest.raises(BadInput, match="pods below 0"):
        build(filled, models=small_models_without_rewriting(tmp_path / "sql"), heavy_rows=1)
    assert list((filled.root / "lake/mart/days").glob("**/*.parquet")) == []


def test_a_lengthened_interval_reaches_back_and_only_changed_parts_go_downstream(filled, models):
    build(filled, models=models)
    put(filled, at(7, 12), ["a"])
    report = build(filled, models=models)
    # the marked 7th and its neighbour first, then the dates that a's longer stay spans
    assert windows(report, "core.stays") == ((day(6), day(8)), (day(1), day(6)))
    # on the 1st only finished_at changed, which no reader of one date's part depends on
    assert windows(report, "mart.days") == ((day(2), day(8)),)
    assert filled.marks() == []
    fresh = Lake(filled.root.parent / "fresh", CONTRACTS)
    fresh.replace("raw.events", filled.read("raw.events"), at(1), at(8))
    build(fresh, models=models)
    for table in CONTRACTS:
        assert contents(fresh, table) == contents(filled, table)


def test_a_crash_after_the_interval_table_leaves_marks_for_the_rest(filled, models):
    build(filled, models=models)
    put(filled, at(7, 12), ["a"])
    broken = dict(models)
    sql = models["mart.days"].sql.replace("count(*)", "cast(error('stop') as bigint)")
    broken["mart.days"] = type(models["mart.days"])(**{**_parts(models["mart.days"]), "sql": sql})
    with pytest.raises(Exception, match="stop"):
        build(filled, models=broken)
    assert {m.date for m in filled.marks()} >= {day(n) for n in range(1, 8)}
    build(filled, models=models)
    assert filled.marks() == []
    assert [r["pods"] for r in contents(filled, "mart.days")] == [2, 1, 2, 2, 2, 2, 2]


def _parts(model):
    return {n: getattr(model, n) for n in ("name", "path", "sql", "header", "inputs", "parameters")}


def test_a_chosen_window_takes_in_marked_neighbours_and_clears_only_marks_it_covers(filled, models):
    report = build(filled, day(3), day(6), models=models)
    assert windows(report, "core.stays")[0] == (day(2), day(7))
    # the 2nd touches the 1st and the 6th the 7th, which were not asked for
    assert {m.date for m in filled.marks()} == {day(n) for n in (1, 2, 6, 7)}


def test_selected_models_clear_no_marks(filled, models):
    before = filled.marks()
    report = build(filled, select=["core.stays"], models=models)
    assert [m.name for m in report.models] == ["core.stays"]
    assert set(before) <= set(filled.marks())
    assert published(filled, "select count(*) from mart.days") == [(0,)]
    report = build(filled, select=["+mart.days"], models=models)
    assert [m.name for m in report.models] == ["core.stays", "mart.days"]
    report = build(filled, select=["core.stays+"], models=models)
    assert [m.name for m in report.models] == ["core.stays", "mart.days", "mart.totals"]


def test_running_models_publishes_nothing(filled, models):
    run_models(filled, ["core.stays"], day(1), day(8), "run", models=models)
    assert filled.published() is None
    assert len(contents(filled, "core.stays")) == 8


def test_an_empty_lake_builds_empty_tables(lake, models):
    report = build(lake, day(1), day(3), models=models)
    assert report.rows == 0
    assert published(lake, "select count(*) from mart.days") == [(0,)]
    assert build(lake, models=models).rows == 0


def test_rows_outside_the_piece_asked_for_are_refused(filled, models, tmp_path):
    path = tmp_path / "sql/mart/days.sql"
    path.write_text(path.read_text().replace("where date >= cast($start_at as date) and", "where"))
    changed = small_models_without_rewriting(tmp_path / "sql")
    with pytest.raises(BadInput, match=r"days\.sql: yields rows outside"):
        build(filled, day(1), day(8), models=changed, chunk_days=2)


def small_models_without_rewriting(directory):
    from warehouse.models import load_models

    return load_models(directory)


def test_a_model_that_does_not_fit_names_its_file(filled, models, tmp_path):
    path = tmp_path / "sql/mart/days.sql"
    path.write_text(path.read_text().replace("count(*) as pods", "count(*) as pod_count"))
    with pytest.raises(BadInput, match=r"days\.sql.*columns missing: pods; columns not in the contract: pod_count"):
        build(filled, models=small_models_without_rewriting(tmp_path / "sql"))
    path.write_text(path.read_text().replace("count(*)", "nonsense"))
    with pytest.raises(BadInput, match=r"days\.sql.*nonsense"):
        build(filled, models=small_models_without_rewriting(tmp_path / "sql"))
    del models["mart.totals"]
    assert small_models(tmp_path / "sql").keys() > models.keys()


def test_a_model_without_contract_is_named(filled, models):
    lake = Lake(filled.root, {n: t for n, t in CONTRACTS.items() if t is not DAYS})
    with pytest.raises(BadInput, match=r"no contract for mart\.days"):
        build(lake, models=models)


def test_due_dates():
    known = frozenset(day(n) for n in range(1, 11))
    marks = [Mark(day(5), "late", "t", 0.0)]
    assert due_dates(known, marks, None, None) == {day(n) for n in (4, 5, 6, 9, 10)}
    assert due_dates(known, [], None, None) == {day(9), day(10)}
    assert due_dates(known, marks, day(2), day(4)) == {day(2), day(3)}
    assert due_dates(known, marks, day(6), day(7)) == {day(5), day(6)}
    assert due_dates(known, marks, day(9), None) == {day(9), day(10)}
    assert due_dates(known, marks, None, day(3)) == {day(1), day(2)}
    assert due_dates(frozenset(), [], None, None) == set()
    outside = [Mark(day(1) - timedelta(days=20), "cleared", "t", 0.0)]
    assert due_dates(known, outside, None, None) == {outside[0].date, day(9), day(10)}
    with pytest.raises(BadInput):
        due_dates(known, [], day(3), day(3))
