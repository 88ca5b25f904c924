"""Batches: jobs of one team and size submitted one after the other within a minute; their run times are alike.

Sweeps and retries come like this. On the September part of the Philly trace the variance of the logarithm of run times
is 0.3 within a batch and 1.3 to 2.7 around what came before it. So what the first of a batch did is told of the others,
those that wait and those that run. Runs that have not ended count as what they are, at least as long as now (Kaplan and
Meier, JASA 1958): the ended ones alone are the short ones.

Belongs here: what a batch has shown so far. Not here: what is believed before it has shown anything (`predict.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from scheduler.model import SECOND_US, Job

# Longest pause between two submissions of one batch.
GAP_US = 60 * SECOND_US
# How many ended runs of a batch tell: enough for a median.
MEMORY = 100
# A median that has moved by less than this share of itself is not told again.
_STEP = 50


@dataclass(eq=False)
class Batch:
    """`believed_us`: the run time that is told of its jobs; `prior_us` what was told before any had run."""

    prior_us: int
    last_us: int
    believed_us: int = 0
    waiting: dict[str, None] = field(default_factory=dict)
    # begin by job id, in the order of the starts
    running: dict[str, int] = field(default_factory=dict)
    lengths: list[int] = field(default_factory=list)
    has_ended: bool = False

    def is_due(self, now: int) -> bool:
        """Whether there is something new to tell: one has ended, or has run for longer than was told of it."""
        if self.has_ended or not self.running:
            return self.has_ended
        return now - next(iter(self.running.values())) > self.believed_us

    def median_us(self, now: int) -> int:
        """What its runs show: their median; where more than half are not over, twice the longest of those that run."""
        so_far = [now - begun for begun in self.running.values()]
        found = median_so_far_us(self.lengths[-MEMORY:], so_far)
        return found if found is not None else max(self.prior_us, 2 * max(so_far, default=0))


def median_so_far_us(ended: Iterable[int], so_far: Iterable[int]) -> int | None:
    """Kaplan-Meier median (us) of runs that have ended and of others, by how long they have run; None: above all."""
    seen = sorted([(length, 0) for length in ended] + [(length, 1) for length in so_far])
    left = 1.0
    for i, (length, is_running) in enumerate(seen):
        if not is_running:
            left *= 1.0 - 1.0 / (len(seen) - i)
            if left <= 0.5:
                return length
    return None


def follows(job: Job, last_us: int) -> bool:
    """Whether a job that comes belongs to a batch whose last one was submitted at `last_us`."""
    return 0 <= job.submit_us - last_us <= GAP_US


class Batches:
    """All batches of which a job waits or runs, and the latest of each team and size. Times in microseconds."""

    def __init__(self) -> None:
        self._latest: dict[tuple[str, int], Batch] = {}
        self._of: dict[str, Batch] = {}
        self._active: dict[Batch, None] = {}

    def believed_us(self, job: Job) -> int | None:
        """What is told of a job that is known, or would be of one that came as it does; None: it begins a batch."""
        batch = self._of.get(job.job_id) or self._joined(job)
        return batch.believed_us if batch is not None else None

    def _joined(self, job: Job) -> Batch | None:
        batch = self._latest.get(_key(job))
        return batch if batch is not None and follows(job, batch.last_us) else None

    def submitted(self, job: Job, prior_us: int) -> None:
        """A job has come; `prior_us` is told of it where it begins a batch."""
        batch = self._joined(job)
        if batch is None:
            batch = self._latest[_key(job)] = Batch(prior_us, job.submit_us, prior_us)
        batch.last_us = job.submit_us
        batch.waiting[job.job_id] = None
        self._of[job.job_id] = batch
        self._active[batch] = None

    def started(self, job_id: str, now: int) -> None:
        """A job has started."""
        if (batch := self._of.get(job_id)) is not None:
            batch.waiting.pop(job_id, None)
            batch.running[job_id] = now

    def ended(self, job_id: str, duration_us: int) -> None:
        """A run is over after `duration_us`."""
        if (batch := self._of.get(job_id)) is not None:
            batch.lengths.append(duration_us)
            batch.has_ended = True
        self.left(job_id)

    def left(self, job_id: str) -> None:
        """A job tells no more: it was withdrawn, or stopped before its end."""
        if (batch := self._of.pop(job_id, None)) is not None:
            batch.waiting.pop(job_id, None)
            batch.running.pop(job_id, None)
            if not batch.waiting and not batch.running:
                self._active.pop(batch, None)

    def revised(self, now: int) -> dict[str, int]:
        """Run times, told anew, of jobs that wait or run, by id: those of batches that have shown something new."""
        found: dict[str, int] = {}
        for batch in self._active:
            if not batch.is_due(now):
                continue
            batch.has_ended = False
            believed = max(batch.median_us(now), 1)
            if abs(believed - batch.believed_us) * _STEP > batch.believed_us:
                batch.believed_us = believed
                found.update(dict.fromkeys((*batch.waiting, *batch.running), believed))
        return found


def _key(job: Job) -> tuple[str, int]:
    return (job.team, job.gpu_milli)
