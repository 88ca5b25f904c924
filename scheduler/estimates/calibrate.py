"""Estimates corrected by how earlier ones came out, by size class.

What the forward run says and the bound on recent waits are mixed in three ways (geometric means). Each mixture is
corrected on its own: its score is log((waited + 4 h) / (estimated + 4 h)), and the recent 0.5- or 0.9-quantile of
scores is the factor for its next estimate (conformalized quantile regression, Romano, Patterson and Candès, NeurIPS
2019). The four hours make it a ratio where waits are long and a difference where they are short: a job that was told a
minute and waited an hour says nothing like sixty times as long about one that was told a day. The answer is the
geometric mean of the corrected mixtures. (To let that one answer which had lost least of late lost far more where waits
are few: what fifty of them lost says little about the next.)

Jobs that still wait count too, as scores at least as large as now (Kaplan-Meier): those that have started already are
the lucky ones, and on them alone every factor would be too small. A few scores of an estimate that is right stand for
the time before there are any. Belongs here: mixtures and factors. Not here: what is mixed (`forward.py`,
`fallback.py`).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from scheduler.model import HOUR_US

# Estimates of one class that tell about the next.
KEPT = 100
_SOFT_US = 4 * HOUR_US
_MOST = 3.0
# Shares of the bound in the mixtures.
_WEIGHTS = (0.0, 0.25, 0.5)
_LEVELS = (0.5, 0.9)
# Scores that stand for the time before there are any: normal quantiles of this deviation, around the level.
_DEVIATION = 0.3
_NORMAL = np.array([NormalDist().inv_cdf((i + 0.5) / 20) for i in range(20)])
_AT_LEVEL = {level: NormalDist().inv_cdf(level) for level in _LEVELS}

# P50 and P90 of a wait (us).
Pair = tuple[int, int]


@dataclass(eq=False)
class Answer:
    """An estimate made at `at_us`: each mixture before and after correction, (weights, 2) logs, and what was told."""

    at_us: int
    mixed: np.ndarray
    corrected: np.ndarray
    chosen: Pair
    waited_us: int | None = None

    def seen_us(self, now: int) -> int:
        """The wait, or how long it has been so far."""
        return now - self.at_us if self.waited_us is None else self.waited_us


class Calibration:
    """First estimates and what came of them. It learns of a start when it happens, so nothing later has a say."""

    def __init__(self, kept: int = KEPT) -> None:
        self.kept = kept
        self._told: dict[str, deque[Answer]] = {}
        self._open: dict[str, tuple[str, Answer]] = {}

    def told(self, job_id: str, size_class: str, answer: Answer) -> None:
        """A job got its first estimate."""
        self._open[job_id] = (size_class, answer)
        self._told.setdefault(size_class, deque(maxlen=self.kept)).append(answer)

    def started(self, job_id: str, now: int) -> None:
        """It has started; nothing where it never had an estimate."""
        if (found := self._open.pop(job_id, None)) is not None:
            found[1].waited_us = now - found[1].at_us

    def left(self, job_id: str) -> None:
        """It will not start: how long it waited says nothing."""
        found = self._open.pop(job_id, None)
        if found is not None and found[1] in (known := self._told[found[0]]):
            known.remove(found[1])

    def answer(self, size_class: str, raw: Pair, bound: Pair | None, now: int) -> Answer:
        """The corrected P50 and P90 of a wait, P90 not below P50."""
        known = [t for t in self._told.get(size_class, ()) if t.at_us < now]
        waits = np.array([t.seen_us(now) for t in known], dtype=np.int64)
        is_open = np.array([t.waited_us is None for t in known], dtype=bool)
        first, second = (np.log(np.array(pair) + _SOFT_US) for pair in (raw, bound or raw))
        logs = np.array([(1 - w) * first + w * second for w in _WEIGHTS])
        mixed = np.array([t.mixed for t in known]).reshape(-1, *logs.shape)
        corrected = logs.copy()
        for k, level in enumerate(_LEVELS):
            for i in range(len(_WEIGHTS)):
                corrected[i, k] += _factor(np.log(waits + _SOFT_US) - mixed[:, i, k], is_open, level)
        chosen = [max(round(math.exp(log)) - _SOFT_US, 0) for log in corrected.mean(axis=0)]
        return Answer(now, logs, corrected, (chosen[0], max(chosen)))


def _factor(scores: np.ndarray, is_open: np.ndarray, level: float) -> float:
    prior = (_NORMAL - _AT_LEVEL[level]) * _DEVIATION
    is_censored = np.concatenate([is_open, np.zeros(len(prior), dtype=bool)])
    return min(max(quantile(np.concatenate([scores, prior]), is_censored, level), -_MOST), _MOST)


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
