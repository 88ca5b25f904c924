"""The one order criterion by criterion, and the shares that it compares."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_world import OURS, ids, job, nodes, queues, scheduler, started

from scheduler import order
from scheduler.model import CPU, GPU, HOUR_US, MEMORY, SECOND_US, Queue
from scheduler.pending import Waiting
from scheduler.usage import LAST, PPM, Usage

GPUS, CPUS, MIB = (GPU, "A100"), (CPU, "A100"), (MEMORY, "A100")
LIMIT_S = (OURS.age_limit_us or 0) // SECOND_US
NOW_S = 2 * LIMIT_S


def usage(half_life_us: int | None = None, **weights: int) -> Usage:
    of = {name: Queue(name, weight) for name, weight in weights.items()}
    return Usage(of, {GPUS: 100_000, CPUS: 1_000_000, (GPU, "L4"): 20_000}, half_life_us)


def waiting(name: str, at_s: int = NOW_S, run_s: int = 100, queue: str = "a", **more: Any) -> Waiting:
    return Waiting(job(name, queue, at_s=at_s, **more), run_s * SECOND_US)


def in_order(ledger: Usage, *items: Waiting, policy: Any = OURS) -> list[str]:
    return [w.job.job_id for w in sorted(items, key=lambda w: order.key(w, ledger, policy, NOW_S * SECOND_US))]


# One job that comes before another by just one criterion, and behind it by all that count less.
STEPS = [
    (waiting("z", is_critical=True), waiting("a", NOW_S - LIMIT_S, 1, priority=9)),
    (waiting("z", NOW_S - LIMIT_S), waiting("a", NOW_S - LIMIT_S + 1, 1, priority=9)),
    (waiting("z", priority=1, queue="b"), waiting("a", NOW_S - 100, 1)),
    (waiting("z"), waiting("a", NOW_S - 100, 1, queue="b")),
    (waiting("z", run_s=99), waiting("a", NOW_S - 100)),
    (waiting("z", NOW_S - 1), waiting("a")),
    (waiting("a"), waiting("z")),
]


@pytest.mark.parametrize(("before", "behind"), STEPS)
def test_each_criterion_outweighs_all_behind_it(before: Waiting, behind: Waiting) -> None:
    ledger = usage(a=1, b=1)
    ledger.add("b", {GPUS: 60_000}, 0)
    assert in_order(ledger, behind, before) == [before.job.job_id, behind.job.job_id]


def test_among_aged_jobs_only_submission_counts() -> None:
    old = waiting("z", 10, 900, priority=0), waiting("a", 20, 1, priority=100)
    assert in_order(usage(a=1), *old) == ["z", "a"]
    assert in_order(usage(a=1), *old, policy=OURS.without(age_limit_us=None)) == ["a", "z"]


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2), st.integers(0, NOW_S), st.integers(1, 3)), max_size=8))
def test_the_order_is_total_and_one_of_integers(drawn: list[tuple[bool, int, int, int]]) -> None:
    items = [
        waiting(f"j{i}", at_s, run_s, is_critical=critical, priority=priority)
        for i, (critical, priority, at_s, run_s) in enumerate(drawn)
    ]
    keys = [order.key(w, usage(a=1), OURS, NOW_S * SECOND_US) for w in items]
    assert len(set(keys)) == len(keys)
    assert all(type(part) is int for key in keys for part in key[:-1])


def test_queues_below_their_part_are_equals() -> None:
    ledger = usage(a=1, b=1)
    ledger.add("b", {GPUS: 49_000}, 0)
    jobs = waiting("long", run_s=200), waiting("short", queue="b")
    assert in_order(ledger, *jobs) == ["short", "long"]
    ledger.add("b", {GPUS: 1_000}, 0)
    assert in_order(ledger, *jobs) == ["long", "short"]


def test_the_share_is_the_largest_over_resources_and_flavors_by_weight() -> None:
    ledger = usage(a=3, b=1)
    ledger.add("a", {GPUS: 30_000, CPUS: 100_000}, 0)
    assert ledger.share_ppm("a", 0) == 400_000
    ledger.add("a", {CPUS: 650_000}, 0)
    assert ledger.share_ppm("a", 0) == PPM
    ledger.add("a", {(GPU, "L4"): 18_000}, 0)
    assert ledger.share_ppm("a", 0) == 1_200_000
    # what the fleet does not bound counts for nothing
    ledger.add("b", {MIB: 1 << 30}, 0)
    assert ledger.share_ppm("b", 0) == 0


def test_weight_0_comes_last_by_what_it_holds() -> None:
    ledger = usage(a=1, none=0, zero=0)
    ledger.add("a", {GPUS: 99_000}, 0)
    ledger.add("zero", {GPUS: 1_000}, 0)
    assert ledger.share_ppm("a", 0) < LAST <= ledger.share_ppm("none", 0) < ledger.share_ppm("zero", 0)
    assert usage(x=0).share_ppm("x", 0) == LAST
    queue = scheduler(nodes(1), [replace(q, weight=int(q.name == "a")) for q in queues(a=None, b=None)])
    assert ids(started(queue, job("x", "b"), job("y", "a", at_s=0)).starts) == ["y"]


def test_decayed_usage_is_a_mean_that_halves() -> None:
    ledger = usage(half_life_us=HOUR_US, a=1, b=1)
    ledger.add("a", {GPUS: 100_000}, 0)
    # held for one half-life: half of the mean, over a part of a half
    assert ledger.share_ppm("a", HOUR_US) == pytest.approx(PPM, abs=1)
    assert ledger.share_ppm("a", 50 * HOUR_US) == pytest.approx(2 * PPM, abs=2)
    ledger.remove("a", {GPUS: 100_000}, 50 * HOUR_US)
    assert ledger.share_ppm("a", 51 * HOUR_US) == pytest.approx(PPM, abs=2)
    assert ledger.is_empty()


@given(st.lists(st.integers(1, 10 * HOUR_US), max_size=6))
def test_how_often_one_looks_changes_nothing(looks: list[int]) -> None:
    seen, plain = usage(half_life_us=HOUR_US, a=1), usage(half_life_us=HOUR_US, a=1)
    for ledger in (seen, plain):
        ledger.add("a", {GPUS: 70_000}, 0)
    for at in itertools.accumulate(looks):
        seen.share_ppm("a", at)
    end = sum(looks) + 1
    for ledger in (seen, plain):
        ledger.remove("a", {GPUS: 70_000}, end)
    assert seen.share_ppm("a", end + HOUR_US) == plain.share_ppm("a", end + HOUR_US)


def test_nobody_holds_less_than_nothing() -> None:
    ledger = usage(a=1)
    ledger.add("a", {GPUS: 1_000}, 0)
    with pytest.raises(ValueError, match="queue a would hold -1000"):
        ledger.remove("a", {GPUS: 2_000}, 1)
