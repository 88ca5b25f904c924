"""First-fit placement of demands on the devices of a pool, event by event.

A pool is the devices of one resource and model in one cluster. Here it is decided when and where
work runs; what it asks for is `workload.py`'s, and what the cluster shows of it `podmaker.py`'s.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleet.model import Node
from fleet.workload import Demand

# Work that has waited this long blocks what came after it, so that large gangs are not starved.
_BLOCKS_AFTER_S = 6 * 3600


@dataclass(frozen=True)
class Pool:
    """Nodes (indices into the fleet's nodes) that offer `resource`, and the units of each as (device, gi_id)."""

    cluster: str
    accelerator: str
    resource: str
    nodes: tuple[int, ...]
    units: tuple[tuple[tuple[int, int | None], ...], ...]

    @property
    def capacity(self) -> int:
        """Units in the pool."""
        return sum(len(u) for u in self.units)

    @property
    def per_node(self) -> int:
        """Units of one node."""
        return max(len(u) for u in self.units)


@dataclass(slots=True)
class Placed:
    """A demand that got its devices: `start` in seconds, and node index and units of each pod."""

    demand: Demand
    start: int
    where: list[tuple[int, tuple[tuple[int, int | None], ...]]]


def make_pools(nodes: Sequence[Node]) -> list[Pool]:
    """The pools of a fleet, in order of first node and resource."""
    found: dict[tuple[str, str, str], list[tuple[int, tuple[tuple[int, int | None], ...]]]] = {}
    for i, node in enumerate(nodes):
        by_resource: dict[str, list[tuple[int, int | None]]] = {}
        for d, device in enumerate(node.devices):
            for instance in device.instances:
                by_resource.setdefault(instance.resource, []).append((d, instance.gi_id))
            if not device.instances:
                whole = "nvidia.com/gpu" if node.target else "google.com/tpu"
                by_resource.setdefault(whole, []).append((d, None))
        for resource, units in by_resource.items():
            found.setdefault((node.cluster, node.accelerator, resource), []).append((i, tuple(units)))
    return [
        Pool(cluster, accelerator, resource, tuple(i for i, _ in rows), tuple(u for _, u in rows))
        for (cluster, accelerator, resource), rows in found.items()
    ]


class Room:
    """CPU and memory left on the nodes. One for each pool: requests for MIG instances never pass an instance's share."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.cpu = [n.cpu_milli for n in nodes]
        self.memory = [n.memory_bytes for n in nodes]


def place(
    pool: Pool, demands: Sequence[Demand], room: Room, horizon: int, cap: Callable[[int], float] | None = None
) -> tuple[list[Placed], list[Demand]]:
    """Runs the pool to `horizon`: (placed, in order of start; still waiting at the horizon).

    First come first served with skipping ahead, nodes in order. `cap(t)` is the share of the pool
    above which elastic demands are not even submitted at that time.
    """
    free = [sorted(range(len(u))) for u in pool.units]
    total_free = pool.capacity
    queued = 0
    arrivals: list[tuple[int, int, Demand]] = [(d.arrive, i, d) for i, d in enumerate(demands)]
    heapq.heapify(arrivals)
    serial = len(arrivals)
    running: list[tuple[int, int, list[tuple[int, list[int]]], Demand]] = []
    waiting: list[Demand] = []
    placed: list[Placed] = []
    while arrivals or running:
        now = min(arrivals[0][0] if arrivals else horizon, running[0][0] if running else horizon)
        if now >= horizon:
            break
        while running and running[0][0] <= now:
            _, _, taken, done = heapq.heappop(running)
            for n, units in taken:
                for u in units:
                    insort(free[n], u)
                room.cpu[pool.nodes[n]] += done.cpu_milli * len(units)
                room.memory[pool.nodes[n]] += done.memory_bytes * len(units)
                total_free += len(units)
        while arrivals and arrivals[0][0] <= now:
            _, _, d = heapq.heappop(arrivals)
            if d.elastic and cap is not None and pool.capacity - total_free + queued >= cap(now) * pool.capacity:
                continue
            waiting.append(d)
            queued += d.devices
        if not waiting or not total_free:
            continue
        left: list[Demand] = []
        blocked = False
        for d in waiting:
            spot = None
            if not blocked and d.devices <= total_free:
                spot = _fit(pool, free, room, d)
            if spot is None:
                left.append(d)
                blocked = blocked or now - d.arrive > _BLOCKS_AFTER_S
                continue
            taken = []
            for n, want in spot:
                units = free[n][:want]
                del free[n][:want]
                room.cpu[pool.nodes[n]] -= d.cpu_milli * want
                room.memory[pool.nodes[n]] -= d.memory_bytes * want
                taken.append((n, units))
            total_free -= d.devices
            queued -= d.devices
            serial += 1
            heapq.heappush(running, (now + d.duration, serial, taken, d))
            placed.append(Placed(d, now, [(pool.nodes[n], tuple(pool.units[n][u] for u in us)) for n, us in taken]))
            if d.follow is not None:
                d.follow.arrive = max(d.follow.arrive, now + d.duration + d.follow.gap)
                serial += 1
                heapq.heappush(arrivals, (d.follow.arrive, serial, d.follow))
        waiting = left
    return placed, waiting


def _fit(pool: Pool, free: list[list[int]], room: Room, d: Demand) -> list[tuple[int, int]] | None:
    """The first nodes that hold every pod of the gang, as (position in the pool, devices); None if they do not all fit."""
    spot: list[tuple[int, int]] = []
    used: dict[int, int] = {}
    for want in d.pods:
        for n in range(len(free)):
            took = used.get(n, 0)
            need = took + want
            node = pool.nodes[n]
            if (
                len(free[n]) >= need
                and room.cpu[node] >= d.cpu_milli * need
                and room.memory[node] >= d.memory_bytes * need
            ):
                used[n] = need
                spot.append((n, want))
                break
        else:
            return None
    # pods that share a node take its units one after the other, so counts per pod are what matters
    return spot
