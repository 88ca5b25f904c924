"""Reservations as records and as arrays: what they need, and what is left beside them.

Belongs here: one reservation, all of them flat, and what is left at their starts. Not here: which to make and what they
allow (`reservations.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
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
    its quota take in nobody until it starts.
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

    @cached_property
    def needed(self) -> tuple[np.ndarray, np.ndarray]:
        """(entries of the vector that it needs, how much of each)."""
        where = np.flatnonzero(self.need)
        return where, self.need[where]


class Flat:
    """All reservations as arrays, one item for every entry of a vector that one needs."""

    def __init__(self, kept: Sequence[Reservation]) -> None:
        where = [r.needed[0] for r in kept]
        sizes = [len(w) for w in where]
        none = np.zeros(0, dtype=np.int64)
        self.index = {r.job.job_id: i for i, r in enumerate(kept)}
        self._first = [0, *accumulate(sizes)]
        self.owner = np.repeat(np.arange(len(kept)), sizes)
        self.entry = np.concatenate([none, *where])
        self.amount = np.concatenate([none, *(r.needed[1] for r in kept)])
        self.starts = np.repeat(np.array([r.start_us for r in kept], dtype=np.int64), sizes)
        self.ends = np.repeat(np.array([r.end_us for r in kept], dtype=np.int64), sizes)

    def move(self, reservation: Reservation) -> None:
        """A reservation that is in here has other times and the same need."""
        i = self.index[reservation.job.job_id]
        items = slice(self._first[i], self._first[i + 1])
        self.starts[items], self.ends[items] = reservation.start_us, reservation.end_us


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
