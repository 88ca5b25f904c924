"""Requeue after a stop: the age is kept, the backoff is kept to, saved work is not done again."""

from __future__ import annotations

import pytest
import small_world as w

from scheduler.model import HOUR_US, SECOND_US
from scheduler.replay.engine import NodeFault

NOW = 2 * 3600


def evicted(**more):
    """A job of 4 GPUs, evicted at two hours for one that runs an hour."""
    jobs = [(w.job("low", gpus=4, **more), 6.0), (w.job("high", gpus=4, priority=1, at_s=NOW), 1.0)]
    return w.run(w.nodes(4), w.queues(a=None), jobs)


def test_a_stopped_job_waits_again_after_its_backoff_and_starts_when_there_is_room():
    out, _ = evicted(checkpoint_us=HOUR_US)
    assert w.steps(out, "low") == [
        (NOW, "notice"),
        (NOW + 60, "checkpoint"),
        (NOW + 180, "kill"),
        (NOW + 190, "requeue"),
    ]
    first, second = [s for s in out.spans if s.job_id == "low"]
    assert (first.ending, second.ending) == ("evicted", "finished")
    assert second.begun_us == (NOW + 180) * SECOND_US + HOUR_US
    # two of six hours are safe: four are left
    assert second.ended_us - second.begun_us == 4 * HOUR_US


@pytest.mark.parametrize(("more", "left_h"), [({}, 6.0), ({"checkpoint_us": HOUR_US // 2}, 4.0),
                                              ({"save_us": SECOND_US}, 6 - 2 - 60 / 3600)])  # fmt: skip
def test_what_was_saved_is_not_done_again(more, left_h):
    out, _ = evicted(**more)
    second = [s for s in out.spans if s.job_id == "low"][-1]
    assert second.ended_us - second.begun_us == round(left_h * HOUR_US)


def test_the_age_is_kept_so_that_an_evicted_job_comes_before_younger_ones():
    """Aged by its first submission, it comes before shorter jobs that came after it."""
    policy = w.OURS.without(age_limit_us=HOUR_US)
    jobs = [(w.job("low", gpus=4), 6.0), (w.job("high", gpus=4, priority=1, at_s=NOW), 1.0)]
    jobs += [(w.job(f"young{i}", gpus=4, at_s=NOW + 600), 0.5) for i in range(3)]
    out, _ = w.run(w.nodes(4), w.queues(a=None), jobs, policy)
    again = [s for s in out.spans if s.job_id == "low"][-1].begun_us
    assert all(out.started_us[f"young{i}"] > again for i in range(3))


def test_the_next_run_is_predicted_to_need_only_what_is_left():
    """The reservation of a waiting job is planned with it, and kept exactly."""
    jobs = [(w.job("low", gpus=4, checkpoint_us=HOUR_US), 3.0), (w.job("high", gpus=4, priority=1, at_s=NOW), 1.0)]
    jobs += [(w.job("next", gpus=4, at_s=NOW + 3600), 9.0)]
    out, _ = w.run(w.nodes(4), w.queues(a=None), jobs)
    assert out.promised_us["next"] == out.started_us["next"] == out.ended_us["low"]
    assert out.ended_us["low"] == (NOW + 180) * SECOND_US + 2 * HOUR_US


def test_stops_add_up_in_the_backoff():
    faults = [NodeFault("n0", n * HOUR_US, n * HOUR_US + 90 * SECOND_US) for n in (1, 2, 3)]
    out, _ = w.run(w.nodes(1), w.queues(a=None), [(w.job("x", checkpoint_us=HOUR_US // 4), 4.0)], faults=faults)
    trail = w.steps(out, "x")
    waits = [b - a - 60 for (a, _), (b, _) in zip(trail[::2], trail[1::2], strict=True)]
    assert waits == [10, 20, 40]
    assert len(out.ended_us) == 1
