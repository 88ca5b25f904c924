"""Discrete-event replay: jobs of a trace through the cycle on a fleet of nodes, in simulated time.

At one instant ends come before arrivals, and one cycle follows. Belongs here: the events. Not here: decisions
(`scheduler.cycle`), predictions (`predict`), figures (`metrics`).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduler.cycle import Scheduler
from scheduler.model import Job
from scheduler.predict import Predictor


@dataclass(frozen=True)
class TraceRun:
    """A job and how long it really runs (us), which no decision may see unless the predictor is exact."""

    job: Job
    duration_us: int


@dataclass
class Outcome:
    """What became of the jobs: first start and end by job id (us), and why some never could start."""

    started_us: dict[str, int] = field(default_factory=dict)
    ended_us: dict[str, int] = field(default_factory=dict)
    impossible: dict[str, str] = field(default_factory=dict)
    promised_us: dict[str, int] = field(default_factory=dict)
    cycles: int = 0


def replay(runs: Sequence[TraceRun], scheduler: Scheduler, predictor: Predictor) -> Outcome:
    """Run all jobs to their end. `runs` in the order of submission, then id."""
    out = Outcome()
    durations = {r.job.job_id: r.duration_us for r in runs}
    shapes: dict[tuple[object, ...], str | None] = {}
    ends: list[tuple[int, str]] = []
    by_id = {r.job.job_id: r.job for r in runs}
    coming = 0
    while coming < len(runs) or ends:
        times = [ends[0][0]] if ends else []
        if coming < len(runs):
            times.append(runs[coming].job.submit_us)
        now = min(times)
        while ends and ends[0][0] <= now:
            _, job_id = heapq.heappop(ends)
            scheduler.ended(job_id, now)
            predictor.ended(by_id[job_id], durations[job_id])
            out.ended_us[job_id] = now
        while coming < len(runs) and runs[coming].job.submit_us == now:
            job = runs[coming].job
            coming += 1
            key = (job.queue, job.shape_key)
            if key not in shapes:
                shapes[key] = scheduler.impossible(job)
            if (why := shapes[key]) is not None:
                out.impossible[job.job_id] = why
                continue
            scheduler.submit(job, predictor.predict(job))
        done = scheduler.cycle(now)
        out.cycles += 1
        for reservation in done.reserved:
            out.promised_us.setdefault(reservation.job.job_id, reservation.start_us)
        for start in done.starts:
            job_id = start.job.job_id
            out.started_us.setdefault(job_id, now)
            heapq.heappush(ends, (now + durations[job_id], job_id))
    return out
