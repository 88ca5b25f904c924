"""Reservations that backfill may not delay: what is believed to be free when, on which nodes.

A reservation keeps whole devices on named nodes from an instant on. What runs is believed to end at its predicted end;
a run that has passed it is believed to go on for as long again as it has run. With exact durations a reserved job never
starts later than first promised: whatever starts meanwhile must end by then or fit beside it, and a new plan is taken
only where it leaves every other reservation alone. Belongs here: time and capacity. Not here: who gets one
(`cycle.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scheduler.cluster import Cluster
from scheduler.model import SECOND_US, Ask, Job, Placement

FOREVER = np.iinfo(np.int64).max // 4
_LEAST_US = 60 * SECOND_US


@dataclass(frozen=True)
class Reservation:
    """`need[n]` whole devices on each node from `start_us` to `end_us` for a waiting job; `promised_us`: first plan.

    `reason`: "order" (the job's place in the queue), or "preemptor": victims are leaving for it, and nobody else may
    have what it needs even before its start.
    """

    job: Job
    ask: Ask
    start_us: int
    end_us: int
    need: np.ndarray
    promised_us: int
    reason: Literal["order", "preemptor"] = "order"


class Running:
    """Whole devices that running gangs hold, and when they are believed to give them back, as arrays of slots."""

    def __init__(self, size: int = 1024) -> None:
        self.node = np.zeros(size, dtype=np.int64)
        self.devices = np.zeros(size, dtype=np.int64)
        self.begun = np.zeros(size, dtype=np.int64)
        self.ends = np.zeros(size, dtype=np.int64)
        self.is_used = np.zeros(size, dtype=bool)
        self._free = list(range(size))[::-1]
        self._slots: dict[str, list[int]] = {}
        self._believed: tuple[int, tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None

    def add(self, job_id: str, placement: Placement, begun_us: int, end_us: int) -> None:
        """A gang has started; shares of a device count as the whole of it."""
        slots = []
        for node, devices in sorted(devices_by_node(placement).items()):
            if not self._free:
                self._grow()
            slot = self._free.pop()
            self.node[slot], self.devices[slot] = node, devices
            self.begun[slot], self.ends[slot], self.is_used[slot] = begun_us, end_us, True
            slots.append(slot)
        self._slots[job_id] = slots
        self._believed = None

    def remove(self, job_id: str) -> None:
        """A gang has ended; nothing where it has no devices here."""
        for slot in self._slots.pop(job_id, ()):
            self.is_used[slot] = False
            self.devices[slot] = 0
            self._free.append(slot)
        self._believed = None

    def _grow(self) -> None:
        size = len(self.node)
        self._free = list(range(size, 2 * size))[::-1]
        for name in ("node", "devices", "begun", "ends", "is_used"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros(size, dtype=old.dtype)]))

    def believed(self, now: int, without: Iterable[str] = ()) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(nodes, devices, ends) of what runs; what is overdue is believed to run for as long again.

        `without`: gangs to leave out.
        """
        skipped = [slot for job_id in without for slot in self._slots.get(job_id, ())]
        if not skipped:
            if self._believed is None or self._believed[0] != now:
                self._believed = (now, self._of(self.is_used, now))
            return self._believed[1]
        is_used = self.is_used.copy()
        is_used[skipped] = False
        return self._of(is_used, now)

    def _of(self, is_used: np.ndarray, now: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        used = np.flatnonzero(is_used)
        ends, begun = self.ends[used], self.begun[used]
        ends = np.where(ends > now, ends, now + np.maximum(now - begun, _LEAST_US))
        return self.node[used], self.devices[used], ends


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
        self._spare: _Spare | None = None
        self._flat: _Flat | None = None

    def changed(self) -> None:
        """Something ended or was reserved: what is left beside the reservations is computed anew."""
        self._spare = None

    def set(self, reservation: Reservation) -> None:
        """Make or replace the reservation of a job."""
        self.reservations[reservation.job.job_id] = reservation
        self._flat = None
        self.changed()

    def drop(self, job_id: str) -> Reservation | None:
        """Withdraw the reservation of a job, if it has one."""
        found = self.reservations.pop(job_id, None)
        if found is not None:
            self._flat = None
            self.changed()
        return found

    def started(self, placement: Placement, end_us: int) -> None:
        """A gang has started and is believed to run until `end_us`."""
        if self._spare is not None:
            self._spare.take(devices_by_node(placement), end_us)

    def allowed(self, now: int, end_us: int, own: str | None = None) -> np.ndarray:
        """Untouched devices of each node that a job running from `now` to `end_us` may take without delaying others.

        `own` is the job itself, whose own reservation does not bind it.
        """
        if not self.reservations:
            return self.cluster.whole
        if own is not None and own in self.reservations:
            spare = self._spare_now(now).without(self.reservations[own])
        else:
            spare = self._spare_now(now)
        return np.minimum(self.cluster.whole, spare.before(end_us))

    def beside(
        self, kept: Sequence[Reservation], whole: np.ndarray, gone: Iterable[str], now: int, end_us: int
    ) -> np.ndarray:
        """What a job running until `end_us` could take of `whole` beside some reservations, once `gone` have left."""
        if not kept:
            return whole
        spare = _Spare(kept, whole, self.running.believed(now, gone))
        return np.maximum(np.minimum(whole, spare.before(end_us)), 0)

    def limits(self, now: int) -> list[int]:
        """Starts of the reservations, ascending: only these bound how long a job may run."""
        return self._spare_now(now).starts if self.reservations else []

    def _spare_now(self, now: int) -> _Spare:
        if self._spare is None:
            kept = list(self.reservations.values())
            self._spare = _Spare(kept, self.cluster.whole, self.running.believed(now))
        return self._spare

    def holds(self, reservation: Reservation, now: int) -> bool:
        """Whether its nodes are still believed to be free at its start, beside all other reservations."""
        spare = self._spare_now(now)
        at_start = spare.free[spare.starts.index(reservation.start_us)]
        return bool((at_start[reservation.need > 0] >= 0).all())

    def plan(self, ask: Ask, now: int, duration_us: int, before_us: int = FOREVER) -> Reservation | None:
        """The earliest start of the ask beside every other reservation, if it is earlier than `before_us`.

        None where it is not, or where the fleet never has the room.
        """
        nodes, devices, ends = self.running.believed(now)
        if before_us < FOREVER:
            early = ends < before_us
            nodes, devices, ends = nodes[early], devices[early], ends[early]
        others = self._kept_flat()
        kept = (others.ends > now) & (others.owner != others.index.get(ask.job.job_id, -1))
        other_ends = others.ends[kept & (others.ends < before_us)]
        instants = np.unique(np.concatenate([np.array([now], dtype=np.int64), other_ends, ends]))
        # What changes at which instant: devices come back, and those that a reservation needs are missing for whoever
        # would still run when it starts, until it ends.
        missing = np.searchsorted(instants, others.starts[kept] - duration_us, side="right")
        given_back = np.searchsorted(instants, others.ends[kept])
        row = np.concatenate([np.searchsorted(instants, ends), missing, given_back])
        node = np.concatenate([nodes, others.node[kept], others.node[kept]])
        change = np.concatenate([devices, -others.devices[kept], others.devices[kept]])
        usable = self.cluster.is_schedulable & self.cluster.of_flavor[ask.flavor]
        free_so_far = self.cluster.whole
        # The answer is most often among the first instants; few are looked at first.
        for first, last in _growing(len(instants)):
            inside = (row >= first) & (row < last)
            free = np.zeros((last - first, len(usable)), dtype=np.int64)
            np.add.at(free, (row[inside] - first, node[inside]), change[inside])
            free[0] += free_so_far
            np.cumsum(free, axis=0, out=free)
            free_so_far = free[-1].copy()
            free = np.where(usable, np.maximum(free, 0), 0)
            for k in np.flatnonzero(_may_fit(ask, free)):
                need = fit(ask, free[k])
                if need is not None:
                    start = int(instants[first + k])
                    known = self.reservations.get(ask.job.job_id)
                    promised = known.promised_us if known else start
                    return Reservation(ask.job, ask, start, start + duration_us, need, promised)
        return None

    def _kept_flat(self) -> _Flat:
        if self._flat is None:
            self._flat = _Flat(list(self.reservations.values()))
        return self._flat


class _Flat:
    """All reservations as arrays with an entry for every node that one needs."""

    def __init__(self, kept: Sequence[Reservation]) -> None:
        where = [np.flatnonzero(r.need) for r in kept]
        sizes = [len(w) for w in where]
        none = np.zeros(0, dtype=np.int64)
        self.index = {r.job.job_id: i for i, r in enumerate(kept)}
        self.owner = np.repeat(np.arange(len(kept)), sizes)
        self.node = np.concatenate([none, *where])
        self.devices = np.concatenate([none, *(r.need[w] for r, w in zip(kept, where, strict=True))])
        self.starts = np.repeat(np.array([r.start_us for r in kept], dtype=np.int64), sizes)
        self.ends = np.repeat(np.array([r.end_us for r in kept], dtype=np.int64), sizes)


def _growing(size: int) -> Iterator[tuple[int, int]]:
    """[first, last) of parts of `size`, each four times the one before."""
    first, length = 0, 16
    while first < size:
        yield first, min(first + length, size)
        first, length = first + length, 4 * length


class _Spare:
    """Devices left on each node at the start of each reservation, beside all of them: `free[k]` at `starts[k]`."""

    def __init__(
        self, kept: Sequence[Reservation], whole: np.ndarray, believed: tuple[np.ndarray, np.ndarray, np.ndarray]
    ) -> None:
        self.starts = sorted({r.start_us for r in kept})
        at = np.array(self.starts, dtype=np.int64)
        nodes, devices, ends = believed
        self.free = np.zeros((len(at), len(whole)), dtype=np.int64)
        place = np.searchsorted(at, ends)
        comes = place < len(at)
        np.add.at(self.free, (place[comes], nodes[comes]), devices[comes])
        self.free = np.cumsum(self.free, axis=0) + whole
        for r in kept:
            self.free[self._active(r)] -= r.need
        self._lowest: np.ndarray | None = None

    def _active(self, reservation: Reservation) -> slice:
        return slice(bisect_left(self.starts, reservation.start_us), bisect_left(self.starts, reservation.end_us))

    def before(self, end_us: int) -> np.ndarray:
        """The least that is left at any start before `end_us`."""
        k = bisect_left(self.starts, end_us)
        if k == 0:
            return np.full(self.free.shape[1], FOREVER)
        if self._lowest is None:
            self._lowest = np.minimum.accumulate(self.free, axis=0)
        return self._lowest[k - 1]

    def take(self, devices: dict[int, int], end_us: int) -> None:
        """What starts now is missing at every start before its end."""
        k = bisect_left(self.starts, end_us)
        for node, n in devices.items():
            self.free[:k, node] -= n
        self._lowest = None

    def without(self, reservation: Reservation) -> _Spare:
        """The same, were `reservation` not there."""
        other = copy(self)
        other.free = self.free.copy()
        other.free[self._active(reservation)] += reservation.need
        other._lowest = None
        return other


def _may_fit(ask: Ask, free: np.ndarray) -> np.ndarray:
    """For each row of free devices by node whether the ask could fit: exact for pods of one size, else necessary."""
    ok = np.ones(len(free), dtype=bool)
    for n, role in zip(ask.counts, ask.job.roles, strict=True):
        size = max(role.shape.gpus, 1 if role.shape.gpu_milli else 0)
        if size and n == 1:
            ok &= (free >= size).any(axis=1)
        elif size:
            ok &= (free // size).sum(axis=1) >= n
    return ok & (free.sum(axis=1) >= _devices(ask))


def _devices(ask: Ask) -> int:
    return sum(
        n * max(r.shape.gpus, 1 if r.shape.gpu_milli else 0) for n, r in zip(ask.counts, ask.job.roles, strict=True)
    )


def fit(ask: Ask, free: np.ndarray) -> np.ndarray | None:
    """Devices of each node that best-fit would take of `free`, or None; a share of a device is planned as a whole."""
    left = free.copy()
    sizes = [
        (max(r.shape.gpus, 1 if r.shape.gpu_milli else 0), n) for n, r in zip(ask.counts, ask.job.roles, strict=True)
    ]
    for size, n in sorted(sizes, reverse=True):
        for _ in range(n if size else 0):
            node = int(np.argmin(np.where(left >= size, left, FOREVER)))
            if left[node] < size:
                return None
            left[node] -= size
    return free - left
