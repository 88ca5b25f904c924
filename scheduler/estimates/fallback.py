"""The fallback and the bar to beat: a bound on a quantile of recent waits, without any model of the queue.

The k-th smallest of n waits is an upper bound on their q-quantile with the confidence that at most k - 1 of n lie below
it (binomial; QBETS: Nurmi, Brevik and Wolski, JSSPP 2007). Where several waits in a row exceed the bound the past no
longer tells: history is cut to as many as a bound needs. Belongs here: this bound, by size class. Not here: waits of
jobs that started at once, which nobody was told a time for.
"""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache

KEPT = 1_000
CONFIDENCE = 0.95
# Waits in a row above the P90 bound that show a change: by chance one in a thousand were they independent.
_MISSES = 3


class Bounds:
    """Waits (us) of started jobs by size class."""

    def __init__(self) -> None:
        self._waits: dict[str, deque[int]] = {}
        self._misses: dict[str, int] = {}
        self._known: dict[tuple[str, float], int | None] = {}

    def waited(self, size_class: str, wait_us: int) -> None:
        """A job that was told a time has started."""
        bound = self.bound(size_class, 0.9)
        waits = self._waits.setdefault(size_class, deque(maxlen=KEPT))
        waits.append(wait_us)
        missed = self._misses.get(size_class, 0) + 1 if bound is not None and wait_us > bound else 0
        if missed >= _MISSES:
            missed = 0
            for _ in range(len(waits) - least_waits(0.9)):
                waits.popleft()
        self._misses[size_class] = missed
        self._known = {key: v for key, v in self._known.items() if key[0] != size_class}

    def bound(self, size_class: str, quantile: float) -> int | None:
        """The wait (us) that the quantile does not exceed; the longest of too few, None of none."""
        key = (size_class, quantile)
        if key not in self._known:
            waits = sorted(self._waits.get(size_class, ()))
            self._known[key] = waits[rank(len(waits), quantile) - 1] if waits else None
        return self._known[key]


def least_waits(quantile: float) -> int:
    """How many waits a bound with full confidence needs at least: their longest exceeds the quantile then."""
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(quantile))


@lru_cache(maxsize=4 * KEPT)
def rank(n: int, quantile: float) -> int:
    """The smallest k with P(Binomial(n, quantile) <= k - 1) >= `CONFIDENCE`; n where there is none."""
    below = 0.0
    for k in range(1, n + 1):
        below += math.exp(
            math.lgamma(n + 1) - math.lgamma(k) - math.lgamma(n - k + 2)
            + (k - 1) * math.log(quantile) + (n - k + 1) * math.log1p(-quantile)
        )  # fmt: skip
        if below >= CONFIDENCE:
            return k
    return n
