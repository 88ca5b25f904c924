"""Reclaim: an owner gets its guarantee back from who borrows, step by step, and nobody falls below his own."""

from __future__ import annotations

import small_world as w
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import quota
from scheduler.model import GPU, HOUR_US, MILLI, SECOND_US
from scheduler.replay.engine import Outcome

KIND = (GPU, w.FLAVOR)
NOW = 2 * 3600


def test_walk_through_of_two_projects():
    """Run:ai's: 4 GPUs on 2 nodes, quota 2 each; a runs 1+2, b runs 1 and asks for 1 more."""
    queue = w.scheduler(w.nodes(2, 2), w.queues(a=2, b=2))
    w.started(queue, w.job("a1", gpus=1), w.job("a2", gpus=2), w.job("b1", "b"))
    done = w.started(queue, w.job("b2", "b"), now_s=NOW)
    assert [(e.job.job_id, e.kind, e.for_job) for e in done.evictions] == [("a1", "reclaim", "b2")]
    queue.ended("a1", done.evictions[0].kill_us, will_return=True)
    queue.submit(done.evictions[0].job, HOUR_US)
    after = queue.cycle(done.evictions[0].kill_us)
    assert w.ids(after.starts) == ["b2"] and not after.evictions
    assert list(queue.pending.waiting) == ["a1"]
    assert [queue.usage.of(q, KIND) for q in "ab"] == [2000, 2000]


def test_the_walk_through_as_a_replay_requeues_and_ends_with_nothing_held():
    jobs = [(w.job("a1", gpus=1), 5), (w.job("a2", gpus=2), 5), (w.job("b1", "b"), 5), (w.job("b2", "b", at_s=NOW), 1)]
    out, queue = w.run(w.nodes(2, 2), w.queues(a=2, b=2), jobs)
    assert [what for _, what in w.steps(out, "a1")] == ["notice", "checkpoint", "kill", "requeue"]
    assert len(out.ended_us) == 4 and not out.stuck
    assert queue.usage.is_empty() and queue.cluster.free_milli == 4 * MILLI


def test_borrow_and_return_shows_notice_checkpoint_kill_in_order():
    """Must show 8: team a borrows all of b's guarantee; b returns and has it within the contract."""
    saving = {"checkpoint_us": 30 * 60 * SECOND_US}
    jobs = [(w.job(f"a{i}", gpus=4, **saving), 10.0) for i in range(4)] + [(w.job("b0", "b", gpus=8, at_s=NOW), 1.0)]
    out, queue = w.run(w.nodes(8, 8), w.queues(a=8, b=8), jobs)
    victims = sorted({s.job_id for s in out.trail})
    assert len(victims) == 2
    for name in victims:
        kinds = [what for _, what in w.steps(out, name)]
        times = [at for at, _ in w.steps(out, name)]
        assert kinds == ["notice", "checkpoint", "kill", "requeue"]
        assert times == [NOW, NOW + 60, NOW + 180, NOW + 190]
    assert out.started_us["b0"] == (NOW + 180) * SECOND_US
    spans = [s for s in out.spans if s.ending == "evicted"]
    assert {s.lost_us for s in spans} == {180 * SECOND_US}  # the last save was at two hours, when the notice came
    assert queue.usage.is_empty()


def test_no_queue_is_taken_below_its_guarantee_by_another_set():
    """a holds 3 of 2: its 2-GPU gang is cheaper to stop, but would leave it below what it is guaranteed."""
    queue = w.scheduler(w.nodes(2, 2), w.queues(a=2, b=2))
    w.started(queue, w.job("a2", gpus=2, checkpoint_us=SECOND_US), w.job("a1", gpus=1), w.job("b1", "b"))
    assert w.ids(w.started(queue, w.job("b2", "b"), now_s=NOW).evictions) == ["a1"]


def test_a_gang_that_straddles_the_guarantee_goes_where_nothing_else_helps():
    queue = w.scheduler(w.nodes(4), w.queues(a=2, b=2))
    w.started(queue, w.job("a4", gpus=4))
    assert w.ids(w.started(queue, w.job("b2", "b", gpus=2), now_s=NOW).evictions) == ["a4"]


def test_a_queue_beyond_its_guarantee_reclaims_nothing():
    queue = w.scheduler(w.nodes(4), w.queues(a=2, b=2))
    w.started(queue, *[w.job(f"a{i}") for i in range(3)], w.job("b0", "b"))
    done = w.started(queue, w.job("b1", "b", gpus=2), now_s=NOW)
    assert not done.evictions and done.reasons["b1"] == "over_quota"


def test_victims_of_other_cohorts_are_safe():
    of = [*w.queues("one", a=2, b=2), *w.queues("two", c=0, d=4)]
    queue = w.scheduler(w.nodes(4), of)
    w.started(queue, w.job("c0", "c", gpus=4))
    assert not w.started(queue, w.job("b0", "b", gpus=2), now_s=NOW).evictions


def test_a_gang_that_is_never_evicted_does_not_borrow():
    queue = w.scheduler(w.nodes(4), w.queues(a=2, b=2))
    done = w.started(queue, w.job("fixed", gpus=3, is_preemptible=False), w.job("ok", gpus=2, is_preemptible=False))
    assert w.ids(done.starts) == ["ok"]
    assert queue.impossible(w.job("fixed", gpus=3, is_preemptible=False)) == "queue a may never hold as much"


def test_quota_that_was_freed_cannot_be_stolen():
    queue = w.scheduler(w.nodes(8), w.queues(a=2, b=2, c=0))
    w.started(queue, w.job("a1"), w.job("a2"), w.job("a3"), w.job("b1", "b"))
    done = w.started(queue, w.job("b2", "b"), now_s=NOW)
    assert len(done.evictions) == 1
    queue.ended(done.evictions[0].job.job_id, (NOW + 1) * SECOND_US, will_return=True)
    assert w.ids(w.started(queue, w.job("c1", "c", is_critical=True), now_s=NOW + 1).starts) == ["b2"]


arrivals = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(1, 2), st.integers(1, 4), st.integers(0, 20), st.integers(1, 12),
        st.integers(0, 2), st.sampled_from([None, 600, 1800]),
    ),
    min_size=1, max_size=14,
)  # fmt: skip


def held_at_most(out: Outcome, milli: int) -> bool:
    """Whether all spans together never hold more."""
    changes = sorted([(s.begun_us, 1, s.milli) for s in out.spans] + [(s.ended_us, 0, -s.milli) for s in out.spans])
    total = 0
    for _, _, n in changes:
        total += n
        if total > milli:
            return False
    return True


@settings(max_examples=150, deadline=None)
@given(arrivals, st.sampled_from([(4, 4), (8,), (2, 2, 4)]), st.sampled_from([0, 3600]))
def test_evictions_keep_quota_nodes_and_minimum_run_and_leave_nothing(arrivals, sizes, min_run_s):
    """Never a node or quota over (the snapshot refuses), no job stopped twice within the minimum run, all ends."""
    jobs = [
        (w.job(f"j{i}", q, pods, gpus, at_s=at * 600, priority=p, checkpoint_us=c and c * SECOND_US), h / 2)
        for i, (q, pods, gpus, at, h, p, c) in enumerate(arrivals)
    ]
    of = w.queues(a=3, b=3, c=2)
    policy = w.OURS.without(min_run_us=min_run_s * SECOND_US)
    out, queue = w.run(w.nodes(*sizes), of, jobs, policy)
    assert not out.stuck and len(out.ended_us) + len(out.impossible) == len(jobs)
    assert queue.usage.is_empty() and not queue.holds.by_id and not queue.gangs.evicted
    assert queue.cluster.free_milli == 8 * MILLI and not queue.cluster.placements
    assert held_at_most(out, 8 * MILLI)
    for j, _ in jobs:
        stops = [s for s in out.spans if s.job_id == j.job_id and s.ending == "evicted"]
        assert all(s.ended_us - s.begun_us >= min_run_s * SECOND_US for s in stops)
        worked = sum(s.ended_us - s.begun_us - s.lost_us for s in out.spans if s.job_id == j.job_id)
        if j.job_id in out.ended_us:
            assert worked == next(round(h * HOUR_US) for k, h in jobs if k is j)


@settings(max_examples=60, deadline=None)
@given(arrivals)
def test_a_quiet_queue_stops_evicting(arrivals):
    """Jobs that never end: after all have come, evictions stop, and a hundred further cycles have none."""
    queue = w.scheduler(w.nodes(4, 4), w.queues(a=3, b=3, c=2), w.OURS.without(min_run_us=SECOND_US))
    for i, (q, pods, gpus, at, _, p, _) in enumerate(arrivals):
        j = w.job(f"j{i}", q, pods, gpus, at_s=at, priority=p)
        if queue.impossible(j) is None:
            queue.submit(j, 1000 * HOUR_US)
    now, quiet = 0, 0
    for _ in range(400):
        now += 3600 * SECOND_US
        for gang in list(queue.gangs.stopping()):
            queue.ended(gang.job.job_id, now, will_return=True)
            queue.submit(gang.job, 1000 * HOUR_US)
        quiet = 0 if queue.cycle(now).evictions else quiet + 1
        for name in ("a", "b", "c"):
            assert queue.usage.of(name, KIND) <= 8 * MILLI
            assert quota.available(queue.usage, name, KIND) >= 0 or queue.holds.by_id
    assert quiet >= 100
