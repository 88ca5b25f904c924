"""Predicted run times: exact (for comparison), or from what happened before, never from anything later.

Belongs here: one number for a job, and when it changes. Not here: what jobs that came together tell of each other
(`batches.py`), start estimates with their uncertainty (`estimates`).
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Mapping
from typing import Protocol

from scheduler.batches import Batches
from scheduler.model import HOUR_US, Job

# How many ended runs a group remembers: enough for a median, few enough to follow a change of habits.
MEMORY = 100
PRIOR_US = HOUR_US


class Predictor(Protocol):
    """Predicts run times (us) and learns from what becomes of the jobs.

    It is told of a job that comes (`submitted`), starts, ends after running for `duration_us`, or leaves before its end
    (`left`: withdrawn, or stopped). `predict` changes nothing and may be asked of jobs that never come.
    """

    def predict(self, job: Job) -> int: ...

    def submitted(self, job: Job) -> None: ...

    def started(self, job: Job, now: int) -> None: ...

    def ended(self, job: Job, duration_us: int) -> None: ...

    def left(self, job: Job) -> None: ...

    def revised(self, now: int) -> Mapping[str, int]:
        """Predictions that have changed since it was asked last, of jobs that wait or run, by id."""
        ...


class Exact:
    """Knows every duration, so that nothing is left to learn."""

    def __init__(self, durations: Mapping[str, int]) -> None:
        self._durations = durations

    def predict(self, job: Job) -> int:
        """The true run time."""
        return self._durations[job.job_id]

    def submitted(self, job: Job) -> None:
        """Nothing to learn."""

    def started(self, job: Job, now: int) -> None:
        """Nothing to learn."""

    def ended(self, job: Job, duration_us: int) -> None:
        """Nothing to learn."""

    def left(self, job: Job) -> None:
        """Nothing to learn."""

    def revised(self, now: int) -> Mapping[str, int]:
        """Nothing ever changes."""
        return {}


class History:
    """What its batch has shown; before that the median of the last runs of the team and size, of the size, or of all.

    A user's own estimate, where there is one, bounds nothing but is the guess before there is any history.
    """

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], _Window] = {}
        self._batches = Batches()

    def predict(self, job: Job) -> int:
        """Its batch's run time; else the median of the most specific group that has ended at least three times."""
        believed = self._batches.believed_us(job)
        return believed if believed is not None else self._median(job)

    def _median(self, job: Job) -> int:
        for key in self._keys(job):
            window = self._runs.get(key)
            if window is not None and len(window) >= 3:
                return window.median()
        return job.estimate_us or job.limit_us or PRIOR_US

    def submitted(self, job: Job) -> None:
        """A job has come for the first time."""
        self._batches.submitted(job, self._median(job))

    def started(self, job: Job, now: int) -> None:
        """A job has started for the first time."""
        self._batches.started(job.job_id, now)

    def ended(self, job: Job, duration_us: int) -> None:
        """A run has ended after `duration_us`."""
        self._batches.ended(job.job_id, duration_us)
        for key in self._keys(job):
            self._runs.setdefault(key, _Window()).add(duration_us)

    def left(self, job: Job) -> None:
        """A job was withdrawn or stopped: how long it would have run is not known."""
        self._batches.left(job.job_id)

    def revised(self, now: int) -> Mapping[str, int]:
        """Predictions of all jobs of a batch that has shown something new."""
        return self._batches.revised(now)

    def _keys(self, job: Job) -> tuple[tuple[str, int], ...]:
        return ((job.team, job.gpu_milli), ("", job.gpu_milli), ("", -1))


class _Window:
    """The last `MEMORY` values, sorted beside their order of arrival."""

    def __init__(self) -> None:
        self.order: deque[int] = deque()
        self.sorted: list[int] = []

    def __len__(self) -> int:
        return len(self.order)

    def add(self, value: int) -> None:
        self.order.append(value)
        insort(self.sorted, value)
        if len(self.order) > MEMORY:
            self.sorted.remove(self.order.popleft())

    def median(self) -> int:
        return self.sorted[len(self.sorted) // 2]
