"""Disruption budgets: PodDisruptionBudget's arithmetic in gangs, and evictions that keep it."""

from __future__ import annotations

import pytest
import small_world as w

from scheduler.budgets import Budget
from scheduler.model import HOUR_US, SECOND_US

NOW = 2 * 3600


@pytest.mark.parametrize(
    ("bound", "healthy", "expected", "allowed"),
    [
        ({"max_unavailable": 1}, 5, 5, 1),
        ({"max_unavailable": 1}, 4, 5, 0),
        ({"max_unavailable": 0}, 5, 5, 0),
        ({"max_unavailable": "30%"}, 7, 7, 3),  # rounded up, as Kubernetes does
        ({"min_available": 3}, 5, 5, 2),
        ({"min_available": 3}, 2, 5, 0),
        ({"min_available": "50%"}, 7, 7, 3),
        ({"min_available": "100%"}, 7, 7, 0),
    ],
)
def test_arithmetic(bound, healthy, expected, allowed):
    assert Budget("b", **bound).allowed(healthy, expected) == allowed


@pytest.mark.parametrize("bound", [{}, {"min_available": 1, "max_unavailable": 1}, {"min_available": "half"},
                                   {"max_unavailable": -1}])  # fmt: skip
def test_bounds_that_make_no_sense(bound):
    with pytest.raises(ValueError, match="budget b"):
        Budget("b", **bound)


def reclaimed(budget: Budget, gpus: int, **more):
    queue = w.scheduler(w.nodes(8), w.queues(a=4, b=4), w.OURS.without(budgets=(budget,)))
    w.started(queue, *[w.job(f"a{i}", **more) for i in range(8)])
    return queue, w.started(queue, w.job("b0", "b", gpus=gpus), now_s=NOW)


def test_a_set_over_budget_is_not_evicted_at_all():
    budget = Budget("a", team="a", max_unavailable=2)
    assert len(reclaimed(budget, 2)[1].evictions) == 2
    assert not reclaimed(budget, 3)[1].evictions


def test_labels_and_teams_choose_whom_a_budget_protects():
    service = {"labels": (("app", "eval"), ("tier", "x"))}
    assert not reclaimed(Budget("b", labels=(("app", "eval"),), min_available=8), 1, **service)[1].evictions
    assert reclaimed(Budget("b", labels=(("app", "other"),), min_available=8), 1, **service)[1].evictions
    assert reclaimed(Budget("b", team="b", max_unavailable=0), 1, **service)[1].evictions


def test_who_leaves_and_who_waits_after_eviction_counts_as_down_until_it_runs_again():
    queue, done = reclaimed(Budget("a", team="a", max_unavailable=1), 1)
    (victim,) = done.evictions
    assert not w.started(queue, w.job("b1", "b"), now_s=NOW + 10).evictions
    queue.ended(victim.job.job_id, victim.kill_us, will_return=True)
    queue.submit(victim.job, HOUR_US)
    assert not queue.cycle(victim.kill_us + 10 * SECOND_US).evictions
    queue.withdraw(victim.job.job_id)
    assert len(queue.cycle(victim.kill_us + 20 * SECOND_US).evictions) == 1


def test_another_victim_is_taken_where_a_budget_protects_the_cheapest():
    queue = w.scheduler(w.nodes(2), w.queues(a=None), w.OURS.without(budgets=(Budget("x", team="x", min_available=1),)))
    cheap = w.job("cheap", checkpoint_us=SECOND_US)
    w.started(queue, type(cheap)("cheap", "x", "a", cheap.roles, 0, checkpoint_us=SECOND_US), w.job("dear"))
    assert w.ids(w.started(queue, w.job("high", priority=1), now_s=NOW).evictions) == ["dear"]
