"""Start estimates of a queue: told what happens, it answers when waiting jobs will start, and keeps score.

It is told of every submission, start and end as they happen and knows nothing else, so no run time that has not ended
yet can have a say. Belongs here: who gets a time, and who a reason instead. Not here: the parts (`forward.py`,
`calibrate.py`, `fallback.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from scheduler import order
from scheduler.cycle import Scheduler
from scheduler.decisions import Decisions
from scheduler.estimates.arrivals import Arrivals
from scheduler.estimates.calibrate import Answer, Calibration
from scheduler.estimates.fallback import Bounds
from scheduler.estimates.forward import Beliefs, Reach, starts
from scheduler.estimates.latest import Latest
from scheduler.estimates.record import Estimate, Scored
from scheduler.estimates.remaining import RunTimes
from scheduler.model import Job, demand, least
from scheduler.pending import Waiting
from scheduler.sizes import size_class

# Waiting jobs of one size class that are run forward; those behind them get the bound.
MOST_OF_CLASS = 1_000
# Estimates that are kept for whoever reads them.
LOGGED = 200_000


class Estimator:
    """Estimates of one queue. `predict`: the run time that decisions believe of a job that comes (us)."""

    def __init__(self, predict: Callable[[Job], int], reach: Reach | None = None) -> None:
        self.predict, self.reach = predict, reach or Reach()
        self.times, self.arrivals = RunTimes(), Arrivals()
        self.calibration, self.bounds = Calibration(), Bounds()
        self.latest: Latest | None = None
        # First estimates in the order in which they were made, and those whose job has started since.
        self.log: deque[Estimate] = deque(maxlen=LOGGED)
        self.scored: deque[Scored] = deque(maxlen=LOGGED)
        self._first: dict[str, Estimate] = {}
        self._stopped: set[str] = set()

    def submitted(self, job: Job) -> None:
        """A job has come, or has come again."""
        self.times.came(job)
        if job.job_id not in self._stopped:
            self.arrivals.came(job)

    def cycled(self, done: Decisions, now: int) -> None:
        """A cycle has decided."""
        for start in done.starts:
            job = start.job
            self.times.started(job, now)
            self.calibration.started(job.job_id, now)
            if job.job_id not in self._stopped and now > job.submit_us:
                self.bounds.waited(size_class(job), now - job.submit_us)
            if (told := self._first.pop(job.job_id, None)) is not None:
                self.scored.append(Scored(told, now - told.at_us))

    def ended(self, job: Job, now: int, *, will_return: bool = False) -> None:
        """A running gang has ended, or was stopped and comes again."""
        if will_return:
            self._stopped.add(job.job_id)
            self.times.stopped(job)
        else:
            self._stopped.discard(job.job_id)
            self.times.ended(job, now)

    def withdrawn(self, job_id: str) -> None:
        """A waiting job has left the queue."""
        self._first.pop(job_id, None)
        self.calibration.left(job_id)
        self.times.left(job_id)

    def estimate(self, scheduler: Scheduler, now: int, job_ids: Collection[str] | None = None) -> dict[str, Estimate]:
        """Estimates of waiting jobs, all or some, by id in the order of the queue; the first of each job is logged."""
        wanted = None if job_ids is None else set(job_ids)
        waiting = sorted(
            scheduler.pending.waiting.values(), key=lambda w: order.key(w, scheduler.usage, scheduler.policy, now)
        )
        held = list(scheduler.holds)
        found: dict[str, Estimate] = {}
        runnable: list[Waiting] = []
        counts: dict[str, int] = {}
        reasons: dict[tuple[object, ...], str] = {}
        for hold in held:
            if wanted is None or hold.job.job_id in wanted:
                ready = max(hold.ready_us, now)
                found[hold.job.job_id] = Estimate(
                    hold.job.job_id, size_class(hold.job), now, len(found) + 1, "held", ready, ready
                )
        for i, w in enumerate(waiting):
            job = w.job
            if wanted is not None and job.job_id not in wanted:
                continue
            kind = size_class(job)
            reason = self._reason(scheduler, job, reasons)
            known = Estimate(job.job_id, kind, now, len(held) + i + 1, "none", reason=reason)
            found[job.job_id] = self._bounded(known, now) if not reason else known
            counts[kind] = counts.get(kind, 0) + (not reason)
            if not reason and counts[kind] <= MOST_OF_CLASS:
                runnable.append(w)
        if runnable:
            self._forward(scheduler, now, runnable, found)
        for job_id, estimate in found.items():
            if estimate.p50_us is not None and job_id not in self._first:
                self._first[job_id] = estimate
                self.log.append(estimate)
        return found

    def alike(self, waiting: Waiting, now: int) -> np.ndarray | None:
        """Starts (us) that the latest run tells of a job that has come since; None where it is too old or has none."""
        if self.latest is None or now - self.latest.at_us > self.reach.fresh_us:
            return None
        return self.latest.of_one_alike(waiting, now)

    def _forward(self, scheduler: Scheduler, now: int, jobs: Sequence[Waiting], found: dict[str, Estimate]) -> None:
        runs = {w.job.job_id: self.alike(w, now) if self.reach.fresh_us else None for w in jobs}
        asked = [job_id for job_id, starts in runs.items() if starts is None]
        if asked:
            beliefs = Beliefs(self.times, self.arrivals.known(now), self.predict)
            fresh = starts(scheduler, now, beliefs, asked, self.reach)
            self.latest = Latest(now, scheduler.pending.waiting.values(), fresh, asked)
            runs |= {job_id: fresh[job_id] for job_id in asked}
        end = now + self.reach.horizon_us
        told: list[tuple[str, str, Answer]] = []
        for job_id, coming in runs.items():
            assert coming is not None
            known, waits = found[job_id], np.sort(np.minimum(coming, end)) - now
            raw50, raw90 = (int(waits[-(-len(waits) * tenths // 10) - 1]) for tenths in (5, 9))
            if raw50 >= self.reach.horizon_us:
                continue
            bound = None if known.bound50_us is None else (known.bound50_us, known.bound90_us or 0)
            answer = self.calibration.answer(known.size_class, (raw50, raw90), bound, now)
            found[job_id] = replace(
                known, method="forward", reason="", raw50_us=raw50, raw90_us=raw90,
                p50_us=now + answer.chosen[0], p90_us=now + answer.chosen[1],
            )  # fmt: skip
            if job_id not in self._first:
                told.append((job_id, known.size_class, answer))
        # After the loop: jobs asked for together must not push each other's forerunners out of what is remembered.
        for job_id, kind, answer in told:
            self.calibration.told(job_id, kind, answer)

    def _bounded(self, known: Estimate, now: int) -> Estimate:
        bounds = [self.bounds.bound(known.size_class, q) for q in (0.5, 0.9)]
        if bounds[0] is None or bounds[1] is None:
            return replace(known, reason="nothing like it has waited yet")
        return replace(
            known, method="bound", p50_us=now + bounds[0], p90_us=now + bounds[1],
            bound50_us=bounds[0], bound90_us=bounds[1],
        )  # fmt: skip

    def _reason(self, scheduler: Scheduler, job: Job, known: dict[tuple[object, ...], str]) -> str:
        """Why there is no time to give; "" where there is."""
        key = (job.queue, job.shape_key)
        if key not in known:
            why = scheduler.impossible(job)
            if why is None and not any(
                scheduler.may_hold(job, demand(job, least(job), f)) for f in scheduler.flavors(job)
            ):
                why = f"queue {job.queue} may hold no more now"
            known[key] = why or ""
        return known[key]
