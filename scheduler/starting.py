"""Whether a waiting gang could start now and where, and its start.

Belongs here: quota, room and reservations of others asked for one gang. Not here: which gang is asked for (`cycle.py`),
who gets a reservation (`reserving.py`).
"""

from __future__ import annotations

from scheduler import elastic
from scheduler.decisions import Decisions, Reason, Start
from scheduler.gangs import Gang
from scheduler.model import Ask, Job, Placement, demand, full, least
from scheduler.pending import Waiting
from scheduler.placement.bestfit import on_nodes
from scheduler.state import State


class Starting(State):
    """Starts gangs, one at a time."""

    def flavors(self, job: Job) -> tuple[str, ...]:
        """Flavors of the fleet that the job may run on, best liked first."""
        wanted = self.cluster.flavors if job.accelerators is None else job.accelerators
        return tuple(f for f in wanted if f in self.cluster.of_flavor)

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
            # Most often nothing is free, and this tells it without a look at nodes and reservations.
            if job.gpu_milli > self.cluster.free_milli or job.widest > self.cluster.whole.max(initial=0):
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
        known = self.book.reservations.get(job.job_id)
        if known is not None and not self.book.may_start(known, now, end):
            return None
        room = self.book.allowed(now, end, job.job_id)
        ask = Ask(job, counts, flavor)
        placement = self.placer(self.cluster, ask, room)
        if placement is None and known is not None and known.start_us <= now and known.ask == ask:
            # Packing may miss what the plan has found; its nodes are kept.
            placement = on_nodes(self.cluster, ask, known.nodes, room)
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
        run_us = elastic.stretched_us(job, waiting.predicted_us, placement.gpu_milli)
        believed = now + run_us * self.policy.caution
        gang = Gang(job, placement, now, believed, now)
        self.cluster.assume(job, placement)
        self.gangs.add(gang)
        self.running.add(job.job_id, job, placement, now, believed)
        self.book.started(placement, believed)
        self.usage.add(job.queue, gang.amounts, now)
        self.stamp += 1
        done.starts.append(Start(job, placement, now + run_us))
