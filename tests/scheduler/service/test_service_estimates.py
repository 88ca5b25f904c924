"""Start estimates in the service: what is told, what is logged, and that a restart has learnt all of it."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
from queue_service import queues, submit, world

from scheduler.model import SECOND_US, Queue
from scheduler.placement.bestfit import place
from scheduler.policy import POLICIES
from scheduler.service import views
from scheduler.service.core import QueueService
from scheduler.service.estimating import Background, Estimates, Found, Inline, Runner, Start
from scheduler.service.log import Event, EventLog
from scheduler.service.worlds import FakeWorld


def service(folder: Path, fleet: FakeWorld, runner: Runner | None, of: dict[str, Queue] | None = None) -> QueueService:
    """A service whose log is in the folder, with estimates of that runner."""
    log = EventLog(folder / "queue.db")
    return QueueService(log, fleet, POLICIES["strandline"], of or queues(a=None, b=None), placer=place, runner=runner)


def steps(queue: QueueService, fleet: FakeWorld, n: int, seconds: float = 30) -> None:
    for _ in range(n):
        assert queue.tick()
        fleet.advance(seconds)


def busy(queue: QueueService, fleet: FakeWorld) -> None:
    """Forty jobs of 30 to 120 s on four GPUs, some of them through."""
    for i in range(40):
        submit(queue, f"j{i}", "ab"[i % 2], gpus=1 + i % 3, run_s=30 + i % 4 * 30)
    steps(queue, fleet, 12)


def logged(queue: QueueService, job_id: str) -> list[Event]:
    return [e for e in queue.log.events(job_id=job_id) if e.kind == "estimated"]


def test_a_job_that_waits_is_told_times_and_the_first_is_logged_once(tmp_path: Path) -> None:
    fleet = world(4)
    queue = service(tmp_path, fleet, Inline())
    busy(queue, fleet)
    waiting = [job_id for job_id in queue.positions if queue.records.entries[job_id].told == "time"]
    assert len(waiting) > 5
    for job_id in waiting:
        entry = queue.records.entries[job_id]
        told = views.status(queue, entry, {})
        assert told.position == queue.positions[job_id]
        assert told.start.p50_at is not None
        assert told.start.p90_at is not None
        assert told.start.p50_at <= told.start.p90_at
        assert [bool(e.payload and e.payload["p50_us"]) for e in logged(queue, job_id)].count(True) == 1
    assert logged(queue, "j0") == []
    steps(queue, fleet, 60)
    assert not queue.positions
    assert views.status(queue, queue.records.entries["j39"], {}).start.reason == "it is succeeded"


def test_a_blocked_job_gets_its_reason_and_no_time(tmp_path: Path) -> None:
    fleet = world(8)
    only = {name: q for name, q in queues(a=2, b=None).items()}
    only["a"] = Queue("a", quotas=only["a"].quotas)
    queue = service(tmp_path, fleet, Inline(), only)
    submit(queue, "first", "a", gpus=2, run_s=None)
    submit(queue, "second", "a", gpus=2, run_s=None)
    steps(queue, fleet, 3, 1)
    start = views.status(queue, queue.records.entries["second"], {}).start
    assert (start.p50_at, start.p90_at) == (None, None)
    assert "may hold no more" in start.reason
    (event,) = logged(queue, "second")
    assert event.reason == start.reason
    assert event.payload is not None
    assert event.payload["p50_us"] is None


def test_without_an_estimator_the_answer_says_so(tmp_path: Path) -> None:
    fleet = world(1)
    queue = service(tmp_path, fleet, None)
    submit(queue, "runs", run_s=None)
    submit(queue, "waits", run_s=None)
    queue.tick()
    assert "not estimated" in views.status(queue, queue.records.entries["waits"], {}).start.reason


def learnt(queue: QueueService) -> list[object]:
    """All that the estimator knows, as far as it changes answers."""
    learner = queue.records.learner
    assert learner is not None
    estimator, now = learner.estimator, queue.now
    found: list[object] = [estimator.arrivals.known(now).jobs, estimator.bounds._waits, estimator.bounds._misses]
    for key, runs in sorted(estimator.times._groups.items()):
        found.append((key, [(r.begun_us, r.duration_us) for r in runs]))
    for kind in ("1", "2-7"):
        answer = learner.calibration.answer(kind, (60 * SECOND_US, 90 * SECOND_US), (10, 20), now)
        found += [kind, answer.mixed.tolist(), answer.corrected.tolist(), answer.chosen]
    return found


def test_a_restart_has_learnt_what_was_learnt_before(tmp_path: Path) -> None:
    fleet = world(4)
    queue = service(tmp_path, fleet, Inline())
    busy(queue, fleet)
    queue.cancel(next(iter(queue.positions)), "a")
    fleet.pods.pop(next(iter(fleet.pods)))
    steps(queue, fleet, 4)
    before = learnt(queue)
    assert any(e.told == "time" and e.started_us for e in queue.records.entries.values())
    queue.log.close()
    again = service(tmp_path, fleet, Inline())
    assert learnt(again) == before


def test_estimates_that_come_late_hold_neither_ticks_nor_requests_up(tmp_path: Path) -> None:
    fleet = world(1)
    runner = Background(every_s=0)
    queue = service(tmp_path, fleet, runner)
    release, begun = threading.Event(), threading.Event()
    original = runner.begin

    def slow(compute: object) -> None:
        def held() -> Found:
            begun.set()
            release.wait(30)
            return compute()  # type: ignore[operator]

        original(held)

    runner.begin = slow  # type: ignore[method-assign]
    submit(queue, "runs", run_s=40)
    submit(queue, "waits", run_s=40)
    queue.tick()
    assert begun.wait(10)
    assert views.status(queue, queue.records.entries["waits"], {}).start.reason == "not estimated yet"
    submit(queue, "later")
    fleet.advance(41)
    steps(queue, fleet, 3, 1)
    assert queue.records.entries["waits"].life.state == "running"
    release.set()
    for _ in range(200):
        if runner._found is not None:
            break
        threading.Event().wait(0.02)
    queue.tick()
    # it has started meanwhile: what was found of it is not told any more
    assert logged(queue, "waits") == []


def test_a_run_that_fails_leaves_the_last_answers(tmp_path: Path) -> None:
    runner = Background(every_s=0)

    def fails() -> Found:
        raise RuntimeError("on purpose")

    runner.begin(fails)
    for _ in range(200):
        if not runner._is_busy:
            break
        threading.Event().wait(0.01)
    assert runner.take() is None
    known = Estimates(runner)
    known.starts["j"] = Start(5, 9)
    assert known.of("j", 7) == Start(7, 9)
    assert known.of("k", 7).reason == "not estimated yet"


def test_answers_in_the_log_that_have_another_form_tell_nothing(tmp_path: Path) -> None:
    queue = service(tmp_path, world(1), Inline())
    submit(queue, "j")
    learner = queue.records.learner
    assert learner is not None
    payload = {
        "at_us": 1, "size_class": "1", "p50_us": 2, "p90_us": 3, "mixed": np.zeros((2, 2)).tolist(),
        "corrected": np.zeros((2, 2)).tolist(),
    }  # fmt: skip
    learner.hear(Event(5, "estimated", "j", payload), queue.records.entries["j"], had_run=False)
    assert learner.calibration._open == {}
