"""Random fleets with everything at once: quota, classes, elastic gangs, shares, budgets, evictions and lost nodes.

Books are kept from the record alone: spans say who held what where. And each mechanism taken out is noticed.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest
import small_world as w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduler.budgets import Budget
from scheduler.cycle import Scheduler
from scheduler.holds import Hold, Holds
from scheduler.model import HOUR_US, MILLI, SECOND_US
from scheduler.replay.engine import NodeFault, Outcome

SIZES = (4, 4, 2)
QUOTA = {"a": 4, "b": 4, "c": 2}

arrivals = st.lists(
    st.fixed_dictionaries({
        "queue": st.sampled_from("abc"), "pods": st.integers(1, 4), "fewer": st.integers(0, 2),
        "milli": st.sampled_from([300, 500, 1000, 1000, 2000, 4000]), "at": st.integers(0, 30), "h": st.integers(1, 9),
        "priority": st.integers(0, 2), "is_preemptible": st.sampled_from([True, True, True, False]),
        "checkpoint_us": st.sampled_from([None, 600 * SECOND_US]), "save_us": st.sampled_from([None, 20 * SECOND_US]),
    }), min_size=1, max_size=12,
)  # fmt: skip
faults = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 300), st.integers(0, 30)), max_size=3)


def world(arrivals):
    jobs = []
    for i, a in enumerate(arrivals):
        more = {k: a[k] for k in ("milli", "priority", "is_preemptible", "checkpoint_us", "save_us")}
        least = max(a["pods"] - a["fewer"], 1)
        job = w.job(f"j{i:02}", a["queue"], a["pods"], at_s=a["at"] * 600, least=least, backoff_limit=3, **more)
        jobs.append((job, a["h"] / 3))
    return jobs


def one_at_a_time(given_faults):
    """Faults of a node do not overlap."""
    free_from: dict[int, int] = defaultdict(int)
    found = []
    for node, at, minutes in sorted(given_faults, key=lambda f: f[1]):
        begin = max(at * 120 + 7, free_from[node])
        free_from[node] = begin + minutes * 60 + 1
        found.append(NodeFault(f"n{node}", begin * SECOND_US, free_from[node] * SECOND_US))
    return found


def held_over_time(out: Outcome) -> bool:
    """Whether no node ever gives more than it has."""
    changes = []
    for s in out.spans:
        for node, milli in s.nodes:
            changes += [(s.begun_us, 1, node, milli), (s.ended_us, 0, node, -milli)]
    total: dict[int, int] = defaultdict(int)
    for _, _, node, milli in sorted(changes):
        total[node] += milli
        if total[node] > SIZES[node] * MILLI:
            return False
    return True


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(arrivals, faults, st.sampled_from([(), (Budget("one", max_unavailable=1),)]))
def test_books_agree_whatever_happens(arrivals, given_faults, budgets):
    jobs = world(arrivals)
    policy = w.OURS.without(min_run_us=1800 * SECOND_US, budgets=budgets)
    out, queue = w.run(w.nodes(*SIZES), w.queues(**QUOTA), jobs, policy, one_at_a_time(given_faults))
    assert not out.stuck
    assert {*out.ended_us, *out.failed, *out.impossible} == {j.job_id for j, _ in jobs}
    assert queue.usage.is_empty() and not queue.holds.by_id and not queue.gangs.evicted
    assert queue.cluster.free_milli == sum(SIZES) * MILLI and not queue.cluster.placements
    assert (queue.cluster.whole == SIZES).all() and not queue.running.is_used.any()
    assert held_over_time(out)
    for job, hours in jobs:
        spans = [s for s in out.spans if s.job_id == job.job_id]
        assert not any(s.ending == "evicted" for s in spans) or job.is_preemptible
        if job.job_id in out.ended_us:
            worked = sum(s.milli * (s.ended_us - s.begun_us - s.lost_us) for s in spans if s.is_whole)
            lost_else = sum(s.milli * s.lost_us for s in spans if not s.is_whole)
            # Ends and losses are whole microseconds of the GPUs held.
            assert abs(worked - lost_else - round(hours * HOUR_US) * job.gpu_milli) <= 2 * job.gpu_milli * len(spans)
    per_victim: dict[str, list[int]] = defaultdict(list)
    for step in out.trail:
        if step.what in ("kill", "shrink"):
            per_victim[step.job_id].append(step.at_us)
    for times in per_victim.values():
        assert all(b - a >= policy.min_run_us for a, b in pairwise(times))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(arrivals, faults)
def test_the_same_again_gives_the_same(arrivals, given_faults):
    found = []
    for jobs in (world(arrivals), world(arrivals)[::-1]):
        out, _ = w.run(w.nodes(*SIZES), w.queues(**QUOTA), jobs, w.OURS, one_at_a_time(given_faults))
        found.append((out.started_us, out.ended_us, out.trail, out.spans))
    assert found[0] == found[1]


class _Leaky(Holds):
    """Keeps nothing of what leaves."""

    def vacated(self) -> None:
        return


class _Promising(Holds):
    """Forgets to promise quota."""

    def make(self, *args, **more):
        found = super().make(*args, **more)
        hold: Hold = self.by_id[found.job.job_id]
        self.usage.promise(hold.job.queue, hold.amounts, -1)
        return found

    def give_up(self, job_id: str) -> Hold:
        self.usage.promise(self.by_id[job_id].job.queue, self.by_id[job_id].amounts)
        return super().give_up(job_id)


def stolen(holds: type[Holds]) -> bool:
    """Whether a third job gets the quota that was freed for another."""
    queue: Scheduler = w.scheduler(w.nodes(8), w.queues(a=2, b=2, c=0))
    queue.holds.__class__ = holds
    w.started(queue, *[w.job(f"a{i}") for i in range(3)], w.job("b1", "b"))
    done = w.started(queue, w.job("b2", "b"), now_s=7200)
    queue.ended(done.evictions[0].job.job_id, 7201 * SECOND_US, will_return=True)
    queue.submit(w.job("c1", "c", priority=9), HOUR_US)
    # The thief is asked for before the cycle starts whom room was held for.
    return not isinstance(queue.find(queue.pending.waiting["c1"], 7201 * SECOND_US), str)


@pytest.mark.parametrize(("holds", "is_stolen"), [(Holds, False), (_Promising, True)])
def test_without_the_promise_freed_quota_is_stolen(holds, is_stolen):
    assert stolen(holds) is is_stolen


@pytest.mark.parametrize(("holds", "is_stolen"), [(Holds, False), (_Leaky, True)])
def test_without_the_hold_freed_room_is_stolen(holds, is_stolen):
    queue = w.scheduler(w.nodes(8), w.queues(a=None))
    queue.holds.__class__ = holds
    w.started(queue, w.job("low", gpus=4), w.job("low2", gpus=4))
    w.started(queue, w.job("high", gpus=8, priority=10), now_s=7200)
    queue.ended("low", 7201 * SECOND_US, will_return=True)
    queue.submit(w.job("thief"), HOUR_US)
    found = queue.find(queue.pending.waiting["thief"], 7201 * SECOND_US)
    assert (not isinstance(found, str)) is is_stolen
