"""Start estimates of a queue: who gets a time and who a reason, and that nothing later than an estimate is in it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import given, settings
from small_world import job, nodes, queues, scheduler, started

from scheduler.cycle import Scheduler
from scheduler.estimates.calibrate import Calibration
from scheduler.estimates.estimator import Estimator
from scheduler.estimates.forward import Reach
from scheduler.estimates.record import Estimate
from scheduler.model import HOUR_US, SECOND_US
from scheduler.replay.estimating import Sample, replay_estimating
from scheduler.replay.outcome import TraceRun
from scheduler.replay.run import Setting

_REACH = Reach(replicas=2, horizon_us=12 * HOUR_US)


def _estimator() -> Estimator:
    return Estimator(lambda _: HOUR_US, _REACH)


def _waiting(count: int, quota: int | None = None) -> tuple[Estimator, Scheduler]:
    queue, estimator = scheduler(nodes(8), queues(a=quota)), _estimator()
    first = job("first", gpus=8)
    done = started(queue, first)
    estimator.submitted(first)
    estimator.cycled(done, 0)
    for i in range(count):
        waits = job(f"w{i}", gpus=8, at_s=60)
        estimator.submitted(waits)
        queue.submit(waits, HOUR_US)
    queue.cycle(60 * SECOND_US)
    return estimator, queue


def test_everyone_who_waits_gets_a_place_and_times_in_order() -> None:
    estimator, queue = _waiting(3)
    before = len(queue.pending)
    found = estimator.estimate(queue, 60 * SECOND_US)
    assert [e.position for e in found.values()] == [1, 2, 3]
    assert all(e.method == "forward" and e.p50_us <= e.p90_us for e in found.values())
    p50 = [e.p50_us for e in found.values()]
    assert p50 == sorted(p50)
    assert len(queue.pending) == before


def test_estimating_twice_gives_the_same_and_changes_nothing() -> None:
    estimator, queue = _waiting(3)
    assert estimator.estimate(queue, 60 * SECOND_US) == estimator.estimate(queue, 60 * SECOND_US)


def test_impossible_and_quota_stopped_jobs_get_a_reason_and_no_time() -> None:
    estimator, queue = _waiting(1)
    queue.submit(job("huge", gpus=16, at_s=60), HOUR_US)
    found = estimator.estimate(queue, 60 * SECOND_US)
    assert found["huge"].p50_us is None
    assert "could not hold" in found["huge"].reason
    assert found["w0"].p50_us is not None


def test_a_start_is_scored_from_the_first_estimate() -> None:
    estimator, queue = _waiting(1)
    estimator.estimate(queue, 60 * SECOND_US)
    queue.ended("first", HOUR_US)
    estimator.cycled(queue.cycle(HOUR_US), HOUR_US)
    assert [s.waited_us for s in estimator.scored] == [HOUR_US - 60 * SECOND_US]


def test_one_run_serves_who_comes_soon_after_until_they_are_many() -> None:
    estimator, queue = _waiting(3)
    estimator.reach = replace(_REACH, fresh_us=600 * SECOND_US)
    estimator.estimate(queue, 60 * SECOND_US)
    runs, told = [estimator.latest], []
    for i in range(6):
        queue.submit(job(f"x{i}", gpus=8, at_s=70 + i), HOUR_US)
        told.append(estimator.estimate(queue, (70 + i) * SECOND_US, [f"x{i}"])[f"x{i}"])
        if estimator.latest is not runs[-1]:
            runs.append(estimator.latest)
    assert all(e.method == "forward" and (e.p50_us or 0) > e.at_us for e in told)
    assert len(runs) == 2
    queue.submit(job("y", gpus=8, at_s=900), HOUR_US)
    estimator.estimate(queue, 900 * SECOND_US, ["y"])
    assert estimator.latest is not runs[-1]


def test_jobs_asked_for_together_are_told_alike() -> None:
    estimator, queue = _waiting(9)
    estimator.calibration = Calibration(kept=5)
    now = 60 * SECOND_US
    for i in range(5):
        estimator.calibration.told(f"old{i}", "8+", estimator.calibration.answer("8+", (HOUR_US, HOUR_US), None, 0))
        estimator.calibration.started(f"old{i}", now)
    before = deepcopy(estimator.calibration)
    for found in estimator.estimate(queue, now).values():
        if found.method == "forward":
            bound = None if found.bound50_us is None else (found.bound50_us, found.bound90_us or 0)
            alone = before.answer("8+", (found.raw50_us or 0, found.raw90_us or 0), bound, now)
            assert (found.p50_us, found.p90_us) == (now + alone.chosen[0], now + alone.chosen[1])


_STREAMS = st.lists(
    st.tuples(st.integers(0, 3600), st.integers(1, 7200), st.sampled_from([1, 2, 4, 8]), st.sampled_from("ab")),
    min_size=4, max_size=9,
)  # fmt: skip


@settings(max_examples=12, deadline=None)
@given(stream=_STREAMS, which=st.integers(0, 8), longer=st.integers(1, 10**5))
def test_a_run_that_has_not_ended_has_no_say(stream: list[tuple[int, int, int, str]], which: int, longer: int) -> None:
    runs = [
        TraceRun(job(f"j{i:02}", queue=team, gpus=gpus, at_s=at), run_s * SECOND_US)
        for i, (at, run_s, gpus, team) in enumerate(sorted(stream))
    ]
    changed = runs[which % len(runs)]
    others = [replace(r, duration_us=r.duration_us + longer * SECOND_US) if r is changed else r for r in runs]
    told = [_told(r) for r in (runs, others)]
    end = told[0][1][changed.job.job_id]
    before = [repr([e for e in estimates if e.at_us < end]) for estimates, _ in told]
    assert before[0] == before[1]


def _told(runs: list[TraceRun]) -> tuple[list[Estimate], dict[str, int]]:
    setting = Setting("strandline", nodes=tuple(nodes(8)), queues={q.name: q for q in queues(a=None, b=None)})
    out, watcher = replay_estimating(runs, setting, Sample(), _REACH)
    return list(watcher.estimator.log), out.ended_us
