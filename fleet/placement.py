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
    """CPU and memory left on the nodes. Each pool has its own: requests for MIG keep to an instance's share."""

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
    run = _Run(pool, room, demands)
    while run.arrivals or run.running:
        now = min(run.arrivals[0][0] if run.arrivals else horizon, run.running[0][0] if run.running else horizon)
        if now >= horizon:
            break
        run.release(now)
        run.admit(now, cap)
        run.start(now)
    return run.placed, run.waiting


class _Run:
    """The state of one pool while events pass."""

    def __init__(self, pool: Pool, room: Room, demands: Sequence[Demand]) -> None:
        self.pool, self.room = pool, room
        self.free = [list(range(len(u))) for u in pool.units]
        self.total_free = pool.capacity
        self.queued = 0
        self.arrivals: list[tuple[int, int, Demand]] = [(d.arrive, i, d) for i, d in enumerate(demands)]
        heapq.heapify(self.arrivals)
        self.serial = len(self.arrivals)
        self.running: list[tuple[int, int, list[tuple[int, list[int]]], Demand]] = []
        self.waiting: list[Demand] = []
        self.placed: list[Placed] = []

    def release(self, now: int) -> None:
        """Gives back what ended by `now`."""
        while self.running and self.running[0][0] <= now:
            _, _, taken, done = heapq.heappop(self.running)
            for n, units in taken:
                for u in units:
                    insort(self.free[n], u)
                self.room.cpu[self.pool.nodes[n]] += done.cpu_milli * len(units)
                self.room.memory[self.pool.nodes[n]] += done.memory_bytes * len(units)
                self.total_free += len(units)

    def admit(self, now: int, cap: Callable[[int], float] | None) -> None:
        """Queues what arrived by `now`."""
        size = self.pool.capacity
        while self.arrivals and self.arrivals[0][0] <= now:
            _, _, d = heapq.heappop(self.arrivals)
            if d.elastic and cap is not None and size - self.total_free + self.queued >= cap(now) * size:
                continue
            self.waiting.append(d)
            self.queued += d.devices

    def start(self, now: int) -> None:
        """Starts every queued demand that fits, in order; one that has waited long lets none pass it."""
        if not self.waiting or not self.total_free:
            return
        left: list[Demand] = []
        blocked = False
        for d in self.waiting:
            spot = None
            if not blocked and d.devices <= self.total_free:
                spot = _fit(self.pool, self.free, self.room, d)
            if spot is None:
                left.append(d)
                blocked = blocked or now - d.arrive > _BLOCKS_AFTER_S
            else:
                self._take(d, spot, now)
        self.waiting = left

    def _take(self, d: Demand, spot: list[tuple[int, int]], now: int) -> None:
        taken = []
        for n, want in spot:
            units = self.free[n][:want]
            del self.free[n][:want]
            self.room.cpu[self.pool.nodes[n]] -= d.cpu_milli * want
            self.room.memory[self.pool.nodes[n]] -= d.memory_bytes * want
            taken.append((n, units))
        self.total_free -= d.devices
        self.queued -= d.devices
        self.serial += 1
        heapq.heappush(self.running, (now + d.duration, self.serial, taken, d))
        where = [(self.pool.nodes[n], tuple(self.pool.units[n][u] for u in units)) for n, units in taken]
        self.placed.append(Placed(d, now, where))
        if d.follow is not None:
            d.follow.arrive = max(d.follow.arrive, now + d.duration + d.follow.gap)
            self.serial += 1
            heapq.heappush(self.arrivals, (d.follow.arrive, self.serial, d.follow))


def _fit(pool: Pool, free: list[list[int]], room: Room, d: Demand) -> list[tuple[int, int]] | None:
    """The first nodes that hold every pod of the gang, as (position in the pool, devices); None if they do not fit."""
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
