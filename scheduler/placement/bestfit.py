"""Best-fit: a pod goes to the node that it leaves the fewest devices free on, ties to the first node by index.

Pods with most devices go first. Shares of a device go to the most used device that still has room, so that untouched
devices stay whole. The result depends on the snapshot alone.
"""

from __future__ import annotations

import numpy as np

from scheduler.cluster import Cluster
from scheduler.model import MILLI, Ask, Placement, PodPlace, Shape

_NEVER = np.iinfo(np.int64).max


def place(cluster: Cluster, ask: Ask, whole: np.ndarray) -> Placement | None:
    """Places for the whole ask on schedulable nodes of its flavor, or None where they do not all fit.

    `whole[n]` bounds the untouched devices of each node that may be used.
    """
    if ask.flavor not in cluster.of_flavor:
        return None
    usable = cluster.is_schedulable & cluster.of_flavor[ask.flavor]
    if ask.job.topology is not None:
        return _within_domains(cluster, ask, whole, usable)
    return _fill(cluster, ask, whole, usable)


def _within_domains(cluster: Cluster, ask: Ask, whole: np.ndarray, usable: np.ndarray) -> Placement | None:
    """All pods inside one topology domain: the one with the least free that fits; else anywhere, if only preferred."""
    topology = ask.job.topology
    assert topology is not None
    domains: dict[str, np.ndarray] = {}
    for i, node in enumerate(cluster.nodes):
        if topology.key in node.labels:
            domains.setdefault(node.labels[topology.key], np.zeros(len(cluster.nodes), dtype=bool))[i] = True
    by_free = sorted(domains, key=lambda d: (int(whole[usable & domains[d]].sum()), d))
    for name in by_free:
        if found := _fill(cluster, ask, whole, usable & domains[name]):
            return found
    return None if topology.is_required else _fill(cluster, ask, whole, usable)


def _fill(cluster: Cluster, ask: Ask, whole: np.ndarray, usable: np.ndarray) -> Placement | None:
    room = np.where(usable, np.minimum(whole, cluster.whole), -1)
    roles = ask.job.roles
    devices = sum(n * r.shape.gpus for n, r in zip(ask.counts, roles, strict=True))
    if devices > int(np.maximum(room, 0).sum()):
        return None
    state = _State(cluster, room, usable)
    pods: list[PodPlace] = []
    for r in sorted(range(len(roles)), key=lambda r: (-roles[r].shape.gpu_milli, r)):
        for index in range(ask.counts[r]):
            found = state.pick(roles[r].shape)
            if found is None:
                return None
            pods.append(PodPlace(r, index, *found))
    return Placement(ask.flavor, tuple(pods))


class _State:
    """What the gang's own earlier pods have left; copies are made only of what they touch."""

    def __init__(self, cluster: Cluster, room: np.ndarray, usable: np.ndarray) -> None:
        self.cluster, self.room, self.usable = cluster, room, usable
        self.cpu, self.memory = cluster.cpu, cluster.memory
        self.is_copied = False
        self.rows: dict[int, np.ndarray] = {}

    def pick(self, shape: Shape) -> tuple[int, tuple[tuple[int, int], ...]] | None:
        """(node, devices) for one pod, charged to this state; None where no node has room."""
        node = self._share(shape) if 0 < shape.gpu_milli < MILLI else self._whole(shape)
        if node is None:
            return None
        row = self.rows.setdefault(node, self.cluster.device_free[node].copy())
        if 0 < shape.gpu_milli < MILLI:
            fits = np.flatnonzero(row >= shape.gpu_milli)
            device = int(fits[np.argmin(row[fits])])
            devices: tuple[tuple[int, int], ...] = ((device, shape.gpu_milli),)
            self.room[node] -= int(row[device] == MILLI)
        else:
            free = np.flatnonzero(row == MILLI)[: shape.gpus]
            devices = tuple((int(d), MILLI) for d in free)
            self.room[node] -= shape.gpus
        for d, milli in devices:
            row[d] -= milli
        self._charge_host(node, shape)
        return node, devices

    def _whole(self, shape: Shape) -> int | None:
        fits = (self.room >= shape.gpus) & (self.cpu >= shape.cpu_milli) & (self.memory >= shape.memory_mib)
        if shape.gpus == 0:
            fits &= self.usable
        left = np.where(fits, self.room, _NEVER)
        node = int(np.argmin(left))
        return node if fits[node] else None

    def _share(self, shape: Shape) -> int | None:
        """The node with the fullest device that has room; an untouched one only within `room`."""
        best: tuple[int, int, int] | None = None
        hosts = self.usable & (self.cpu >= shape.cpu_milli) & (self.memory >= shape.memory_mib)
        for node in map(int, np.flatnonzero(hosts)):
            row = self.rows.get(node, self.cluster.device_free[node])
            fits = row[(row >= shape.gpu_milli) & ((row < MILLI) | (self.room[node] > 0))]
            if len(fits):
                key = (int(fits.min()), int(self.room[node]), node)
                best = key if best is None or key < best else best
        return None if best is None else best[2]

    def _charge_host(self, node: int, shape: Shape) -> None:
        if not (shape.cpu_milli or shape.memory_mib):
            return
        if not self.is_copied:
            self.cpu, self.memory, self.is_copied = self.cpu.copy(), self.memory.copy(), True
        self.cpu[node] -= shape.cpu_milli
        self.memory[node] -= shape.memory_mib
