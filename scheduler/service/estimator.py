"""The seam of start estimates: who gives P50 and P90 of the start of waiting jobs.

Belongs here: the interface, and the answer where nobody estimates. Not here: estimates (`scheduler.estimates`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from scheduler.cycle import Scheduler


@dataclass(frozen=True)
class Start:
    """When a waiting job is expected to start (us): by `p50_us` in half of such cases, by `p90_us` in nine of ten.

    None with a `reason` where there is no time to give.
    """

    p50_us: int | None
    p90_us: int | None
    reason: str = ""


class Estimator(Protocol):
    """Estimates for all waiting jobs of a scheduler at once; it changes nothing."""

    def estimate(self, scheduler: Scheduler, now: int) -> Mapping[str, Start]: ...


class NoEstimates:
    """Nobody estimates."""

    def estimate(self, scheduler: Scheduler, now: int) -> Mapping[str, Start]:
        """No times, and that there are none."""
        return {}


NONE = Start(None, None, "start times are not estimated by this service")
