"""What the service logs is what the tables say: evictions, losses, cancels and restarts of a real queue over the fake
world, read from its log while it has it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from queue_service import queues, submit, world

from assets.computed import load_all_models
from assets.queue_events import TABLE, load_queue_events
from assets.sql_checks import load_checks, run_check
from scheduler.placement.bestfit import place
from scheduler.policy import POLICIES
from scheduler.service.core import QueueService
from scheduler.service.estimating import Inline
from scheduler.service.log import EventLog
from scheduler.service.worlds import FakeWorld
from sources.queuelog.rows import KINDS
from warehouse import runner
from warehouse.lake import Lake
from warehouse.models import SQL_DIRECTORY

TABLES = ("core.job_spells", "core.job_starts", "mart.queue_daily", "mart.slo_daily")
CHECKS = (
    "job_spells_apart", "starts_were_submitted", "running_is_starts_minus_ends", "queue_days_in_full",
    "slo_days_add_up",
)  # fmt: skip


def opened(folder: Path, fleet: FakeWorld) -> QueueService:
    log = EventLog(folder / "queue.db")
    return QueueService(
        log, fleet, POLICIES["strandline"], queues(a=2, b=2), placer=place, runner=Inline()
    )  # fmt: skip


def ticks(queue: QueueService, fleet: FakeWorld, *seconds: float) -> None:
    for s in seconds:
        fleet.advance(s)
        assert queue.tick()


def tables(lake: Lake, log: Path) -> dict[str, list[dict[str, Any]]]:
    report = load_queue_events(lake, [log], "c")
    assert report.refused == []
    runner.build(lake, models={n: m for n, m in load_all_models().items() if n in TABLES})
    return {n: lake.read(n).to_pylist() for n in (TABLE, *TABLES)}


def broken(lake: Lake) -> dict[str, int]:
    days = lake.dates("mart.queue_daily")
    checks = load_checks(SQL_DIRECTORY / "check")
    con = duckdb.connect()
    for name in ("raw.settings", TABLE, *TABLES):
        con.execute(f"create schema if not exists {name.split('.')[0]}")
        con.execute(f"create table {name} as {lake.relation(name)}")
    found = {name: run_check(con, checks[name], days[0], date(2100, 1, 1)) for name in CHECKS}
    return {name: f.rows for name, f in found.items() if f.rows}


def test_an_eviction_in_the_tables(tmp_path: Path) -> None:
    fleet, lake = world(4), Lake(tmp_path / "lake")
    queue = opened(tmp_path, fleet)
    submit(queue, "borrower", "a", gpus=4, run_s=None)
    ticks(queue, fleet, 0, 2 * 3600)
    submit(queue, "owner", "b", gpus=2, run_s=None)
    ticks(queue, fleet, 0, 60, 120, 0, 0)
    found = tables(lake, tmp_path / "queue.db")
    killed = [r for r in found[TABLE] if r["event_kind"] == "killed"]
    # it never saved: two hours and three minutes of four GPUs
    assert [(r["lost_gpu_seconds"], r["will_return"]) for r in killed] == [(Decimal(4 * (7200 + 180)), True)]
    rows = [r for r in found["mart.queue_daily"] if (r["queue"], r["size_class"]) == ("a", "2-7")]
    assert [(r["evictions"], r["lost_gpu_hours"]) for r in rows if r["evictions"]] == [(1, Decimal("8.2"))]
    assert broken(lake) == {}


@pytest.mark.parametrize("seed", range(2))
def test_a_busy_queue_with_losses_and_restarts_adds_up(tmp_path: Path, seed: int) -> None:
    fleet, lake = world(4, 4), Lake(tmp_path / "lake")
    queue = opened(tmp_path, fleet)
    for i in range(30):
        team = "ab"[(i + seed) % 2]
        least = 1 if i % 5 == 0 else None
        submit(queue, f"j{i}", team, gpus=1 + i % 3, pods=1 + i % 2, run_s=200 + 40 * i, least=least)
    submit(queue, "huge", gpus=8, pods=2)
    ticks(queue, fleet, 0, 100, 100)
    queue.cancel("j29", "a")
    queue.cancel(next(iter(queue.records.running)), "a")
    fleet.down = {"n0"}
    ticks(queue, fleet, 30, 30, 40)
    fleet.down = set()
    fleet.refuses = {"n1"}
    ticks(queue, fleet, 10, 20)
    fleet.refuses = set()
    half = tables(lake, tmp_path / "queue.db")
    queue.log.close()
    queue = opened(tmp_path, fleet)
    ticks(queue, fleet, *[200] * 60)
    found = tables(lake, tmp_path / "queue.db")
    queue.log.close()
    assert len(found[TABLE]) > len(half[TABLE]) > 100
    kinds = {r["event_kind"] for r in found[TABLE]}
    assert {"impossible", "cancelled", "resized", "patience_over", "resubmitted", "estimated", "waiting"} <= kinds
    assert kinds <= set(KINDS)
    assert broken(lake) == {}
    sums = {c: sum(r[c] for r in found["mart.queue_daily"]) for c in ("ended_jobs", "impossible_jobs", "losses")}
    states = [e.life.state for e in queue.records.entries.values()]
    assert sums["ended_jobs"] == states.count("succeeded") > 10
    assert sums["impossible_jobs"] == states.count("impossible") >= 1
    assert sums["losses"] >= 1
    assert [r["lost_gpu_hours"] for r in found["mart.queue_daily"]].count(None) == 0
    told = {r["job_id"] for r in found["core.job_starts"] if r["p50_at"] is not None}
    assert told == {e.job.job_id for e in queue.records.entries.values() if e.told == "time" and e.started_us}
    whole = Lake(tmp_path / "whole")
    again = tables(whole, tmp_path / "queue.db")
    assert {n: sorted(map(str, rows)) for n, rows in again.items()} == {
        n: sorted(map(str, rows)) for n, rows in found.items()
    }
