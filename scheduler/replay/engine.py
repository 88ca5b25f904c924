"""Discrete-event replay: jobs of a trace through the cycle on a fleet of nodes, in simulated time.

At one instant ends come before arrivals, and one cycle follows. Belongs here: the events. Not here: decisions
(`scheduler.cycle`), predictions (`predict`), the record (`outcome`), figures (`metrics`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from scheduler.cycle import Scheduler
from scheduler.model import Placement
from scheduler.predict import Predictor
from scheduler.replay.outcome import Outcome, TraceRun, span_of

# Called now and then with the number of jobs that have ended.
Progress = Callable[[int], None]
_TELL_EVERY = 1000

__all__ = ["Outcome", "Progress", "TraceRun", "replay"]


def replay(
    runs: Sequence[TraceRun], scheduler: Scheduler, predictor: Predictor, progress: Progress | None = None
) -> Outcome:
    """Run all jobs to their end. `runs` in the order of submission, then id.

    It ends when nothing more can happen; jobs that wait then are `stuck`.
    """
    out = Outcome()
    durations = {r.job.job_id: r.duration_us for r in runs}
    shapes: dict[tuple[object, ...], str | None] = {}
    ends: list[tuple[int, str]] = []
    by_id = {r.job.job_id: r.job for r in runs}
    held: dict[str, tuple[int, Placement]] = {}
    coming = now = 0
    while coming < len(runs) or ends:
        times = [ends[0][0]] if ends else []
        if coming < len(runs):
            times.append(runs[coming].job.submit_us)
        now = min(times)
        while ends and ends[0][0] <= now:
            _, job_id = heapq.heappop(ends)
            job = by_id[job_id]
            scheduler.ended(job_id, now)
            predictor.ended(job, durations[job_id])
            out.ended_us[job_id] = now
            begun, placement = held.pop(job_id)
            out.spans.append(span_of(job, placement, begun, now))
            if progress is not None and len(out.ended_us) % _TELL_EVERY == 0:
                progress(len(out.ended_us))
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
            held[job_id] = (now, start.placement)
            heapq.heappush(ends, (now + durations[job_id], job_id))
    out.stuck = tuple(w.job.job_id for w in scheduler.pending.oldest())
    out.finished_us = now
    return out
