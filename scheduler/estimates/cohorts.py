"""What run times batches have shown so far, as weighted levels: the logarithm of a batch's typical run time.

A batch is what `scheduler.batches` calls one: jobs of a team and size submitted one after the other within a minute.
On the September part of the Philly trace logs of run times within a batch lie around its median as two logistic curves
do: three in four closely, one in four far (half of them within 0.1, a tenth beyond 0.5, a hundredth beyond 3); between
batches they differ far more. So the level of a batch is one unknown: before it has shown anything it is that of an
earlier batch of its team and size, more seldom of its size or of any, or, for what nobody has seen, any length with
odds that fall as it grows. Each run that has ended, and each that goes on (at least so long), weighs these candidates
by Bayes' rule.

Belongs here: candidates and weights. Not here: draws of run times (`remaining.py`), the one number that decisions
believe (`scheduler.predict`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.batches import follows, median_so_far_us
from scheduler.model import HOUR_US, SECOND_US, Job

Key = tuple[str, int]
# Batches that a group remembers: team and size, size, all; and how many of the first kind the others and what nobody
# has seen count for together.
MEMORY = (60, 100, 150)
_WORTH = (0.0, 4.0, 1.0, 1.0)
# Run times around the level of their batch: parts and scales of two logistic curves (logs).
PARTS = np.array([0.75, 0.25])
SCALES = np.array([0.10, 0.70])
# Of one batch so many runs, ended or not, tell of its level.
_TELLING = 40
_GRID = np.log(np.geomspace(10 * SECOND_US, 60 * 24 * HOUR_US, 40))
_GRID_WEIGHTS = 1.0 / np.maximum(np.exp(_GRID) / HOUR_US, 1.0)
_SOFT_US = SECOND_US


@dataclass(eq=False)
class Cohort:
    """One batch: when its first and its last job were submitted, what runs with its begin, lengths of what ended."""

    begun_us: int
    last_us: int
    running: dict[str, int] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=list)

    @property
    def duration_us(self) -> int | None:
        """Median of the ended runs; None before any."""
        return sorted(self.lengths)[len(self.lengths) // 2] if self.lengths else None

    def level(self, now: int) -> float | None:
        """Log of the Kaplan-Meier median of its runs, twice the longest where half go on; None before any has run."""
        found = self.duration_us
        if self.running:
            so_far = [now - begun for begun in self.running.values()]
            found = median_so_far_us(self.lengths, so_far)
            found = 2 * max(so_far) if found is None else found
        return math.log(max(found, _SOFT_US)) if found is not None else None


@dataclass(frozen=True)
class Levels:
    """Candidates for the level of one batch (log us), and their cumulated weights, up to 1."""

    values: np.ndarray
    upto: np.ndarray

    def draw(self, chance: np.ndarray) -> np.ndarray:
        """A level for each of `chance`, of [0, 1)."""
        place = np.searchsorted(self.upto, chance, side="right")
        return self.values[np.minimum(place, len(self.values) - 1)]


class Cohorts:
    """All batches of late, by team and size, by size and in all; times in microseconds."""

    def __init__(self) -> None:
        self._groups: dict[Key, deque[Cohort]] = {}
        self._of: dict[str, Cohort] = {}
        self._latest: dict[Key, Cohort] = {}
        self._priors: dict[Key, tuple[np.ndarray, np.ndarray]] = {}
        self._levels: dict[Cohort, float | None] = {}
        self._at: int | None = None

    def came(self, job: Job) -> None:
        """A job has come; nothing where it is known."""
        if job.job_id in self._of:
            return
        key = keys(job)[0]
        known = self._latest.get(key)
        if known is None or not follows(job, known.last_us):
            known = self._latest[key] = Cohort(job.submit_us, job.submit_us)
            for group, memory in zip(keys(job), MEMORY, strict=True):
                self._groups.setdefault(group, deque(maxlen=memory)).append(known)
        known.last_us = job.submit_us
        self._of[job.job_id] = known

    def of(self, job_id: str) -> Cohort | None:
        """The batch of a job that waits or runs."""
        return self._of.get(job_id)

    def started(self, job: Job, now: int) -> None:
        """A gang has started."""
        self.came(job)
        self._of[job.job_id].running[job.job_id] = now
        self._at = None

    def ended(self, job: Job, now: int) -> None:
        """A gang has run to its end."""
        cohort = self._of.pop(job.job_id, None)
        if cohort is not None and (begun := cohort.running.pop(job.job_id, None)) is not None:
            cohort.lengths.append(now - begun)
        self._at = None

    def stopped(self, job: Job) -> None:
        """A gang was stopped before its end, and comes again: how long it would have run is not known."""
        if (cohort := self._of.get(job.job_id)) is not None:
            cohort.running.pop(job.job_id, None)
        self._at = None

    def left(self, job_id: str) -> None:
        """A job has left for good before its end."""
        if (cohort := self._of.pop(job_id, None)) is not None:
            cohort.running.pop(job_id, None)
        self._at = None

    def prior(self, job: Job, now: int) -> Levels:
        """Levels of a batch that has shown nothing."""
        values, weights = self._prior(job, now)
        return Levels(values, np.cumsum(weights / weights.sum()))

    def posterior(self, cohort: Cohort, job: Job, now: int) -> Levels:
        """Levels of a batch by what it has shown; `job` is one of it."""
        values, weights = self._prior(job, now, cohort)
        logs = np.log(weights)
        if cohort.lengths:
            ended = np.log(np.maximum(cohort.lengths[-_TELLING:], _SOFT_US))
            logs = logs + np.log(_density(ended[:, None] - values[None, :])).sum(axis=0)
        if cohort.running:
            begun = list(cohort.running.values())
            so_far = np.log(np.maximum(now - np.array(begun[:: -(-len(begun) // _TELLING)]), _SOFT_US))
            logs = logs + np.log(survival(so_far[:, None] - values[None, :]).sum(axis=2)).sum(axis=0)
        likely = np.exp(logs - logs.max())
        return Levels(values, np.cumsum(likely / likely.sum()))

    def _prior(self, job: Job, now: int, without: Cohort | None = None) -> tuple[np.ndarray, np.ndarray]:
        if self._at != now:
            self._priors, self._levels, self._at = {}, {}, now
        key = keys(job)[0]
        if key not in self._priors:
            values, weights = [_GRID], [_WORTH[3] * _GRID_WEIGHTS / _GRID_WEIGHTS.sum()]
            for group, worth in zip(keys(job), _WORTH, strict=False):
                found = np.array(self._known(self._groups.get(group, ()), now))
                if len(found):
                    values.append(found)
                    weights.append(np.full(len(found), worth / len(found) if worth else 1.0))
            self._priors[key] = np.concatenate(values), np.concatenate(weights)
        values_, weights_ = self._priors[key]
        own = self._levels.get(without) if without is not None else None
        if own is not None:
            # what it has shown itself is weighed on its own
            weights_ = np.where(values_ == own, 1e-9, weights_)
        return values_, weights_

    def _known(self, cohorts: Iterable[Cohort], now: int) -> Sequence[float]:
        found = []
        for cohort in cohorts:
            if cohort not in self._levels:
                self._levels[cohort] = cohort.level(now)
            if (level := self._levels[cohort]) is not None:
                found.append(level)
        return found


def survival(distance: np.ndarray) -> np.ndarray:
    """(…, part) the share of runs, in each part, longer than the level by `distance` (log)."""
    return PARTS / (1.0 + np.exp(np.clip(distance[..., None] / SCALES, -60, 60)))


def _density(distance: np.ndarray) -> np.ndarray:
    wide = np.clip(np.abs(distance)[..., None] / SCALES, 0, 60)
    return (PARTS / SCALES * np.exp(-wide) / (1.0 + np.exp(-wide)) ** 2).sum(axis=-1)


def keys(job: Job) -> tuple[Key, Key, Key]:
    """Groups that a job belongs to: team and size, size, all."""
    return ((job.team, job.gpu_milli), ("", job.gpu_milli), ("", -1))
