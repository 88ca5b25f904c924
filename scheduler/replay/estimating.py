"""A replay in which jobs that wait get their first start estimate, to be scored at its end.

The queue tells the estimator what it does and asks for estimates right after the cycle in which a job did not start.
Belongs here: that wiring, and which jobs are asked for. Not here: estimates (`scheduler.estimates`).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduler.cluster import Cluster
from scheduler.cycle import Scheduler
from scheduler.decisions import Decisions
from scheduler.estimates.estimator import Estimator
from scheduler.estimates.forward import Reach
from scheduler.model import Job
from scheduler.placement.bestfit import place
from scheduler.predict import History
from scheduler.replay.engine import Progress, replay
from scheduler.replay.fleets import capacity
from scheduler.replay.outcome import Outcome, TraceRun
from scheduler.replay.run import Setting, policy_of
from scheduler.sizes import size_class
from scheduler.usage import Usage


@dataclass(frozen=True)
class Sample:
    """Which waiting jobs are asked for: of each size class this share, drawn by seed and id. Empty: all."""

    shares: Mapping[str, float] = field(default_factory=dict)
    seed: int = 1

    def has(self, job: Job) -> bool:
        """Whether the job is one of them."""
        drawn = int.from_bytes(hashlib.sha256(f"{self.seed}/{job.job_id}".encode()).digest()[:6]) / (1 << 48)
        return drawn < self.shares.get(size_class(job), 1.0)


class Watched(Scheduler):
    """A queue that tells an estimator what it does. A copy of it (`forward.py`) tells nobody."""

    watcher: Watcher | None = None

    def watch(self, watcher: Watcher) -> None:
        """From now on it tells."""
        self.watcher = watcher

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "watcher"}

    def submit(self, job: Job, predicted_us: int) -> None:
        """A job joins the queue, or joins it again."""
        super().submit(job, predicted_us)
        if self.watcher is not None:
            self.watcher.came(job)

    def ended(self, job_id: str, now: int, *, will_return: bool = False) -> None:
        """A running gang has ended or was killed."""
        if self.watcher is not None:
            self.watcher.estimator.ended(self.gangs[job_id].job, now, will_return=will_return)
        super().ended(job_id, now, will_return=will_return)

    def cycle(self, now: int) -> Decisions:
        """Decide, then tell."""
        done = super().cycle(now)
        if self.watcher is not None:
            self.watcher.cycled(self, done, now)
        return done


class Watcher:
    """Asks for the first estimate of sampled jobs that do not start at once.

    `spent_s`: CPU time that estimates took; `runs`: how many runs forward they needed.
    """

    def __init__(self, estimator: Estimator, sample: Sample) -> None:
        self.estimator, self.sample = estimator, sample
        self.asked: list[tuple[str, str]] = []
        self.spent_s = 0.0
        self.runs = 0
        self._new: list[Job] = []
        self._known: set[str] = set()

    def came(self, job: Job) -> None:
        """A job joins the queue."""
        self.estimator.submitted(job)
        if job.job_id not in self._known:
            self._known.add(job.job_id)
            self._new.append(job)

    def cycled(self, scheduler: Scheduler, done: Decisions, now: int) -> None:
        """What has started is scored; what has come and waits is asked for."""
        self.estimator.cycled(done, now)
        waiting = scheduler.pending.waiting
        new, self._new = self._new, []
        wanted = [j for j in new if (j.job_id in waiting or j.job_id in scheduler.holds) and self.sample.has(j)]
        if wanted:
            begun, latest = time.process_time(), self.estimator.latest
            self.estimator.estimate(scheduler, now, [j.job_id for j in wanted])
            self.spent_s += time.process_time() - begun
            self.runs += self.estimator.latest is not latest
            self.asked += [(j.job_id, size_class(j)) for j in wanted]


def replay_estimating(
    runs: Sequence[TraceRun], setting: Setting, sample: Sample, reach: Reach, progress: Progress | None = None
) -> tuple[Outcome, Watcher]:
    """One replay on nodes with run times predicted from history, and what its estimates came to."""
    policy = policy_of(setting)
    nodes = setting.fleet
    queue = Watched(Cluster(nodes), Usage(setting.queues, capacity(nodes), policy.half_life_us), policy, place)
    predictor = History()
    watcher = Watcher(Estimator(predictor.predict, reach), sample)
    queue.watch(watcher)
    return replay(runs, queue, predictor, progress), watcher
