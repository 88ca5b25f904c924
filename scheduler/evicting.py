"""The cycle's step for evictions: who may ask, one plan after the other, room held until the victims have left.

A plan is committed only when the job that asks can start with what is freed; its room and quota are then its own
(`holds.py`, `Usage.promise`) and it leaves the queue. The next plan sees what is leaving as gone and what is held as
taken, so that nothing is counted twice and nobody is evicted for room that comes anyway. Belongs here: the steps. Not
here: candidates and rules (`victims.py`), the search (`preemption.py`).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scheduler import contract, order, quota
from scheduler.cluster import Cluster, undo_all
from scheduler.decisions import Decisions, Withdrawal, Withdrawn
from scheduler.legality import Rules
from scheduler.model import SECOND_US, Ask, Job, Kind, Placement, demand, full, least
from scheduler.pending import Bucket, Waiting
from scheduler.preemption import Allows, Places, Plan, Search
from scheduler.reservations import Reservation
from scheduler.victims import Candidates, Chosen, Projected, Standing, Unit, candidates

if TYPE_CHECKING:
    from scheduler.cycle import Scheduler

# Plans tried in one cycle; what is left over is tried in the next, a second later.
_MOST_PLANS = 8


@dataclass
class _Scene:
    """What there will be once all that is leaving has left, with all holds filled."""

    room: Cluster
    projected: Projected
    leaving: tuple[str, ...]


class Evictor:
    """The eviction step of one scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.queue = scheduler
        self._tried: dict[object, str] = {}
        self._known: dict[tuple[str, contract.Kind], tuple[Unit, ...]] = {}
        self._stamp = -1
        self._wake_us: int | None = None
        self._has_quotas = any(q.quotas and q.cohort for q in scheduler.usage.queues.values())

    def start_held(self, now: int, done: Decisions) -> None:
        """Start whom room was held for, once all of it is there and quota too."""
        queue = self.queue
        for hold in queue.holds:
            if not hold.fill(queue.cluster):
                continue
            queue.usage.promise(hold.job.queue, hold.amounts, -1)
            may_start = queue.may_hold(hold.job, hold.amounts)
            queue.usage.promise(hold.job.queue, hold.amounts)
            if may_start:
                queue.holds.give_up(hold.job.job_id)
                queue.begin(hold.waiting, hold.placement, now, done)

    def step(self, now: int, done: Decisions) -> None:
        """Plan evictions for whoever waits and is entitled to them, first in order first."""
        queue = self.queue
        if self._stamp != queue.stamp or (self._wake_us is not None and now >= self._wake_us):
            self._tried.clear()
            self._stamp, self._wake_us = queue.stamp, None
        untried = [b for b in queue.pending.buckets.values() if self._tried.get(b.key) != b.first.job.job_id]
        done.wake_us = self._wake_us
        if not untried:
            return
        borrowing = self._borrowing_cohorts()
        # Reservations may be withdrawn for who outranks them.
        lowest = min((contract.rank(r.job) for r in queue.book.reservations.values()), default=None)
        scene: _Scene | None = None
        self._known.clear()
        entitled = [b for b in untried if self._is_entitled(b, borrowing, lowest)]
        # Who is not entitled now is not asked again before anything has changed.
        self._tried |= {b.key: b.first.job.job_id for b in untried}
        heap = [(self._key(b, now), i, b) for i, b in enumerate(entitled)]
        heapq.heapify(heap)
        for _ in range(_MOST_PLANS):
            if not heap:
                break
            _, i, bucket = heapq.heappop(heap)
            waiting = bucket.first
            scene = scene or self._scene()
            if self._plan(waiting, scene, now, done):
                scene = None
                if bucket.places and self._is_entitled(bucket, borrowing, lowest):
                    self._tried[bucket.key] = bucket.first.job.job_id
                    heapq.heappush(heap, (self._key(bucket, now), i, bucket))
        for _, _, bucket in heap:
            del self._tried[bucket.key]
        done.wake_us = now + SECOND_US if heap else self._wake_us
        if any(not hold.victims for hold in queue.holds):
            self.start_held(now, done)

    def _key(self, bucket: Bucket, now: int) -> order.Key:
        return order.key(bucket.first, self.queue.usage, self.queue.policy, now)

    def _borrowing_cohorts(self) -> frozenset[str]:
        """Cohorts in which somebody holds more than its guarantee, or has reserved more."""
        if not self._has_quotas:
            return frozenset()
        usage = self.queue.usage
        found = {
            q.cohort
            for name, q in usage.queues.items()
            if q.cohort and any(quota.borrowed(usage, name, kind) for kind in q.quotas)
        }
        for r in self.queue.book.reservations.values():
            if not self._within(r.job, demand(r.job, r.ask.counts, r.ask.flavor)):
                found.add(usage.queues[r.job.queue].cohort)
        return frozenset(found - {""})

    def _is_entitled(self, bucket: Bucket, borrowing: frozenset[str], reserved: tuple[bool, int] | None) -> bool:
        """Whether the first of a bucket outranks what runs or is reserved, or may have its guarantee back."""
        job = bucket.first.job
        queue = self.queue
        if queue.policy.by_priority:
            running = queue.gangs.lowest(job.queue)
            if any(r is not None and r < contract.rank(job) for r in (running, reserved)):
                return True
        return bool(borrowing) and queue.usage.queues[job.queue].cohort in borrowing and self._is_owner(job)

    def _is_owner(self, job: Job) -> bool:
        """Whether on some flavor the job is within what its queue is guaranteed."""
        return any(self._within(job, demand(job, least(job), f)) for f in self.queue.flavors(job))

    def _within(self, job: Job, amounts: Mapping[Kind, int]) -> bool:
        usage = self.queue.usage
        quotas = usage.queues[job.queue].quotas
        bound = [k for k in amounts if k in quotas]
        return bool(bound) and all(usage.claimed(job.queue, k) + amounts[k] <= quotas[k].nominal for k in bound)

    def _scene(self) -> _Scene:
        queue = self.queue
        room = queue.cluster.copy()
        leaving = []
        for gang in list(queue.gangs.stopping()):
            assert gang.stop is not None
            leaving.append(gang.job.job_id)
            room.forget(gang.job.job_id)
            if gang.stop.keep is not None:
                room.assume(gang.job, gang.stop.keep)
        for hold in queue.holds:
            hold.copy().fill(room)
        return _Scene(room, Projected(queue.usage, queue.gangs), tuple(leaving))

    def _plan(self, waiting: Waiting, scene: _Scene, now: int, done: Decisions) -> bool:
        """Commit the best plan for a job over all its flavors, if there is any that starts it sooner than waiting."""
        job = waiting.job
        counts = least(job) if job.is_elastic else full(job)
        best: tuple[Plan, Ask] | None = None
        for flavor in self.queue.flavors(job):
            ask = Ask(job, counts, flavor)
            plan = self._search(waiting, ask, scene, now)
            if plan is not None and (best is None or plan.key < best[0].key):
                best = (plan, ask)
        if best is None:
            return False
        ready = max((u.eviction.kill_us for u in best[0].units), default=now)
        known = self.queue.book.reservations.get(job.job_id)
        if best[0].units and known is not None and known.start_us <= ready and self.queue.book.holds(known, now):
            return False
        self._commit(waiting, *best, now, done)
        return True

    def _search(self, waiting: Waiting, ask: Ask, scene: _Scene, now: int) -> Plan | None:
        queue, job = self.queue, waiting.job
        amounts = demand(job, ask.counts, ask.flavor)
        at = Standing(scene.projected, queue.gangs, queue.policy, now, self._known)
        found = candidates(ask, at, may_reclaim=self._within(job, amounts))
        if found.next_us is not None:
            self._wake_us = min(found.next_us, self._wake_us or found.next_us)
        others = [r for r in queue.book.reservations.values() if r.job.job_id != job.job_id]
        kept = [r for r in others if self.overrides(job, amounts, r) is None]
        weaker = {r.job.job_id for r in others} - {r.job.job_id for r in kept}

        def allows(chosen: Chosen) -> bool:
            may_borrow = contract.is_evictable(job) and not any(u.eviction.kind == "reclaim" for u in chosen.values())
            if not scene.projected.may_hold(job.queue, amounts, chosen, may_borrow=may_borrow):
                return False
            return queue.ahead.leaves(job, amounts, now + waiting.predicted_us, now, unless=weaker)

        def places(chosen: Chosen) -> Placement | None:
            ready = max((u.eviction.kill_us for u in chosen.values()), default=now)
            undos = []
            for u in chosen.values():
                undos.append(scene.room.forget(u.job_id))
                if u.keep is not None:
                    undos.append(scene.room.assume(u.gang.job, u.keep))
            gone = (*scene.leaving, *chosen)
            whole = queue.book.beside(kept, scene.room, gone, now, ready + waiting.predicted_us)
            placement = queue.placer(scene.room, ask, whole)
            undo_all(undos)
            return placement

        nothing: Chosen = {}
        if allows(nothing) and (placement := places(nothing)):
            return Plan((), placement)
        return _choose(ask, scene.room, found, at, (allows, places)) if found.units else None

    def overrides(self, job: Job, amounts: Mapping[Kind, int], reservation: Reservation) -> Withdrawal | None:
        """Why a job may have a reservation withdrawn; None where it may not."""
        other, usage = reservation.job, self.queue.usage
        if self.queue.policy.by_priority and contract.rank(job) > contract.rank(other):
            return "higher_class"
        mine, theirs = usage.queues[job.queue], usage.queues[other.queue]
        if mine is theirs or not mine.cohort or mine.cohort != theirs.cohort or not self._within(job, amounts):
            return None
        asked = demand(other, reservation.ask.counts, reservation.ask.flavor)
        return None if self._within(other, asked) else "reclaiming_owner"

    def _commit(self, waiting: Waiting, plan: Plan, ask: Ask, now: int, done: Decisions) -> None:
        queue, job = self.queue, waiting.job
        for u in plan.units:
            u.gang.stop = replace(u.eviction, for_job=job.job_id)
            done.evictions.append(u.gang.stop)
        queue.drop_reservation(job.job_id)
        queue.pending.remove(job.job_id)
        # What this cycle reserved for it before is no promise yet.
        done.reserved = [r for r in done.reserved if r.job is not job]
        done.reserved.append(queue.holds.make(waiting, ask, plan.placement, now))
        done.reasons[job.job_id] = "held"
        self._withdraw_broken(job, demand(job, ask.counts, ask.flavor), now, done)

    def _withdraw_broken(self, job: Job, amounts: Mapping[Kind, int], now: int, done: Decisions) -> None:
        queue = self.queue
        for r in list(queue.book.reservations.values()):
            reason = self.overrides(job, amounts, r)
            if reason and not (queue.book.holds(r, now) and queue.ahead.supports(r, now)):
                queue.drop_reservation(r.job.job_id)
                done.withdrawn.append(Withdrawn(r, reason, job.job_id))


def _choose(ask: Ask, room: Cluster, found: Candidates, at: Standing, tests: tuple[Allows, Places]) -> Plan | None:
    """Victims that leave every queue its guarantee; else such that straddle it."""
    kinds = tuple(demand(ask.job, ask.counts, ask.flavor))
    has_reclaim = any(us[-1].eviction.kind == "reclaim" for us in found.units.values())
    for may_straddle in (False, True)[: 1 + has_reclaim]:
        rules = Rules(at, kinds, may_straddle=may_straddle)
        if plan := Search(ask, room, found, rules, tests).best():
            return plan
    return None
