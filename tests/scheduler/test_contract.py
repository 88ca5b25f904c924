"""The eviction contract: the document shows the table, and what is lost follows from a checkpoint interval."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_world as w

from scheduler import contract, contract_page
from scheduler.model import HOUR_US, SECOND_US

PAGE = Path(__file__).parents[2] / "docs/scheduler/eviction-contract.md"
MINUTE_US = 60 * SECOND_US


@pytest.mark.parametrize("part", ["rules", "losses"])
def test_the_document_shows_what_the_code_does(part):
    assert getattr(contract_page, part)() in PAGE.read_text()


def test_every_class_has_a_row_for_every_kind():
    for name in contract.CLASSES:
        for kind in ("preempt", "reclaim", "loss"):
            assert contract.rule(w.job("x", priority_class=name), kind).victim in (name, "any")


@pytest.mark.parametrize(
    ("name", "more", "expected_us"),
    [
        ("normal", {"checkpoint_us": 30 * MINUTE_US}, 30 * MINUTE_US),
        ("normal", {"checkpoint_us": 30 * MINUTE_US, "save_us": 100 * SECOND_US}, 2 * MINUTE_US),
        ("low", {"checkpoint_us": 30 * MINUTE_US, "save_us": 100 * SECOND_US}, 30 * MINUTE_US),
        ("normal", {}, 12 * HOUR_US + 3 * MINUTE_US),
        ("high", {}, 12 * HOUR_US + 10 * MINUTE_US),
        ("critical", {}, 0),
    ],
)
def test_most_that_a_twelve_hour_run_loses(name, more, expected_us):
    job = w.job("x", priority_class=name, **more)
    assert contract.most_lost_us(job, "preempt") == expected_us


@pytest.mark.parametrize("save_us", [None, 20 * SECOND_US])
@pytest.mark.parametrize("name", ["low", "normal", "high"])
def test_no_moment_of_the_notice_costs_more_than_the_most(name, save_us):
    job = w.job("x", priority_class=name, checkpoint_us=30 * MINUTE_US, save_us=save_us)
    lost = [contract.lost_us(job, "reclaim", 12 * HOUR_US + s * SECOND_US) for s in range(0, 3600, 7)]
    most = contract.most_lost_us(job, "reclaim")
    assert max(lost) <= most
    assert max(lost) >= most - 7 * SECOND_US


def test_a_class_is_found_by_name_else_by_priority():
    found = [contract.class_of(w.job("x", priority_class="mine", priority=p)) for p in (-1, 0, 99, 100)]
    assert found == ["low", "normal", "normal", "high"]
    assert contract.class_of(w.job("x", is_critical=True)) == "critical"
    assert contract.class_of(w.job("x", priority_class="low", priority=500)) == "low"


def test_the_lower_never_evicts_the_higher():
    jobs = [w.job(c, priority_class=c, priority=p, is_critical=c == "critical")
            for c, p in zip(contract.CLASSES, (-10, 0, 100, 1000), strict=True)]  # fmt: skip
    for i, low in enumerate(jobs):
        for high in jobs[i:]:
            assert not contract.may_evict(low, high, "preempt")
    assert not any(contract.may_evict(by, jobs[-1], k) for by in jobs for k in ("preempt", "reclaim"))
