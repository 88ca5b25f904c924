"""Predicted run times: exact (for comparison), or from what ended before, never from anything later.

Belongs here: one number for a job. Not here: start estimates with their uncertainty (`estimates`).
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Mapping
from typing import Protocol

from scheduler.model import HOUR_US, Job

# How many ended runs a group remembers: enough for a median, few enough to follow a change of habits.
MEMORY = 100
PRIOR_US = HOUR_US


class Predictor(Protocol):
    """Predicts run times (us) and learns from runs as they end."""

    def predict(self, job: Job) -> int: ...

    def ended(self, job: Job, duration_us: int) -> None: ...


class Exact:
    """Knows every duration."""

    def __init__(self, durations: Mapping[str, int]) -> None:
        self._durations = durations

    def predict(self, job: Job) -> int:
        """The true run time."""
        return self._durations[job.job_id]

    def ended(self, job: Job, duration_us: int) -> None:
        """Nothing is left to learn."""


class History:
    """The median of the last runs of the same team and size; else of the size, else of all, else an hour.

    A user's own estimate, where there is one, bounds nothing but is the guess before there is any history.
    """

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], _Window] = {}

    def predict(self, job: Job) -> int:
        """Median run time of the most specific group that has ended at least three times."""
        for key in self._keys(job):
            window = self._runs.get(key)
            if window is not None and len(window) >= 3:
                return window.median()
        return job.estimate_us or job.limit_us or PRIOR_US

    def ended(self, job: Job, duration_us: int) -> None:
        """A run has ended after `duration_us`."""
        for key in self._keys(job):
            self._runs.setdefault(key, _Window()).add(duration_us)

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
