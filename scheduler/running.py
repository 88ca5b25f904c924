"""What runs holds, and when it is believed to give it back.

A run is believed to end at its predicted end; one that has passed it is believed to go on for as long again as it has
run. Shares of a device give it back when the last of them ends. Belongs here: beliefs about running gangs, as arrays.
Not here: what follows for those who wait (`reservations.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from scheduler.model import MILLI, SECOND_US, Job, Placement

_LEAST_US = 60 * SECOND_US
# Slot of a share: its amount is that of the device, which its sharers give back together.
_PLAIN = -1

# (entries of a vector as `room.vector` has it, amounts, ends)
Believed = tuple[np.ndarray, np.ndarray, np.ndarray]


def stretched_us(begun_us: int, end_us: int, now: int) -> int:
    """The believed end of a run: what is overdue is believed to run for as long again."""
    return end_us if end_us > now else now + max(now - begun_us, _LEAST_US)


class Running:
    """Slots of (node and resource, amount, begin, end). `has_hosts`: CPU and memory count too."""

    def __init__(self, nodes: int, devices: int, *, has_hosts: bool, size: int = 1024) -> None:
        self.nodes, self.devices, self.has_hosts = nodes, devices, has_hosts
        self.entry = np.zeros(size, dtype=np.int64)
        self.amount = np.zeros(size, dtype=np.int64)
        self.begun = np.zeros(size, dtype=np.int64)
        self.ends = np.zeros(size, dtype=np.int64)
        self.device = np.full(size, _PLAIN, dtype=np.int64)
        self.is_used = np.zeros(size, dtype=bool)
        self._free = list(range(size))[::-1]
        self._slots: dict[str, list[int]] = {}
        self._shares = 0
        self._believed: tuple[int, Believed] | None = None

    def add(self, job_id: str, job: Job, placement: Placement, begun_us: int, end_us: int) -> None:
        """A gang holds these places until `end_us`, as far as is believed."""
        slots = []
        for entry, amount, device in self._parts(job, placement):
            if not self._free:
                self._grow()
            slot = self._free.pop()
            self.entry[slot], self.amount[slot], self.device[slot] = entry, amount, device
            self.begun[slot], self.ends[slot], self.is_used[slot] = begun_us, end_us, True
            self._shares += device != _PLAIN
            slots.append(slot)
        self._slots[job_id] = slots
        self._believed = None

    def _parts(self, job: Job, placement: Placement) -> list[tuple[int, int, int]]:
        plain: dict[int, int] = {}
        shares: set[tuple[int, int]] = set()
        for pod in placement.pods:
            for device, milli in pod.devices:
                if milli == MILLI:
                    plain[pod.node] = plain.get(pod.node, 0) + 1
                else:
                    shares.add((pod.node, device))
            if self.has_hosts:
                shape = job.roles[pod.role].shape
                for plane, amount in ((1, shape.cpu_milli), (2, shape.memory_mib)):
                    if amount:
                        entry = plane * self.nodes + pod.node
                        plain[entry] = plain.get(entry, 0) + amount
        parts = [(entry, amount, _PLAIN) for entry, amount in sorted(plain.items())]
        return parts + [(node, 1, node * self.devices + device) for node, device in sorted(shares)]

    def expect(self, job_id: str, end_us: int) -> None:
        """A gang is believed to end at `end_us`; nothing where it has nothing here."""
        self.ends[self._slots.get(job_id, [])] = end_us
        self._believed = None

    def remove(self, job_id: str) -> None:
        """A gang has ended; nothing where it has nothing here."""
        for slot in self._slots.pop(job_id, ()):
            self._shares -= self.device[slot] != _PLAIN
            self.is_used[slot] = False
            self._free.append(slot)
        self._believed = None

    def _grow(self) -> None:
        size = len(self.entry)
        self._free = list(range(size, 2 * size))[::-1]
        for name in ("entry", "amount", "begun", "ends", "device", "is_used"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.zeros(size, dtype=old.dtype)]))

    def believed(self, now: int, without: Iterable[str] = ()) -> Believed:
        """What comes back where and when. `without`: gangs to leave out."""
        skipped = [slot for job_id in without for slot in self._slots.get(job_id, ())]
        if not skipped:
            if self._believed is None or self._believed[0] != now:
                self._believed = (now, self._of(self.is_used, now))
            return self._believed[1]
        is_used = self.is_used.copy()
        is_used[skipped] = False
        return self._of(is_used, now)

    def _of(self, is_used: np.ndarray, now: int) -> Believed:
        used = np.flatnonzero(is_used)
        if not self._shares:
            return self.entry[used], self.amount[used], self._ends(used, now)
        plain, shares = used[self.device[used] == _PLAIN], used[self.device[used] != _PLAIN]
        devices, ends = self._last(shares, now)
        return (
            np.concatenate([self.entry[plain], devices // max(self.devices, 1)]),
            np.concatenate([self.amount[plain], np.ones(len(devices), dtype=np.int64)]),
            np.concatenate([self._ends(plain, now), ends]),
        )

    def _ends(self, slots: np.ndarray, now: int) -> np.ndarray:
        ends, begun = self.ends[slots], self.begun[slots]
        return np.where(ends > now, ends, now + np.maximum(now - begun, _LEAST_US))

    def _last(self, shares: np.ndarray, now: int) -> tuple[np.ndarray, np.ndarray]:
        """Devices in shares (node x devices + device), and when the last share of each ends."""
        devices, which = np.unique(self.device[shares], return_inverse=True)
        ends = np.zeros(len(devices), dtype=np.int64)
        np.maximum.at(ends, which, self._ends(shares, now))
        return devices, ends

    def shared(self, now: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(nodes, devices, ends) of all devices in shares."""
        if not self._shares:
            none = np.zeros(0, dtype=np.int64)
            return none, none, none
        devices, ends = self._last(np.flatnonzero(self.is_used & (self.device != _PLAIN)), now)
        width = max(self.devices, 1)
        return devices // width, devices % width, ends
