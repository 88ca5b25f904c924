"""Quota that reservations will need: who starts now and still runs then must leave it to them.

Devices of a reservation are kept by the book; quota is judged for the instant of its start: what is held then by gangs
believed to run on, by other reservations of that time and by whoever would start. Belongs here: quota at a later
instant. Not here: quota now (`quota.py`), devices (`reservations.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from scheduler import contract, quota
from scheduler.model import Job, Kind, demand
from scheduler.reservations import Reservation

if TYPE_CHECKING:
    from scheduler.state import State

_Held = dict[tuple[str, Kind], int]


class _Then:
    """The ledger at a later instant."""

    def __init__(self, state: State, held: _Held) -> None:
        self.queues = state.usage.queues
        self._now, self._change = state.usage, held

    def claimed(self, queue: str, kind: Kind) -> int:
        return self._now.claimed(queue, kind) + self._change.get((queue, kind), 0)


class Ahead:
    """Looks at the starts of all reservations of one state."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.has_quotas = any(q.quotas for q in state.usage.queues.values())
        self._known: tuple[object, dict[str, _Held]] | None = None

    def leaves(
        self,
        job: Job,
        amounts: Mapping[Kind, int],
        end_us: int,
        now: int,
        *,
        unless: Collection[str] = (),
        from_us: int | None = None,
    ) -> bool:
        """Whether all reservations but `unless` still have their quota if the job runs to `end_us`.

        It runs from now on, or from `from_us`: what is reserved from earlier on runs then and keeps its quota anyway.
        """
        if not self.has_quotas:
            return True
        own = self.state.book.reservations.get(job.job_id)
        for r in self.state.book.reservations.values():
            if r is own or r.start_us >= end_us or r.job.job_id in unless:
                continue
            if not self._is_kin(job.queue, r.job.queue) or (from_us is not None and r.start_us < from_us):
                continue
            then = dict(self._change(r, now))
            if own is not None and own.start_us <= r.start_us < own.end_us:
                # It would not start twice.
                _add(then, job.queue, demand(job, own.ask.counts, own.ask.flavor), -1)
            more = dict(then)
            _add(more, job.queue, amounts, 1)
            if self._has(r, then) and not self._has(r, more):
                return False
        return True

    def supports(self, reservation: Reservation, now: int) -> bool:
        """Whether a reservation has its quota at its start, as far as is known."""
        return not self.has_quotas or self._has(reservation, self._computed(reservation, now))

    def _is_kin(self, a: str, b: str) -> bool:
        cohort = self.state.usage.queues[a].cohort
        return a == b or (cohort != "" and cohort == self.state.usage.queues[b].cohort)

    def _has(self, r: Reservation, change: _Held) -> bool:
        amounts = demand(r.job, r.ask.counts, r.ask.flavor)
        return quota.may_hold(_Then(self.state, change), r.job.queue, amounts, may_borrow=contract.is_evictable(r.job))

    def _change(self, r: Reservation, now: int) -> _Held:
        """Kept as long as nothing has started, ended or been reserved."""
        key = (self.state.stamp, now, *map(id, self.state.book.reservations.values()))
        if self._known is None or self._known[0] != key:
            self._known = (key, {})
        known = self._known[1]
        if r.job.job_id not in known:
            known[r.job.job_id] = self._computed(r, now)
        return known[r.job.job_id]

    def _computed(self, r: Reservation, now: int) -> _Held:
        """What the start of a reservation changes: gangs have ended, others that are reserved run.

        One that is late waits for all of them, whatever is believed.
        """
        change: _Held = {}
        for name in self.state.usage.queues:
            if self._is_kin(r.job.queue, name):
                for gang in self.state.gangs.of_queue(name):
                    if r.is_late or gang.believed_us(now) <= r.start_us:
                        _add(change, name, gang.amounts, -1)
        for other in self.state.book.reservations.values():
            if other.job.job_id != r.job.job_id and other.start_us <= r.start_us < other.end_us:
                _add(change, other.job.queue, demand(other.job, other.ask.counts, other.ask.flavor), 1)
        return change


def _add(held: _Held, queue: str, amounts: Mapping[Kind, int], sign: int) -> None:
    for kind, amount in amounts.items():
        held[queue, kind] = held.get((queue, kind), 0) + sign * amount
