"""Room kept for a gang while others still leave it: nobody else can have it, not even for a moment.

A hold is a whole placement. What of it is free is taken out of the cluster at once, and whatever the leaving gangs give
back is taken as they go, so that no placement ever sees it; quota is promised. Belongs here: making, filling and giving
up holds. Not here: which placement and who leaves (`preemption.py`, `evicting.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from scheduler.cluster import Cluster
from scheduler.gangs import Gang, Gangs
from scheduler.model import Ask, Job, Kind, Placement, PodPlace, demand
from scheduler.pending import Waiting
from scheduler.reservations import Book, Reservation, devices_by_node
from scheduler.usage import Usage


@dataclass
class Hold:
    """`placement` is kept for a waiting job until `victims` have left, at `ready_us` at the latest."""

    waiting: Waiting
    placement: Placement
    amounts: dict[Kind, int]
    ready_us: int
    victims: tuple[str, ...]
    kept: dict[tuple[int, int], int] = field(default_factory=dict)
    kept_cpu: dict[int, int] = field(default_factory=dict)
    kept_memory: dict[int, int] = field(default_factory=dict)

    @property
    def job(self) -> Job:
        """The job that waits for its room."""
        return self.waiting.job

    def copy(self) -> Hold:
        """The same hold, to be kept on another cluster."""
        return Hold(
            self.waiting, self.placement, self.amounts, self.ready_us, self.victims,
            dict(self.kept), dict(self.kept_cpu), dict(self.kept_memory),
        )  # fmt: skip

    def fill(self, cluster: Cluster) -> bool:
        """Take what has become free of the placement; whether all of it is kept now."""
        devices, cpu, memory = _pieces(self.job, self.placement)
        is_whole = True
        for (node, device), milli in devices.items():
            missing = milli - self.kept.get((node, device), 0)
            if missing and (got := min(missing, int(cluster.device_free[node, device]))) > 0:
                cluster.keep(node, device, got)
                self.kept[node, device] = self.kept.get((node, device), 0) + got
                missing -= got
            is_whole &= not missing
        is_whole &= _fill_host(cpu, self.kept_cpu, cluster.cpu)
        return _fill_host(memory, self.kept_memory, cluster.memory) and is_whole

    def release(self, cluster: Cluster) -> None:
        """Give back all that is kept."""
        for (node, device), milli in self.kept.items():
            cluster.keep(node, device, -milli)
        for kept, free in ((self.kept_cpu, cluster.cpu), (self.kept_memory, cluster.memory)):
            for node, amount in kept.items():
                free[node] += amount
            kept.clear()
        self.kept.clear()


def _fill_host(wanted: dict[int, int], kept: dict[int, int], free: object) -> bool:
    is_whole = True
    for node, amount in wanted.items():
        missing = amount - kept.get(node, 0)
        got = min(missing, max(int(free[node]), 0))  # type: ignore[index]
        free[node] -= got  # type: ignore[index]
        kept[node] = kept.get(node, 0) + got
        is_whole &= got == missing
    return is_whole


def _pieces(job: Job, placement: Placement) -> tuple[dict[tuple[int, int], int], dict[int, int], dict[int, int]]:
    """Milli-GPU by device, CPU and memory by node."""
    devices: dict[tuple[int, int], int] = {}
    cpu: dict[int, int] = {}
    memory: dict[int, int] = {}
    for pod in placement.pods:
        shape = job.roles[pod.role].shape
        cpu[pod.node] = cpu.get(pod.node, 0) + shape.cpu_milli
        memory[pod.node] = memory.get(pod.node, 0) + shape.memory_mib
        for device, milli in pod.devices:
            devices[pod.node, device] = devices.get((pod.node, device), 0) + milli
    return devices, cpu, memory


class Holds:
    """All holds, in the order in which they were made."""

    def __init__(self, cluster: Cluster, usage: Usage, book: Book, gangs: Gangs) -> None:
        self.cluster, self.usage, self.book, self.gangs = cluster, usage, book, gangs
        self.by_id: dict[str, Hold] = {}

    def __contains__(self, job_id: str) -> bool:
        return job_id in self.by_id

    def __iter__(self) -> Iterator[Hold]:
        return iter(list(self.by_id.values()))

    def make(self, waiting: Waiting, ask: Ask, placement: Placement, now: int) -> Reservation:
        """Keep a placement for a job that waits, until whoever is under notice has left it."""
        job = waiting.job
        taken = devices(placement)
        victims = [
            g
            for g in self.gangs.stopping()
            if g.stop is not None and (g.stop.for_job == job.job_id or taken & devices(g.placement))
        ]
        ready = max((g.stop.kill_us for g in victims if g.stop), default=now)
        names = tuple(sorted(g.job.job_id for g in victims))
        hold = Hold(waiting, placement, demand(job, ask.counts, ask.flavor), ready, names)
        self.by_id[job.job_id] = hold
        self.vacated()
        self.usage.promise(job.queue, hold.amounts)
        for gang in victims:
            self.rebook(gang)
        end = ready + waiting.predicted_us
        self.book.running.add(_slot(job.job_id), job, placement, now, end)
        need = np.zeros(len(self.cluster.nodes), dtype=np.int64)
        for node, n in devices_by_node(placement).items():
            need[node] = n
        found = self.book.held[job.job_id] = Reservation(job, ask, ready, end, need, ready, "preemptor")
        self.book.changed()
        return found

    def vacated(self) -> None:
        """Something has left: holds take their pieces before anybody looks."""
        for hold in self.by_id.values():
            hold.fill(self.cluster)
        self._owe()

    def _owe(self) -> None:
        """CPU and memory that holds still miss will come to them and to nobody else."""
        count = len(self.cluster.nodes)
        self.book.owed = None
        if self.by_id and self.cluster.has_hosts:
            owed = self.book.owed = np.zeros(3 * count, dtype=np.int64)
            for hold in self.by_id.values():
                _, *wanted = _pieces(hold.job, hold.placement)
                for plane, amounts, kept in zip((1, 2), wanted, (hold.kept_cpu, hold.kept_memory), strict=True):
                    for node, amount in amounts.items():
                        owed[plane * count + node] += amount - kept.get(node, 0)

    def give_up(self, job_id: str) -> Hold:
        """End a hold: its pieces and its quota are free again."""
        hold = self.by_id.pop(job_id)
        self.usage.promise(hold.job.queue, hold.amounts, -1)
        self.book.held.pop(job_id)
        self.book.running.remove(_slot(job_id))
        hold.release(self.cluster)
        self._owe()
        self.book.changed()
        return hold

    def cancel(self, job_id: str) -> tuple[Hold, list[str]]:
        """The job does not want its room any more; also names the gangs whose eviction nobody else needs."""
        hold = self.give_up(job_id)
        needed = {v for other in self.by_id.values() for v in other.victims}
        called_off = []
        for victim in hold.victims:
            if victim not in self.gangs:
                continue
            gang = self.gangs[victim]
            if gang.stop is not None and victim not in needed:
                gang.stop = None
                called_off.append(victim)
            self.rebook(gang)
        self.vacated()
        return hold, called_off

    def rebook(self, gang: Gang) -> None:
        """Believe of a gang what its notice says: what it gives back to no hold comes free at the kill."""
        running, job_id = self.book.running, gang.job.job_id
        self.unbook(job_id)
        stop = gang.stop
        stays = gang.placement.pods if stop is None else stop.keep.pods if stop.keep is not None else ()
        running.add(job_id, gang.job, replace(gang.placement, pods=tuple(stays)), gang.begun_us, gang.end_us)
        if stop is not None:
            held: set[tuple[int, int]] = set()
            for hold in self.by_id.values():
                held |= devices(hold.placement)
            goes = tuple(_without(p, held) for p in gang.placement.pods if p not in stays)
            running.add(_leaving(job_id), gang.job, replace(gang.placement, pods=goes), gang.begun_us, stop.kill_us)
        self.book.changed()

    def unbook(self, job_id: str) -> None:
        """Nothing is believed of a gang that has gone."""
        self.book.running.remove(job_id)
        self.book.running.remove(_leaving(job_id))


def _slot(job_id: str) -> str:
    return f"hold:{job_id}"


def _leaving(job_id: str) -> str:
    return f"leaving:{job_id}"


def devices(placement: Placement) -> set[tuple[int, int]]:
    """(node, device) of all its pods."""
    return {(p.node, d) for p in placement.pods for d, _ in p.devices}


def _without(pod: PodPlace, taken: set[tuple[int, int]]) -> PodPlace:
    return replace(pod, devices=tuple(d for d in pod.devices if (pod.node, d[0]) not in taken))
