"""Reservations that backfill may not delay: what is believed to be free when, on which nodes.

A reservation keeps devices, CPU and memory on named nodes from an instant on. With exact durations a
reserved job never starts later than first promised: whatever starts meanwhile must end by then or fit beside it, and a
new plan is taken only where it leaves every other reservation alone. Belongs here: time and capacity. Not here: who
gets one (`cycle.py`), what runs (`running.py`), fitting (`fitting.py`), quota then (`quota_ahead.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from scheduler.cluster import Cluster
from scheduler.fitting import fit, may_fit
from scheduler.model import MILLI, Ask, Placement
from scheduler.reserved import FOREVER, Flat, Reservation, Spare
from scheduler.room import Room, vector
from scheduler.running import Believed, Running

__all__ = ["FOREVER", "Book", "Reservation", "Running", "devices_by_node"]

Accepts = Callable[[Reservation], bool]


def devices_by_node(placement: Placement) -> dict[int, int]:
    """Whole devices of each node that a gang keeps from others; a share of a device keeps the whole."""
    touched: dict[int, set[int]] = {}
    for pod in placement.pods:
        touched.setdefault(pod.node, set()).update(d for d, _ in pod.devices)
    return {node: len(devices) for node, devices in touched.items() if devices}


class Book:
    """Reservations over a cluster, in the order in which they were made."""

    def __init__(self, cluster: Cluster, running: Running) -> None:
        self.cluster, self.running = cluster, running
        self.reservations: dict[str, Reservation] = {}
        # Of preemptors: their room is taken out of the cluster already (`holds.py`), so these bind nobody again.
        self.held: dict[str, Reservation] = {}
        # CPU and memory that leaving gangs will give back to holds and to nobody else; None: nothing.
        self.owed: np.ndarray | None = None
        empty = cluster.emptied()
        self._total = vector(empty.whole, empty.cpu, empty.memory, has_hosts=running.has_hosts)
        self._spare: Spare | None = None
        self._flat = Flat()

    def changed(self) -> None:
        """Something ended or was reserved: what is left beside the reservations is computed anew."""
        self._spare = None

    def set(self, reservation: Reservation) -> None:
        """Make or replace the reservation of a job."""
        self.reservations[reservation.job.job_id] = reservation
        self._flat.set(reservation)
        self.changed()

    def drop(self, job_id: str) -> Reservation | None:
        """Withdraw the reservation of a job, if it has one."""
        found = self.reservations.pop(job_id, None)
        if found is not None:
            self._flat.drop(job_id)
            self.changed()
        return found

    def move_late(self, now: int) -> None:
        """Late reservations begin now, all at once, so that what is left beside them is computed once."""
        late = [r for r in self.reservations.values() if r.is_late and r.start_us != now]
        for r in late:
            self.set(replace(r, start_us=now, end_us=now + r.end_us - r.start_us))

    def drained_us(self, kept: Reservation, now: int) -> int:
        """When what a reservation needs is believed to have come back to its nodes; `FOREVER`: never."""
        entries, amounts, ends = self.running.believed(now)
        base, last = self._base(), now
        for entry, need in zip(*kept.needed, strict=True):
            if (missing := need - base[entry]) <= 0:
                continue
            there = np.flatnonzero(entries == entry)
            there = there[np.argsort(ends[there], kind="stable")]
            k = int(np.searchsorted(np.cumsum(amounts[there]), missing))
            if k == len(there):
                return FOREVER
            last = max(last, int(ends[there[k]]))
        return last

    def started(self, placement: Placement, end_us: int) -> None:
        """A gang has started and is believed to run until `end_us`."""
        has_shares = any(milli < MILLI for pod in placement.pods for _, milli in pod.devices)
        if has_shares or self.running.has_hosts:
            # How long a device is used in shares depends on its other sharers.
            self._spare = None
        elif self._spare is not None:
            self._spare.take(devices_by_node(placement), end_us)

    def allowed(self, now: int, end_us: int, own: str | None = None) -> Room:
        """What a job running from `now` to `end_us` may take without delaying others.

        `own` is the job itself, whose own reservation does not bind it.
        """
        if not self.reservations:
            return self.cluster.room()
        spare = self._spare_now(now)
        if own is not None and own in self.reservations:
            spare = spare.without(self.reservations[own])
        return self._room(self.cluster, spare, now, end_us)

    def may_start(self, known: Reservation, now: int, end_us: int) -> bool:
        """Whether a reserved job might start now and run until `end_us`: false where `allowed` has no room for it.

        Told from what all reservations leave, its own given back at once: never less than what is left without it.
        """
        n = len(self.cluster.nodes)
        low = self._spare_now(now).before(end_us)[:n] + known.need[:n]
        return bool((np.minimum(self.cluster.whole, low) >= known.job.widest).any())

    def _room(self, cluster: Cluster, spare: Spare, now: int, end_us: int) -> Room:
        low = spare.before(end_us)
        n = len(cluster.nodes)
        cpu, memory = cluster.cpu, cluster.memory
        if len(low) > n:
            cpu, memory = np.minimum(cpu, low[n : 2 * n]), np.minimum(memory, low[2 * n :])
        return Room(np.minimum(cluster.whole, low[:n]), cpu, memory, low[:n], self._costless(spare, now, end_us))

    def _costless(self, spare: Spare, now: int, end_us: int) -> np.ndarray | None:
        """Devices in shares that come back before any reservation begins that a job until `end_us` would run into."""
        nodes, devices, ends = self.running.shared(now)
        if not len(nodes):
            return None
        free = np.ones(self.cluster.device_free.shape, dtype=bool)
        free[nodes, devices] = np.searchsorted(spare.starts, ends) >= bisect_left(spare.starts, end_us)
        return free

    def nothing(self) -> np.ndarray:
        """The vector of no need."""
        return np.zeros(len(self._base()), dtype=np.int64)

    def could_hold(self, need: np.ndarray) -> bool:
        """Whether the nodes that are schedulable, empty, could hold a need."""
        open_nodes = np.tile(self.cluster.is_schedulable, len(need) // max(len(self.cluster.nodes), 1))
        return bool((need <= np.where(open_nodes, self._total, 0)).all())

    def beside(self, kept: Sequence[Reservation], cluster: Cluster, gone: Iterable[str], now: int, end_us: int) -> Room:
        """What a job running until `end_us` could take of a cluster that `gone` have left, beside some reservations."""
        if not kept:
            return cluster.room()
        base = vector(cluster.whole, cluster.cpu, cluster.memory, has_hosts=self.running.has_hosts)
        spare = Spare(Flat(kept), base, self.running.believed(now, gone))
        spare.free = np.maximum(spare.free, 0)
        return self._room(cluster, spare, now, end_us)

    def limits(self, now: int) -> list[int]:
        """Starts of the reservations, ascending: only these bound how long a job may run."""
        return self._spare_now(now).starts if self.reservations else []

    def _base(self) -> np.ndarray:
        base = vector(self.cluster.whole, self.cluster.cpu, self.cluster.memory, has_hosts=self.running.has_hosts)
        return base if self.owed is None else base - self.owed

    def _spare_now(self, now: int) -> Spare:
        if self._spare is None or self._spare.now != now:
            self._spare = Spare(self._flat, self._base(), self.running.believed(now), now)
        return self._spare

    def holds(self, reservation: Reservation, now: int) -> bool:
        """Whether its nodes are still believed to be free at its start, beside all other reservations."""
        if reservation.start_us < now:
            return False
        entries = reservation.needed[0]
        if not len(entries):
            return True
        spare = self._spare_now(now)
        return bool((spare.free[spare.starts.index(reservation.start_us), entries] >= 0).all())

    def plan(
        self, ask: Ask, now: int, duration_us: int, before_us: int = FOREVER, accepts: Accepts | None = None
    ) -> Reservation | None:
        """The earliest start of the ask beside every other reservation, if it is earlier than `before_us`.

        `accepts`: what else a plan must be (its quota is there too). None where there is none, or where the fleet never
        has the room.
        """
        n = len(self.cluster.nodes)
        usable = self.cluster.is_schedulable & self.cluster.of_flavor[ask.flavor]
        believed = self.running.believed(now)
        if before_us < FOREVER:
            early = believed[2] < before_us
            believed = (believed[0][early], believed[1][early], believed[2][early])
            nodes = self._possible(ask, usable, believed)
        else:
            nodes = None
        if nodes is not None:
            if not len(nodes):
                return None
            usable, n = usable[nodes], len(nodes)
        for instants, rows in self._timeline(ask, now, duration_us, before_us, believed=believed, nodes=nodes):
            free = np.maximum(rows, 0)
            free[:, :n] = np.where(usable, free[:, :n], 0)
            for k in np.flatnonzero(may_fit(ask, free[:, :n])):
                found = fit(self.cluster, ask, free[k] if nodes is None else self._on_all(free[k], nodes))
                if found is None:
                    continue
                start = int(instants[k])
                known = self.reservations.get(ask.job.job_id)
                promised = known.promised_us if known else start
                end = start + duration_us
                plan = Reservation(ask.job, ask, start, end, found.need, promised, nodes=found.nodes)
                if accepts is None or accepts(plan):
                    return plan
        return None

    def _possible(self, ask: Ask, usable: np.ndarray, believed: Believed) -> np.ndarray | None:
        """Nodes that could hold a pod of the ask once all that is believed has come back, were there no reservations.

        Nothing on the others can start it. None: all nodes are to be looked at, for what is not told by devices alone.
        """
        sizes = [role.shape.gpus for n, role in zip(ask.counts, ask.job.roles, strict=True) if n]
        if self.running.has_hosts or ask.job.topology is not None or min(sizes, default=0) == 0:
            return None
        entries, amounts, _ = believed
        most = self._base() + np.bincount(entries, amounts, len(usable)).astype(np.int64)
        return np.flatnonzero(usable & (most >= min(sizes)))

    def _on_all(self, free: np.ndarray, nodes: np.ndarray) -> np.ndarray:
        """A vector of some nodes as one of all, with nothing on the others."""
        whole = np.zeros(len(self.cluster.nodes), dtype=np.int64)
        whole[nodes] = free
        return whole

    def _timeline(
        self, ask: Ask, now: int, duration_us: int, before_us: int, *, believed: Believed, nodes: np.ndarray | None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(instants, what is left at each for a run of `duration_us`), in parts: few of the first first.

        With `nodes`, of these alone, in their order, and only the instants at which something changes there.
        """
        entries, amounts, ends = believed
        others = self._flat
        kept = (others.ends > now) & (others.owner != others.index.get(ask.job.job_id, -1))
        other_entries = others.entry
        so_far = self._base()
        if nodes is not None:
            place = np.full(len(so_far), -1)
            place[nodes] = np.arange(len(nodes))
            inside = place[entries] >= 0
            entries, amounts, ends = place[entries[inside]], amounts[inside], ends[inside]
            other_entries = place[other_entries]
            kept &= other_entries >= 0
            so_far = so_far[nodes]
        other_ends = others.ends[kept & (others.ends < before_us)]
        instants = np.unique(np.concatenate([np.array([now], dtype=np.int64), other_ends, ends]))
        # What changes at which instant: devices come back, and those that a reservation needs are missing for whoever
        # would still run when it starts, until it ends.
        missing = np.searchsorted(instants, others.starts[kept] - duration_us, side="right")
        given_back = np.searchsorted(instants, others.ends[kept])
        row = np.concatenate([np.searchsorted(instants, ends), missing, given_back])
        entry = np.concatenate([entries, other_entries[kept], other_entries[kept]])
        change = np.concatenate([amounts, -others.amount[kept], others.amount[kept]])
        for first, last in _growing(len(instants)):
            inside = (row >= first) & (row < last)
            free = np.zeros((last - first, len(so_far)), dtype=np.int64)
            np.add.at(free, (row[inside] - first, entry[inside]), change[inside])
            free[0] += so_far
            np.cumsum(free, axis=0, out=free)
            so_far = free[-1].copy()
            yield instants[first:last], free


def _growing(size: int) -> Iterator[tuple[int, int]]:
    """[first, last) of parts of `size`, each four times the one before."""
    first, length = 0, 16
    while first < size:
        yield first, min(first + length, size)
        first, length = first + length, 4 * length
