"""One cycle: order the queue, admit by quota, place the whole gang, reserve for the head, backfill.

A cycle decides on one snapshot and commits each start to it at once, so capacity is never counted twice. It returns
what it decided; whoever runs it (replay, live fleet, a cluster) carries it out. Belongs here: the order of the steps.
Not here: each mechanism, which has a module of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from scheduler import contract, elastic, order, quota
from scheduler.cluster import Cluster
from scheduler.decisions import Decisions, Eviction, Reason, Start, Withdrawn
from scheduler.evicting import Evictor
from scheduler.gangs import Gang
from scheduler.model import Ask, Job, Placement, demand, full, least
from scheduler.pending import Bucket, BucketKey, Waiting, bucket_key
from scheduler.placement import Placer
from scheduler.policy import Policy
from scheduler.reservations import FOREVER, Reservation
from scheduler.state import State
from scheduler.usage import Usage

__all__ = ["Decisions", "Eviction", "Reason", "Scheduler", "Start", "Withdrawn"]


class Scheduler(State):
    """The queue and its cycle over one cluster."""

    def __init__(self, cluster: Cluster, usage: Usage, policy: Policy, placer: Placer) -> None:
        super().__init__(cluster, usage, policy, placer)
        self.evictor = Evictor(self)
        # the first in line, known not to fit until room comes
        self._blocked: str | None = None

    def impossible(self, job: Job) -> str | None:
        """Why the job could never start on this fleet under these quotas; None where it could."""
        counts = least(job)
        flavors = self.flavors(job)
        if not flavors:
            return f"no node has an accelerator of {', '.join(job.accelerators) or 'any kind'}"
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

    def flavors(self, job: Job) -> tuple[str, ...]:
        """Flavors of the fleet that the job may run on, best liked first."""
        wanted = job.accelerators or self.cluster.flavors
        return tuple(f for f in wanted if f in self.cluster.of_flavor)

    def cycle(self, now: int) -> Decisions:
        """Decide what starts at `now` and who holds a reservation."""
        done = Decisions()
        done.called_off, self._called_off = self._called_off, []
        done.withdrawn, self._lost = self._lost, []
        self.evictor.start_held(now, done)
        if self.policy.backfill == "none":
            self._in_line(now, done)
        elif self._has_room_come:
            if not self.policy.is_sticky:
                self._drop_reservations()
            self._reserved(now, done)
            self._queue(now, done, self.pending.buckets.values())
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
        for waiting in sorted(self._new, key=lambda w: order.key(w, self.usage, self.policy, now)):
            key = bucket_key(waiting.job)
            is_hopeless = waiting.predicted_us >= failed.get(key, FOREVER) and self.policy.backfill != "conservative"
            if waiting.job.job_id not in self.pending.waiting or is_hopeless:
                continue
            if not self._start(waiting, now, done):
                failed[key] = waiting.predicted_us
                self._may_reserve(waiting, now, done)

    def _reserved(self, now: int, done: Decisions) -> None:
        """Start reserved jobs that fit now; move the others' reservations forward where a better plan harms nobody."""
        held = [self.pending.waiting[job_id] for job_id in self.book.reservations]
        for waiting in sorted(held, key=lambda w: order.key(w, self.usage, self.policy, now)):
            if self._start(waiting, now, done):
                continue
            known = self.book.reservations[waiting.job.job_id]
            holds = self.book.holds(known, now)
            before = known.start_us if holds else FOREVER
            better = self.book.plan(known.ask, now, waiting.predicted_us, before)
            if better is not None and (not holds or self.ahead.supports(better, now)):
                self.book.set(better)

    def _queue(self, now: int, done: Decisions, buckets: Iterable[Bucket]) -> None:
        """The whole queue in order: critical jobs, aged ones by submission, then the rest."""
        critical = [b for b in buckets if b.key[1]]
        rest = [b for b in buckets if not b.key[1]]
        self._pass(now, done, critical)
        if self.policy.age_limit_us is not None:
            for waiting in self.pending.aged(now - self.policy.age_limit_us):
                job_id = waiting.job.job_id
                if job_id not in self.book.reservations and not self._start(waiting, now, done):
                    self._reserve(waiting, now, done)
        self._pass(now, done, rest)

    def _pass(self, now: int, done: Decisions, buckets: Iterable[Bucket]) -> None:
        """Best bucket first. What does not fit is not tried again in this cycle, nor is anything like it."""
        heap = [(order.key(b.first, self.usage, self.policy, now), i, b) for i, b in enumerate(buckets) if b.places]
        heapq.heapify(heap)
        while heap:
            known, i, bucket = heapq.heappop(heap)
            if not bucket.places:
                continue
            key = order.key(bucket.first, self.usage, self.policy, now)
            if key > known and heap and key > heap[0][0]:
                heapq.heappush(heap, (key, i, bucket))
                continue
            waiting = bucket.first
            is_started = self._start(waiting, now, done) or self._start_shorter(bucket, waiting, now, done)
            if is_started and bucket.places:
                heapq.heappush(heap, (order.key(bucket.first, self.usage, self.policy, now), i, bucket))

    def _start_shorter(self, bucket: Bucket, first: Waiting, now: int, done: Decisions) -> bool:
        """Where only its run time keeps the bucket's first job from starting, start the first that is short enough."""
        self._may_reserve(first, now, done)
        if first.job.job_id not in self.pending.waiting:
            return True
        if self.policy.by_duration or done.reasons.get(first.job.job_id) != "no_room":
            return False
        for limit in reversed(self.book.limits(now)):
            room = self.book.allowed(now, limit)
            if any(
                self.placer(self.cluster, Ask(first.job, full(first.job), f), room) for f in self.flavors(first.job)
            ):
                shorter = bucket.first_within(limit - now)
                return shorter is not None and self._start(shorter, now, done)
        return False

    def _may_reserve(self, waiting: Waiting, now: int, done: Decisions) -> None:
        """The first job that does not fit is the head; under conservative backfill every one gets a reservation."""
        if done.reasons.get(waiting.job.job_id) != "no_room" or waiting.job.job_id in self.book.reservations:
            return
        if self.policy.backfill == "conservative":
            if len(self.book.reservations) < self.policy.depth:
                self._reserve(waiting, now, done)
        elif self.head is None:
            if self._reserve(waiting, now, done):
                self.head = waiting.job.job_id
        elif self.policy.with_preemption:
            self._overtake(waiting, now, done)

    def _overtake(self, waiting: Waiting, now: int, done: Decisions) -> None:
        """Who may have the head's reservation withdrawn becomes the head; the old one goes if it is in the way."""
        assert self.head is not None
        old = self.book.reservations[self.head]
        amounts = demand(waiting.job, full(waiting.job), old.ask.flavor)
        reason = self.evictor.overrides(waiting.job, amounts, old)
        if reason is None:
            return
        beside = self._best_plan(waiting, now)
        self.book.drop(old.job.job_id)
        alone = self._best_plan(waiting, now)
        self.book.set(old)
        best = beside if alone is None or (beside is not None and beside.start_us <= alone.start_us) else alone
        if best is None:
            return
        self._set_reserved(best, done)
        self.head = waiting.job.job_id
        # Each must be there at its start beside the other: the old one may run on into the new one's.
        if not all(self.book.holds(r, now) and self.ahead.supports(r, now) for r in (old, best)):
            self.book.drop(old.job.job_id)
            done.withdrawn.append(Withdrawn(old, reason, waiting.job.job_id))
        if best.start_us <= now:
            self._start(waiting, now, done)

    def _reserve(self, waiting: Waiting, now: int, done: Decisions) -> bool:
        if done.reasons.get(waiting.job.job_id) != "no_room" or (best := self._best_plan(waiting, now)) is None:
            return False
        self._set_reserved(best, done)
        return True

    def _set_reserved(self, plan: Reservation, done: Decisions) -> None:
        self.book.set(plan)
        done.reserved.append(plan)

    def _best_plan(self, waiting: Waiting, now: int) -> Reservation | None:
        """The earliest start over all flavors, if quota will be there too."""
        plans = [plan for flavor in self.flavors(waiting.job) if (plan := self._planned(waiting, flavor, now))]
        best = min(plans, key=lambda r: r.start_us, default=None)
        return best if best is not None and self.ahead.supports(best, now) else None

    def _planned(self, waiting: Waiting, flavor: str, now: int) -> Reservation | None:
        """The earliest start of the gang as asked; of its least counts where quota or fleet never allow the whole."""
        job = waiting.job
        if self.may_hold(job, demand(job, full(job), flavor)) and (
            plan := self.book.plan(Ask(job, full(job), flavor), now, waiting.predicted_us)
        ):
            return plan
        if not job.is_elastic or not self.may_hold(job, demand(job, least(job), flavor)):
            return None
        run_us = elastic.stretched_us(job, waiting.predicted_us, job.least_gpu_milli)
        return self.book.plan(Ask(job, least(job), flavor), now, run_us)

    def _drop_reservations(self) -> None:
        for job_id in list(self.book.reservations):
            self.drop_reservation(job_id)

    def _start(self, waiting: Waiting, now: int, done: Decisions) -> bool:
        """Start the gang if quota and room allow; else leave the reason."""
        found = self.find(waiting, now)
        if isinstance(found, Placement):
            self._take(waiting, found, now, done)
            return True
        done.reasons[waiting.job.job_id] = found
        return False

    def find(self, waiting: Waiting, now: int) -> Placement | Reason:
        """Where the gang could start now, on the flavor it likes best, whole or else smaller; else why it could not.

        Nothing is changed, so a job that does not wait may be asked for as well.
        """
        job = waiting.job
        reason: Reason = "over_quota"
        for flavor in self.flavors(job):
            if not self.may_hold(job, demand(job, full(job), flavor)):
                continue
            reason = "no_room"
            if job.gpu_milli > self.cluster.free_milli:
                continue
            if (placement := self._place(waiting, full(job), flavor, now)) is not None:
                return placement
        if not job.is_elastic:
            return reason
        if (placement := self._find_smaller(waiting, now)) is not None:
            return placement
        if any(self.may_hold(job, demand(job, least(job), f)) for f in self.flavors(job)):
            reason = "no_room"
        return reason

    def _find_smaller(self, waiting: Waiting, now: int) -> Placement | None:
        """Places of an elastic gang at the largest counts that quota and room allow."""
        for flavor in self.flavors(waiting.job):

            def fits(counts: tuple[int, ...], flavor: str = flavor) -> Placement | None:
                if not self.may_hold(waiting.job, demand(waiting.job, counts, flavor)):
                    return None
                return self._place(waiting, counts, flavor, now)

            if (placement := elastic.largest(waiting.job, fits)) is not None:
                return placement
        return None

    def _place(self, waiting: Waiting, counts: tuple[int, ...], flavor: str, now: int) -> Placement | None:
        """Places beside all reservations but its own, which keep their quota too."""
        job, end = waiting.job, self._end(waiting, counts, now)
        room = self.book.allowed(now, end, job.job_id)
        placement = self.placer(self.cluster, Ask(job, counts, flavor), room)
        if placement is None or not self.ahead.leaves(job, demand(job, counts, flavor), end, now):
            return None
        return placement

    def _end(self, waiting: Waiting, counts: tuple[int, ...], now: int) -> int:
        held = sum(n * r.shape.gpu_milli for n, r in zip(counts, waiting.job.roles, strict=True))
        return now + elastic.stretched_us(waiting.job, waiting.predicted_us, held)

    def _take(self, waiting: Waiting, placement: Placement, now: int, done: Decisions) -> None:
        self.drop_reservation(waiting.job.job_id)
        self.pending.remove(waiting.job.job_id)
        self.begin(waiting, placement, now, done)

    def begin(self, waiting: Waiting, placement: Placement, now: int, done: Decisions) -> None:
        """A gang that waits no more starts at its places."""
        job = waiting.job
        end = now + elastic.stretched_us(job, waiting.predicted_us, placement.gpu_milli)
        gang = Gang(job, placement, now, end, now)
        self.cluster.assume(job, placement)
        self.gangs.add(gang)
        self.running.add(job.job_id, job, placement, now, end)
        self.book.started(placement, end)
        self.usage.add(job.queue, gang.amounts, now)
        self.stamp += 1
        done.starts.append(Start(job, placement, end))
