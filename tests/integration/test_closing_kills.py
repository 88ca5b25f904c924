"""Closings that are killed, that a build wrote over, or that run twice at once: one whole statement or none."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import focus_month as made
import pytest
from closing_march import APRIL, MARCH, build, check, closed, march_known, one

from assets.statements import COST, FOCUS, FOCUS_MART
from warehouse.lake import Lake
from warehouse.settling import settle

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return march_known(tmp_path_factory.mktemp("closing") / "data").root


@pytest.fixture
def lake(prepared: Path, tmp_path: Path) -> Lake:
    return Lake(shutil.copytree(prepared, tmp_path / "data"))


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


def test_two_closings_at_once_give_one_statement(lake: Lake) -> None:
    with ThreadPoolExecutor(2) as pool:
        reports = list(pool.map(lambda day: closed(lake, day=day), [5, 6]))
    assert sorted(r.is_new for r in reports) == [False, True]
    assert one(lake, f"select count(distinct statement_id) from {COST}") == 1
