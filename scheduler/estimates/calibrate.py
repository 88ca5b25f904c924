"""Estimates corrected by how earlier ones came out, by size class.

An estimate's score is log((waited + 4 h) / (estimated + 4 h)), that of P50 and that of P90 apart; their recent 0.5- and
0.9-quantiles are the factors for the next (conformalized quantile regression, Romano, Patterson and Candès, NeurIPS
2019). The four hours make it a ratio where waits are long and a difference where they are short: a job that was told a
minute and waited an hour says nothing like sixty times as long about one that was told a day. Jobs that still wait
count too, as scores at least as large as now (Kaplan-Meier): those that have started already are the lucky ones, and on
them alone every factor would be too small. A few scores of an estimate that is right stand for the time before there
are any. Belongs here: factors. Not here: what is corrected (`forward.py`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from scheduler.model import HOUR_US

# Scores of one class that tell about the next.
KEPT = 80
_SOFT_US = 4 * HOUR_US
_MOST = 3.0
# Scores that stand for the time before there are any: normal quantiles of this deviation, around the level.
_DEVIATION = 0.3
_NORMAL = np.array([NormalDist().inv_cdf((i + 0.5) / 20) for i in range(20)])
_AT_LEVEL = {level: NormalDist().inv_cdf(level) for level in (0.5, 0.9)}


@dataclass(eq=False)
class _Told:
    """The first estimate of a job: waits (us) from `at_us` on, and how long it was once it has started."""

    at_us: int
    raw50_us: int
    raw90_us: int
    waited_us: int | None = None


class Calibration:
    """First estimates and what came of them. It learns of a start when it happens, so nothing later has a say."""

    def __init__(self, kept: int = KEPT) -> None:
        self.kept = kept
        self._told: dict[str, deque[_Told]] = {}
        self._open: dict[str, _Told] = {}

    def told(self, job_id: str, size_class: str, at_us: int, raw50_us: int, raw90_us: int) -> None:
        """A job got its first estimate."""
        known = self._told.setdefault(size_class, deque(maxlen=self.kept))
        self._open[job_id] = told = _Told(at_us, raw50_us, raw90_us)
        known.append(told)

    def started(self, job_id: str, now: int) -> None:
        """It has started; nothing where it never had an estimate."""
        told = self._open.pop(job_id, None)
        if told is not None:
            told.waited_us = now - told.at_us

    def left(self, job_id: str) -> None:
        """It will not start: it waited as long as it did, which says nothing more."""
        told = self._open.pop(job_id, None)
        if told is not None:
            for known in self._told.values():
                if told in known:
                    known.remove(told)

    def corrected(self, size_class: str, raw50_us: int, raw90_us: int, now: int) -> tuple[int, int]:
        """P50 and P90 of the wait (us), P90 not below P50."""
        known = [t for t in self._told.get(size_class, ()) if t.at_us < now]
        waits = [t.waited_us if t.waited_us is not None else now - t.at_us for t in known]
        is_open = np.array([t.waited_us is None for t in known], dtype=bool)
        p50 = _corrected(raw50_us, waits, [t.raw50_us for t in known], is_open, 0.5)
        p90 = _corrected(raw90_us, waits, [t.raw90_us for t in known], is_open, 0.9)
        return p50, max(p50, p90)


def _corrected(raw_us: int, waits: Sequence[int], estimates: Sequence[int], is_open: np.ndarray, level: float) -> int:
    prior = (_NORMAL - _AT_LEVEL[level]) * _DEVIATION
    scores = np.log(np.asarray(waits) + _SOFT_US) - np.log(np.asarray(estimates) + _SOFT_US)
    is_censored = np.concatenate([is_open, np.zeros(len(prior), dtype=bool)])
    factor = quantile(np.concatenate([scores, prior]), is_censored, level)
    return max(round((raw_us + _SOFT_US) * math.exp(min(max(factor, -_MOST), _MOST))) - _SOFT_US, 0)


def quantile(values: np.ndarray, is_censored: np.ndarray, level: float) -> float:
    """The Kaplan-Meier quantile of values of which some are only known to be at least so large.

    One more unknown value counts, so that the next one is covered as often as `level` says (the n + 1 of conformal
    prediction). Where the curve does not fall as far, the largest value.
    """
    # at ties the seen come before the censored
    order = np.lexsort((is_censored, values))
    at_risk = len(values) + 1 - np.arange(len(values))
    survives = np.cumprod(np.where(is_censored[order], 1.0, 1.0 - 1.0 / at_risk))
    place = int(np.searchsorted(-survives, -(1.0 - level) - 1e-12, side="left"))
    return float(values[order][min(place, len(values) - 1)])
