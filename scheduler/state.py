"""The queue's state, and what happens to it between cycles: jobs come, end, shrink and leave; nodes go and come back.

Belongs here: keeping cluster, ledger, pending jobs, running gangs, reservations and holds in step with each other. Not
here: decisions (`cycle.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scheduler import contract, quota
from scheduler.cluster import Cluster
from scheduler.decisions import Eviction, Withdrawn
from scheduler.elastic import stretched_us
from scheduler.gangs import Gang, Gangs
from scheduler.holds import Holds
from scheduler.model import Job, Kind, Placement
from scheduler.pending import Pending, Waiting
from scheduler.placement import Placer
from scheduler.policy import Policy
from scheduler.quota_ahead import Ahead
from scheduler.reservations import Book, Running
from scheduler.usage import Usage


class State:
    """Everything that a cycle decides on. Times are microseconds; `now` never goes back."""

    def __init__(self, cluster: Cluster, usage: Usage, policy: Policy, placer: Placer) -> None:
        self.cluster, self.usage, self.policy, self.placer = cluster, usage, policy, placer
        self.pending = Pending(policy.by_duration, policy.age_us)
        self.running = Running(len(cluster.nodes), cluster.device_free.shape[1], has_hosts=cluster.has_hosts)
        self.book = Book(cluster, self.running)
        self.gangs = Gangs()
        self.holds = Holds(cluster, usage, self.book, self.gangs)
        self.ahead = Ahead(self)
        self.head: str | None = None
        # Counts what may have changed the answer to an eviction plan.
        self.stamp = 0
        self._new: list[Waiting] = []
        self._has_room_come = True
        self._called_off: list[str] = []
        self._lost: list[Withdrawn] = []

    def submit(self, job: Job, predicted_us: int) -> None:
        """A job joins the queue, or joins it again."""
        waiting = Waiting(job, max(predicted_us, 1))
        self.pending.add(waiting)
        self._new.append(waiting)

    def repredict(self, predicted_us: Mapping[str, int]) -> None:
        """Other run times are believed of jobs, by id, than when they were submitted.

        One with a reservation keeps the run time that its promise was made with. Of a gang that runs its end is
        believed anew. Ids that are not here are passed over.
        """
        new = {w.job.job_id: i for i, w in enumerate(self._new)}
        for job_id, run_us in predicted_us.items():
            if job_id in self.gangs:
                gang = self.gangs[job_id]
                whole_us = stretched_us(gang.job, max(run_us, 1), gang.placement.gpu_milli)
                gang.end_us = gang.begun_us + whole_us * self.policy.caution
                if gang.stop is None:
                    self.running.expect(job_id, gang.end_us)
            elif job_id in self.pending.waiting and job_id not in self.book.reservations:
                waiting = self.pending.repredict(job_id, run_us)
                if job_id in new:
                    self._new[new[job_id]] = waiting
                else:
                    self._new.append(waiting)
        if predicted_us:
            self.book.changed()
            self.stamp += 1

    def withdraw(self, job_id: str) -> None:
        """A waiting job leaves the queue; `KeyError` where it does not wait."""
        if job_id in self.holds:
            self._called_off += self.holds.cancel(job_id)[1]
        else:
            self.pending.remove(job_id)
            self.drop_reservation(job_id)
        self.gangs.evicted.pop(job_id, None)
        self._freed()

    def ended(self, job_id: str, now: int, *, will_return: bool = False) -> None:
        """A running gang has ended or was killed (`will_return`: it comes again). `KeyError` where it does not run."""
        gang = self.gangs.remove(job_id)
        self.cluster.forget(job_id)
        self.holds.unbook(job_id)
        self.usage.remove(gang.job.queue, gang.amounts, now)
        if will_return:
            self.gangs.evicted[job_id] = gang.job
        self._freed()

    def resized(self, job_id: str, placement: Placement, now: int) -> None:
        """A running gang goes on with other pods: fewer by a notice or a loss, or as before when they are back.

        `KeyError` where it does not run.
        """
        gang = self.gangs[job_id]
        self.cluster.forget(job_id)
        self.usage.remove(gang.job.queue, gang.amounts, now)
        gang.placement = placement
        if gang.stop is not None and gang.stop.keep is not None:
            self._shrinks(gang, gang.stop, gang.stop.keep, now)
        self.cluster.assume(gang.job, placement)
        self.usage.add(gang.job.queue, gang.amounts, now)
        self.holds.rebook(gang)
        self._freed()

    def _shrinks(self, gang: Gang, stop: Eviction, keep: Placement, now: int) -> None:
        """What is left of the notice of a gang that was to shrink; where it lost too much for that, it goes whole."""
        if set(gang.placement.pods) <= set(keep.pods):
            gang.stop, gang.protected_us = None, now
            return
        left = replace(keep, pods=tuple(p for p in keep.pods if p in gang.placement.pods))
        is_enough = all(n >= r.least for n, r in zip(left.counts(gang.job), gang.job.roles, strict=True))
        gang.stop = replace(stop, keep=left if is_enough else None)

    def node_down(self, name: str) -> None:
        """A node takes nobody any more; what was reserved on it is withdrawn, and the next cycle tells."""
        self.cluster.cordon(name)
        node = self.cluster.index[name]
        for r in [r for r in self.book.reservations.values() if r.need[node]]:
            self.drop_reservation(r.job.job_id)
            self._lost.append(Withdrawn(r, "lost_capacity", ""))
        for hold in self.holds:
            if any(p.node == node for p in hold.placement.pods):
                self._lost.append(Withdrawn(self.book.held[hold.job.job_id], "lost_capacity", ""))
                self._called_off += self.holds.cancel(hold.job.job_id)[1]
                self.submit(hold.job, hold.waiting.predicted_us)
        self._freed()

    def node_up(self, name: str) -> None:
        """A node is back."""
        self.cluster.is_schedulable[self.cluster.index[name]] = True
        self._freed()

    def room_changed(self) -> None:
        """Room came or went that none of the queue's gangs held: pods of others on the same nodes."""
        self._freed()

    def _freed(self) -> None:
        self.holds.vacated()
        self.book.changed()
        self.stamp += 1
        self._has_room_come = True

    def drop_reservation(self, job_id: str) -> None:
        """The job has no reservation any more."""
        self.book.drop(job_id)
        if self.head == job_id:
            self.head = None

    def may_hold(self, job: Job, amounts: dict[Kind, int]) -> bool:
        """Whether quota allows it now; a gang that is never evicted may hold only what is guaranteed."""
        return quota.may_hold(self.usage, job.queue, amounts, may_borrow=contract.is_evictable(job))
