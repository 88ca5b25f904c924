"""Every job as the event log tells of it: a fold that a restart does from the first event, and a service goes on with.

Lives are those of `scheduler.lifecycle`; beside each stands the present attempt to run it and where. Belongs here: what
an event changes. Not here: when events come (`core.py`), the file (`log.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from scheduler import contract
from scheduler import lifecycle as life
from scheduler.lifecycle import Life
from scheduler.model import Job, Kind, demand
from scheduler.predict import Predictor
from scheduler.service.codec import Places, Template, read_job, read_places
from scheduler.service.learning import Learner
from scheduler.service.log import Event


@dataclass(frozen=True)
class Notice:
    """An eviction that was announced; `keep`: what stays where the gang only shrinks."""

    for_job: str
    signal_us: int | None
    kill_us: int
    keep: Places | None


@dataclass
class Run:
    """An attempt to run a job: `places` are held, `whole` is what it waits to have back where it has lost pods.

    `is_bound`: the world has all its pods where they should be. `patience_us`: until when it waits for lost ones.
    """

    attempt: int
    whole: Places
    places: Places
    begun_us: int
    predicted_us: int
    is_bound: bool = False
    stop: Notice | None = None
    patience_us: int | None = None


@dataclass
class Entry:
    """A job and what became of it. `again_us`: when its backoff is over. `why`: what kept it from running for good.

    `passed_over`: attempts made when a cycle last left it waiting; -1: none has. `told`: the best of what was logged
    when it was asked when it starts: a time, else a reason.
    """

    job: Job
    template: Template
    name: str
    life: Life
    attempts: int = 0
    run: Run | None = None
    again_us: int | None = None
    why: str = ""
    started_us: int | None = None
    ended_us: int | None = None
    passed_over: int = -1
    told: Literal["time", "reason"] | None = None

    @property
    def was_passed_over(self) -> bool:
        """Whether it waited longer than until the first cycle."""
        return self.passed_over >= 0


@dataclass
class Records:
    """All jobs by id; `running` and `again` are those with a run and with a backoff. `patience_us`: see `lifecycle`.

    `spans`, where they are kept: (from, to, queue, amounts) of runs that are over, at their last size.
    """

    predictor: Predictor
    patience_us: int
    entries: dict[str, Entry] = field(default_factory=dict)
    running: dict[str, Entry] = field(default_factory=dict)
    again: dict[str, Entry] = field(default_factory=dict)
    last_us: int = 0
    policy: dict[str, Any] | None = None
    policy_version: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    keeps_spans: bool = False
    spans: list[tuple[int, int, str, dict[Kind, int]]] = field(default_factory=list)
    learner: Learner | None = None
    _outcome: dict[str, Any] = field(default_factory=dict)

    def apply(self, event: Event) -> dict[str, Any]:
        """What the event changes. Kinds that change nothing (reserved, withdrawn) are counted.

        Returns what is logged with it, for readers without this fold: of a run that is over `lost` (work, as in
        `lifecycle`) and `will_return`; of one that has shrunk `gpu_milli`.
        """
        self._outcome = {}
        self.last_us = max(self.last_us, event.event_at_us)
        self.counts[event.kind] = self.counts.get(event.kind, 0) + 1
        payload = event.payload or {}
        if event.kind == "policy_set":
            self.policy, self.policy_version = payload["document"], payload["version"]
        elif event.kind == "submitted":
            job, template = read_job(payload)
            self.entries[job.job_id] = entry = Entry(job, template, payload["name"], Life(job))
            self.predictor.submitted(job)
            if self.learner is not None:
                self.learner.hear(event, entry, had_run=False)
        elif event.job_id in self.entries and event.kind in _FOLDS:
            entry = self.entries[event.job_id]
            run = entry.run
            _FOLDS[event.kind](self, entry, event, payload)
            if self.keeps_spans and run is not None and entry.run is None:
                amounts = demand(entry.job, run.places.counts(entry.job), run.places.flavor)
                self.spans.append((run.begun_us, event.event_at_us, entry.job.queue, amounts))
            self._index(entry)
            if entry.life.is_over or (run is not None and entry.run is None):
                self.predictor.left(entry.job)
            if self.learner is not None:
                self.learner.hear(event, entry, had_run=run is not None)
        return self._outcome

    def _index(self, entry: Entry) -> None:
        job_id = entry.job.job_id
        for held, has in ((self.running, entry.run is not None), (self.again, entry.again_us is not None)):
            if has:
                held[job_id] = entry
            else:
                held.pop(job_id, None)

    def _step(self, entry: Entry, event: life.Event) -> None:
        """One step of the life; a stop ends the run, and what comes after it is noted."""
        entry.life, actions = life.step(entry.life, event, self.patience_us)
        for action in actions:
            if isinstance(action, life.Stop):
                entry.run = None
            elif isinstance(action, life.Requeue):
                entry.again_us = action.at_us
            elif isinstance(action, life.Wait) and entry.run is not None:
                entry.run.patience_us = action.at_us
        if entry.life.is_over:
            entry.run, entry.again_us, entry.ended_us = None, None, event.at_us
        for action in actions:
            if isinstance(action, life.Stop):
                self._outcome = {"lost": action.lost, "will_return": not entry.life.is_over}

    def _impossible(self, entry: Entry, event: Event, _: dict[str, Any]) -> None:
        entry.life = replace(entry.life, state="impossible")
        entry.why, entry.ended_us = event.reason, event.event_at_us

    def _intended(self, entry: Entry, event: Event, payload: dict[str, Any]) -> None:
        places = read_places(payload["places"])
        self._step(entry, life.Started(event.event_at_us, places.gpu_milli))
        self.predictor.started(entry.job, event.event_at_us)
        entry.attempts = payload["attempt"]
        entry.run = Run(entry.attempts, places, places, event.event_at_us, payload["predicted_us"])
        if entry.started_us is None:
            entry.started_us = event.event_at_us

    def _bound(self, entry: Entry, _: Event, payload: dict[str, Any]) -> None:
        if entry.run is not None and entry.run.attempt == payload["attempt"]:
            entry.run.is_bound = True

    def _noticed(self, entry: Entry, event: Event, payload: dict[str, Any]) -> None:
        kind: contract.Kind = "reclaim" if event.reason == "reclaim" else "preempt"
        self._step(entry, life.Noticed(event.event_at_us, kind, payload["signal_us"], payload["kill_us"]))
        if entry.run is not None:
            keep = read_places(payload["keep"]) if payload["keep"] else None
            entry.run.stop = Notice(payload["for_job"], payload["signal_us"], payload["kill_us"], keep)

    def _signalled(self, entry: Entry, event: Event, _: dict[str, Any]) -> None:
        self._step(entry, life.Signalled(event.event_at_us))

    def _called_off(self, entry: Entry, event: Event, _: dict[str, Any]) -> None:
        self._step(entry, life.CalledOff(event.event_at_us))
        if entry.run is not None:
            entry.run.stop = None

    def _killed(self, entry: Entry, event: Event, _: dict[str, Any]) -> None:
        keep = entry.run.stop.keep if entry.run is not None and entry.run.stop is not None else None
        self._step(entry, life.Killed(event.event_at_us, keep.gpu_milli if keep is not None else None))
        if keep is not None and entry.run is not None:
            entry.run.places = entry.run.whole = keep
            entry.run.stop = None
            self._outcome = {"gpu_milli": keep.gpu_milli}

    def _resized(self, entry: Entry, event: Event, payload: dict[str, Any]) -> None:
        places = read_places(payload["places"])
        self._step(entry, life.Resized(event.event_at_us, places.gpu_milli, payload["is_enough"]))
        if entry.run is not None:
            entry.run.places = places
            if payload["is_enough"]:
                entry.run.whole, entry.run.patience_us = places, None
            if entry.run.stop is not None and entry.run.stop.keep is not None:
                entry.run.stop = replace(entry.run.stop, keep=_left(entry.run.stop.keep, places, entry.job))

    def _patience_over(self, entry: Entry, event: Event, _: dict[str, Any]) -> None:
        self._step(entry, life.PatienceOver(event.event_at_us))

    def _resubmitted(self, entry: Entry, event: Event, _: dict[str, Any]) -> None:
        self._step(entry, life.Resubmitted(event.event_at_us))
        entry.again_us = None

    def _ended(self, entry: Entry, event: Event, payload: dict[str, Any]) -> None:
        begun = entry.run.begun_us if entry.run is not None else event.event_at_us
        self._step(entry, life.Ended(event.event_at_us, payload["is_success"]))
        if payload["is_success"]:
            self.predictor.ended(entry.job, max(event.event_at_us - begun, 1))
        else:
            entry.why = event.reason

    def _waiting(self, entry: Entry, _: Event, __: dict[str, Any]) -> None:
        entry.passed_over = entry.attempts

    def _estimated(self, entry: Entry, _: Event, payload: dict[str, Any]) -> None:
        entry.told = "time" if payload["p50_us"] is not None else "reason"

    def _cancelled(self, entry: Entry, event: Event, _: dict[str, Any]) -> None:
        self._step(entry, life.Cancelled(event.event_at_us))


def _left(keep: Places, places: Places, job: Job) -> Places | None:
    """What is left of what a notice lets a gang keep; None where that is too little and all of it goes."""
    left = replace(keep, pods=tuple(p for p in keep.pods if p in places.pods))
    is_enough = all(n >= r.least for n, r in zip(left.counts(job), job.roles, strict=True))
    return left if is_enough else None


_FOLDS = {
    "impossible": Records._impossible,
    "waiting": Records._waiting,
    "estimated": Records._estimated,
    "intended": Records._intended,
    "bound": Records._bound,
    "noticed": Records._noticed,
    "signalled": Records._signalled,
    "called_off": Records._called_off,
    "killed": Records._killed,
    "resized": Records._resized,
    "patience_over": Records._patience_over,
    "resubmitted": Records._resubmitted,
    "ended": Records._ended,
    "cancelled": Records._cancelled,
}
