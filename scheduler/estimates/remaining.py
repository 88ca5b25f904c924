"""How long runs last, sampled from what has run: of a running job the rest, given that it runs still.

Runs are kept by the order of their starts, ended or not, so that those that still run count as what they are: at least
as long as now (Kaplan and Meier, JASA 1958). A cohort of ended runs alone would hold too many short ones. Groups: team
and size, else size, else all; the first that has seen enough runs last longer than the job already has. Beyond all that
was seen, P(run > x | run > e) = e / x (Harchol-Balter and Downey, TOCS 1997): even odds that it runs as long again.

Belongs here: samples of run times. Not here: the one number that decisions believe (`scheduler.predict`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.model import HOUR_US, SECOND_US, Job

_Key = tuple[str, int]
# How many starts a group remembers: team and size, size, all.
MEMORY = (500, 2_000, 8_000)
# So many runs must have been seen to last longer than a job already has, for its group to tell about it.
ENOUGH = 5
# Before anything has ended; and a job that has only just started is taken to have run so long.
_PRIOR_US = HOUR_US
_LEAST_US = 60 * SECOND_US
_LONGEST = 30.0


@dataclass(eq=False)
class _Run:
    begun_us: int
    duration_us: int | None = None


@dataclass(frozen=True)
class _Curve:
    """Survival after each distinct length seen: `survives[i]` is the share of runs longer than `lengths[i]` (us)."""

    lengths: np.ndarray
    survives: np.ndarray
    seen: np.ndarray

    def longer(self, elapsed: np.ndarray) -> np.ndarray:
        """How many ended runs were longer than each of `elapsed`."""
        return len(self.seen) - np.searchsorted(self.seen, elapsed, side="right")

    def sample(self, elapsed: np.ndarray, left: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Whole lengths (us) of runs that last longer than `elapsed`; `left`, `tail`: even draws of [0, 1) each."""
        place = np.searchsorted(self.lengths, elapsed, side="right")
        at = np.where(place > 0, self.survives[np.maximum(place - 1, 0)], 1.0)
        found = np.searchsorted(-self.survives, -(left * at[:, None]), side="left")
        is_seen = found < len(self.lengths)
        lengths = self.lengths[np.minimum(found, len(self.lengths) - 1)]
        beyond = np.maximum(lengths, elapsed[:, None]) * _pareto(tail)
        return np.where(is_seen, lengths, beyond.astype(np.int64))


class RunTimes:
    """What has run so far. Times in microseconds."""

    def __init__(self) -> None:
        self._groups: dict[_Key, deque[_Run]] = {}
        self._running: dict[str, _Run] = {}
        self._curves: dict[_Key, _Curve | None] = {}
        self._at = -1

    def started(self, job: Job, now: int) -> None:
        """A gang has started."""
        run = self._running[job.job_id] = _Run(now)
        for key, memory in zip(_keys(job), MEMORY, strict=True):
            self._groups.setdefault(key, deque(maxlen=memory)).append(run)
        self._at = -1

    def ended(self, job: Job, now: int) -> None:
        """A gang has run to its end."""
        run = self._running.pop(job.job_id, None)
        if run is not None:
            run.duration_us = now - run.begun_us
        self._at = -1

    def stopped(self, job: Job) -> None:
        """A gang was stopped before its end: how long it would have run is not known."""
        run = self._running.pop(job.job_id, None)
        if run is not None:
            for key in _keys(job):
                if run in (group := self._groups[key]):
                    group.remove(run)
        self._at = -1

    def rest(
        self, jobs: Sequence[Job], elapsed_us: Sequence[int], draws: int, rng: np.random.Generator, now: int
    ) -> np.ndarray:
        """(jobs, draws) run times that are left to each job, at least 1 us; a limit bounds them."""
        left, tail = rng.random((2, len(jobs), draws))
        elapsed = np.asarray(elapsed_us, dtype=np.int64)
        found = np.zeros((len(jobs), draws), dtype=np.int64)
        is_open = np.ones(len(jobs), dtype=bool)
        for level in range(len(MEMORY)):
            members: dict[_Key, list[int]] = {}
            for i in map(int, np.flatnonzero(is_open)):
                members.setdefault(_keys(jobs[i])[level], []).append(i)
            for key, all_rows in members.items():
                curve = self._curve(key, now)
                if curve is None:
                    continue
                rows = np.array(all_rows)
                rows = rows[curve.longer(elapsed[rows]) >= ENOUGH]
                found[rows] = curve.sample(elapsed[rows], left[rows], tail[rows])
                is_open[rows] = False
        rows = np.flatnonzero(is_open)
        known = np.where(elapsed[rows] > 0, np.maximum(elapsed[rows], _LEAST_US), _PRIOR_US // 2)
        found[rows] = (known[:, None] * _pareto(tail[rows])).astype(np.int64)
        rest = np.maximum(found - elapsed[:, None], 1)
        limits = np.array([j.limit_us if j.limit_us is not None else np.iinfo(np.int64).max for j in jobs])
        return np.maximum(np.minimum(rest, limits.reshape(-1, 1) - elapsed[:, None]), 1)

    def _curve(self, key: _Key, now: int) -> _Curve | None:
        """Kaplan-Meier over the group's last starts; None where too few have ended."""
        if self._at != now:
            self._curves, self._at = {}, now
        if key not in self._curves:
            self._curves[key] = _fitted(self._groups.get(key, ()), now)
        return self._curves[key]


def _fitted(runs: Sequence[_Run] | deque[_Run], now: int) -> _Curve | None:
    seen = np.sort(np.array([r.duration_us for r in runs if r.duration_us is not None], dtype=np.int64))
    if len(seen) < ENOUGH:
        return None
    running = np.sort(np.array([now - r.begun_us for r in runs if r.duration_us is None], dtype=np.int64))
    lengths, ends = np.unique(seen, return_counts=True)
    at_risk = len(seen) - np.searchsorted(seen, lengths) + len(running) - np.searchsorted(running, lengths)
    return _Curve(lengths, np.cumprod(1.0 - ends / at_risk), seen)


def _pareto(even: np.ndarray) -> np.ndarray:
    return np.minimum(1.0 / (1.0 - even), _LONGEST)


def _keys(job: Job) -> tuple[_Key, _Key, _Key]:
    return ((job.team, job.gpu_milli), ("", job.gpu_milli), ("", -1))
