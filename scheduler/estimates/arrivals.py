"""Jobs that may come: the arrivals of earlier days, taken again in stretches of some hours.

A stretch of the future is the same hours of a day drawn from the last two weeks, working days for working days, so that
the hour of the week and the way in which jobs come in bursts are kept. Belongs here: when what comes. Not here: how
long it runs (`remaining.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from scheduler.model import HOUR_US, Job

DAY_US = 24 * HOUR_US
KEPT_US = 14 * DAY_US
STRETCH_US = 4 * HOUR_US
# 1970-01-01 was a Thursday; of days since Monday, these are the weekend.
_THURSDAY = 3
_WEEKEND = (5, 6)


class Arrivals:
    """Submissions of the last two weeks, by instant (us). A job that is submitted again does not count."""

    def __init__(self) -> None:
        self._jobs: deque[tuple[int, Job]] = deque()
        self._first_us: int | None = None

    def came(self, job: Job) -> None:
        """A job was submitted; in the order of submission."""
        self._first_us = job.submit_us if self._first_us is None else self._first_us
        self._jobs.append((job.submit_us, job))
        while self._jobs[0][0] < job.submit_us - KEPT_US:
            self._jobs.popleft()

    def known(self, now: int) -> Known:
        """What came before `now`, to draw from."""
        return Known([(at, job) for at, job in self._jobs if at < now], self._first_us, now)


class Known:
    """Arrivals before an instant."""

    def __init__(self, jobs: list[tuple[int, Job]], first_us: int | None, now: int) -> None:
        self.jobs, self.now = jobs, now
        self.at = np.array([at for at, _ in jobs], dtype=np.int64)
        # A few seconds of history are no rate: before the first stretch is over, nothing came in the rest of it.
        self.span_us = 0 if first_us is None else min(max(now - first_us, STRETCH_US), KEPT_US)

    def future(self, rng: np.random.Generator, name: str) -> Iterator[Job]:
        """Jobs to come after `now`, in order and without end while there is anything to draw; their ids begin alike."""
        if len(self.at) == 0 or self.span_us <= 0:
            return
        count, begin = 0, self.now
        while True:
            end = begin + STRETCH_US
            back = self._back_us(begin, end, rng)
            low, high = np.searchsorted(self.at, [begin - back, end - back])
            for at, job in self.jobs[low:high]:
                count += 1
                yield replace(job, job_id=f"{name}{count:06}", submit_us=at + back)
            begin = end

    def _back_us(self, begin: int, end: int, rng: np.random.Generator) -> int:
        """How far before a stretch of the future its pattern lies: whole days, or all there is where that is less."""
        first = -(-(end - self.now) // DAY_US)
        last = (begin - self.now + self.span_us) // DAY_US
        if last < first:
            return self.span_us * -(-(end - self.now) // self.span_us)
        days = range(first, last + 1)
        is_weekend = _is_weekend(begin)
        alike = [d for d in days if _is_weekend(begin - d * DAY_US) == is_weekend] or days
        return alike[int(rng.integers(len(alike)))] * DAY_US


def _is_weekend(at_us: int) -> bool:
    return (at_us // DAY_US + _THURSDAY) % 7 in _WEEKEND
