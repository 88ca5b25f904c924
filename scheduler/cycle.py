"""One cycle: order the queue, admit by quota, place the whole gang, reserve for the head, backfill.

A cycle decides on one snapshot and commits each start to it at once, so capacity is never counted twice. It returns
what it decided; whoever runs it (replay, live fleet, a cluster) carries it out. Belongs here: the order of the steps.
Not here: each mechanism, which has a module of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from scheduler import contract, order, quota
from scheduler.cluster import Cluster
from scheduler.decisions import Decisions, Eviction, Reason, Start, Withdrawn
from scheduler.evicting import Evictor
from scheduler.model import HOUR_US, Ask, Job, demand, full, least
from scheduler.pending import Bucket, BucketKey, Waiting, bucket_key
from scheduler.placement import Placer
from scheduler.policy import Policy
from scheduler.reservations import FOREVER, Reservation
from scheduler.reserving import Reserving
from scheduler.usage import Usage

# A late reservation moves to nodes that are believed to be free in less than this fraction of the time that its own
# take, if that is longer than the least, and not more often than this: else wrong predictions could move it for ever.
MOVE_FRACTION = 4
LEAST_MOVE_US = HOUR_US
MOST_MOVES = 16

__all__ = ["Decisions", "Eviction", "Reason", "Scheduler", "Start", "Withdrawn"]


class Scheduler(Reserving):
    """The queue and its cycle over one cluster."""

    def __init__(self, cluster: Cluster, usage: Usage, policy: Policy, placer: Placer) -> None:
        super().__init__(cluster, usage, policy, placer)
        self.evictor = Evictor(self)
        # the first in line, known not to fit until room comes
        self._blocked: str | None = None
        # when the whole queue was looked at last
        self._looked_us = 0

    def impossible(self, job: Job) -> str | None:
        """Why the job could never start on this fleet under these quotas; None where it could."""
        counts = least(job)
        if job.accelerators == ():
            return "its roles may run on no accelerator in common"
        flavors = self.flavors(job)
        if not flavors:
            return f"no node has an accelerator of {', '.join(job.accelerators or ('any kind',))}"
        may_borrow = contract.is_evictable(job)
        open_to = [
            f for f in flavors if not quota.never(self.usage, job.queue, demand(job, counts, f), may_borrow=may_borrow)
        ]
        if not open_to:
            return f"queue {job.queue} may never hold as much"
        empty = self.cluster.emptied()
        if any(self.placer(empty, Ask(job, counts, f), empty.room()) for f in open_to):
            return None
        return "the nodes could not hold it, even empty"

    def cycle(self, now: int) -> Decisions:
        """Decide what starts at `now` and who holds a reservation."""
        done = Decisions()
        done.called_off, self._called_off = self._called_off, []
        done.withdrawn, self._lost = self._lost, []
        self.evictor.start_held(now, done)
        if self.policy.backfill == "none":
            self._in_line(now, done)
        elif self._has_room_come or self.pending.has_aged(now, self._looked_us):
            self._looked_us = now
            if not self.policy.is_sticky:
                self._drop_reservations()
            again = self._reserved(now, done)
            self._queue(now, done, self.pending.buckets.values(), again)
        else:
            # Nothing was given back since the last cycle: only what has come since can start.
            self._arrived(now, done)
        self._new.clear()
        self._has_room_come = False
        if self.policy.with_preemption:
            self.evictor.step(now, done)
            self._has_room_come = bool(done.withdrawn)
        return done

    def _in_line(self, now: int, done: Decisions) -> None:
        """Start in order until one does not fit."""
        while self.pending.waiting:
            if self.policy.is_by_submission:
                first = next(self.pending.oldest())
            else:
                first = min(
                    (b.first for b in self.pending.buckets.values()),
                    key=lambda w: order.key(w, self.usage, self.policy, now),
                )
            if first.job.job_id == self._blocked and not self._has_room_come:
                return
            if not self._start(first, now, done):
                self._blocked = first.job.job_id
                return

    def _arrived(self, now: int, done: Decisions) -> None:
        # Of jobs alike, who needs as long as one that did not start does not either. Conservative backfill plans each.
        failed: dict[BucketKey, int] = {}
        new = [w for w in self._new if self.pending.waiting.get(w.job.job_id) is w]
        heap = [(order.key(w, self.usage, self.policy, now), w) for w in new]
        heapq.heapify(heap)
        while heap:
            known, waiting = heapq.heappop(heap)
            key = bucket_key(waiting.job)
            is_hopeless = waiting.predicted_us >= failed.get(key, FOREVER) and self.policy.backfill != "conservative"
            if is_hopeless:
                continue
            current = order.key(waiting, self.usage, self.policy, now)
            if current > known and heap and current > heap[0][0]:
                heapq.heappush(heap, (current, waiting))
            elif not self._start(waiting, now, done):
                failed[key] = waiting.predicted_us
                if order.is_aged(waiting.job, self.policy, now):
                    self._reserve(waiting, now, done, even_over_quota=True)
                else:
                    self._may_reserve(waiting, now, done)

    def _reserved(self, now: int, done: Decisions) -> list[Waiting]:
        """Start reserved jobs that fit now; move the others' reservations forward where a better plan harms nobody.

        Whom another one behind it has made room by that is worth asking again, in its place among all.
        """
        failed: list[Waiting] = []
        again: list[Waiting] = []
        held = [self.pending.waiting[job_id] for job_id in self.book.reservations]
        in_order = sorted(held, key=lambda w: order.key(w, self.usage, self.policy, now))
        self._bar(in_order, now)
        for waiting in in_order:
            known = self.book.reservations[waiting.job.job_id]
            if self._start(waiting, now, done):
                again = [*failed]
                continue
            failed.append(waiting)
            if known.is_late:
                continue
            holds = self.book.holds(known, now) and self.ahead.supports(known, now)
            before = known.start_us if holds else FOREVER
            run_us = known.end_us - known.start_us
            better = self.book.plan(known.ask, now, run_us, before, self._has_quota(now))
            if better is not None:
                self.book.set(better)
                again = failed[:-1]
                if better.start_us <= now:
                    self._start(waiting, now, done)
        return [w for w in again if w.job.job_id in self.pending.waiting]

    def _bar(self, in_order: Iterable[Waiting], now: int) -> None:
        """Late reservations take their nodes, all before anybody is asked: who comes earlier plans beside them."""
        self.book.move_late(now)
        barred = self.book.nothing()
        for waiting in in_order:
            known = self.book.reservations[waiting.job.job_id]
            if (late := self._late(known, barred, now)) is not None:
                barred += late.need
                if not known.is_late or known.start_us != now or late.moves != known.moves:
                    self.book.set(late)
            elif known.is_late:
                self.book.set(replace(known, is_late=False))

    def _late(self, known: Reservation, barred: np.ndarray, now: int) -> Reservation | None:
        """For an aged job whose promise has passed: its reservation, from now on, on the nodes that it has.

        Predictions were wrong, and may be wrong again: nothing more starts on these nodes, so that it waits for no
        longer than the longest run there. Where others are believed to be free far sooner it moves to them, a few times
        at most. None where it is not late, or where its nodes are barred for others.
        """
        if not order.is_aged(known.job, self.policy, now) or now < known.promised_us:
            return None
        for plan in (self._elsewhere(known, now), known):
            if plan is not None:
                late = replace(plan, start_us=now, end_us=now + plan.end_us - plan.start_us, is_late=True)
                if self.book.could_hold(barred + late.need) and self.ahead.supports(late, now):
                    return late
        return None

    def _elsewhere(self, known: Reservation, now: int) -> Reservation | None:
        """A plan on other nodes that are believed to be free in a fraction of the time that its own take."""
        left = self.book.drained_us(known, now) - now
        if known.moves >= MOST_MOVES or left <= LEAST_MOVE_US:
            return None
        before = now + left // MOVE_FRACTION
        plan = self.book.plan(known.ask, now, known.end_us - known.start_us, before, self._has_quota(now))
        return replace(plan, moves=known.moves + 1) if plan is not None else None

    def _queue(self, now: int, done: Decisions, buckets: Iterable[Bucket], again: Iterable[Waiting] = ()) -> None:
        """The whole queue in order: critical jobs, those that have aged first, then the rest likewise.

        `again`: with a reservation, and nevertheless to be asked.
        """
        if self.policy.backfill == "conservative":
            self._plan_each(now, done)

        def is_critical(job: Job) -> bool:
            return job.is_critical and self.policy.by_priority

        aged, buckets, asked = self.pending.aged(now), list(buckets), {w.job.job_id: w for w in again}
        for band in (True, False):
            for waiting in aged:
                job_id = waiting.job.job_id
                if is_critical(waiting.job) is band and (job_id in asked or job_id not in self.book.reservations):
                    self._start_or_reserve(waiting, now, done)
                    asked.pop(job_id, None)
            in_band = [b for b in buckets if b.places and is_critical(b.first.job) is band]
            self._pass(now, done, in_band, [w for w in asked.values() if is_critical(w.job) is band])

    def _start_or_reserve(self, waiting: Waiting, now: int, done: Decisions) -> None:
        """An aged job starts, or has a reservation of its own from here on."""
        job_id = waiting.job.job_id
        if job_id not in self.pending.waiting or self._start(waiting, now, done):
            return
        if job_id not in self.book.reservations:
            self._reserve(waiting, now, done, even_over_quota=True)

    def _plan_each(self, now: int, done: Decisions) -> None:
        """Conservative backfill: every job starts or gets a reservation, in order, as many as the depth allows."""
        others = [w for w in self.pending.waiting.values() if w.job.job_id not in self.book.reservations]
        for waiting in sorted(others, key=lambda w: order.key(w, self.usage, self.policy, now)):
            if len(self.book.reservations) >= self.policy.depth:
                return
            if not self._start(waiting, now, done):
                self._may_reserve(waiting, now, done)

    def _pass(self, now: int, done: Decisions, buckets: Iterable[Bucket], again: Iterable[Waiting] = ()) -> None:
        """Best job first. What does not fit is not tried again in this cycle, nor what is like it and runs longer.

        `again`: asked for themselves alone, beside their buckets.
        """
        heap = [self._entry(now, i, b, b.first) for i, b in enumerate(buckets) if b.places]
        heap += [self._entry(now, -1 - k, None, w) for k, w in enumerate(again)]
        heapq.heapify(heap)
        while heap:
            known, i, bucket, waiting = heapq.heappop(heap)
            key = order.key(waiting, self.usage, self.policy, now)
            if key > known and heap and key > heap[0][0]:
                heapq.heappush(heap, (key, i, bucket, waiting))
                continue
            if bucket is None:
                self._start(waiting, now, done)
                continue
            is_first = bool(bucket.places) and waiting is bucket.first
            if waiting.job.job_id not in self.pending.waiting:
                # asked before for itself
                following = bucket.next(waiting)
            elif self._start(waiting, now, done):
                following = bucket.first if is_first and bucket.places else self._shorter(bucket, waiting, now)
            else:
                self._may_reserve(waiting, now, done)
                # One with a reservation is not the head, so the next of the bucket may be.
                is_open = self.head is None and waiting.job.job_id in self.book.reservations
                following = bucket.next(waiting) if is_open else self._shorter(bucket, waiting, now)
            if following is not None:
                heapq.heappush(heap, self._entry(now, i, bucket, following))

    def _entry(
        self, now: int, i: int, bucket: Bucket | None, waiting: Waiting
    ) -> tuple[order.Key, int, Bucket | None, Waiting]:
        return (order.key(waiting, self.usage, self.policy, now), i, bucket, waiting)

    def _shorter(self, bucket: Bucket, after: Waiting, now: int) -> Waiting | None:
        """Where only run time kept a job of the bucket from starting: the next behind it that is short enough."""
        if self.policy.by_duration or not bucket.places:
            return None
        job = after.job
        counts = full(job)
        for limit in reversed(self.book.limits(now)):
            room = self.book.allowed(now, limit)
            if any(
                self.may_hold(job, amounts := demand(job, counts, f))
                and self.placer(self.cluster, Ask(job, counts, f), room)
                and self.ahead.leaves(job, amounts, limit, now)
                for f in self.flavors(job)
            ):
                return bucket.next_within(limit - now, after)
        return None
