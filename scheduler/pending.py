"""What waits, sorted so that a cycle looks at few jobs: one bucket for jobs that any snapshot answers alike.

Jobs of one bucket share queue, class, priority and shapes: where the first of them does not fit, none does, so 5,000
identical jobs cost one test. Belongs here: buckets, their inner order, who has aged. Not here: the order between
buckets (`order.py`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from scheduler.model import Job

BucketKey = tuple[str, bool, int, tuple[object, ...]]
# (predicted or 0, submit, id): the order inside a bucket
Place = tuple[int, int, str]


def bucket_key(job: Job) -> BucketKey:
    """Equal for jobs that share a bucket."""
    return (job.queue, job.is_critical, job.priority, job.shape_key)


@dataclass(frozen=True)
class Waiting:
    """A job that waits, with the run time predicted for it when it came (us)."""

    job: Job
    predicted_us: int


@dataclass
class Bucket:
    """Jobs alike but for their run time, in order; `places[i]` belongs to `items[i]`."""

    key: BucketKey
    places: list[Place] = field(default_factory=list)
    items: dict[str, Waiting] = field(default_factory=dict)
    _predicted: np.ndarray | None = None

    @property
    def first(self) -> Waiting:
        """The job to be looked at first."""
        return self.items[self.places[0][2]]

    def next(self, after: Waiting) -> Waiting | None:
        """The job behind another one, which may be in the bucket no more."""
        k = self._behind(after)
        return self.items[self.places[k][2]] if k < len(self.places) else None

    def next_within(self, most_us: int, after: Waiting) -> Waiting | None:
        """The first job behind another one that is predicted to run no longer than `most_us`."""
        if self._predicted is None:
            self._predicted = np.array([self.items[p[2]].predicted_us for p in self.places], dtype=np.int64)
        behind = self._behind(after)
        short = np.flatnonzero(self._predicted[behind:] <= most_us)
        return self.items[self.places[behind + int(short[0])][2]] if len(short) else None

    def _behind(self, after: Waiting) -> int:
        # a predicted run time is never 0: where the first place has 0, the bucket is not sorted by it
        is_by_duration = bool(self.places and self.places[0][0])
        predicted = after.predicted_us if is_by_duration else 0
        return bisect_right(self.places, (predicted, after.job.submit_us, after.job.job_id))


class Pending:
    """All waiting jobs. `by_duration`: inside a bucket the shortest first, else the first submitted.

    `age_us` says after which wait a job has aged; None: never.
    """

    def __init__(self, by_duration: bool, age_us: Callable[[Job], int | None]) -> None:
        self.by_duration, self.age_us = by_duration, age_us
        self.buckets: dict[BucketKey, Bucket] = {}
        self.waiting: dict[str, Waiting] = {}
        self._by_submit: list[tuple[int, str]] = []
        self._by_age: list[tuple[int, str]] = []

    def __len__(self) -> int:
        return len(self.waiting)

    def add(self, waiting: Waiting) -> Bucket:
        """Queue a job; a requeued one takes the place that its submission gives it."""
        job = waiting.job
        if job.job_id in self.waiting:
            raise ValueError(f"{job.job_id} waits already")
        key = bucket_key(job)
        bucket = self.buckets.get(key)
        if bucket is None:
            bucket = self.buckets[key] = Bucket(key)
        insort(bucket.places, self._place(waiting))
        bucket.items[job.job_id] = waiting
        bucket._predicted = None
        self.waiting[job.job_id] = waiting
        insort(self._by_submit, (job.submit_us, job.job_id))
        if (limit := self.age_us(job)) is not None:
            insort(self._by_age, (job.submit_us + limit, job.job_id))
        return bucket

    def remove(self, job_id: str) -> Waiting:
        """Take a job out of the queue; `KeyError` where it does not wait."""
        waiting = self.waiting.pop(job_id)
        job = waiting.job
        key = bucket_key(job)
        bucket = self.buckets[key]
        del bucket.places[bisect_left(bucket.places, self._place(waiting))]
        del bucket.items[job_id]
        bucket._predicted = None
        if not bucket.places:
            del self.buckets[key]
        del self._by_submit[bisect_left(self._by_submit, (job.submit_us, job_id))]
        if (limit := self.age_us(job)) is not None:
            del self._by_age[bisect_left(self._by_age, (job.submit_us + limit, job_id))]
        return waiting

    def repredict(self, job_id: str, predicted_us: int) -> Waiting:
        """The same job, in the place that another predicted run time gives it."""
        waiting = replace(self.remove(job_id), predicted_us=max(predicted_us, 1))
        self.add(waiting)
        return waiting

    def oldest(self) -> Iterator[Waiting]:
        """Waiting jobs in the order of submission, then id."""
        for _, job_id in self._by_submit:
            yield self.waiting[job_id]

    def aged(self, now: int) -> list[Waiting]:
        """Jobs that have aged, in the order of submission."""
        upto = bisect_left(self._by_age, (now + 1, ""))
        found = [self.waiting[job_id] for _, job_id in self._by_age[:upto]]
        return sorted(found, key=lambda w: (w.job.submit_us, w.job.job_id))

    def has_aged(self, now: int, since_us: int) -> bool:
        """Whether any job has aged after `since_us`."""
        k = bisect_left(self._by_age, (since_us + 1, ""))
        return k < len(self._by_age) and self._by_age[k][0] <= now

    def _place(self, waiting: Waiting) -> Place:
        return (waiting.predicted_us if self.by_duration else 0, waiting.job.submit_us, waiting.job.job_id)
