"""The scalar pool: jobs as a number of GPUs and a duration on one pool of equal GPUs, by FIFO, EASY or conservative.

It knows no nodes and no queues, so published values can be recomputed with it, and the real cycle is compared with it.
At one instant ends come before arrivals and starts. With exact durations a backfilled job may end at the very instant
of the reservation. Belongs here: the three textbook policies. Not here: nodes, quota, fairness (the cycle), figures
(`metrics.py`).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

ScalarPolicy = Literal["fifo", "easy", "conservative"]
POLICIES: tuple[ScalarPolicy, ...] = ("fifo", "easy", "conservative")


@dataclass(frozen=True)
class ScalarJob:
    """A job of `gpus` equal units; times in microseconds. The policy believes `predicted_us`, not `duration_us`."""

    submit_us: int
    duration_us: int
    gpus: int
    predicted_us: int


class Learner(Protocol):
    """Predicts run times (us) of jobs by their index as they come, from what has happened by then, and anew later."""

    def predict(self, job: int) -> int: ...

    def started(self, job: int, now: int) -> None: ...

    def ended(self, job: int) -> None: ...

    def revised(self, now: int) -> Mapping[int, int]: ...


class _Pool:
    """Free GPUs, what runs, and when the policy believes it ends."""

    def __init__(self, size: int, jobs: Sequence[ScalarJob], learner: Learner | None) -> None:
        self.free = size
        self.jobs = jobs
        self.learner = learner
        self.predicted = np.array([j.predicted_us for j in jobs], dtype=np.int64)
        self.starts = np.full(len(jobs), -1, dtype=np.int64)
        self.ends: list[tuple[int, int]] = []
        # (believed end, job) of what runs; entries of ended jobs are skipped
        self.believed: list[tuple[int, int]] = []
        self.running: set[int] = set()

    def start(self, job: int, now: int) -> None:
        run = self.jobs[job]
        self.free -= run.gpus
        self.starts[job] = now
        self.running.add(job)
        if self.learner is not None:
            self.learner.started(job, now)
        heapq.heappush(self.ends, (now + run.duration_us, job))

    def end_until(self, now: int) -> None:
        while self.ends and self.ends[0][0] <= now:
            _, job = heapq.heappop(self.ends)
            self.running.remove(job)
            self.free += self.jobs[job].gpus
            if self.learner is not None:
                self.learner.ended(job)

    def releases(self, now: int) -> list[tuple[int, int]]:
        """(instant, GPUs) that running jobs are believed to give back, in order; what is overdue ends in a moment."""
        return sorted((max(int(self.starts[j] + self.predicted[j]), now + 1), self.jobs[j].gpus) for j in self.running)


def run_scalar(
    jobs: Sequence[ScalarJob], size: int, policy: ScalarPolicy, learner: Learner | None = None
) -> np.ndarray:
    """Start time of every job in microseconds, -1 for one that never starts (more GPUs than the pool has).

    `jobs` are in the order of the queue: submission, then id. With a learner it is asked for the run time of each job
    that comes, and later again, and `predicted_us` is not read.
    """
    order = [i for i, job in enumerate(jobs) if job.gpus <= size]
    if policy == "conservative" and learner is None and all(j.predicted_us == j.duration_us for j in jobs):
        return _planned(jobs, order, size)
    pool = _Pool(size, jobs, learner)
    waiting = _Waiting(jobs, pool.predicted)
    step = {"fifo": _fifo, "easy": _easy, "conservative": _conservative}[policy]
    arrivals = iter(order)
    coming = next(arrivals, None)
    while coming is not None or pool.ends:
        times = [pool.ends[0][0]] if pool.ends else []
        if coming is not None:
            times.append(jobs[coming].submit_us)
        now = min(times)
        pool.end_until(now)
        while coming is not None and jobs[coming].submit_us == now:
            if learner is not None:
                pool.predicted[coming] = max(learner.predict(coming), 1)
            waiting.add(coming)
            coming = next(arrivals, None)
        if learner is not None:
            for job, predicted_us in learner.revised(now).items():
                pool.predicted[job] = max(predicted_us, 1)
        step(pool, waiting, now)
    return pool.starts


class _Waiting:
    """The queue as arrays, in order, so that backfill looks at all of it at once."""

    def __init__(self, jobs: Sequence[ScalarJob], predicted: np.ndarray) -> None:
        self.gpus = np.array([j.gpus for j in jobs], dtype=np.int64)
        self.predicted = predicted
        self.ids = np.empty(len(jobs), dtype=np.int64)
        self.first, self.last = 0, 0
        self.is_started = np.zeros(len(jobs), dtype=bool)
        self.holes = 0

    def add(self, job: int) -> None:
        self.ids[self.last] = job
        self.last += 1

    @property
    def head(self) -> int | None:
        """First job that waits."""
        while self.first < self.last and self.is_started[self.ids[self.first]]:
            self.first += 1
            self.holes -= 1
        return int(self.ids[self.first]) if self.first < self.last else None

    def take(self, job: int) -> None:
        self.is_started[job] = True
        self.holes += 1

    def rest(self) -> np.ndarray:
        """Ids that wait, in order, without the head."""
        if self.holes > 64 and self.holes * 4 > self.last - self.first:
            kept = self.ids[self.first : self.last]
            kept = kept[~self.is_started[kept]]
            self.last = self.first + len(kept)
            self.ids[self.first : self.last] = kept
            self.holes = 0
        rest = self.ids[self.first + 1 : self.last]
        return rest[~self.is_started[rest]] if self.holes else rest


def _fifo(pool: _Pool, waiting: _Waiting, now: int) -> None:
    while (head := waiting.head) is not None and pool.jobs[head].gpus <= pool.free:
        waiting.take(head)
        pool.start(head, now)


def _easy(pool: _Pool, waiting: _Waiting, now: int) -> None:
    """Start from the head; the first that does not fit gets a reservation, and others may pass without delaying it."""
    _fifo(pool, waiting, now)
    head = waiting.head
    if head is None or pool.free == 0:
        return
    shadow, spare = _reservation(pool, pool.jobs[head].gpus, now)
    rest = waiting.rest()
    gpus, ends = waiting.gpus[rest], now + waiting.predicted[rest]
    fits = (gpus <= pool.free) & ((ends <= shadow) | (gpus <= spare))
    for job in rest[fits]:
        need, in_time = int(waiting.gpus[job]), now + int(waiting.predicted[job]) <= shadow
        if need > pool.free or not (in_time or need <= spare):
            continue
        if not in_time:
            spare -= need
        waiting.take(int(job))
        pool.start(int(job), now)
        if pool.free == 0:
            return


def _reservation(pool: _Pool, gpus: int, now: int) -> tuple[int, int]:
    """Earliest instant at which `gpus` are free by what is believed, and what is then left over."""
    free, shadow = pool.free, now
    for at, released in pool.releases(now):
        if free >= gpus and at > shadow:
            break
        free, shadow = free + released, at
    return shadow, free - gpus


def _conservative(pool: _Pool, waiting: _Waiting, now: int) -> None:
    """Plan every waiting job anew, in order, and start those whose plan is now."""
    if waiting.head is None:
        return
    profile = _Profile(now, pool.free, pool.releases(now))
    for job in [waiting.head, *map(int, waiting.rest())]:
        duration = int(pool.predicted[job])
        at = profile.earliest(pool.jobs[job].gpus, duration)
        profile.take(at, at + duration, pool.jobs[job].gpus)
        if at == now:
            waiting.take(job)
            pool.start(job, now)


def _planned(jobs: Sequence[ScalarJob], order: Sequence[int], size: int) -> np.ndarray:
    """Conservative backfill with exact durations: no plan ever improves, so each job is planned once, on arrival."""
    starts = np.full(len(jobs), -1, dtype=np.int64)
    profile = _Profile(min((jobs[i].submit_us for i in order), default=0), size, ())
    for i in order:
        job = jobs[i]
        profile.forget_before(job.submit_us)
        at = profile.earliest(job.gpus, job.duration_us)
        profile.take(at, at + job.duration_us, job.gpus)
        starts[i] = at
    return starts


class _Profile:
    """Free GPUs as a step function of time: `free[k]` from `times[k]` to `times[k + 1]`."""

    def __init__(self, now: int, free: int, releases: Sequence[tuple[int, int]]) -> None:
        self.times, self.free = [now], [free]
        for at, gpus in releases:
            if at == self.times[-1]:
                self.free[-1] += gpus
            else:
                self.times.append(at)
                self.free.append(self.free[-1] + gpus)

    def forget_before(self, now: int) -> None:
        """Let the function begin at `now`."""
        keep = bisect_right(self.times, now) - 1
        if keep > 0:
            del self.times[:keep], self.free[:keep]
        self.times[0] = max(self.times[0], now)

    def earliest(self, gpus: int, duration: int) -> int:
        """First instant from which `gpus` stay free for `duration`."""
        times, free = np.asarray(self.times), np.asarray(self.free)
        blocked = np.flatnonzero(free < gpus)
        begin = 0
        for k in blocked:
            if k < begin:
                continue
            if times[k] - times[begin] >= duration and k > begin:
                return int(times[begin])
            begin = int(k) + 1
        return int(times[begin])

    def take(self, start: int, end: int, gpus: int) -> None:
        """Use `gpus` over [start, end)."""
        if end <= start:
            return
        first, last = self._cut(start), self._cut(end)
        for k in range(first, last):
            self.free[k] -= gpus

    def _cut(self, at: int) -> int:
        k = bisect_left(self.times, at)
        if k == len(self.times) or self.times[k] != at:
            self.times.insert(k, at)
            self.free.insert(k, self.free[k - 1])
        return k
