"""The queue's tables over the hand-worked log of `queue_log.py`: spells, starts, days and service levels."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from money_rows import Money, at
from queue_log import estimated, hand_worked, started, submitted, waiting, write_log

from scheduler.service.log import Event
from sources.queuelog import read_log

D2, D3, D4 = date(2026, 6, 2), date(2026, 6, 3), date(2026, 6, 4)
CHECKS = (
    "job_spells_apart", "starts_were_submitted", "running_is_starts_minus_ends", "queue_days_in_full",
    "slo_days_add_up",
)  # fmt: skip
D = Decimal


def built(folder: Path, events: Sequence[Event], target: str | None = "3600.000000", end: date = D4) -> Money:
    """All four tables over these events."""
    money = Money()
    log = read_log(write_log(folder / "events.db", events))
    assert log.refused == []
    money.put("raw.scheduler_events", [{**r, "cluster": "c"} for r in log.rows])
    money.put("raw.settings", [{"setting": "queue_target_wait_s", "value": target}])
    for table in ("core.job_spells", "core.job_starts", "mart.queue_daily", "mart.slo_daily"):
        money.run(table, D2, end)
    return money


@pytest.fixture
def money(tmp_path: Path) -> Money:
    return built(tmp_path, hand_worked())


def rows(money: Money, table: str, day: date = D2) -> list[dict[str, Any]]:
    return [
        dict(zip([d[0] for d in money.con.description or ()], row, strict=True))
        for row in money.con.execute(f"select * from {table} where date = ? order by all", [day]).fetchall()
    ]


def of(money: Money, table: str, size_class: str, day: date = D2, queue: str = "a") -> dict[str, Any]:
    (row,) = [r for r in rows(money, table, day) if (r["queue"], r["size_class"]) == (queue, size_class)]
    return row


def test_spells_follow_a_job_through_its_day(money: Money) -> None:
    found = [
        (r["spell_state"], r["interval_start_at"], r["interval_end_at"], r["gpu_milli"], r["end_reason"])
        for r in rows(money, "core.job_spells")
        if r["job_id"] == "a2"
    ]
    day = "2026-06-02T"
    assert sorted(found, key=lambda r: r[1]) == [
        ("queued", at(day + "08:00"), at(day + "10:00"), 0, "intended"),
        ("running", at(day + "10:00"), at(day + "11:00"), 2000, "killed"),
        ("backoff", at(day + "11:00"), at(day + "11:01"), 0, "resubmitted"),
        ("queued", at(day + "11:01"), at(day + "12:00"), 0, "intended"),
        ("running", at(day + "12:00"), at("2026-06-03"), 2000, "open"),
    ]
    # it runs on, as far as is known at the newest event, and a job that started at once never waited
    (after,) = [r for r in rows(money, "core.job_spells", D3) if r["job_id"] == "a2"]
    assert (after["interval_start_at"], after["interval_end_at"]) == (
        at("2026-06-03"),
        at("2026-06-03T23:00:00.000001"),
    )
    assert [r["spell_state"] for r in rows(money, "core.job_spells") if r["job_id"] == "a1"] == ["running"]


def test_starts_know_the_wait_before_them_and_what_was_told(money: Money) -> None:
    starts = {(r["job_id"], r["attempt"]): r for r in rows(money, "core.job_starts")}
    assert {k: r["waited_us"] // 60_000_000 for k, r in starts.items()} == {
        ("a1", 1): 0, ("a2", 1): 120, ("a2", 2): 180, ("a5", 1): 30,
    }  # fmt: skip
    assert starts["a2", 1]["p90_at"] == at("2026-06-02T11:00")
    assert (starts["a2", 2]["p90_at"], starts["a2", 2]["is_first"]) == (None, False)
    assert starts["a5", 1]["no_estimate_reason"] == "it started before any estimate"
    assert (starts["a1", 1]["was_passed_over"], starts["a1", 1]["no_estimate_reason"]) == (False, None)


def test_the_day_of_small_jobs(money: Money) -> None:
    row = of(money, "mart.queue_daily", "1")
    assert (row["submitted_jobs"], row["starts"], row["first_starts"], row["ended_jobs"]) == (2, 2, 2, 1)
    assert (row["failed_jobs"], row["losses"], row["evictions"], row["lost_gpu_hours"]) == (1, 1, 0, D("0.25"))
    assert (row["waiting_job_hours"], row["run_gpu_hours"]) == (D("0.5"), D("2.25"))
    assert (row["mean_wait_s"], row["p50_wait_s"], row["p95_wait_s"]) == (900, 0, 1800)
    assert (row["depth_max"], row["pending_at_end"], row["running_at_end"]) == (1, 0, 0)


def test_the_day_of_jobs_with_two_gpus(money: Money) -> None:
    row = of(money, "mart.queue_daily", "2-7")
    assert (row["submitted_jobs"], row["starts"], row["first_starts"], row["cancelled_jobs"]) == (2, 2, 1, 1)
    assert (row["evictions"], row["requeues"], row["losses"], row["lost_gpu_hours"]) == (1, 1, 0, D(1))
    # a2 waits 2 h and 1 h, a4 half an hour; a2 runs 1 h and 12 h
    assert (row["waiting_job_hours"], row["waiting_gpu_hours"], row["run_gpu_hours"]) == (D("3.5"), D(7), D(26))
    # its last start of the day has all its waits behind it, its first one only that since the submission
    assert (row["mean_wait_s"], row["p50_wait_s"], row["mean_first_wait_s"]) == (3 * 3600, 3 * 3600, 2 * 3600)
    assert (row["depth_max"], row["pending_at_end"], row["running_at_end"]) == (2, 0, 1)


def test_a_wait_over_midnight_counts_on_both_days(money: Money) -> None:
    first, second = of(money, "mart.queue_daily", "8+"), of(money, "mart.queue_daily", "8+", D3)
    assert (first["waiting_job_hours"], first["pending_at_end"], first["starts"]) == (D(15), 1, 0)
    assert (first["mean_wait_s"], first["p95_first_wait_s"]) == (None, None)
    assert (second["waiting_job_hours"], second["submitted_jobs"], second["starts"]) == (D(22), 0, 1)
    assert (second["mean_wait_s"], second["run_gpu_hours"], second["running_at_end"]) == (37 * 3600, D(8), 1)
    assert of(money, "mart.queue_daily", "8+", queue="b")["impossible_jobs"] == 1


def test_estimates_are_scored_by_the_first_that_was_told(money: Money) -> None:
    row = of(money, "mart.slo_daily", "2-7")
    assert (row["first_starts"], row["waited_jobs"], row["answered_jobs"], row["unanswered_jobs"]) == (1, 1, 1, 0)
    # told as of 08:01: P50 in 59 min, P90 in 179, bound in 239; it took 119
    assert (row["p50_covers_ratio"], row["p90_covers_ratio"]) == (0, 1)
    assert row["p50_pinball_s"] == pytest.approx(0.5 * 60 * 60)
    assert row["p90_pinball_s"] == row["bounded_p90_pinball_s"] == pytest.approx(0.1 * 60 * 60)
    assert (row["bound_jobs"], row["bound_p90_pinball_s"]) == (1, pytest.approx(0.1 * 120 * 60))
    assert (row["target_wait_s"], row["within_target_jobs"], row["within_target_ratio"]) == (3600, 0, 0)
    assert (row["mean_bind_s"], row["p95_bind_s"]) == (3, 4)


def test_without_an_estimate_there_is_no_score(money: Money) -> None:
    row = of(money, "mart.slo_daily", "1")
    assert (row["first_starts"], row["waited_jobs"], row["answered_jobs"]) == (2, 1, 0)
    assert row["unanswered_reasons"] == "it started before any estimate: 1"
    assert (row["answered_ratio"], row["p50_covers_ratio"], row["p90_pinball_s"]) == (0, None, None)
    assert row["within_target_ratio"] == 1
    later = of(money, "mart.slo_daily", "8+", D3)
    assert later["unanswered_reasons"] == "nothing like it has waited yet: 1"
    assert (later["mean_bind_s"], later["bound_p90_pinball_s"]) == (None, None)


def test_a_job_that_waits_beyond_its_p90_is_overdue_until_it_starts(tmp_path: Path) -> None:
    events = [
        submitted("j", "08:00:00", 1), waiting("j", "08:00:01"), estimated("j", "08:01:00", "09:00:00", "11:00:00"),
        submitted("k", "08:02:00", 1), estimated("k", "08:03:00", "23:00:00", "2026-06-03T12:00:00"),
        *started("j", "2026-06-03T10:00:00", 1), *started("k", "2026-06-04T01:00:00", 1),
    ]  # fmt: skip
    money = built(tmp_path, events)
    first, second = of(money, "mart.slo_daily", "1"), of(money, "mart.slo_daily", "1", D3)
    assert (first["overdue_jobs"], first["first_starts"], first["p90_covers_ratio"]) == (1, 0, None)
    assert (second["overdue_jobs"], second["first_starts"], second["p90_covers_ratio"]) == (1, 1, 0)
    assert {name: money.check(name, D2, D4) for name in CHECKS} == {name: [] for name in CHECKS}


def test_without_a_target_nothing_is_within_it(tmp_path: Path) -> None:
    row = of(built(tmp_path, hand_worked(), None), "mart.slo_daily", "1")
    assert (row["target_wait_s"], row["within_target_jobs"], row["within_target_ratio"]) == (None, None, None)


def test_days_built_apart_are_the_days_built_together(money: Money, tmp_path: Path) -> None:
    for table in ("core.job_spells", "core.job_starts", "mart.queue_daily", "mart.slo_daily"):
        together = [rows(money, table, d) for d in (D2, D3)]
        apart = [money.run(table, D2, D3), money.run(table, D3, D4)]
        assert [sorted(map(str, t)) for t in together] == [sorted(map(str, a)) for a in apart]
        money.put(table, [*apart[0], *apart[1]])


def test_the_checks_hold(money: Money) -> None:
    assert {name: money.check(name, D2, D4) for name in CHECKS} == {name: [] for name in CHECKS}


@pytest.mark.parametrize(
    ("table", "change", "check"),
    [
        ("mart.queue_daily", "set running_at_end = running_at_end + 1", "running_is_starts_minus_ends"),
        ("mart.queue_daily", "set starts = starts + 1 where size_class = '1'", "queue_days_in_full"),
        ("core.job_spells", "set interval_end_at = interval_end_at + interval 1 minute", "job_spells_apart"),
        ("core.job_starts", "set submitted_at = null where job_id = 'a1'", "starts_were_submitted"),
        ("mart.slo_daily", "set answered_jobs = answered_jobs + 1", "slo_days_add_up"),
    ],
)
def test_each_check_finds_what_it_is_for(money: Money, table: str, change: str, check: str) -> None:
    money.con.execute(f"update {table} {change}")
    assert money.check(check, D2, D4)


def test_a_log_with_a_hole_is_not_held_against_the_day(money: Money) -> None:
    money.con.execute(
        "delete from raw.scheduler_events where event_kind = 'intended' and job_id = 'a2' and attempt = 1"
    )
    assert money.check("running_is_starts_minus_ends", D2, D4) == []
