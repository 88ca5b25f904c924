"""What start estimates learn from, told by the event log alone, so that a restart knows all that was known before.

Belongs here: which event tells the estimator what. Not here: when estimates are made (`estimating.py`), how
(`scheduler.estimates`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from scheduler.decisions import Decisions, Start
from scheduler.estimates.calibrate import Answer, Calibration
from scheduler.estimates.estimator import Estimator
from scheduler.estimates.record import Estimate
from scheduler.model import Job, Placement

if TYPE_CHECKING:
    from scheduler.service.log import Event
    from scheduler.service.records import Entry

_NOWHERE = Placement("", ())


class Collecting(Calibration):
    """Calibration whose new answers are set aside: they count once they are in the log, in the order of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.fresh: dict[str, tuple[str, Answer]] = {}

    def told(self, job_id: str, size_class: str, answer: Answer) -> None:
        """An estimate was made."""
        self.fresh[job_id] = (size_class, answer)

    def learn(self, job_id: str, size_class: str, answer: Answer) -> None:
        """It was logged as the first of its job."""
        super().told(job_id, size_class, answer)


class Learner:
    """An estimator that hears of a queue's events. `predict`: the run time that decisions believe of a job (us)."""

    def __init__(self, predict: Callable[[Job], int]) -> None:
        self.estimator = Estimator(predict)
        self.calibration = self.estimator.calibration = Collecting()
        # Jobs that have come and were not looked at yet: those that turn out impossible are no arrivals.
        self._unseen: dict[str, Job] = {}
        # Answers of other programs may be of another form; those tell nothing.
        self._form = Calibration().answer("1", (0, 0), None, 0).mixed.shape

    def hear(self, event: Event, entry: Entry, *, had_run: bool) -> None:
        """An event of a job, with what became of the job by it."""
        job, now = entry.job, event.event_at_us
        match event.kind:
            case "submitted":
                self._unseen[job.job_id] = job
            case "waiting":
                self._arrived(job.job_id)
            case "estimated":
                self._told(job.job_id, event.payload or {})
            case "intended":
                self._arrived(job.job_id)
                # Who never waited was told no time: the bound on waits is not about such jobs.
                started = job if entry.was_passed_over else replace(job, submit_us=now)
                self.estimator.cycled(Decisions(starts=[Start(started, _NOWHERE, now)]), now)
        if had_run and entry.run is None:
            self.estimator.ended(job, now, will_return=entry.life.state != "succeeded")
        elif entry.life.is_over and not had_run:
            self._unseen.pop(job.job_id, None)
            self.estimator.withdrawn(job.job_id)

    def _arrived(self, job_id: str) -> None:
        """A cycle has looked at a job, and so at all that came before it."""
        if job_id not in self._unseen:
            return
        for known in list(self._unseen):
            self.estimator.submitted(self._unseen.pop(known))
            if known == job_id:
                return

    def _told(self, job_id: str, payload: dict[str, Any]) -> None:
        if "mixed" not in payload:
            return
        mixed, corrected = np.array(payload["mixed"]), np.array(payload["corrected"])
        if mixed.shape == corrected.shape == self._form:
            chosen = (payload["p50_us"] - payload["at_us"], payload["p90_us"] - payload["at_us"])
            self.calibration.learn(job_id, payload["size_class"], Answer(payload["at_us"], mixed, corrected, chosen))


def estimate_json(estimate: Estimate, answer: Answer | None) -> dict[str, Any]:
    """An estimate as the log keeps it; `answer`: what a later calibration needs of it."""
    payload = {
        "at_us": estimate.at_us, "size_class": estimate.size_class, "position": estimate.position,
        "method": estimate.method, "p50_us": estimate.p50_us, "p90_us": estimate.p90_us,
        "raw50_us": estimate.raw50_us, "raw90_us": estimate.raw90_us, "bound50_us": estimate.bound50_us,
        "bound90_us": estimate.bound90_us,
    }  # fmt: skip
    if answer is not None:
        payload |= {"mixed": answer.mixed.tolist(), "corrected": answer.corrected.tolist()}
    return payload
