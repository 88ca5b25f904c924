"""What an estimate says and what is logged of it, so that it can be scored once the job has started.

Belongs here: the record. Not here: how it is found (`estimator.py`), its score (`scoring.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Where the times come from: runs of the cycle forward, room that is held, the bound on recent waits, or nowhere.
Method = Literal["forward", "held", "bound", "none"]


@dataclass(frozen=True)
class Estimate:
    """Of one waiting job, made at `at_us`.

    It starts by `p50_us` in half of such cases and by `p90_us` in nine of ten (instants, us); None with a `reason`
    where there is no time to give. `position` counts from 1 in the order of the queue. `raw50_us` and `raw90_us` are
    the waits from `at_us` on before calibration, `bound50_us` and `bound90_us` those that the fallback gives.
    """

    job_id: str
    size_class: str
    at_us: int
    position: int
    method: Method
    p50_us: int | None = None
    p90_us: int | None = None
    reason: str = ""
    raw50_us: int | None = None
    raw90_us: int | None = None
    bound50_us: int | None = None
    bound90_us: int | None = None


@dataclass(frozen=True)
class Scored:
    """An estimate and how long the job waited from then on (us)."""

    estimate: Estimate
    waited_us: int
