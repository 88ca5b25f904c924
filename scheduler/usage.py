"""The usage ledger: who holds how much, derived from what runs; ordering, reclaim and reports all read it.

Current usage is an integer sum that is exactly zero once everything has ended. Decayed usage weighs a held unit by
0.5 ^ (age / half-life); it is kept as a value at an instant and carried forward in closed form, never summed tick by
tick. Belongs here: amounts and shares. Not here: limits (`quota.py`), order (`order.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scheduler.model import Kind, Queue

PPM = 1_000_000
# A queue of weight 0 comes after every other, in the order of its use.
LAST = 1 << 60


@dataclass
class _Decayed:
    """Decayed unit-microseconds at `at_us`, and the units held since then."""

    at_us: int = 0
    value: float = 0.0
    held: int = 0


class Usage:
    """Units held by queue and kind. `capacity` is what the fleet has of each kind; it scales the shares."""

    def __init__(
        self, queues: Mapping[str, Queue], capacity: Mapping[Kind, int], half_life_us: int | None = None
    ) -> None:
        self.queues = dict(queues)
        self.capacity = dict(capacity)
        self.half_life_us = half_life_us
        self.weights = sum(q.weight for q in queues.values())
        self.held: dict[str, dict[Kind, int]] = {name: {} for name in queues}
        self.promised: dict[str, dict[Kind, int]] = {}
        self._decayed: dict[tuple[str, Kind], _Decayed] = {}

    def promise(self, queue: str, amounts: Mapping[Kind, int], sign: int = 1) -> None:
        """Quota is kept for a gang that will start once others have left; `sign` -1: no longer."""
        kept = self.promised.setdefault(queue, {})
        for kind, amount in amounts.items():
            kept[kind] = kept.get(kind, 0) + sign * amount
            if not kept[kind]:
                del kept[kind]

    def claimed(self, queue: str, kind: Kind) -> int:
        """Units that the queue holds or that are promised to it: what quota is judged on."""
        held = self.held[queue].get(kind, 0)
        return held + self.promised[queue].get(kind, 0) if queue in self.promised else held

    def add(self, queue: str, amounts: Mapping[Kind, int], now: int) -> None:
        """A gang of the queue has started."""
        self._change(queue, amounts, +1, now)

    def remove(self, queue: str, amounts: Mapping[Kind, int], now: int) -> None:
        """A gang of the queue has ended."""
        self._change(queue, amounts, -1, now)

    def _change(self, queue: str, amounts: Mapping[Kind, int], sign: int, now: int) -> None:
        held = self.held[queue]
        for kind, amount in amounts.items():
            if self.half_life_us:
                state = self._decayed.setdefault((queue, kind), _Decayed(now))
                state.value, state.at_us = self._at(state, now), now
                state.held += sign * amount
            left = held.get(kind, 0) + sign * amount
            if left < 0:
                raise ValueError(f"queue {queue} would hold {left} of {kind[0]} {kind[1]}")
            if left:
                held[kind] = left
            else:
                held.pop(kind, None)

    def _at(self, state: _Decayed, now: int) -> float:
        assert self.half_life_us
        elapsed = max(now - state.at_us, 0)
        kept = 0.5 ** (elapsed / self.half_life_us)
        return state.value * kept + state.held * (1 - kept) * self.half_life_us / math.log(2)

    def of(self, queue: str, kind: Kind) -> int:
        """Units of the kind that the queue holds now."""
        return self.held[queue].get(kind, 0)

    def is_empty(self) -> bool:
        """Whether nobody holds anything, nor is promised anything."""
        return not any(self.held.values()) and not any(self.promised.values())

    def share_ppm(self, queue: str, now: int) -> int:
        """The queue's dominant share of the fleet over its part of all weights, in ppm: the largest of all kinds.

        1,000,000: it holds just the part that its weight is of all weights. With a half-life it is the decayed mean
        holding instead of the present one. Weight 0: `LAST` and more, by use.
        """
        largest = 0
        if self.half_life_us:
            window = self.half_life_us / math.log(2)
            for (name, kind), state in self._decayed.items():
                if name == queue and self.capacity.get(kind):
                    largest = max(largest, int(self._at(state, now) * PPM / window / self.capacity[kind]))
        else:
            for kind, amount in self.held[queue].items():
                if self.capacity.get(kind):
                    largest = max(largest, amount * PPM // self.capacity[kind])
        weight = self.queues[queue].weight
        return largest * self.weights // weight if weight > 0 else LAST + largest
