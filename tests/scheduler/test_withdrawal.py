"""Reservations are sticky: only a higher class, a reclaiming owner or lost capacity withdraws one, and that is told."""

from __future__ import annotations

import small_world as w
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.model import HOUR_US, SECOND_US

NOW = 600  # within everybody's minimum run: nobody is evicted


def told(done):
    return [(x.reservation.job.job_id, x.reason, x.by) for x in done.withdrawn]


def headed(of=None, **more):
    """A fleet of 4 that is full for an hour, and a reserved head that wants all of it."""
    queue = w.scheduler(w.nodes(4), of or w.queues(a=None, z=None))
    w.started(queue, w.job("there", "z", gpus=4, is_preemptible=False), run_h=1)
    done = w.started(queue, w.job("head", gpus=4, **more), now_s=1)
    assert w.ids(done.reserved) == ["head"]
    return queue


def test_a_better_place_in_the_order_withdraws_nothing():
    queue = headed()
    for name, run_h, now in (("short", 1, 10), ("z-share", 2, 20)):
        done = w.started(queue, w.job(name, gpus=4, at_s=now), now_s=now, run_h=run_h)
        assert not done.withdrawn and list(queue.book.reservations) == ["head"]


def test_a_higher_class_takes_the_place_of_the_head():
    queue = headed()
    done = w.started(queue, w.job("high", gpus=4, priority=7), now_s=NOW)
    assert told(done) == [("head", "higher_class", "high")]
    assert list(queue.book.reservations) == ["high"] and queue.head == "high"
    assert done.reserved[0].start_us == HOUR_US


def test_the_old_head_keeps_what_is_not_in_the_way():
    queue = w.scheduler(w.nodes(4, 4), w.queues(a=None, z=None))
    w.started(queue, *[w.job(f"there{i}", "z", gpus=4, is_preemptible=False) for i in range(2)], run_h=1)
    w.started(queue, w.job("head", gpus=4), now_s=1)
    done = w.started(queue, w.job("high", gpus=4, is_critical=True), now_s=NOW)
    assert not done.withdrawn and sorted(queue.book.reservations) == ["head", "high"]


def test_a_higher_class_may_start_now_on_what_was_kept_for_a_lower_one():
    queue = w.scheduler(w.nodes(4), w.queues(a=None, z=None))
    w.started(queue, w.job("there", "z", gpus=2, is_preemptible=False), run_h=1)
    w.started(queue, w.job("head", gpus=4), now_s=1)
    assert not w.started(queue, w.job("long", gpus=2), now_s=2).starts
    done = w.started(queue, w.job("high", gpus=2, priority=7), now_s=3)
    assert w.ids(done.starts) == ["high"] and told(done) == [("head", "higher_class", "high")]
    again = queue.cycle(4 * SECOND_US)
    assert w.ids(again.reserved) == ["head"] and again.reserved[0].start_us > HOUR_US


def test_a_reclaiming_owner_withdraws_the_reservation_of_a_borrower():
    of = w.queues(a=1, b=3, z=0)
    queue = w.scheduler(w.nodes(4), [*of[:2], *w.queues("else", z=None)])
    w.started(queue, w.job("there", "z", gpus=4, is_preemptible=False), run_h=1)
    assert w.ids(w.started(queue, w.job("head", gpus=4), now_s=1).reserved) == ["head"]
    done = w.started(queue, w.job("mine", "b", gpus=3), now_s=2)
    assert told(done) == [("head", "reclaiming_owner", "mine")]
    done = w.started(queue, w.job("more", "b", gpus=4), now_s=3)
    assert not done.withdrawn  # beyond its guarantee it is no owner


def test_lost_capacity_withdraws_and_the_head_gets_another():
    queue = w.scheduler(w.nodes(4, 4), w.queues(a=None))
    w.started(queue, *[w.job(f"there{i}", gpus=4, is_preemptible=False) for i in range(2)], run_h=1)
    first = w.started(queue, w.job("head", gpus=4), now_s=1).reserved[0]
    node = int(first.need.argmax())
    queue.node_down(f"n{node}")
    done = queue.cycle(2 * SECOND_US)
    assert told(done) == [("head", "lost_capacity", "")]
    assert int(done.reserved[0].need.argmax()) == 1 - node


def test_a_preemptor_whose_room_is_lost_waits_again_and_its_evictions_are_called_off():
    queue = w.scheduler(w.nodes(4, 2), w.queues(a=None))
    w.started(queue, w.job("low", gpus=4))
    done = w.started(queue, w.job("high", gpus=4, priority=1), now_s=2 * 3600)
    assert w.ids(done.evictions) == ["low"]
    queue.node_down("n0")
    done = queue.cycle((2 * 3600 + 1) * SECOND_US)
    assert told(done) == [("high", "lost_capacity", "")] and done.called_off == ["low"]
    assert list(queue.pending.waiting) == ["high"] and not queue.holds.by_id


arrivals = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(1, 6), st.integers(0, 40), st.integers(1, 8), st.integers(0, 2)),
    min_size=2, max_size=14,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(arrivals)
def test_reserved_jobs_never_start_later_than_promised_but_for_what_was_told(arrivals):
    """With exact run times, nobody evictable (so nobody requeued), two classes and quota."""
    jobs = [
        (w.job(f"j{i}", q, gpus=g, at_s=at * 300, priority=p // 2, is_preemptible=False), h / 2)
        for i, (q, g, at, h, p) in enumerate(arrivals)
    ]
    out, queue = w.run(w.nodes(4, 4), w.queues(a=6, b=6), jobs)
    gone = {x.reservation.job.job_id for x in out.withdrawn}
    for name, promised in out.promised_us.items():
        assert name in gone or out.started_us[name] <= promised
    assert all(x.reason in ("higher_class", "reclaiming_owner", "lost_capacity") for x in out.withdrawn)
    assert not out.stuck and queue.usage.is_empty()
