"""The cycle without its shortcuts: every waiting job is looked at in order, one after the other, and asked for itself.

Quota, placement and reservations are those of the scheduler, so that any world can be compared; the plain queue
(`naive_queue.py`) does without them in worlds that are simpler. Belongs here: the order of the steps.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler import order
from scheduler.cluster import Cluster
from scheduler.cycle import Decisions, Scheduler
from scheduler.pending import Bucket, Waiting
from scheduler.placement.bestfit import place
from scheduler.policy import Policy
from scheduler.usage import Usage


class _Plain(Scheduler):
    def _queue(self, now: int, done: Decisions, buckets: Iterable[Bucket], again: Iterable[Waiting] = ()) -> None:
        if self.policy.backfill == "conservative":
            self._plan_each(now, done)
        self._each(list(self.pending.waiting.values()), now, done)

    def _arrived(self, now: int, done: Decisions) -> None:
        self._each([w for w in self._new if self.pending.waiting.get(w.job.job_id) is w], now, done)

    def _each(self, waiting: list[Waiting], now: int, done: Decisions) -> None:
        left = {w.job.job_id: w for w in waiting if w.job.job_id in self.pending.waiting}
        while left:
            job_id = min(left, key=lambda j: order.key(left[j], self.usage, self.policy, now))
            found = left.pop(job_id)
            if self._start(found, now, done) or job_id in self.book.reservations:
                continue
            if order.is_aged(found.job, self.policy, now):
                self._reserve(found, now, done, even_over_quota=True)
            else:
                self._may_reserve(found, now, done)


def plain(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """A scheduler that looks at every job."""
    return _Plain(cluster, usage, policy, place)
