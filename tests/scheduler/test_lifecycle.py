"""The life of a job: states, reasons, timers and lost work; pure, and the same again in replays that lose nodes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import small_world as w
from hypothesis import given
from hypothesis import strategies as st

from scheduler import lifecycle as life
from scheduler.lifecycle import Life, step
from scheduler.model import HOUR_US, MILLI, SECOND_US
from scheduler.replay.engine import NodeFault

MINUTE_US = 60 * SECOND_US
SAVES = {"checkpoint_us": 30 * MINUTE_US}


def lived(job, *events, patience_us=MINUTE_US):
    """The life after the events, and all actions."""
    known, actions = Life(job), []
    for event in events:
        known, more = step(known, event, patience_us)
        actions += more
    return known, actions


def at(minutes: float) -> int:
    """Microseconds."""
    return round(minutes * MINUTE_US)


def test_a_job_runs_to_its_end():
    known, actions = lived(w.job("x"), life.Started(0, 1000), life.Ended(at(5)))
    assert (known.state, known.reason, known.worked) == ("succeeded", "done", at(5) * 1000)
    assert actions == [life.Stop("end")]


def test_eviction_step_by_step():
    job = w.job("x", gpus=2, **SAVES)
    known, _ = lived(job, life.Started(0, 2000), life.Noticed(at(100), "reclaim", at(101), at(103)))
    assert (known.state, known.reason) == ("stopping", "reclaim")
    known, more = step(known, life.Signalled(at(101)), 0)
    assert more == (life.Save(),)
    known, more = step(known, life.Killed(at(103)), 0)
    assert (known.state, known.reason, known.losses, known.stops) == ("pending", "backoff", 0, 1)
    assert more == (life.Stop("reclaim", at(13) * 2000), life.Requeue(at(103) + life.BACKOFF_US))
    assert known.safe == at(90) * 2000
    known, more = step(known, life.Resubmitted(at(104)), 0)
    assert (known.state, known.reason, more) == ("pending", "queued", ())


def test_a_job_that_saves_when_told_to_loses_only_the_grace():
    for save_us, lost in ((10 * SECOND_US, at(2)), (at(3), at(13))):
        job = w.job("x", **SAVES, save_us=save_us)
        _, actions = lived(job, life.Started(0, 1000), life.Noticed(at(100), "preempt", at(101), at(103)),
                           life.Signalled(at(101)), life.Killed(at(103)))  # fmt: skip
        assert life.Stop("preempt", lost * 1000) in actions


def test_a_job_may_end_in_its_grace_and_a_notice_may_be_called_off():
    begin = (life.Started(0, 1000), life.Noticed(at(9), "preempt", at(10), at(12)))
    assert lived(w.job("x"), *begin, life.Ended(at(11)))[0].state == "succeeded"
    known, _ = lived(w.job("x"), *begin, life.Signalled(at(10)), life.CalledOff(at(11)))
    assert (known.state, known.reason, known.kind, known.signalled) == ("running", "whole", None, None)


def test_a_gang_goes_on_at_its_least_counts():
    job = w.job("x", pods=4, least=2, **SAVES)
    known, actions = lived(job, life.Started(0, 4000), life.Resized(at(60), 2000), life.Ended(at(90)))
    assert not [a for a in actions if not isinstance(a, life.Stop)]
    assert known.worked == at(60) * 4000 + at(30) * 2000


def test_below_its_least_counts_it_waits_then_stops_and_is_charged_since_its_last_checkpoint():
    job = w.job("x", pods=4, **SAVES)
    known, actions = lived(job, life.Started(0, 4000), life.Resized(at(70), 3000, is_enough=False))
    assert (known.state, known.reason) == ("running", "degraded")
    assert actions == [life.Wait(at(71))]
    known, more = step(known, life.PatienceOver(at(71)), MINUTE_US)
    assert (known.state, known.reason, known.losses) == ("pending", "backoff", 1)
    assert more == (life.Stop("loss", at(10) * 4000), life.Requeue(at(71) + life.BACKOFF_US))


def test_pods_that_come_back_in_time_save_the_gang():
    job = w.job("x", pods=4, **SAVES)
    known, _ = lived(job, life.Started(0, 4000), life.Resized(at(70), 3000, is_enough=False),
                     life.Resized(at(70.5), 4000), life.Ended(at(80)))  # fmt: skip
    assert known.state == "succeeded" and known.worked == at(79.5) * 4000


def test_it_fails_for_good_at_the_backoff_limit():
    known, now, pauses = Life(w.job("x", backoff_limit=2)), 0, []
    for _ in range(3):
        known, _ = step(known, life.Started(now, 1000), 0)
        known, actions = step(known, life.Ended(now + at(1), is_success=False), 0)
        pauses += [a.at_us - now - at(1) for a in actions if isinstance(a, life.Requeue)]
        if known.state == "pending":
            now = next(a.at_us for a in actions if isinstance(a, life.Requeue))
            known, _ = step(known, life.Resubmitted(now), 0)
    assert (known.state, known.reason) == ("failed", "backoff_limit")
    assert pauses == [10 * SECOND_US, 20 * SECOND_US]
    with pytest.raises(life.Unexpected, match="x is failed"):
        step(known, life.Started(now, 1000), 0)


def test_evictions_do_not_count_towards_the_limit():
    known = replace(Life(w.job("x", backoff_limit=0)), state="running", milli=1000)
    known, _ = step(known, life.Noticed(0, "preempt", None, at(1)), 0)
    assert step(known, life.Killed(at(1)), 0)[0].state == "pending"


def test_backoff_doubles_up_to_six_minutes():
    assert [life.backoff_us(n) // SECOND_US for n in range(1, 9)] == [10, 20, 40, 80, 160, 320, 360, 360]
    assert life.backoff_us(10_000) == life.MOST_BACKOFF_US


def test_cancelling_is_possible_until_it_is_over():
    for events, stop in (((), []), ((life.Started(0, 1000),), [life.Stop("end")])):
        known, actions = lived(w.job("x"), *events, life.Cancelled(at(1)))
        assert (known.state, actions) == ("cancelled", stop)


@pytest.mark.parametrize("event", [life.Ended(1), life.Killed(1), life.Signalled(1), life.Resubmitted(1),
                                   life.Resized(1, 1), life.PatienceOver(1)])  # fmt: skip
def test_what_cannot_come_is_refused(event):
    with pytest.raises(life.Unexpected, match="cannot come"):
        step(Life(w.job("x")), event, 0)


kinds = st.sampled_from(["fewer", "back", "notice", "signal", "kill", "off", "patience"])


@given(st.lists(st.tuples(kinds, st.integers(1, 90)), max_size=20))
def test_work_is_never_made_up_nor_lost_twice(happenings):
    """Whatever happens: safe <= worked <= GPUs x time, and lost is exactly what was not safe."""
    known, now = Life(w.job("x", pods=4, **SAVES, save_us=SECOND_US)), 0
    known, _ = step(known, life.Started(0, 4000), MINUTE_US)
    for kind, minutes in happenings:
        now += at(minutes)
        event = {
            "fewer": life.Resized(now, 3000, is_enough=False), "back": life.Resized(now, 4000),
            "notice": life.Noticed(now, "reclaim", now + at(1), now + at(2)), "signal": life.Signalled(now),
            "kill": life.Killed(now), "off": life.CalledOff(now), "patience": life.PatienceOver(now),
        }[kind]  # fmt: skip
        before = known
        try:
            known, actions = step(known, event, MINUTE_US)
        except life.Unexpected:
            continue
        assert 0 <= known.safe <= known.worked <= 4000 * now
        assert before.safe <= known.safe
        for stop in (a for a in actions if isinstance(a, life.Stop)):
            done = life._worked(before, now).worked
            assert stop.lost == done - known.safe
            return


NODE_GONE = NodeFault("n1", 70 * MINUTE_US, 75 * MINUTE_US)


def test_a_replay_stops_a_gang_that_lost_a_node_and_starts_it_again_with_its_age():
    jobs = [(w.job("gang", pods=2, gpus=2, **SAVES), 2.0), (w.job("later", gpus=2, at_s=60), 1.0)]
    out, queue = w.run(w.nodes(2, 2), w.queues(a=None), jobs, faults=[NODE_GONE])
    assert w.steps(out, "gang") == [(4200, "loss"), (4270, "requeue")]
    assert out.started_us["later"] == (4200 + 60) * SECOND_US
    # 60 min are safe; the rest runs when both nodes are free again.
    again = max(4500, 4260 + 3600) * SECOND_US
    assert out.ended_us["gang"] == again + HOUR_US
    assert sum(s.milli * s.lost_us for s in out.spans) == 4 * MILLI * 10 * MINUTE_US
    assert queue.usage.is_empty() and queue.cluster.free_milli == 4 * MILLI


def test_a_replay_goes_on_when_the_node_is_back_within_patience_or_enough_is_left():
    brief = NodeFault("n1", 70 * MINUTE_US, 70 * MINUTE_US + 30 * SECOND_US)
    out, _ = w.run(w.nodes(2, 2), w.queues(a=None), [(w.job("gang", pods=2, gpus=2), 2.0)], faults=[brief])
    assert out.ended_us["gang"] == 2 * HOUR_US + 30 * SECOND_US
    out, _ = w.run(w.nodes(2, 2), w.queues(a=None), [(w.job("e", pods=2, gpus=2, least=1), 2.0)], faults=[NODE_GONE])
    assert out.ended_us["e"] == 70 * MINUTE_US + 2 * 50 * MINUTE_US
    assert not any(s.lost_us for s in out.spans)


def test_a_replay_fails_a_job_for_good_when_it_loses_its_node_too_often():
    faults = [NodeFault("n0", n * HOUR_US, n * HOUR_US + MINUTE_US * 10) for n in range(1, 9)]
    out, queue = w.run(w.nodes(2), w.queues(a=None), [(w.job("x", gpus=2, backoff_limit=3), 5.0)], faults=faults)
    assert out.failed == {"x": "backoff_limit"} and not out.ended_us and not out.stuck
    assert [what for _, what in w.steps(out, "x")].count("loss") == 4
    assert sum(1 for s in out.spans if s.ending == "lost") == 4
    assert queue.usage.is_empty() and not queue.gangs.evicted
