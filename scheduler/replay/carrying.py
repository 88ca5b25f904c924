"""Carries decisions out in simulated time: gangs run, get notice, save, are killed, lose nodes, come again.

It knows how long a job really works and keeps the life of each (`scheduler.lifecycle`); the scheduler hears only of
what happens. Belongs here: the events of running gangs and their record. Not here: arrivals and cycles (`engine.py`).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scheduler import lifecycle as life
from scheduler.cycle import Scheduler
from scheduler.decisions import Decisions, Eviction, Start
from scheduler.lifecycle import Life
from scheduler.model import Job, Placement
from scheduler.predict import Predictor
from scheduler.replay.outcome import Ending, Outcome, Span, Step, What, span_of

# Kinds of event in the order in which they come at one instant.
_END, _NODE, _SIGNAL, _KILL, _PATIENCE, _AGAIN, _WAKE = range(7)


@dataclass(frozen=True)
class NodeFault:
    """A node is lost from `down_us` to `up_us`; with it all pods on it."""

    node: str
    down_us: int
    up_us: int


@dataclass
class _Run:
    """A running gang of the replay: `token` tells its events from those of earlier runs and sizes.

    `whole`: what it waits to have back until `patience_us`, where it has lost pods that it needs.
    """

    placement: Placement
    begun_us: int
    token: int
    stop: Eviction | None = None
    whole: Placement | None = None
    patience_us: int = 0


class Carrier:
    """Running gangs and what is to happen to them."""

    def __init__(
        self, scheduler: Scheduler, predictor: Predictor, durations_us: Mapping[str, int], out: Outcome,
        faults: Sequence[NodeFault] = (),
    ) -> None:  # fmt: skip
        self.scheduler, self.predictor, self.durations, self.out = scheduler, predictor, durations_us, out
        self.lives: dict[str, Life] = {}
        self._runs: dict[str, _Run] = {}
        self._heap: list[tuple[int, int, str, int]] = []
        self._tokens = 0
        self._wake_us: int | None = None
        self._down: set[str] = set()
        for fault in faults:
            self._push(fault.down_us, _NODE, fault.node, 0)
            self._push(fault.up_us, _NODE, fault.node, 1)

    def next_us(self) -> int | None:
        """The next instant at which something happens."""
        return self._heap[0][0] if self._heap else None

    def advance(self, now: int) -> None:
        """Everything until `now` happens, in the order of time, kind of event and id."""
        while self._heap and self._heap[0][0] <= now:
            _, kind, job_id, token = heapq.heappop(self._heap)
            if kind == _NODE:
                self._node(job_id, now, is_up=bool(token))
            elif kind == _AGAIN:
                self._again(job_id, now)
            elif kind == _WAKE:
                self._wake_us = None
            elif job_id in self._runs and self._runs[job_id].token == token:
                self._due(kind, job_id, now)

    def submit(self, job: Job) -> None:
        """A job comes for the first time."""
        self.lives[job.job_id] = Life(job)
        self.predictor.submitted(job)
        self.scheduler.submit(job, self.predictor.predict(job))

    def carry_out(self, done: Decisions, now: int) -> None:
        """What a cycle decided begins."""
        for job_id in done.called_off:
            self._called_off(job_id, now)
        for eviction in done.evictions:
            self._notice(eviction, now)
        for start in done.starts:
            self._start(start, now)
        if done.wake_us is not None and done.wake_us != self._wake_us:
            self._wake_us = done.wake_us
            self._push(done.wake_us, _WAKE, "", 0)

    def _push(self, at_us: int, kind: int, job_id: str, token: int) -> None:
        heapq.heappush(self._heap, (at_us, kind, job_id, token))

    def _step(self, job_id: str, event: life.Event) -> tuple[life.Action, ...]:
        self.lives[job_id], actions = life.step(self.lives[job_id], event, self.scheduler.policy.gang_patience_us)
        return actions

    def _note(self, at_us: int, job_id: str, what: What, for_job: str = "") -> None:
        self.out.trail.append(Step(at_us, job_id, what, for_job))

    def _start(self, start: Start, now: int) -> None:
        job_id = start.job.job_id
        self.out.started_us.setdefault(job_id, now)
        self.predictor.started(start.job, now)
        self._step(job_id, life.Started(now, start.placement.gpu_milli))
        self._runs[job_id] = _Run(start.placement, now, 0)
        self._expect_end(job_id, now)

    def _expect_end(self, job_id: str, now: int) -> None:
        """Events of the run from here on: its end at its present size, and what its notice says."""
        now_life, run = self.lives[job_id], self._runs[job_id]
        self._tokens += 1
        run.token = self._tokens
        job = now_life.job
        left = self.durations[job_id] * life.size(job, job.gpu_milli) - now_life.worked
        rate = life.size(job, now_life.milli)
        if now_life.reason != "degraded" and rate:
            self._push(now + -(-max(left, 0) // rate), _END, job_id, run.token)
        if run.whole is not None:
            self._push(run.patience_us, _PATIENCE, job_id, run.token)
        if run.stop is not None:
            if run.stop.signal_us is not None and now_life.signalled is None:
                self._push(max(run.stop.signal_us, now), _SIGNAL, job_id, run.token)
            self._push(max(run.stop.kill_us, now), _KILL, job_id, run.token)

    def _notice(self, eviction: Eviction, now: int) -> None:
        job_id = eviction.job.job_id
        self._note(now, job_id, "notice", eviction.for_job)
        self._step(job_id, life.Noticed(now, eviction.kind, eviction.signal_us, eviction.kill_us))
        self._runs[job_id].stop = eviction
        self._expect_end(job_id, now)

    def _called_off(self, job_id: str, now: int) -> None:
        if job_id not in self._runs or self._runs[job_id].stop is None:
            return
        self._note(now, job_id, "called_off")
        self._step(job_id, life.CalledOff(now))
        self._runs[job_id].stop = None
        self._expect_end(job_id, now)

    def _due(self, kind: int, job_id: str, now: int) -> None:
        run = self._runs[job_id]
        if kind == _END:
            self._step(job_id, life.Ended(now))
            self.scheduler.ended(job_id, now)
            self.predictor.ended(self.lives[job_id].job, self.durations[job_id])
            self.out.ended_us[job_id] = now
            self._record(job_id, now, "finished")
        elif kind == _SIGNAL:
            self._step(job_id, life.Signalled(now))
            self._note(now, job_id, "checkpoint", run.stop.for_job if run.stop else "")
        elif kind == _KILL and run.stop is not None and run.stop.keep is not None:
            self._shrink(job_id, run.stop, now)
        elif kind == _KILL:
            self._note(now, job_id, "kill", run.stop.for_job if run.stop else "")
            self._act(job_id, self._step(job_id, life.Killed(now)), now, "evicted")
        else:
            self._act(job_id, self._step(job_id, life.PatienceOver(now)), now, "lost")

    def _shrink(self, job_id: str, stop: Eviction, now: int) -> None:
        keep = stop.keep
        assert keep is not None
        self._note(now, job_id, "shrink", stop.for_job)
        self._step(job_id, life.Killed(now, keep.gpu_milli))
        self._resize(job_id, keep, now)
        self._runs[job_id].stop = None
        self._expect_end(job_id, now)

    def _act(self, job_id: str, actions: Sequence[life.Action], now: int, ending: Ending) -> None:
        """A gang has stopped before its end."""
        self.predictor.left(self.lives[job_id].job)
        lost = next(a.lost for a in actions if isinstance(a, life.Stop))
        again = next((a.at_us for a in actions if isinstance(a, life.Requeue)), None)
        self.scheduler.ended(job_id, now, will_return=again is not None)
        self._record(job_id, now, ending, lost)
        if again is not None:
            self._push(again, _AGAIN, job_id, 0)
        else:
            self.out.failed[job_id] = self.lives[job_id].reason
            self._note(now, job_id, "failed")

    def _again(self, job_id: str, now: int) -> None:
        """The backoff is over: it waits again, predicted to need what it has not saved."""
        self._step(job_id, life.Resubmitted(now))
        self._note(now, job_id, "requeue")
        known = self.lives[job_id]
        predicted = self.predictor.predict(known.job)
        left = predicted - known.safe // life.size(known.job, known.job.gpu_milli)
        self.scheduler.submit(known.job, left if left > 0 else predicted)

    def _record(self, job_id: str, now: int, ending: Ending, lost: int = 0) -> None:
        """The span that ends now; work that was lost by a gang that has no GPUs any more is a span of no length."""
        run = self._runs.pop(job_id)
        job = self.lives[job_id].job
        rate = life.size(job, run.placement.gpu_milli)
        told: Ending = ending if rate else "resized"
        lost_us = lost // rate if rate else 0
        self.out.spans.append(span_of(job, run.placement, run.begun_us, now, ending=told, lost_us=lost_us))
        if not rate:
            self.out.spans.append(Span(job_id, now, now, job.gpu_milli, (), False, ending, lost // job.gpu_milli))

    def _resize(self, job_id: str, placement: Placement, now: int) -> None:
        run = self._runs[job_id]
        self._record(job_id, now, "resized")
        self.scheduler.resized(job_id, placement, now)
        self._runs[job_id] = replace(run, placement=placement, begun_us=now)

    def _node(self, name: str, now: int, *, is_up: bool) -> None:
        """A node goes, and with it the pods on it; or it is back, and gangs that could wait for it are whole again."""
        if is_up:
            self._down.discard(name)
            self.scheduler.node_up(name)
        else:
            self._down.add(name)
            self.scheduler.node_down(name)
        node = self.scheduler.cluster.index[name]
        for job_id, run in sorted(self._runs.items()):
            if is_up and run.whole is not None:
                self._with(job_id, run.whole, now)
            elif not is_up and any(p.node == node for p in run.placement.pods):
                self._note(now, job_id, "loss")
                self._with(job_id, run.whole or run.placement, now)

    def _with(self, job_id: str, whole: Placement, now: int) -> None:
        """A gang has those of its pods whose nodes are up."""
        job = self.lives[job_id].job
        gone = {self.scheduler.cluster.index[n] for n in self._down}
        left = replace(whole, pods=tuple(p for p in whole.pods if p.node not in gone))
        is_enough = all(n >= r.least for n, r in zip(left.counts(job), job.roles, strict=True))
        actions = self._step(job_id, life.Resized(now, left.gpu_milli, is_enough))
        self._resize(job_id, left, now)
        run = self._runs[job_id]
        run.whole = None if is_enough else whole
        run.patience_us = next((a.at_us for a in actions if isinstance(a, life.Wait)), run.patience_us)
        if run.stop is not None and (stop := self.scheduler.gangs[job_id].stop) is not None:
            run.stop = stop
        self._expect_end(job_id, now)
