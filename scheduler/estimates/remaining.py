"""How long runs last, sampled from what has run: of a running job the rest, given that it runs still.

Runs are kept by the order of their starts, ended or not, so that those that still run count as what they are: at least
as long as now (Kaplan and Meier, JASA 1958). A cohort of ended runs alone would hold too many short ones. Groups: team
and size, else size, else all; the first that has seen enough runs last longer than the job already has. Beyond all that
was seen, P(run > x | run > e) = e / x (Harchol-Balter and Downey, TOCS 1997): even odds that it runs as long again.

Runs that come together are alike: one future draws a team's run times from one stretch of its starts, most often the
latest, so that futures differ as much as stretches of the past did. Where that stretch has seen no run as long, the
wider groups tell.

Belongs here: samples of run times. Not here: the one number that decisions believe (`scheduler.predict`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.model import HOUR_US, SECOND_US, Job

_Key = tuple[str, int]
# Starts of one stretch, and how often it is the latest one.
STRETCH = 60
_LATEST = 0.5
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

    def tells(self, elapsed: np.ndarray) -> np.ndarray:
        """Whether enough ended runs were longer than each of `elapsed`."""
        return len(self.seen) - np.searchsorted(self.seen, elapsed, side="right") >= ENOUGH

    def sample(self, elapsed: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Whole lengths (us) of runs that last longer than `elapsed`; 0 for longer than all seen. `left`: of [0, 1)."""
        place = np.searchsorted(self.lengths, elapsed, side="right")
        at = np.where(place > 0, self.survives[np.maximum(place - 1, 0)], 1.0)
        found = np.searchsorted(-self.survives, -(left * at), side="left")
        return np.where(found < len(self.lengths), self.lengths[np.minimum(found, len(self.lengths) - 1)], 0)


class RunTimes:
    """What has run so far. Times in microseconds."""

    def __init__(self) -> None:
        self._groups: dict[_Key, deque[_Run]] = {}
        self._running: dict[str, _Run] = {}
        self._curves: dict[_Key, _Curve | None] = {}
        self._at: int | None = None

    def started(self, job: Job, now: int) -> None:
        """A gang has started."""
        run = self._running[job.job_id] = _Run(now)
        for key, memory in zip(_keys(job), MEMORY, strict=True):
            self._groups.setdefault(key, deque(maxlen=memory)).append(run)
        self._at = None

    def ended(self, job: Job, now: int) -> None:
        """A gang has run to its end."""
        run = self._running.pop(job.job_id, None)
        if run is not None:
            run.duration_us = now - run.begun_us
        self._at = None

    def stopped(self, job: Job) -> None:
        """A gang was stopped before its end: how long it would have run is not known."""
        run = self._running.pop(job.job_id, None)
        if run is not None:
            for key in _keys(job):
                if run in (group := self._groups[key]):
                    group.remove(run)
        self._at = None

    def future(self, rng: np.random.Generator, now: int) -> Lengths:
        """Run times of one future as it may come, seen from `now`."""
        return Lengths(self, rng, now)

    def curve(self, key: _Key, now: int) -> _Curve | None:
        """Kaplan-Meier over the group's last starts; None where too few have ended."""
        if self._at != now:
            self._curves, self._at = {}, now
        if key not in self._curves:
            self._curves[key] = _fitted(self._groups.get(key, ()), now)
        return self._curves[key]

    def stretch(self, key: _Key, rng: np.random.Generator, now: int) -> _Curve | None:
        """The same over one stretch of the group's starts."""
        runs = self._groups.get(key, deque())
        latest = max(len(runs) - STRETCH, 0)
        first = latest if rng.random() < _LATEST else int(rng.integers(latest + 1))
        return _fitted(list(runs)[first : first + STRETCH], now)


class Lengths:
    """Run times in one future."""

    def __init__(self, times: RunTimes, rng: np.random.Generator, now: int) -> None:
        self.times, self.rng, self.now = times, rng, now
        self._stretches: dict[_Key, _Curve | None] = {}

    def rest(self, jobs: Sequence[Job], elapsed_us: Sequence[int]) -> np.ndarray:
        """What is left to each job (us), at least 1; a limit bounds it."""
        given = np.asarray(elapsed_us, dtype=np.int64)
        elapsed, found = given.copy(), np.zeros(len(jobs), dtype=np.int64)
        draws = self.rng.random((len(MEMORY) + 2, len(jobs)))
        for level in range(len(MEMORY) + 1):
            members: dict[_Key, list[int]] = {}
            for i in map(int, np.flatnonzero(found == 0)):
                members.setdefault(_keys(jobs[i])[max(level - 1, 0)], []).append(i)
            for key, indices in members.items():
                curve = self._stretch(key) if level == 0 else self.times.curve(key, self.now)
                if curve is None:
                    continue
                rows = np.array(indices)
                rows = rows[curve.tells(elapsed[rows])]
                found[rows] = curve.sample(elapsed[rows], draws[level, rows])
                # longer than all of this group: a wider one tells how much
                beyond = rows[found[rows] == 0]
                elapsed[beyond] = np.maximum(elapsed[beyond], curve.lengths[-1])
        rows = np.flatnonzero(found == 0)
        known = np.where(elapsed[rows] > 0, np.maximum(elapsed[rows], _LEAST_US), _PRIOR_US // 2)
        found[rows] = (known * np.minimum(1.0 / (1.0 - draws[-1, rows]), _LONGEST)).astype(np.int64)
        limits = np.array([j.limit_us if j.limit_us is not None else np.iinfo(np.int64).max for j in jobs])
        return np.maximum(np.minimum(found, limits) - given, 1)

    def _stretch(self, key: _Key) -> _Curve | None:
        if key not in self._stretches:
            self._stretches[key] = self.times.stretch(key, self.rng, self.now)
        return self._stretches[key]


def _fitted(group: Iterable[_Run], now: int) -> _Curve | None:
    runs = list(group)
    seen = np.sort(np.array([r.duration_us for r in runs if r.duration_us is not None], dtype=np.int64))
    if len(seen) < ENOUGH:
        return None
    running = np.sort(np.array([now - r.begun_us for r in runs if r.duration_us is None], dtype=np.int64))
    lengths, ends = np.unique(seen, return_counts=True)
    at_risk = len(seen) - np.searchsorted(seen, lengths) + len(running) - np.searchsorted(running, lengths)
    return _Curve(lengths, np.cumprod(1.0 - ends / at_risk), seen)


def _keys(job: Job) -> tuple[_Key, _Key, _Key]:
    return ((job.team, job.gpu_milli), ("", job.gpu_milli), ("", -1))
