"""The snapshot that a cycle decides on: what is free on every node, as arrays, with assume, forget and undo.

A cycle works on one `Cluster` and nothing else changes it meanwhile. `assume` charges a whole gang, `forget` gives it
back; what-if changes are undone in reverse by the handles they return. Belongs here: free capacity. Not here: where a
gang should go (`placement/`), who may have it (`quota.py`), room kept for a gang until others have left (`holds.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy

import numpy as np

from scheduler.model import MILLI, UNBOUNDED, Job, Node, Placement
from scheduler.room import Room

Undo = Callable[[], None]


class Cluster:
    """Free capacity by node.

    `device_free[n, d]` is the free milli-GPU of device d of node n (0 where there is no such device), `whole[n]` the
    number of untouched devices, `cpu[n]` and `memory[n]` free CPU and MiB. Nodes keep their index for good; one that
    has left is not schedulable and has no capacity.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = list(nodes)
        self.index = {n.name: i for i, n in enumerate(self.nodes)}
        widest = max((n.gpus for n in self.nodes), default=0)
        self.device_free = np.zeros((len(self.nodes), widest), dtype=np.int64)
        for i, node in enumerate(self.nodes):
            self.device_free[i, : node.gpus] = MILLI
        self.whole = np.array([n.gpus for n in self.nodes], dtype=np.int64)
        self.cpu = np.array([n.cpu_milli for n in self.nodes], dtype=np.int64)
        self.memory = np.array([n.memory_mib for n in self.nodes], dtype=np.int64)
        self.is_schedulable = np.array([n.is_schedulable for n in self.nodes], dtype=bool)
        self.flavors = tuple(dict.fromkeys(n.flavor for n in self.nodes))
        self.of_flavor = {f: np.array([n.flavor == f for n in self.nodes], dtype=bool) for f in self.flavors}
        # Whether CPU or memory could ever run out.
        self.has_hosts = any(n.cpu_milli < UNBOUNDED or n.memory_mib < UNBOUNDED for n in self.nodes)
        self.placements: dict[str, tuple[Job, Placement]] = {}
        self._domains: dict[str, dict[str, np.ndarray]] = {}
        self.free_milli = int(self.device_free.sum())

    def capacity(self) -> dict[str, int]:
        """Milli-GPU of every flavor on schedulable nodes."""
        totals = dict.fromkeys(self.flavors, 0)
        for node, is_schedulable in zip(self.nodes, self.is_schedulable, strict=True):
            totals[node.flavor] += node.gpus * MILLI if is_schedulable else 0
        return totals

    def emptied(self) -> Cluster:
        """The same nodes with nothing on them."""
        other = Cluster(self.nodes)
        other.is_schedulable = self.is_schedulable.copy()
        return other

    def copy(self) -> Cluster:
        """The same nodes and what is on them, for plans that come to nothing here."""
        other = copy(self)
        for name in ("device_free", "whole", "cpu", "memory", "is_schedulable"):
            setattr(other, name, getattr(self, name).copy())
        other.placements = dict(self.placements)
        return other

    def room(self) -> Room:
        """All that is free, with nothing kept from anybody."""
        return Room(self.whole, self.cpu, self.memory)

    def domains(self, key: str) -> dict[str, np.ndarray]:
        """Nodes by the value of a label, as masks; nodes without it are in none."""
        if key not in self._domains:
            found: dict[str, np.ndarray] = {}
            for i, node in enumerate(self.nodes):
                if key in node.labels:
                    found.setdefault(node.labels[key], np.zeros(len(self.nodes), dtype=bool))[i] = True
            self._domains[key] = found
        return self._domains[key]

    def free_whole(self) -> int:
        """Untouched devices on schedulable nodes."""
        return int(self.whole[self.is_schedulable].sum())

    def assume(self, job: Job, placement: Placement) -> Undo:
        """Charge the gang; returns what takes it back. `ValueError` where a device has less free than it would give."""
        if job.job_id in self.placements:
            raise ValueError(f"{job.job_id} is placed already")
        self._check(job, placement)
        self._charge(job, placement, -1)
        self.placements[job.job_id] = (job, placement)
        return lambda: self._take_back(job.job_id)

    def forget(self, job_id: str) -> Undo:
        """Give back what the gang holds; returns what charges it again. `KeyError` where it holds nothing."""
        job, placement = self.placements[job_id]
        self._take_back(job_id)

        def again() -> None:
            self.assume(job, placement)

        return again

    def _take_back(self, job_id: str) -> None:
        job, placement = self.placements.pop(job_id)
        self._charge(job, placement, +1)

    def _check(self, job: Job, placement: Placement) -> None:
        asked: dict[tuple[int, int], int] = {}
        cpu: dict[int, int] = {}
        memory: dict[int, int] = {}
        for pod in placement.pods:
            shape = job.roles[pod.role].shape
            cpu[pod.node] = cpu.get(pod.node, 0) + shape.cpu_milli
            memory[pod.node] = memory.get(pod.node, 0) + shape.memory_mib
            for device, milli in pod.devices:
                asked[pod.node, device] = asked.get((pod.node, device), 0) + milli
        for (node, device), milli in asked.items():
            if milli > self.device_free[node, device]:
                raise ValueError(f"{job.job_id}: device {device} of {self.nodes[node].name} has not {milli} milli free")
        for node, wanted in cpu.items():
            if wanted > self.cpu[node] or memory[node] > self.memory[node]:
                raise ValueError(f"{job.job_id}: {self.nodes[node].name} has not the CPU or memory free")

    def _charge(self, job: Job, placement: Placement, sign: int) -> None:
        for pod in placement.pods:
            shape = job.roles[pod.role].shape
            # Lists: of some ten numbers they are several times as fast as arrays.
            row = self.device_free[pod.node].tolist()
            for device, milli in pod.devices:
                row[device] += sign * milli
                self.free_milli += sign * milli
            self.device_free[pod.node] = row
            self.whole[pod.node] = row.count(MILLI)
            if shape.cpu_milli or shape.memory_mib:
                self.cpu[pod.node] += sign * shape.cpu_milli
                self.memory[pod.node] += sign * shape.memory_mib

    def keep(self, node: int, device: int, milli: int) -> None:
        """Take `milli` of a device out of what is free, or give it back where negative."""
        self.device_free[node, device] -= milli
        self.free_milli -= milli
        self.whole[node] = int((self.device_free[node] == MILLI).sum())

    def cordon(self, name: str) -> Undo:
        """Keep new pods off a node; returns what opens it again."""
        node = self.index[name]
        before = bool(self.is_schedulable[node])
        self.is_schedulable[node] = False

        def restore() -> None:
            self.is_schedulable[node] = before

        return restore


def undo_all(undos: Iterable[Undo]) -> None:
    """Undo what-if changes in reverse."""
    for undo in reversed(list(undos)):
        undo()
