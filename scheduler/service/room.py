"""The scheduler's picture of the world: nodes, what others hold on them, gangs that are leaving.

A gang's room is free only when the world shows none of its pods holding any, however long ago it was told to go.
Belongs here: keeping the scheduler in step with what is seen. Not here: what is logged and done (`core.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from scheduler.cluster import Cluster
from scheduler.cycle import Decisions, Scheduler
from scheduler.model import CPU, GPU, MEMORY, MILLI, Kind, Node, Queue
from scheduler.pending import Waiting
from scheduler.placement import Placer
from scheduler.policy import Policy
from scheduler.service.codec import Places
from scheduler.service.records import Entry, Records, Run
from scheduler.service.worlds import Seen, pod_name
from scheduler.usage import Usage

# A node that does not bound CPU or memory says so with this or more.
_UNBOUNDED = 1 << 40


@dataclass
class _Leaving:
    """Pods that must be gone before a gang's room is free; then it goes, or shrinks to `keep`."""

    names: frozenset[str]
    will_return: bool = False
    keep: Places | None = None


@dataclass
class _Others:
    """What pods of others take of a node, as it is kept out of the cluster."""

    devices: list[int] = field(default_factory=list)
    cpu_milli: int = 0
    memory_mib: int = 0


class Room:
    """A scheduler over the nodes of one look at the world, with all that runs by the records."""

    def __init__(
        self, seen: Seen, policy: Policy, queues: Mapping[str, Queue], placer: Placer, records: Records
    ) -> None:
        nodes = {n.name: n for n in seen.nodes}
        for entry in records.running.values():
            assert entry.run is not None
            for _, _, name, devices in entry.run.places.pods:
                if name not in nodes:
                    nodes[name] = Node(name, entry.run.places.flavor, 0, is_schedulable=False)
                most = max((d + 1 for d, _ in devices), default=0)
                if nodes[name].gpus < most:
                    # The node has lost devices, or has gone: its pods are still on record.
                    known = nodes[name]
                    nodes[name] = Node(name, known.flavor, most, known.cpu_milli, known.memory_mib, known.labels, False)
        cluster = Cluster([nodes[name] for name in sorted(nodes)])
        self._known = {n.name: _size(n) for n in seen.nodes}
        self.scheduler = Scheduler(cluster, Usage(queues, _capacity(cluster), policy.half_life_us), policy, placer)
        self._leaving: dict[str, _Leaving] = {}
        self._others: dict[str, _Others] = {}
        self._replay(records)
        self.see(seen, records)

    def _replay(self, records: Records) -> None:
        """What ran and what runs, in the order of time, so that decayed usage is as if there had been no restart."""
        usage, index = self.scheduler.usage, self.scheduler.cluster.index
        steps: list[tuple[int, int, str, Callable[[], object]]] = []
        for begun, ended, queue, amounts in records.spans:
            steps.append((begun, 0, queue, partial(usage.add, queue, amounts, begun)))
            steps.append((ended, 1, queue, partial(usage.remove, queue, amounts, ended)))
        for job_id, entry in records.running.items():
            assert entry.run is not None
            run, waiting = entry.run, Waiting(entry.job, entry.run.predicted_us)
            placed = run.places.placed(index)
            begin = partial(self.scheduler.begin, waiting, placed, run.begun_us, Decisions())
            steps.append((run.begun_us, 0, job_id, begin))
        for *_, step in sorted(steps, key=lambda s: s[:3]):
            step()

    def fits(self, seen: Seen) -> bool:
        """Whether no node has come or changed its size; one that has gone only takes nobody any more."""
        return all(self._known.get(n.name) == _size(n) for n in seen.nodes)

    def is_leaving(self, job_id: str) -> bool:
        """Whether pods of an earlier attempt may still hold room."""
        return job_id in self._leaving

    def release(self, entry: Entry, run: Run, *, will_return: bool) -> None:
        """A gang is on its way out: its room is free once its pods have gone."""
        job_id = entry.job.job_id
        names = frozenset(pod_name(job_id, run.attempt, r, i) for r, i, *_ in run.whole.pods)
        if (known := self._leaving.get(job_id)) is not None:
            names |= known.names
        self._leaving[job_id] = _Leaving(names, will_return)

    def shrink(self, entry: Entry, keep: Places) -> None:
        """A gang keeps only some of its pods; the room of the others is free once they have gone."""
        assert entry.run is not None
        gang = self.scheduler.gangs[entry.job.job_id]
        kept = {p[:2] for p in keep.pods}
        names = frozenset(
            pod_name(entry.job.job_id, entry.run.attempt, p.role, p.index)
            for p in gang.placement.pods
            if (p.role, p.index) not in kept
        )
        self._leaving[entry.job.job_id] = _Leaving(names, keep=keep)

    def resized(self, entry: Entry, places: Places, now: int) -> None:
        """A running gang has lost pods or has them back."""
        self.scheduler.resized(entry.job.job_id, places.placed(self.scheduler.cluster.index), now)

    def withdraw(self, job_id: str) -> None:
        """A job that waits, or is out of the queue for a while, will not come again."""
        scheduler = self.scheduler
        if (leaving := self._leaving.get(job_id)) is not None:
            leaving.will_return = False
        scheduler.gangs.evicted.pop(job_id, None)
        if job_id in scheduler.pending.waiting or job_id in scheduler.holds:
            scheduler.withdraw(job_id)

    def see(self, seen: Seen, records: Records) -> None:
        """Nodes up and down, gangs that have gone, and what others hold."""
        scheduler = self.scheduler
        shown = {n.name: n.is_schedulable and n.name in seen.ready for n in seen.nodes}
        for name, i in scheduler.cluster.index.items():
            is_up = shown.get(name, False)
            if bool(scheduler.cluster.is_schedulable[i]) != is_up:
                (scheduler.node_up if is_up else scheduler.node_down)(name)
        for job_id, leaving in list(self._leaving.items()):
            if any(name in seen.pods and seen.pods[name].holds for name in leaving.names):
                continue
            del self._leaving[job_id]
            if leaving.keep is None:
                scheduler.ended(job_id, seen.at_us, will_return=leaving.will_return)
            else:
                scheduler.resized(job_id, leaving.keep.placed(scheduler.cluster.index), seen.at_us)
        self._see_others(seen, records)

    def _see_others(self, seen: Seen, records: Records) -> None:
        """Pods that no gang of the scheduler stands for: of others, or left from before a restart."""
        ours = {name for leaving in self._leaving.values() for name in leaving.names}
        for entry in records.running.values():
            assert entry.run is not None
            ours |= {pod_name(entry.job.job_id, entry.run.attempt, r, i) for r, i, *_ in entry.run.whole.pods}
        taken: dict[str, list[int]] = {}
        for pod in seen.pods.values():
            if pod.holds and pod.name not in ours and pod.node in self.scheduler.cluster.index:
                sums = taken.setdefault(str(pod.node), [0, 0, 0])
                for k, amount in enumerate((pod.gpu_milli, pod.cpu_milli, pod.memory_mib)):
                    sums[k] += amount
        is_changed = False
        for name in sorted(taken.keys() | self._others.keys()):
            is_changed |= self._keep(name, *taken.get(name, (0, 0, 0)))
        if is_changed:
            self.scheduler.room_changed()

    def _keep(self, name: str, gpu_milli: int, cpu_milli: int, memory_mib: int) -> bool:
        """Keep so much of a node out of the cluster, of devices the last ones that are free; whether it is other."""
        cluster = self.scheduler.cluster
        node, others = cluster.index[name], self._others.setdefault(name, _Others())
        wanted = -(-gpu_milli // MILLI)
        is_changed = (cpu_milli, memory_mib) != (others.cpu_milli, others.memory_mib)
        cluster.cpu[node] -= cpu_milli - others.cpu_milli
        cluster.memory[node] -= memory_mib - others.memory_mib
        others.cpu_milli, others.memory_mib = cpu_milli, memory_mib
        while len(others.devices) > wanted:
            cluster.keep(node, others.devices.pop(), -MILLI)
            is_changed = True
        free = [int(d) for d in np.flatnonzero(cluster.device_free[node] == MILLI)]
        while len(others.devices) < wanted and free:
            others.devices.append(free.pop())
            cluster.keep(node, others.devices[-1], MILLI)
            is_changed = True
        return is_changed


def _size(node: Node) -> tuple[str, int, int, int, tuple[tuple[str, str], ...]]:
    return (node.flavor, node.gpus, node.cpu_milli, node.memory_mib, tuple(sorted(node.labels.items())))


def _capacity(cluster: Cluster) -> dict[Kind, int]:
    totals: dict[Kind, int] = {}
    for node in cluster.nodes:
        for resource, amount in ((GPU, node.gpus * MILLI), (CPU, node.cpu_milli), (MEMORY, node.memory_mib)):
            if 0 < amount < _UNBOUNDED:
                totals[resource, node.flavor] = totals.get((resource, node.flavor), 0) + amount
    return totals
