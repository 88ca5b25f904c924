"""One cycle: order the queue, admit by quota, place the whole gang, reserve for the head, backfill.

A cycle decides on one snapshot and commits each start to it at once, so capacity is never counted twice. It returns
what it decided; whoever runs it (replay, live fleet, a cluster) carries it out. Belongs here: the order of the steps.
Not here: each mechanism, which has a module of its own.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from scheduler import order, quota
from scheduler.cluster import Cluster
from scheduler.model import Ask, Job, Kind, Placement, demand, full
from scheduler.pending import Bucket, Pending, Waiting
from scheduler.placement import Placer
from scheduler.policy import Policy
from scheduler.reservations import FOREVER, Book, Reservation, Running
from scheduler.usage import Usage

Reason = Literal["over_quota", "no_room", "behind_head"]


@dataclass(frozen=True)
class Start:
    """A gang that starts now, where, and when it is believed to end."""

    job: Job
    placement: Placement
    end_us: int


@dataclass
class Decisions:
    """What one cycle decided. `reasons` say why jobs that were looked at still wait."""

    starts: list[Start] = field(default_factory=list)
    reserved: list[Reservation] = field(default_factory=list)
    reasons: dict[str, Reason] = field(default_factory=dict)


class Scheduler:
    """The queue's state and its cycle over one cluster. Times are microseconds; `now` never goes back."""

    def __init__(self, cluster: Cluster, usage: Usage, policy: Policy, placer: Placer) -> None:
        self.cluster, self.usage, self.policy, self.placer = cluster, usage, policy, placer
        self.pending = Pending(policy.by_duration)
        self.running = Running()
        self.book = Book(cluster, self.running)
        self.head: str | None = None
        self._amounts: dict[str, tuple[str, dict[Kind, int]]] = {}
        self._new: list[Waiting] = []
        self._has_room_come = True

    def submit(self, job: Job, predicted_us: int) -> None:
        """A job joins the queue, or joins it again."""
        waiting = Waiting(job, max(predicted_us, 1))
        self.pending.add(waiting)
        self._new.append(waiting)

    def withdraw(self, job_id: str) -> None:
        """A waiting job leaves the queue; `KeyError` where it does not wait."""
        self.pending.remove(job_id)
        self._drop_reservation(job_id)
        self._has_room_come = True

    def ended(self, job_id: str, now: int) -> None:
        """A running gang has ended: all that it held is free. `KeyError` where it does not run."""
        queue, amounts = self._amounts.pop(job_id)
        self.cluster.forget(job_id)
        self.running.remove(job_id)
        self.usage.remove(queue, amounts, now)
        self.book.changed()
        self._has_room_come = True

    def impossible(self, job: Job) -> str | None:
        """Why the job could never start on this fleet under these quotas; None where it could."""
        counts = tuple(r.least for r in job.roles)
        flavors = self.flavors(job)
        if not flavors:
            return f"no node has an accelerator of {', '.join(job.accelerators) or 'any kind'}"
        open_to = [f for f in flavors if quota.judge(self.usage, job.queue, demand(job, counts, f)) != "never"]
        if not open_to:
            return f"queue {job.queue} may never hold as much"
        empty = self.cluster.emptied()
        if any(self.placer(empty, Ask(job, counts, f), empty.whole) for f in open_to):
            return None
        return "the nodes could not hold it, even empty"

    def flavors(self, job: Job) -> tuple[str, ...]:
        """Flavors of the fleet that the job may run on, best liked first."""
        wanted = job.accelerators or self.cluster.flavors
        return tuple(f for f in wanted if f in self.cluster.of_flavor)

    def cycle(self, now: int) -> Decisions:
        """Decide what starts at `now` and who holds a reservation."""
        done = Decisions()
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
        return done

    def _in_line(self, now: int, done: Decisions) -> None:
        """Start in order until one does not fit."""
        while self.pending.waiting:
            first = min(
                (b.first for b in self.pending.buckets.values()),
                key=lambda w: order.key(w, self.usage, self.policy, now),
            )
            if not self._start(first, now, done):
                return

    def _arrived(self, now: int, done: Decisions) -> None:
        for waiting in sorted(self._new, key=lambda w: order.key(w, self.usage, self.policy, now)):
            if waiting.job.job_id in self.pending.waiting and not self._start(waiting, now, done):
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
            if (better := self.book.plan(known.ask, now, waiting.predicted_us, before)) is not None:
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
        elif self.head is None and self._reserve(waiting, now, done):
            self.head = waiting.job.job_id

    def _reserve(self, waiting: Waiting, now: int, done: Decisions) -> bool:
        if done.reasons.get(waiting.job.job_id) != "no_room":
            return False
        plans = [
            plan
            for flavor in self.flavors(waiting.job)
            if (plan := self.book.plan(Ask(waiting.job, full(waiting.job), flavor), now, waiting.predicted_us))
        ]
        if not plans:
            return False
        best = min(plans, key=lambda r: r.start_us)
        self.book.set(best)
        done.reserved.append(best)
        return True

    def _drop_reservation(self, job_id: str) -> None:
        self.book.drop(job_id)
        if self.head == job_id:
            self.head = None

    def _drop_reservations(self) -> None:
        for job_id in list(self.book.reservations):
            self._drop_reservation(job_id)

    def _start(self, waiting: Waiting, now: int, done: Decisions) -> bool:
        """Start the gang if quota and room allow, on the flavor it likes best; else leave the reason."""
        job = waiting.job
        counts = full(job)
        end = now + waiting.predicted_us
        reason: Reason = "over_quota"
        for flavor in self.flavors(job):
            amounts = demand(job, counts, flavor)
            if quota.judge(self.usage, job.queue, amounts) not in ("guaranteed", "borrowed"):
                continue
            reason = "no_room"
            if job.gpu_milli > self.cluster.free_milli:
                continue
            room = self.book.allowed(now, end, job.job_id)
            placement = self.placer(self.cluster, Ask(job, counts, flavor), room)
            if placement is not None:
                self._commit(waiting, placement, amounts, now)
                done.starts.append(Start(job, placement, end))
                return True
        done.reasons[job.job_id] = reason
        return False

    def _commit(self, waiting: Waiting, placement: Placement, amounts: dict[Kind, int], now: int) -> None:
        job = waiting.job
        end = now + waiting.predicted_us
        self._drop_reservation(job.job_id)
        self.pending.remove(job.job_id)
        self.cluster.assume(job, placement)
        self.running.add(job.job_id, placement, now, end)
        self.book.started(placement, end)
        self.usage.add(job.queue, amounts, now)
        self._amounts[job.job_id] = (job.queue, amounts)
