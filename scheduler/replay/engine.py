"""Discrete-event replay: jobs of a trace through the cycle on a fleet of nodes, in simulated time.

At one instant ends come before arrivals, and one cycle follows. Belongs here: arrivals and cycles. Not here: decisions
(`scheduler.cycle`), what becomes of running gangs (`carrying`), predictions (`predict`), figures (`metrics`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler.cycle import Scheduler
from scheduler.predict import Predictor
from scheduler.replay.carrying import Carrier, NodeFault
from scheduler.replay.outcome import Outcome, TraceRun

# Called now and then with the number of jobs that have ended.
Progress = Callable[[int], None]
_TELL_EVERY = 1000

__all__ = ["NodeFault", "Outcome", "Progress", "TraceRun", "replay"]


def replay(
    runs: Sequence[TraceRun],
    scheduler: Scheduler,
    predictor: Predictor,
    progress: Progress | None = None,
    faults: Sequence[NodeFault] = (),
) -> Outcome:
    """Run all jobs to their end. `runs` in the order of submission, then id. `faults`: nodes that are lost meanwhile.

    It ends when nothing more can happen; jobs that wait then are `stuck`.
    """
    out = Outcome()
    carrier = Carrier(scheduler, predictor, {r.job.job_id: r.duration_us for r in runs}, out, faults)
    shapes: dict[tuple[object, ...], str | None] = {}
    coming = now = told = 0
    while coming < len(runs) or carrier.next_us() is not None:
        times = [] if (due := carrier.next_us()) is None else [due]
        if coming < len(runs):
            times.append(runs[coming].job.submit_us)
        now = min(times)
        carrier.advance(now)
        if progress is not None and len(out.ended_us) >= told + _TELL_EVERY:
            told = len(out.ended_us)
            progress(told)
        while coming < len(runs) and runs[coming].job.submit_us == now:
            job = runs[coming].job
            coming += 1
            key = (job.queue, job.shape_key)
            if key not in shapes:
                shapes[key] = scheduler.impossible(job)
            if (why := shapes[key]) is not None:
                out.impossible[job.job_id] = why
                continue
            carrier.submit(job)
        scheduler.repredict(predictor.revised(now))
        done = scheduler.cycle(now)
        out.cycles += 1
        for reservation in done.reserved:
            out.promised_us.setdefault(reservation.job.job_id, reservation.start_us)
        out.withdrawn += done.withdrawn
        carrier.carry_out(done, now)
    out.stuck = (*(hold.job.job_id for hold in scheduler.holds), *(w.job.job_id for w in scheduler.pending.oldest()))
    out.finished_us = now
    return out
