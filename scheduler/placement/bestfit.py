"""Best-fit: a pod goes to the node that it leaves the fewest devices free on, ties to the first node by index.

Pods with most devices go first. Shares of a device go to the most used device that still has room, so that untouched
devices stay whole. The result depends on the snapshot alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.cluster import Cluster
from scheduler.model import MILLI, Ask, Placement, PodPlace, Shape
from scheduler.room import Room

_NEVER = np.iinfo(np.int64).max


def place(cluster: Cluster, ask: Ask, room: Room) -> Placement | None:
    """Places for the whole ask on schedulable nodes of its flavor, or None where they do not all fit into the room."""
    if ask.flavor not in cluster.of_flavor:
        return None
    usable = cluster.is_schedulable & cluster.of_flavor[ask.flavor]
    if ask.job.topology is not None:
        return _within_domains(cluster, ask, room, usable)
    return _fill(cluster, ask, room, usable)


def on_nodes(cluster: Cluster, ask: Ask, nodes: Sequence[int], room: Room) -> Placement | None:
    """Places for the whole ask with every pod on a given node, roles and pods in order; None where they do not fit.

    Shares go on devices that nobody else uses: these a plan counts on.
    """
    state = _State(cluster, room, cluster.is_schedulable & cluster.of_flavor[ask.flavor], is_apart=True)
    pods: list[PodPlace] = []
    wanted = iter(nodes)
    for r, role in enumerate(ask.job.roles):
        for index in range(ask.counts[r]):
            found = state.pick(role.shape, next(wanted))
            if found is None:
                return None
            pods.append(PodPlace(r, index, *found))
    return Placement(ask.flavor, tuple(pods))


def _within_domains(cluster: Cluster, ask: Ask, room: Room, usable: np.ndarray) -> Placement | None:
    """All pods inside one topology domain: the one with the least free that fits; else anywhere, if only preferred."""
    topology = ask.job.topology
    assert topology is not None
    domains = cluster.domains(topology.key)
    by_free = sorted(domains, key=lambda d: (int(room.whole[usable & domains[d]].sum()), d))
    for name in by_free:
        if found := _fill(cluster, ask, room, usable & domains[name]):
            return found
    return None if topology.is_required else _fill(cluster, ask, room, usable)


def _fill(cluster: Cluster, ask: Ask, room: Room, usable: np.ndarray) -> Placement | None:
    roles = ask.job.roles
    if ask.counts == (1,) and not roles[0].shape.gpu_milli % MILLI:
        return _one(cluster, ask, room, usable)
    state = _State(cluster, room, usable)
    devices = sum(n * r.shape.gpus for n, r in zip(ask.counts, roles, strict=True))
    if devices > int(np.maximum(state.room, 0).sum()):
        return None
    pods: list[PodPlace] = []
    for r in sorted(range(len(roles)), key=lambda r: (-roles[r].shape.gpu_milli, r)):
        for index in range(ask.counts[r]):
            found = state.pick(roles[r].shape)
            if found is None:
                return None
            pods.append(PodPlace(r, index, *found))
    return Placement(ask.flavor, tuple(pods))


def _one(cluster: Cluster, ask: Ask, room: Room, usable: np.ndarray) -> Placement | None:
    """A gang of one pod with whole devices, as most are: the same answer without keeping a state."""
    shape = ask.job.roles[0].shape
    free = np.minimum(room.whole, cluster.whole)
    fits = usable & (free >= shape.gpus) if shape.gpus else usable
    if shape.cpu_milli or shape.memory_mib:
        fits = fits & (room.cpu >= shape.cpu_milli) & (room.memory >= shape.memory_mib)
    node = int(np.argmin(np.where(fits, free, _NEVER)))
    if not fits[node]:
        return None
    row = cluster.device_free[node].tolist()
    free_devices = [d for d, milli in enumerate(row) if milli == MILLI][: shape.gpus]
    return Placement(ask.flavor, (PodPlace(0, 0, node, tuple((d, MILLI) for d in free_devices)),))


class _State:
    """What the gang's own earlier pods have left of the room; copies are made only of what they touch.

    `room[n]`: untouched devices, -1 on nodes that may not be used. `spare[n]`: what reservations leave, see `Room`.
    """

    def __init__(self, cluster: Cluster, room: Room, usable: np.ndarray, *, is_apart: bool = False) -> None:
        self.cluster, self.usable, self.is_apart = cluster, usable, is_apart
        self.room = np.where(usable, np.minimum(room.whole, cluster.whole), -1)
        self.spare = None if room.is_costless is None or room.spare is None else room.spare.copy()
        self.is_costless = room.is_costless
        self.cpu, self.memory = room.cpu, room.memory
        self.is_copied = False
        self.rows: dict[int, np.ndarray] = {}
        # Devices that the gang's own shares are on and whose cost is paid.
        self.paid: set[tuple[int, int]] = set()

    def pick(self, shape: Shape, on: int | None = None) -> tuple[int, tuple[tuple[int, int], ...]] | None:
        """(node, devices) for one pod, charged to this state; None where no node (or not that one) has room."""
        is_share = 0 < shape.gpu_milli < MILLI
        node = self._share(shape, on) if is_share else self._whole(shape, on)
        if node is None:
            return None
        row = self.rows.setdefault(node, self.cluster.device_free[node].copy())
        if is_share:
            fits = self._devices(node, shape.gpu_milli)
            device = int(fits[np.argmin(row[fits])])
            devices: tuple[tuple[int, int], ...] = ((device, shape.gpu_milli),)
            if row[device] == MILLI:
                self._take(node, 1, 1)
                self.paid.add((node, device))
            elif not self._is_costless(node, device):
                self._take(node, 0, 1)
                self.paid.add((node, device))
        else:
            free = np.flatnonzero(row == MILLI)[: shape.gpus]
            devices = tuple((int(d), MILLI) for d in free)
            self._take(node, shape.gpus, shape.gpus)
        for d, milli in devices:
            row[d] -= milli
        self._charge_host(node, shape)
        return node, devices

    def _take(self, node: int, whole: int, spare: int) -> None:
        self.room[node] -= whole
        if self.spare is not None:
            self.spare[node] -= spare
            self.room[node] = min(self.room[node], self.spare[node])

    def _hosts(self, shape: Shape, on: int | None) -> np.ndarray:
        hosts = self.usable & (self.cpu >= shape.cpu_milli) & (self.memory >= shape.memory_mib)
        if on is not None:
            only = np.zeros(len(hosts), dtype=bool)
            only[on] = True
            hosts &= only
        return hosts

    def _whole(self, shape: Shape, on: int | None) -> int | None:
        fits = self._hosts(shape, on)
        if shape.gpus:
            fits &= self.room >= shape.gpus
        left = np.where(fits, self.room, _NEVER)
        node = int(np.argmin(left))
        return node if fits[node] else None

    def _share(self, shape: Shape, on: int | None) -> int | None:
        """The node with the fullest device that has room; an untouched one only within `room`."""
        best: tuple[int, int, int] | None = None
        for node in map(int, np.flatnonzero(self._hosts(shape, on))):
            fits = self._devices(node, shape.gpu_milli)
            if len(fits):
                row = self.rows.get(node, self.cluster.device_free[node])
                key = (int(row[fits].min()), int(self.room[node]), node)
                best = key if best is None or key < best else best
        return None if best is None else best[2]

    def _devices(self, node: int, milli: int) -> np.ndarray:
        """Devices of a node that a share may go on."""
        row = self.rows.get(node, self.cluster.device_free[node])
        fits = np.flatnonzero((row >= milli) & ((row < MILLI) | (self.room[node] > 0)))
        if self.is_apart:
            return np.array([d for d in fits if row[d] == MILLI or (node, int(d)) in self.paid], dtype=np.int64)
        if self.is_costless is None or self.spare is None or self.spare[node] > 0:
            return fits
        return np.array([d for d in fits if row[d] < MILLI and self._is_costless(node, int(d))], dtype=np.int64)

    def _is_costless(self, node: int, device: int) -> bool:
        return self.is_costless is None or bool(self.is_costless[node, device]) or (node, device) in self.paid

    def _charge_host(self, node: int, shape: Shape) -> None:
        if not (shape.cpu_milli or shape.memory_mib):
            return
        if not self.is_copied:
            self.cpu, self.memory, self.is_copied = self.cpu.copy(), self.memory.copy(), True
        self.cpu[node] -= shape.cpu_milli
        self.memory[node] -= shape.memory_mib
