"""The queue run forward from a copy of now, several times, each with other run times and arrivals.

One run serves every waiting job: it is the same cycle, so order, quota, reservations and evictions are what they will
be. The further ahead, the coarser: what happens within a part (`Reach.steps`) of the time since now goes into one
cycle, so that a run of days takes hundreds of cycles and not tens of thousands.

Belongs here: copies of the state and their simulated events. Not here: draws (`remaining.py`, `arrivals.py`), what the
starts amount to (`calibrate.py`).
"""

from __future__ import annotations

import heapq
import io
import pickle
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from scheduler.batches import follows
from scheduler.cycle import Scheduler
from scheduler.decisions import Decisions
from scheduler.estimates.arrivals import Known
from scheduler.estimates.remaining import Lengths, RunTimes
from scheduler.lifecycle import backoff_us
from scheduler.model import HOUR_US, SECOND_US, Job, Node, Placement
from scheduler.pending import Waiting
from scheduler.reservations import FOREVER

# A start that did not come within the horizon.
NEVER = FOREVER
# Values that are never changed: copies of a scheduler share them.
_CONSTANT = (Job, Node, Placement, Waiting)
_END, _KILL, _AGAIN, _WAKE = range(4)
# Run times drawn at once for simulated batch.
_AT_ONCE = 32


@dataclass(frozen=True)
class Reach:
    """How much is simulated: runs, how far ahead (us), the shortest time between cycles (us) and its growth.

    Cycles are at least `least_step_us` and the elapsed time over `steps` apart. A run no older than `fresh_us` tells of
    jobs that have come since where there was one alike in it (0: each question is a run).
    """

    seed: int = 1
    replicas: int = 6
    horizon_us: int = 4 * 24 * HOUR_US
    least_step_us: int = 30 * SECOND_US
    steps: int = 12
    fresh_us: int = 0


@dataclass(frozen=True)
class Beliefs:
    """What the runs draw from. `predict` gives decisions their run time of a job that comes (us)."""

    times: RunTimes
    arrivals: Known
    predict: Callable[[Job], int]


def starts(
    scheduler: Scheduler, now: int, beliefs: Beliefs, targets: Collection[str], reach: Reach
) -> dict[str, np.ndarray]:
    """Start instants (us) of all waiting jobs in each run, `NEVER` where it did not come before the run's end.

    The scheduler stays as it is. A run ends once all `targets` have started, or with the horizon.
    """
    state = _Frozen(scheduler)
    rng = np.random.default_rng([reach.seed, now])
    gangs = sorted(scheduler.gangs, key=lambda g: g.job.job_id)
    waiting = sorted(scheduler.pending.waiting.values(), key=lambda w: w.job.job_id)
    holds = sorted(scheduler.holds, key=lambda h: h.job.job_id)
    waits = [w.job for w in waiting] + [h.job for h in holds]
    running, elapsed = [g.job for g in gangs], [now - g.begun_us for g in gangs]
    batches = {j.job_id: batch for j in (*running, *waits) if (batch := beliefs.times.of(j.job_id)) is not None}
    members: dict[object, list[str]] = {}
    for job_id, batch in batches.items():
        members.setdefault(batch, []).append(job_id)
    found = {job.job_id: np.full(reach.replicas, NEVER, dtype=np.int64) for job in waits}
    for k, stream in enumerate(rng.spawn(reach.replicas)):
        copy = state.copy()
        lengths = beliefs.times.future(stream, now)
        rest = dict(zip((j.job_id for j in running), map(int, lengths.rest(running, elapsed)), strict=True))
        mates = Mates(batches, members, lengths)
        run = _Run(copy, now, reach, lengths, rest, _Coming(beliefs, lengths, stream.spawn(1)[0], mates), mates)
        for job_id, start in run.until_started(set(targets)).items():
            if job_id in found:
                found[job_id][k] = start
    return found


class _Frozen:
    """The state of a scheduler as bytes, so that no field can be forgotten; what never changes is shared."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._kept: dict[int, object] = {}
        kept = self._kept

        class Writer(pickle.Pickler):
            def persistent_id(self, obj: object) -> int | None:
                if type(obj) in _CONSTANT:
                    kept[id(obj)] = obj
                    return id(obj)
                return None

        written = io.BytesIO()
        Writer(written, pickle.HIGHEST_PROTOCOL).dump(scheduler)
        self._bytes = written.getvalue()

    def copy(self) -> Scheduler:
        """Another scheduler in the same state."""
        kept = self._kept

        class Reader(pickle.Unpickler):
            def persistent_load(self, pid: int) -> object:
                return kept[pid]

        # Bytes of our own state, written above: nothing foreign is read.
        found: Scheduler = Reader(io.BytesIO(self._bytes)).load()
        return found


class Mates:
    """Jobs of one batch in one future: once one of them ends, decisions believe of the others what is typical of it."""

    def __init__(self, of: Mapping[str, object], members: Mapping[object, list[str]], lengths: Lengths) -> None:
        self._of, self._members, self._lengths = of, members, lengths
        self._told: set[object] = set()
        # of simulated arrivals: batch by job, and jobs and typical run time of each batch
        self._coming: dict[str, object] = {}
        self._come: dict[object, tuple[int, list[str]]] = {}

    def join(self, batch: object, job_id: str, typical_us: int) -> None:
        """A simulated job of a batch."""
        self._coming[job_id] = batch
        self._come.setdefault(batch, (typical_us, []))[1].append(job_id)

    def ended(self, job_id: str) -> dict[str, int]:
        """One has ended: what is believed of all others (us), where this is the first of them."""
        if (coming := self._coming.get(job_id)) is not None:
            typical, others = self._come.pop(coming, (1, []))
        elif (batch := self._of.get(job_id)) is not None and batch not in self._told:
            self._told.add(batch)
            typical, others = self._lengths.typical_us(job_id) or 1, self._members[batch]
        else:
            return {}
        return {j: typical for j in others if j != job_id}


class _Coming:
    """Simulated arrivals of one run, with their run times; those that come as a batch are alike."""

    def __init__(self, beliefs: Beliefs, lengths: Lengths, rng: np.random.Generator, mates: Mates) -> None:
        self.beliefs, self.lengths, self.mates = beliefs, lengths, mates
        self._jobs: Iterator[Job] = beliefs.arrivals.future(rng, "~")
        self.next: Job | None = next(self._jobs, None)
        # by team and size: the latest batch with the instant of its last job, and its run times not given yet
        self._batches: dict[tuple[str, int], tuple[int, object]] = {}
        self._drawn: dict[tuple[str, int], tuple[int, list[int]]] = {}
        self._predicted: dict[tuple[str, int], int] = {}

    def pop(self) -> tuple[Job, int, int]:
        """The next job, what is predicted for it and how long it will run (us)."""
        job = self.next
        assert job is not None
        self.next = next(self._jobs, None)
        key = (job.team, job.gpu_milli)
        last, batch = self._batches.get(key, (0, None))
        if batch is None or not follows(job, last):
            batch = job.job_id
            typical, drawn = self.lengths.batch([job] * _AT_ONCE)
            self._drawn[key] = typical, list(map(int, drawn))
        self._batches[key] = (job.submit_us, batch)
        typical, lengths = self._drawn[key]
        if key not in self._predicted:
            self._predicted[key] = self.beliefs.predict(job)
        self.mates.join(batch, job.job_id, typical)
        # a batch of more jobs than were drawn takes them again
        lengths.append(lengths.pop(0))
        return job, self._predicted[key], lengths[-1]


@dataclass
class _Run:
    """One simulated future."""

    scheduler: Scheduler
    now: int
    reach: Reach
    lengths: Lengths
    # what is left to each gang that runs, and run times of those that waited, drawn when they start
    durations: dict[str, int]
    coming: _Coming
    mates: Mates
    heap: list[tuple[int, int, str, int]] = field(default_factory=list)
    tokens: dict[str, int] = field(default_factory=dict)
    simulated: dict[str, int] = field(default_factory=dict)
    # when a simulated job ages, and its id
    ghosts: list[tuple[int, str]] = field(default_factory=list)
    found: dict[str, int] = field(default_factory=dict)
    jobs: dict[str, tuple[Job, int]] = field(default_factory=dict)
    # run times that decisions believe from the next cycle on
    revised: dict[str, int] = field(default_factory=dict)

    def until_started(self, targets: set[str]) -> dict[str, int]:
        """Starts until the last of the targets."""
        for gang in self.scheduler.gangs:
            self._push(self.now + self.durations[gang.job.job_id], _END, gang.job.job_id)
            if gang.stop is not None:
                self._push(gang.stop.kill_us, _KILL, gang.job.job_id)
        at, left = self.now, set(targets)
        while left:
            coming = self.coming.next
            due = min(self.heap[0][0] if self.heap else NEVER, coming.submit_us if coming is not None else NEVER)
            at = max(due, at + max(self.reach.least_step_us, (at - self.now) // self.reach.steps))
            if due >= NEVER or at > self.now + self.reach.horizon_us:
                break
            self._advance(at)
            if self.revised:
                self.scheduler.repredict(self.revised)
                self.revised = {}
            done = self.scheduler.cycle(at)
            self._carry_out(done, at)
            for start in done.starts:
                job_id = start.job.job_id
                left.discard(job_id)
                if job_id not in self.simulated:
                    self.found.setdefault(job_id, at)
        return self.found

    def _push(self, at: int, kind: int, job_id: str) -> None:
        heapq.heappush(self.heap, (at, kind, job_id, self.tokens.get(job_id, 0)))

    def _advance(self, at: int) -> None:
        """All that happens until `at`."""
        while self.heap and self.heap[0][0] <= at:
            _, kind, job_id, token = heapq.heappop(self.heap)
            if kind == _AGAIN:
                self.scheduler.submit(*self.jobs.pop(job_id))
            elif kind != _WAKE and job_id in self.scheduler.gangs and token == self.tokens.get(job_id, 0):
                self._leave(job_id, kind, at)
        while self.coming.next is not None and self.coming.next.submit_us <= at:
            job, predicted, duration = self.coming.pop()
            self.simulated[job.job_id] = duration
            self.scheduler.submit(job, predicted)
            if (limit := self.scheduler.policy.age_us(job)) is not None:
                heapq.heappush(self.ghosts, (job.submit_us + limit, job.job_id))
        self._forget_aged(at)

    def _forget_aged(self, at: int) -> None:
        """A simulated job that would age leaves: whoever is asked about is older, and comes before it from then on."""
        while self.ghosts and self.ghosts[0][0] <= at:
            job_id = heapq.heappop(self.ghosts)[1]
            if job_id in self.scheduler.pending.waiting:
                self.scheduler.withdraw(job_id)

    def _leave(self, job_id: str, kind: int, at: int) -> None:
        """A gang ends, or goes for others and comes again; its run time is then what it was."""
        gang = self.scheduler.gangs[job_id]
        if kind == _END:
            self.scheduler.ended(job_id, at)
            self.revised.update(self.mates.ended(job_id))
        elif gang.stop is None:
            return
        elif gang.stop.keep is not None:
            self.scheduler.resized(job_id, gang.stop.keep, at)
        else:
            self.tokens[job_id] = self.tokens.get(job_id, 0) + 1
            self.scheduler.ended(job_id, at, will_return=True)
            self.jobs[job_id] = (gang.job, max((gang.end_us - gang.begun_us) // self.scheduler.policy.caution, 1))
            self._push(at + backoff_us(1), _AGAIN, job_id)

    def _carry_out(self, done: Decisions, at: int) -> None:
        for eviction in done.evictions:
            self._push(eviction.kill_us, _KILL, eviction.job.job_id)
        for start in done.starts:
            job_id = start.job.job_id
            duration = self.simulated.get(job_id)
            if duration is None:
                if job_id not in self.durations:
                    self.durations[job_id] = int(self.lengths.rest([start.job], [0])[0])
                duration = self.durations[job_id]
            self._push(at + duration, _END, job_id)
        if done.wake_us is not None:
            self._push(done.wake_us, _WAKE, "")
