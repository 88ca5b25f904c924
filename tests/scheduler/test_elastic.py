"""Elastic gangs: admitted at the largest counts that fit, shrunk before anybody goes whole, slower when smaller."""

from __future__ import annotations

from itertools import pairwise

import small_world as w
from hypothesis import given
from hypothesis import strategies as st

from scheduler import elastic
from scheduler.model import HOUR_US, MILLI, Job, Role, Shape

NOW = 2 * 3600


def test_partial_admission_takes_the_largest_counts_that_fit():
    queue = w.scheduler(w.nodes(4, 3), w.queues(a=None))
    done = w.started(queue, w.job("e", pods=10, least=2))
    assert done.starts[0].placement.counts(done.starts[0].job) == (7,)


def test_partial_admission_is_bound_by_quota_too():
    queue = w.scheduler(w.nodes(8), w.queues(a=3, b=2))
    done = w.started(queue, w.job("e", pods=8, least=2), w.job("never", pods=8, least=6))
    assert [s.placement.gpu_milli for s in done.starts] == [5 * MILLI]
    assert queue.impossible(w.job("never", pods=8, least=6)) == "queue a may never hold as much"


def test_below_its_least_counts_it_waits():
    queue = w.scheduler(w.nodes(4), w.queues(a=None))
    assert not w.started(queue, w.job("e", pods=8, least=5)).starts


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=3), st.integers(0, 40))
def test_the_search_finds_the_largest_of_all_steps(roles, room):
    job = Job("e", "a", "a", tuple(Role(str(i), Shape(1000), n + more, n) for i, (n, more) in enumerate(roles)), 0)
    every = [elastic.between(job, k) for k in range(elastic.steps(job))]
    assert all(sum(a) <= sum(b) for a, b in pairwise(every))
    assert elastic.between(job, elastic.steps(job)) == tuple(r.count for r in job.roles)
    found = elastic.largest(job, lambda counts: counts if sum(counts) <= room else None)
    assert found == max((c for c in every if sum(c) <= room), key=sum, default=None)


def test_an_elastic_gang_that_may_never_be_whole_still_gets_a_reservation():
    for fleet, of in ((w.nodes(6), w.queues(a=4, z=None)), (w.nodes(4), w.queues(a=None, z=None))):
        queue = w.scheduler(fleet, of)
        w.started(queue, w.job("there", "z", gpus=3), run_h=1)
        done = w.started(queue, w.job("e", pods=9, least=4))
        assert w.ids(done.reserved) == ["e"] and done.reserved[0].start_us == HOUR_US


def test_elastic_gangs_shrink_before_anybody_goes_whole():
    queue = w.scheduler(w.nodes(8), w.queues(a=None))
    w.started(queue, w.job("e", pods=6, least=2), w.job("other", gpus=2))
    done = w.started(queue, w.job("high", gpus=4, priority=1), now_s=NOW)
    (eviction,) = done.evictions
    assert eviction.job.job_id == "e" and eviction.keep is not None and len(eviction.keep.pods) == 2
    queue.resized("e", eviction.keep, eviction.kill_us)
    assert w.ids(queue.cycle(eviction.kill_us).starts) == ["high"]
    assert queue.gangs["e"].counts == (2,) and queue.gangs["e"].stop is None


def test_what_has_shrunk_is_safe_for_a_minimum_run():
    queue = w.scheduler(w.nodes(4), w.queues(a=None))
    w.started(queue, w.job("e", pods=4, least=2))
    (eviction,) = w.started(queue, w.job("h1", gpus=2, priority=1), now_s=NOW).evictions
    queue.resized("e", eviction.keep, eviction.kill_us)
    again = w.started(queue, w.job("h2", gpus=2, priority=1), now_s=eviction.kill_us // 10**6)
    assert w.ids(again.starts) == ["h1"] and not again.evictions
    assert again.wake_us == eviction.kill_us + HOUR_US


def test_an_elastic_gang_goes_whole_where_shrinking_is_not_enough():
    queue = w.scheduler(w.nodes(4), w.queues(a=None))
    w.started(queue, w.job("e", pods=4, least=2))
    (eviction,) = w.started(queue, w.job("high", gpus=4, priority=1), now_s=NOW).evictions
    assert eviction.keep is None


def test_a_gang_that_shrank_works_on_at_its_size_and_loses_nothing():
    jobs = [(w.job("e", pods=4, least=2), 4.0), (w.job("high", gpus=2, priority=1, at_s=NOW), 1.0)]
    out, queue = w.run(w.nodes(4), w.queues(a=None), jobs)
    assert [what for _, what in w.steps(out, "e")] == ["notice", "checkpoint", "shrink"]
    lead = 180
    # 4 GPUs until two hours and the lead, then the other half of the work at half the size.
    left_s = (4 * 3600 - NOW - lead) * 2
    assert out.ended_us["e"] == (NOW + lead + left_s) * 10**6
    assert not any(s.lost_us for s in out.spans) and queue.usage.is_empty()


def test_a_smaller_gang_takes_longer():
    assert elastic.stretched_us(w.job("e", pods=4, least=1), 100, 3000) == 134
    assert elastic.stretched_us(w.job("e", pods=4, least=1), 100, 4000) == 100
    out, _ = w.run(w.nodes(2), w.queues(a=None), [(w.job("e", pods=4, least=1), 1.0)])
    assert out.ended_us["e"] == 2 * HOUR_US
