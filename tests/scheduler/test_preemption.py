"""Preemption within a queue: fewest GPU-hours lost, whole sets only, and the freed room is the preemptor's."""

from __future__ import annotations

from itertools import combinations

import pytest
import small_world as w
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler import contract
from scheduler.model import HOUR_US, MILLI, SECOND_US, Role, Shape
from scheduler.policy import Policy

NOW = 2 * 3600
A = w.queues(a=None)


def test_the_freed_room_cannot_be_stolen_while_victims_leave():
    queue = w.scheduler(w.nodes(8), A)
    w.started(queue, w.job("low", gpus=4, priority=0), w.job("low2", gpus=4, priority=0))
    done = w.started(queue, w.job("high", gpus=8, priority=10, at_s=NOW), now_s=NOW)
    assert w.ids(done.evictions) == ["low", "low2"]
    assert [r.reason for r in done.reserved] == ["preemptor"]
    queue.ended("low", (NOW + 30) * SECOND_US, will_return=True)
    thief = w.started(queue, w.job("thief", gpus=1, priority=99, at_s=NOW + 30), now_s=NOW + 30, run_h=0)
    assert thief.starts == []
    queue.ended("low2", (NOW + 60) * SECOND_US, will_return=True)
    later = w.started(queue, w.job("thief2", gpus=1, is_critical=True, at_s=NOW + 60), now_s=NOW + 60)
    assert w.ids(later.starts) == ["high"]


def test_shares_of_a_device_and_host_resources_are_held_too():
    queue = w.scheduler(w.nodes(1), A)
    queue.cluster.cpu[0] = 10
    w.started(queue, w.job("x", milli=400, priority=0, cpu_milli=4), w.job("y", milli=400, priority=0, cpu_milli=4))
    done = w.started(queue, w.job("high", milli=900, priority=5, cpu_milli=9), now_s=NOW)
    assert w.ids(done.evictions) == ["x", "y"]
    queue.ended("x", (NOW + 9) * SECOND_US, will_return=True)
    assert w.started(queue, w.job("thief", milli=100, cpu_milli=1), now_s=NOW + 9).starts == []
    assert w.started(queue, w.job("host", milli=0, gpus=0, cpu_milli=3), now_s=NOW + 9).starts == []
    queue.ended("y", (NOW + 10) * SECOND_US, will_return=True)
    assert w.ids(queue.cycle((NOW + 10) * SECOND_US).starts)[0] == "high"


def test_ten_victims_are_not_evicted_where_one_loses_less():
    queue = w.scheduler(w.nodes(10, 10), A)
    w.started(queue, w.job("big", gpus=10, priority=0, checkpoint_us=HOUR_US))
    w.started(queue, *[w.job(f"s{i}", priority=0, checkpoint_us=100 * HOUR_US) for i in range(10)])
    done = w.started(queue, w.job("high", gpus=10, priority=1), now_s=NOW + 60)
    assert w.ids(done.evictions) == ["big"]


def test_ties_are_broken_by_id():
    for order in (("x", "y"), ("y", "x")):
        queue = w.scheduler(w.nodes(1, 1), A)
        w.started(queue, *[w.job(n, priority=0) for n in order])
        assert w.ids(w.started(queue, w.job("high", priority=1), now_s=NOW).evictions) == ["x"]


def test_nothing_is_evicted_where_the_preemptor_cannot_start():
    queue = w.scheduler(w.nodes(8, 8), A)
    w.started(queue, w.job("fixed", gpus=8, is_preemptible=False), w.job("low", gpus=8))
    done = w.started(queue, w.job("high", pods=2, gpus=8, priority=9), now_s=NOW)
    assert not done.evictions and not queue.holds.by_id
    assert not list(queue.gangs.stopping())


def test_nothing_is_evicted_where_the_room_comes_as_soon_anyway():
    queue = w.scheduler(w.nodes(4), A)
    queue.submit(w.job("low", gpus=4), NOW * SECOND_US + 60 * SECOND_US)
    queue.cycle(0)
    done = w.started(queue, w.job("high", gpus=4, priority=9), now_s=NOW)
    assert not done.evictions and w.ids(done.reserved) == ["high"]


def test_two_preemptors_get_each_their_own_room():
    queue = w.scheduler(w.nodes(4, 4, 4), A)
    w.started(queue, *[w.job(f"low{i}", gpus=4) for i in range(3)])
    done = w.started(queue, w.job("h1", gpus=4, priority=5), w.job("h2", gpus=4, priority=5), now_s=NOW)
    assert len({e.job.job_id for e in done.evictions}) == 2
    assert sorted(e.for_job for e in done.evictions) == ["h1", "h2"]
    for e in done.evictions:
        queue.ended(e.job.job_id, e.kill_us, will_return=True)
    assert sorted(w.ids(queue.cycle(done.evictions[0].kill_us).starts)) == ["h1", "h2"]


def test_room_that_one_preemptor_leaves_over_serves_the_next():
    queue = w.scheduler(w.nodes(8, 8), A)
    w.started(queue, w.job("low1", gpus=8), w.job("low2", gpus=8))
    first = w.started(queue, w.job("h1", gpus=4, priority=5), now_s=NOW)
    second = w.started(queue, w.job("h2", gpus=4, priority=5), now_s=NOW + 1)
    assert len(first.evictions) == 1 and not second.evictions
    assert w.ids(second.reserved) == ["h2"]


def test_a_preemptor_that_is_cancelled_calls_its_evictions_off():
    queue = w.scheduler(w.nodes(4), A)
    w.started(queue, w.job("low", gpus=4))
    w.started(queue, w.job("high", gpus=4, priority=5), now_s=NOW)
    queue.withdraw("high")
    assert queue.cycle((NOW + 1) * SECOND_US).called_off == ["low"]
    assert queue.gangs["low"].stop is None
    queue.ended("low", (NOW + 2) * SECOND_US)
    assert queue.cluster.free_milli == 4 * MILLI and queue.usage.is_empty()


def test_no_victim_before_its_minimum_run_and_a_cycle_is_asked_for_then():
    queue = w.scheduler(w.nodes(4), A)
    w.started(queue, w.job("low", gpus=4))
    done = w.started(queue, w.job("high", gpus=4, priority=5), now_s=600)
    assert not done.evictions and done.wake_us == HOUR_US
    assert w.ids(queue.cycle(HOUR_US).evictions) == ["low"]


@pytest.mark.parametrize("victim", [{"is_critical": True}, {"is_preemptible": False}, {"priority": 5}, {"priority": 9}])
def test_who_is_never_evicted(victim):
    queue = w.scheduler(w.nodes(4), A)
    w.started(queue, w.job("there", gpus=4, **victim))
    assert not w.started(queue, w.job("high", gpus=4, priority=5), now_s=NOW).evictions


def test_policies_without_preemption_never_evict():
    queue = w.scheduler(w.nodes(4), A, w.OURS.without(with_preemption=False))
    w.started(queue, w.job("low", gpus=4))
    assert not w.started(queue, w.job("high", gpus=4, priority=5), now_s=NOW).evictions


def test_no_ping_pong_in_a_hundred_quiet_cycles():
    queue = w.scheduler(w.nodes(8, 8), w.queues(a=8, b=8))
    w.started(queue, *[w.job(f"a{i}", gpus=4, priority=i % 2) for i in range(6)])
    w.started(queue, *[w.job(f"b{i}", "b", gpus=4, priority=i % 3) for i in range(6)], now_s=NOW)
    evicted, now = [], NOW * SECOND_US
    for i in range(160):
        now += HOUR_US
        for gang in list(queue.gangs.stopping()):
            back = gang.job
            queue.ended(back.job_id, now, will_return=True)
            queue.submit(back, 100 * HOUR_US)
        evicted.append(len(queue.cycle(now).evictions))
        assert i < 60 or not evicted[-1]
    assert sum(evicted) <= 6


sizes = st.tuples(st.integers(1, 4), st.integers(1, 30), st.integers(0, 2))


@settings(max_examples=150, deadline=None)
@given(st.lists(sizes, min_size=1, max_size=7), st.integers(1, 4), st.integers(1, 2))
def test_the_set_that_loses_least_is_found(running, gpus, pods):
    """Against all sets of running gangs, judged by room alone, on nodes of four GPUs."""
    queue = w.scheduler(w.nodes(4, 4, 4), A, Policy("test", min_run_us=0))
    w.started(queue, *[w.job(f"j{i}", gpus=g, priority=p, checkpoint_us=c * 60 * SECOND_US)
                       for i, (g, c, p) in enumerate(running)])  # fmt: skip
    assume(not queue.pending.waiting)  # whose reservations would bind the preemptor
    victims = [g for g in queue.gangs if g.job.priority < 1]
    free = list(queue.cluster.whole)
    now = 5000 * SECOND_US

    def cost(gangs):
        lost = [contract.lost_us(g.job, "preempt", now) + contract.RESTART_US for g in gangs]
        return sum(n * g.job.gpu_milli for n, g in zip(lost, gangs, strict=True))

    def fits(gangs):
        room = list(free)
        for g in gangs:
            room[g.placement.pods[0].node] += g.job.gpu_milli // MILLI
        return sum(n // gpus for n in room) >= pods

    sets = [c for n in range(len(victims) + 1) for c in combinations(victims, n) if fits(c)]
    done = w.started(queue, w.job("high", pods=pods, gpus=gpus, priority=1), now_s=5000)
    chosen = [queue.gangs[e.job.job_id] for e in done.evictions]
    assert len({g.job.job_id for g in chosen}) == len(chosen)
    if not sets or "high" in queue.gangs:
        assert not chosen
    else:
        assert cost(chosen) == min(map(cost, sets))


def test_a_gang_of_roles_is_evicted_whole():
    queue = w.scheduler(w.nodes(4, 4), A)
    gang = w.job("gang")
    gang = type(gang)("gang", "a", "a", (Role("head", Shape(1000), 1), Role("worker", Shape(3000), 2)), 0)
    w.started(queue, gang)
    done = w.started(queue, w.job("high", gpus=4, priority=1), now_s=NOW)
    assert w.ids(done.evictions) == ["gang"] and done.evictions[0].keep is None
