"""Who gets a reservation, and when: the head, every aged job, and under conservative backfill everyone.

Belongs here: making and overtaking reservations. Not here: planning one (`reservations.py`), starting gangs
(`starting.py`), the order of the steps (`cycle.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from scheduler.decisions import Decisions, Withdrawn
from scheduler.evicting import Evictor
from scheduler.model import Ask, demand, full, least
from scheduler.pending import Waiting
from scheduler.reservations import Reservation
from scheduler.starting import Starting


class Reserving(Starting):
    """Makes reservations in their order."""

    evictor: Evictor

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

    def _reserve(self, waiting: Waiting, now: int, done: Decisions, *, even_over_quota: bool = False) -> bool:
        """Reserve the earliest start; one that turns out to be now is taken."""
        if len(self.book.reservations) >= self.policy.depth:
            return False
        if done.reasons.get(waiting.job.job_id) == "over_quota" and not even_over_quota:
            return False
        if (best := self._best_plan(waiting, now, even_over_quota=even_over_quota)) is None:
            return False
        self._set_reserved(best, done)
        return best.start_us > now or not self._start(waiting, now, done)

    def _set_reserved(self, plan: Reservation, done: Decisions) -> None:
        self.book.set(plan)
        done.reserved.append(plan)

    def _best_plan(self, waiting: Waiting, now: int, *, even_over_quota: bool = False) -> Reservation | None:
        """The earliest start over all flavors at which quota will be there too."""
        plans = [self._planned(waiting, flavor, now, even_over_quota) for flavor in self.flavors(waiting.job)]
        return min((p for p in plans if p is not None), key=lambda r: r.start_us, default=None)

    def _planned(self, waiting: Waiting, flavor: str, now: int, even_over_quota: bool) -> Reservation | None:
        """The earliest start of the gang as asked; of its least counts where quota or fleet never allow the whole."""
        job, accepts = waiting.job, self._has_quota(now)
        for counts in dict.fromkeys((full(job), least(job))):
            if not even_over_quota and not self.may_hold(job, demand(job, counts, flavor)):
                continue
            run_us = self._end(waiting, counts, now) - now
            if (plan := self.book.plan(Ask(job, counts, flavor), now, run_us, accepts=accepts)) is not None:
                return plan
        return None

    def _has_quota(self, now: int) -> Callable[[Reservation], bool] | None:
        """What a plan must be beside fitting: within quota then, and no other reservation loses its own by it."""
        if not self.ahead.has_quotas:
            return None

        def accepts(plan: Reservation) -> bool:
            amounts = demand(plan.job, plan.ask.counts, plan.ask.flavor)
            leaves = self.ahead.leaves(plan.job, amounts, plan.end_us, now, from_us=plan.start_us)
            return leaves and self.ahead.supports(plan, now)

        return accepts

    def _drop_reservations(self) -> None:
        for job_id in list(self.book.reservations):
            self.drop_reservation(job_id)
