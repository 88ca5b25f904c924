"""How estimates came out: coverage of P50 and P90, pinball loss of P90 beside the bound's, share answered.

Belongs here: scores of logged estimates. Not here: learning from them (`calibrate.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from scheduler.estimates.record import Scored
from scheduler.model import SECOND_US
from scheduler.sizes import CLASSES


def pinball(waited: np.ndarray, told: np.ndarray, level: float) -> float:
    """The mean loss of quantile estimates (Koenker and Bassett 1978), in the unit of the values."""
    over = waited - told
    return float(np.mean(np.maximum(level * over, (level - 1.0) * over)))


def scores(scored: Iterable[Scored], asked: Collection[tuple[str, str]] = ()) -> dict[str, Any]:
    """By size class and "all": estimates, coverages, P90 pinball (s) of estimate and bound, on the same jobs.

    `asked`: (job id, size class) of all jobs that waited and for which a time was wanted; they make `answered`.
    """
    found, scored = {}, list(scored)
    for name in (*CLASSES, "all"):
        group = [s for s in scored if name in (s.estimate.size_class, "all")]
        wanted = {job_id for job_id, kind in asked if name in (kind, "all")}
        told = {s.estimate.job_id for s in group}
        found[name] = {
            "estimates": len(group),
            "answered": round(len(told & wanted) / len(wanted), 4) if wanted else None,
            **_measures(group),
        }
    return found


def _measures(group: Sequence[Scored]) -> dict[str, Any]:
    if not group:
        return {}
    waited = _seconds([s.waited_us for s in group])
    p50 = _seconds([(s.estimate.p50_us or 0) - s.estimate.at_us for s in group])
    p90 = _seconds([(s.estimate.p90_us or 0) - s.estimate.at_us for s in group])
    has_bound = np.array([s.estimate.bound90_us is not None for s in group])
    measures: dict[str, Any] = {
        "mean_wait_s": _rounded(waited.mean()),
        "p50_covers": _rounded((waited <= p50).mean()),
        "p90_covers": _rounded((waited <= p90).mean()),
        "p90_pinball_s": None,
        "bound_p90_covers": None,
        "bound_p90_pinball_s": None,
    }
    if has_bound.any():
        waited, p90 = waited[has_bound], p90[has_bound]
        bound = _seconds([s.estimate.bound90_us for s in group if s.estimate.bound90_us is not None])
        measures |= {
            "p90_pinball_s": _rounded(pinball(waited, p90, 0.9)),
            "bound_p90_covers": _rounded((waited <= bound).mean()),
            "bound_p90_pinball_s": _rounded(pinball(waited, bound, 0.9)),
        }
    return measures


def _seconds(us: Sequence[int]) -> np.ndarray:
    return np.asarray(us, dtype=np.int64) / SECOND_US


def _rounded(value: float) -> float:
    return round(float(value), 4)
