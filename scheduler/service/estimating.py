"""Start estimates beside the cycle: on a copy of the state, in a thread of their own, one run at a time.

A run of many waiting jobs takes seconds; neither requests nor cycles wait for it. The tick copies scheduler and
estimator (some milliseconds), a thread computes, and a later tick takes what it found: the first answer to each job
goes to the log. The thread rests between runs, and at least three times as long as a run took, so that estimates have a
quarter of one processor at most. Belongs here: pace, copies, what is told and logged of an answer. Not here: estimates
(`scheduler.estimates`), what they learn from (`learning.py`).
"""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from scheduler.cycle import Scheduler
from scheduler.estimates.calibrate import Answer
from scheduler.estimates.estimator import Estimator
from scheduler.estimates.record import Estimate
from scheduler.service.journal import Journal
from scheduler.service.learning import Collecting, estimate_json

log = logging.getLogger(__name__)
_REST = 3.0


@dataclass(frozen=True)
class Start:
    """When a waiting job is expected to start (us): by `p50_us` in half of such cases, by `p90_us` in nine of ten.

    None with a `reason` where there is no time to give.
    """

    p50_us: int | None
    p90_us: int | None
    reason: str = ""


NOT_YET = Start(None, None, "not estimated yet")
NEVER = Start(None, None, "start times are not estimated by this service")
AWAY = Start(None, None, "it was stopped and waits to be queued again")


@dataclass(frozen=True)
class Found:
    """Estimates of one run, made as of `at_us`, and the answers of those that were calibrated."""

    at_us: int
    estimates: Mapping[str, Estimate]
    answers: Mapping[str, tuple[str, Answer]]


class Runner(Protocol):
    """Who computes a run."""

    def is_due(self) -> bool: ...

    def begin(self, compute: Callable[[], Found]) -> None: ...

    def take(self) -> Found | None: ...


class Inline:
    """Computes at once, in whoever asks: for tests and small queues."""

    def __init__(self) -> None:
        self._found: Found | None = None

    def is_due(self) -> bool:
        """Always."""
        return True

    def begin(self, compute: Callable[[], Found]) -> None:
        """Compute."""
        self._found = compute()

    def take(self) -> Found | None:
        """What was found since."""
        found, self._found = self._found, None
        return found


class Background:
    """Computes in a daemon thread, `every_s` after the last run ended at the earliest."""

    def __init__(self, every_s: float = 15.0) -> None:
        self.every_s = every_s
        self._lock = threading.Lock()
        self._found: Found | None = None
        self._is_busy = False
        self._next_s = 0.0

    def is_due(self) -> bool:
        """Whether the thread has rested enough."""
        with self._lock:
            return not self._is_busy and time.monotonic() >= self._next_s

    def begin(self, compute: Callable[[], Found]) -> None:
        """Compute in a thread; only when it is due."""
        with self._lock:
            self._is_busy = True
        threading.Thread(target=self._run, args=(compute,), name="queue-estimates", daemon=True).start()

    def _run(self, compute: Callable[[], Found]) -> None:
        begun, found = time.monotonic(), None
        try:
            found = compute()
        except Exception:
            # The queue goes on without: those who wait are told the last answers, newcomers that there is none yet.
            log.exception("start estimates failed")
        with self._lock:
            took = time.monotonic() - begun
            self._found, self._is_busy = found, False
            self._next_s = time.monotonic() + max(self.every_s, _REST * took)

    def take(self) -> Found | None:
        """What was found since the last call."""
        with self._lock:
            found, self._found = self._found, None
            return found


class Estimates:
    """The last estimates of a queue. Call it under the queue's lock. `runner` None: nobody estimates."""

    def __init__(self, runner: Runner | None) -> None:
        self.runner = runner
        self.starts: dict[str, Start] = {}
        self._least_us = 0

    def of(self, job_id: str, now: int) -> Start:
        """What is known of a waiting job; no instant before now."""
        if self.runner is None:
            return NEVER
        found = self.starts.get(job_id, NOT_YET)
        if found.p50_us is None or found.p90_us is None:
            return found
        return Start(max(found.p50_us, now), max(found.p90_us, now))

    def forget(self, now: int) -> None:
        """The records were read anew: what a run found of the old ones is not taken."""
        self._least_us = now + 1

    def take(self, journal: Journal, now: int) -> None:
        """Take what a run has found; note the first answer to each job, and the first time after a reason."""
        found = self.runner.take() if self.runner is not None else None
        if found is None or found.at_us < self._least_us:
            return
        self.starts.clear()
        for job_id, estimate in found.estimates.items():
            entry = journal.records.entries.get(job_id)
            if entry is None or entry.life.state != "pending" or entry.life.reason != "queued":
                continue
            self.starts[job_id] = Start(estimate.p50_us, estimate.p90_us, estimate.reason)
            has_time = estimate.p50_us is not None
            if entry.told is None or (entry.told == "reason" and has_time):
                answer = found.answers[job_id][1] if job_id in found.answers and has_time else None
                journal.note("estimated", entry, now, estimate_json(estimate, answer), estimate.reason)

    def ask(self, journal: Journal, scheduler: Scheduler, now: int) -> None:
        """Begin a run over all that wait, if it is time."""
        learner = journal.records.learner
        if self.runner is None or learner is None or not self.runner.is_due():
            return
        if scheduler.pending.waiting or any(True for _ in scheduler.holds):
            # Bytes of our own state: nothing foreign is read, and nothing of the live state is shared with the thread.
            state = pickle.dumps((scheduler, learner.estimator), pickle.HIGHEST_PROTOCOL)
            self.runner.begin(lambda: _compute(state, now))


def _compute(state: bytes, now: int) -> Found:
    scheduler: Scheduler
    estimator: Estimator
    scheduler, estimator = pickle.loads(state)  # noqa: S301
    estimates = estimator.estimate(scheduler, now)
    calibration = estimator.calibration
    return Found(now, estimates, calibration.fresh if isinstance(calibration, Collecting) else {})
