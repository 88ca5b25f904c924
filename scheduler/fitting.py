"""Whether a gang would fit into what will be free, and on which nodes: best-fit on counts, for plans ahead in time.

Which device of a node it will be is not said; a share of a device is planned on one that nobody else uses. Belongs
here: fitting an ask into a vector of free capacity (`room.vector`). Not here: when that will be free
(`reservations.py`), places on the cluster of now (`placement/`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from scheduler.cluster import Cluster
from scheduler.model import MILLI, Ask, Shape

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Fit:
    """`need`: the vector of what the gang takes. `nodes`: the node of every pod, roles and pods in order."""

    need: np.ndarray
    nodes: tuple[int, ...]


def fit(cluster: Cluster, ask: Ask, free: np.ndarray) -> Fit | None:
    """Where the whole ask would go in `free`, or None. Nodes that may not be used have no free devices below 0."""
    for usable in _domains(cluster, ask, free):
        if (found := _fill(cluster, ask, free, usable)) is not None:
            return found
    return None


def may_fit(ask: Ask, free: np.ndarray) -> np.ndarray:
    """By row of free devices by node whether the ask could fit: exact for whole pods of one size, else necessary."""
    ok = np.ones(len(free), dtype=bool)
    total, shares = 0, 0
    for n, role in zip(ask.counts, ask.job.roles, strict=True):
        size = role.shape.gpus
        total += n * size
        if 0 < role.shape.gpu_milli < MILLI:
            # so many of one shape go on a device, and no more
            shares = max(shares, -(-n // (MILLI // role.shape.gpu_milli)))
        elif size and n == 1:
            ok &= (free >= size).any(axis=1)
        elif size:
            ok &= (free // size).sum(axis=1) >= n
    return ok & (free.sum(axis=1) >= total + shares)


def _domains(cluster: Cluster, ask: Ask, free: np.ndarray) -> Iterator[np.ndarray]:
    """Nodes that the gang may be spread over: one topology domain after the other, as placement looks at them."""
    usable = cluster.is_schedulable & cluster.of_flavor[ask.flavor]
    topology = ask.job.topology
    if topology is not None:
        domains = cluster.domains(topology.key)
        devices = free[: len(usable)]
        for name in sorted(domains, key=lambda d: (int(devices[usable & domains[d]].sum()), d)):
            yield usable & domains[name]
    if topology is None or not topology.is_required:
        yield usable


def _fill(cluster: Cluster, ask: Ask, free: np.ndarray, usable: np.ndarray) -> Fit | None:
    count = len(usable)
    left = free.copy()
    left[:count][~usable] = -1
    roles = ask.job.roles
    # Devices that this gang's own shares have opened: [node, milli left].
    opened: list[list[int]] = []
    nodes: dict[tuple[int, int], int] = {}
    for r in sorted(range(len(roles)), key=lambda r: (-roles[r].shape.gpu_milli, r)):
        shape = roles[r].shape
        for index in range(ask.counts[r]):
            hosts = _hosts(left, count, shape)
            node = _share(left[:count], shape, hosts, opened) if 0 < shape.gpu_milli < MILLI else None
            if node is None:
                size = max(shape.gpus, 1 if shape.gpu_milli else 0)
                fits = hosts & (left[:count] >= size)
                node = int(np.argmin(np.where(fits, left[:count], _NEVER)))
                if not fits[node]:
                    return None
                left[node] -= size
                if 0 < shape.gpu_milli < MILLI:
                    opened.append([node, MILLI - shape.gpu_milli])
            if len(left) > count:
                left[count + node] -= shape.cpu_milli
                left[2 * count + node] -= shape.memory_mib
            nodes[r, index] = node
    left[:count][~usable] = free[:count][~usable]
    return Fit(free - left, tuple(nodes[key] for key in sorted(nodes)))


def _hosts(left: np.ndarray, count: int, shape: Shape) -> np.ndarray:
    hosts = left[:count] >= 0
    if len(left) > count and (shape.cpu_milli or shape.memory_mib):
        hosts &= (left[count : 2 * count] >= shape.cpu_milli) & (left[2 * count :] >= shape.memory_mib)
    return hosts


def _share(left: np.ndarray, shape: Shape, hosts: np.ndarray, opened: list[list[int]]) -> int | None:
    """The node of the fullest device that the gang has opened and that has room; charged there."""
    fits = [entry for entry in opened if entry[1] >= shape.gpu_milli and hosts[entry[0]]]
    if not fits:
        return None
    best = min(fits, key=lambda entry: (entry[1], int(left[entry[0]]), entry[0]))
    best[1] -= shape.gpu_milli
    return best[0]
