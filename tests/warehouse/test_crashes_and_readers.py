"""A writer killed anywhere leaves a lake that a rerun completes; readers never fail nor see half a build."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
from small_lake import CONTRACTS, contents, small_models

from warehouse.engine import connect
from warehouse.lake import Lake

pytestmark = pytest.mark.integration

WORKER = Path(__file__).with_name("lake_worker.py")


def start(project_root: Path, *arguments: object, timezone: str = "UTC") -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": str(project_root), "TZ": timezone}
    return subprocess.Popen(
        [sys.executable, str(WORKER), *map(str, arguments)], env=environment, stdout=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen) -> None:
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_killed_at_random_moments_and_rerun(tmp_path, project_root):
    small_models(tmp_path / "sql")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    finish(start(project_root, "rebuild", whole, tmp_path / "sql"))
    random_moment = random.Random(7)
    for kill in range(6):
        process = start(project_root, "rebuild", broken, tmp_path / "sql", 50)
        if kill:
            process.stdout.readline()
            time.sleep(random_moment.uniform(0, 0.6))
        else:
            # the first kills fall into the making of tables
            time.sleep(random_moment.uniform(0.5, 1.2))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        lake = Lake(broken, CONTRACTS)
        if lake.published():
            with connect(broken, contracts=CONTRACTS) as reader:
                assert reader.execute("select sum(pods) from mart.days").fetchall() == [(10,)]
    finish(start(project_root, "rebuild", broken, tmp_path / "sql"))
    for table in CONTRACTS:
        assert contents(Lake(broken, CONTRACTS), table) == contents(Lake(whole, CONTRACTS), table)
    assert Lake(broken, CONTRACTS).marks() == []


def test_readers_beside_builds_see_one_build_each(tmp_path, project_root):
    small_models(tmp_path / "sql")
    root = tmp_path / "data"
    writer = start(project_root, "flip", root, tmp_path / "sql", 12)
    assert writer.stdout.readline() == "built\n"
    query = """
        select (select max(pods) from mart.days), (select count(*) from core.stays),
            (select count(*) from mart.totals), (select count(*) / 2 from raw.events)
    """
    seen, reads = set(), 0
    while writer.poll() is None:
        with connect(root, contracts=CONTRACTS) as reader:
            (row,) = reader.execute(query).fetchall()
        assert len(set(row)) == 1, row
        with duckdb.connect(str(root / "strandline.duckdb"), read_only=True) as reader:
            (row,) = reader.execute(query).fetchall()
        assert len(set(row)) == 1, row
        seen.add(row[0])
        reads += 1
    finish(writer)
    assert reads >= 10
    assert len(seen) >= 3


def test_the_host_time_zone_makes_no_difference(tmp_path, project_root):
    small_models(tmp_path / "sql")
    for zone in ("UTC", "Asia/Kolkata"):
        finish(start(project_root, "rebuild", tmp_path / zone.replace("/", "_"), tmp_path / "sql", timezone=zone))
    expected = {t: contents(Lake(tmp_path / "UTC", CONTRACTS), t) for t in CONTRACTS}
    assert {t: contents(Lake(tmp_path / "Asia_Kolkata", CONTRACTS), t) for t in CONTRACTS} == expected


def test_two_writers_take_turns(tmp_path, project_root):
    small_models(tmp_path / "sql")
    writers = [start(project_root, "rebuild", tmp_path / "both", tmp_path / "sql", 3) for _ in range(2)]
    for writer in writers:
        finish(writer)
    finish(start(project_root, "rebuild", tmp_path / "one", tmp_path / "sql"))
    for table in CONTRACTS:
        assert contents(Lake(tmp_path / "both", CONTRACTS), table) == contents(Lake(tmp_path / "one", CONTRACTS), table)
