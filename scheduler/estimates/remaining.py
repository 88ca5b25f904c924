"""How long runs last, drawn for one future: of a running job the rest, given that it runs still.

In one future each batch has one level, drawn by what it has shown (`cohorts.py`), and its jobs lie around it. Drawn on
their own, the run times of hundreds of jobs that came together average out, and the spread of futures is far too
narrow. Belongs here: draws. Not here: what is known (`cohorts.py`), who arrives (`arrivals.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.estimates.cohorts import PARTS, SCALES, Cohort, Cohorts, Key, Levels, survival
from scheduler.model import HOUR_US, Job

_LONGEST_US = 60 * 24 * HOUR_US
# A drawn level lies about one of the candidates, which are few.
_JITTER = 0.15


class RunTimes(Cohorts):
    """What has run so far. Times in microseconds."""

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[Cohort | Key, Levels] = {}
        self._told_at: int | None = None

    def future(self, rng: np.random.Generator, now: int) -> Lengths:
        """Run times of one future as it may come, seen from `now`."""
        return Lengths(self, rng, now)

    def levels(self, job: Job, now: int) -> tuple[Cohort | Key, Levels]:
        """Whose level it is, and what it may be: that of the job's batch, or of a new one like it."""
        if self._told_at != now or self._at != now:
            self._told, self._told_at = {}, now
        cohort = self.of(job.job_id)
        name: Cohort | Key = (job.team, job.gpu_milli) if cohort is None else cohort
        if name not in self._told:
            self._told[name] = self.prior(job, now) if cohort is None else self.posterior(cohort, job, now)
        return name, self._told[name]


class Lengths:
    """Run times in one future."""

    def __init__(self, times: RunTimes, rng: np.random.Generator, now: int) -> None:
        self.times, self.rng, self.now = times, rng, now
        # the level of each batch (log us)
        self.drawn: dict[Cohort | Key, float] = {}

    def rest(self, jobs: Sequence[Job], elapsed_us: Sequence[int]) -> np.ndarray:
        """What is left to each job (us), at least 1; a limit bounds it."""
        levels = np.zeros(len(jobs))
        for i, job in enumerate(jobs):
            name, known = self.times.levels(job, self.now)
            if name not in self.drawn:
                self.drawn[name] = self._draw(known)
            levels[i] = self.drawn[name]
        return self._around(levels, jobs, np.asarray(elapsed_us, dtype=np.int64))

    def batch(self, jobs: Sequence[Job]) -> tuple[int, np.ndarray]:
        """(typical, each) run times of jobs that come together and are alike (us)."""
        level = self._draw(self.times.levels(jobs[0], self.now)[1])
        zeros = np.zeros(len(jobs), dtype=np.int64)
        return round(np.exp(level)), self._around(np.full(len(jobs), level), jobs, zeros)

    def typical_us(self, job_id: str) -> int | None:
        """The run time that is typical of a job's batch in this future, where any of it was drawn."""
        cohort = self.times.of(job_id)
        return round(np.exp(self.drawn[cohort])) if cohort is not None and cohort in self.drawn else None

    def _draw(self, known: Levels) -> float:
        level = float(known.draw(self.rng.random(1))[0]) + float(self.rng.normal()) * _JITTER
        return min(level, float(np.log(_LONGEST_US)))

    def _around(self, levels: np.ndarray, jobs: Sequence[Job], elapsed: np.ndarray) -> np.ndarray:
        left = survival(np.log(np.maximum(elapsed, 1)) - levels)
        left[elapsed <= 0] = PARTS
        draws = self.rng.random((2, len(jobs)))
        which = (draws[0] * left.sum(axis=1) >= left[:, 0]).astype(np.int64)
        survives = np.clip(draws[1] * left[np.arange(len(jobs)), which] / PARTS[which], 1e-15, 1 - 1e-15)
        logs = levels + SCALES[which] * np.log((1.0 - survives) / survives)
        found = np.exp(np.minimum(logs, np.log(_LONGEST_US))).astype(np.int64)
        limits = np.array([j.limit_us if j.limit_us is not None else np.iinfo(np.int64).max for j in jobs])
        return np.maximum(np.minimum(found, limits) - elapsed, 1)
