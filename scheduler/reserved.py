"""Reservations as records and as arrays: what they need, and what is left beside them.

Belongs here: one reservation, all of them flat, and what is left at their starts. Not here: which to make and what they
allow (`reservations.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from scheduler.model import Ask, Job
from scheduler.running import Believed

FOREVER = np.iinfo(np.int64).max // 4


@dataclass(frozen=True)
class Reservation:
    """`need` (a vector of `room.vector`: devices by node first) from `start_us` to `end_us` for a waiting job.

    `nodes`: the planned node of every pod, roles and pods in order; empty where nobody will ask. `promised_us`: the
    start as first planned. `reason`: "order" (the job's place in the queue), or "preemptor": victims are leaving for
    it, and nobody else may have what it needs even before its start. `is_late`: its start has passed, and its nodes and
    its quota take in nobody until it starts. `moves`: how often it was given other nodes since.
    """

    job: Job
    ask: Ask
    start_us: int
    end_us: int
    need: np.ndarray
    promised_us: int
    reason: Literal["order", "preemptor"] = "order"
    nodes: tuple[int, ...] = ()
    is_late: bool = False
    moves: int = 0

    @cached_property
    def needed(self) -> tuple[np.ndarray, np.ndarray]:
        """(entries of the vector that it needs, how much of each)."""
        where = np.flatnonzero(self.need)
        return where, self.need[where]


class Flat:
    """All reservations as arrays, an item for every entry of a vector that one needs, in no order that means anything.

    `owner` is a number of the reservation's job, known by `index`. The arrays are good until the next change.
    """

    def __init__(self, kept: Iterable[Reservation] = ()) -> None:
        self.index: dict[str, int] = {}
        self._at: dict[str, list[int]] = {}
        self._jobs: list[str] = []
        self._made = 0
        self._items = np.zeros((5, 64), dtype=np.int64)
        for reservation in kept:
            self.set(reservation)

    @property
    def owner(self) -> np.ndarray:
        """Number of the job."""
        return self._items[0, : len(self._jobs)]

    @property
    def entry(self) -> np.ndarray:
        """Entry of the vector."""
        return self._items[1, : len(self._jobs)]

    @property
    def amount(self) -> np.ndarray:
        """How much of it is needed."""
        return self._items[2, : len(self._jobs)]

    @property
    def starts(self) -> np.ndarray:
        """From when."""
        return self._items[3, : len(self._jobs)]

    @property
    def ends(self) -> np.ndarray:
        """Until when."""
        return self._items[4, : len(self._jobs)]

    def set(self, reservation: Reservation) -> None:
        """Take a reservation in, instead of the one that its job has."""
        job_id = reservation.job.job_id
        self.drop(job_id)
        entries, amounts = reservation.needed
        first = len(self._jobs)
        last = first + len(entries)
        while last > self._items.shape[1]:
            self._items = np.concatenate([self._items, np.zeros_like(self._items)], axis=1)
        self._made += 1
        self.index[job_id] = self._made
        self._items[0, first:last] = self._made
        self._items[1, first:last], self._items[2, first:last] = entries, amounts
        self._items[3, first:last], self._items[4, first:last] = reservation.start_us, reservation.end_us
        self._at[job_id] = list(range(first, last))
        self._jobs += [job_id] * len(entries)

    def drop(self, job_id: str) -> None:
        """Take out the reservation of a job, if it has one: the last items go to where its own were."""
        self.index.pop(job_id, None)
        for hole in sorted(self._at.pop(job_id, ()), reverse=True):
            last = len(self._jobs) - 1
            moved = self._jobs.pop()
            if hole != last:
                self._items[:, hole] = self._items[:, last]
                self._jobs[hole] = moved
                places = self._at[moved]
                places[places.index(last)] = hole


class Spare:
    """What is left at the start of each reservation beside all of them: the vector `free[k]` at `starts[k]`."""

    def __init__(self, kept: Flat, base: np.ndarray, believed: Believed, now: int = 0) -> None:
        self.now = now
        at = np.unique(kept.starts)
        self.starts: list[int] = at.tolist()
        entries, amounts, ends = believed
        self.free = np.zeros((len(at), len(base)), dtype=np.int64)
        place = np.searchsorted(at, ends)
        comes = place < len(at)
        np.add.at(self.free, (place[comes], entries[comes]), amounts[comes])
        begins, ends = np.searchsorted(at, kept.starts), np.searchsorted(at, kept.ends)
        np.add.at(self.free, (begins, kept.entry), -kept.amount)
        over = ends < len(at)
        np.add.at(self.free, (ends[over], kept.entry[over]), kept.amount[over])
        self.free = np.cumsum(self.free, axis=0) + base
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

    def without(self, reservation: Reservation) -> Spare:
        """The same, were `reservation` not there."""
        other = copy(self)
        other.free = self.free.copy()
        other.free[self._active(reservation)] += reservation.need
        other._lowest = None
        return other
