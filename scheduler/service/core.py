"""The queue over one world: what users ask of it, and the tick that looks, decides, logs and acts.

Whatever is answered or done was committed to the log before. A start is logged as intended, then made, then logged as
bound; after a crash between, the same pods under the same names are made again, and the world's own record decides
whether there is anything left to do. What should run follows from the log alone, so every tick brings the world there.
Belongs here: the order of these steps and their locks. Not here: what an event means (`records.py`), what a tick reads
from the world and hands to the scheduler (`room.py`), HTTP (`api.py`).
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from scheduler import order
from scheduler.model import Job, Placement, Queue
from scheduler.pending import Waiting
from scheduler.placement import Placer
from scheduler.policy import Policy
from scheduler.predict import History
from scheduler.service import estimator as estimates
from scheduler.service.codec import Template, job_json, notice_json, places_json, places_of
from scheduler.service.log import Event, EventLog, Key
from scheduler.service.records import Entry, Records
from scheduler.service.room import Room
from scheduler.service.worlds import Pod, Refused, Seen, Unreachable, World, pod_name

log = logging.getLogger(__name__)
# Kubernetes' own default; a pod that was killed under the contract had its grace before.
CANCEL_GRACE_S = 30


class Stale(Exception):
    """The policy document has another version by now; `version` says which."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the policy document is at version {version}")
        self.version = version


class Reused(Exception):
    """An idempotency key was used before for another request."""


@dataclass(frozen=True)
class WhatIf:
    """Whether a job would start now, else its place in the queue; `why` where it could never start."""

    starts_now: bool
    nodes: tuple[str, ...] = ()
    position: int | None = None
    reason: str = ""
    why: str | None = None


@dataclass
class Health:
    """How the loop is: the instant of the last look at the world (us), what went wrong last, cycles run."""

    seen_us: int | None = None
    error: str = ""
    cycles: int = 0
    cycle_s: float = 0.0


@dataclass
class _Work:
    """What a tick does to the world once its events are committed."""

    stops: list[tuple[list[str], int]] = field(default_factory=list)
    saves: list[tuple[list[str], int]] = field(default_factory=list)
    starts: list[tuple[Entry, list[Pod]]] = field(default_factory=list)


class QueueService:
    """The queue. Requests may come from any thread, ticks from one. Instants are microseconds of the world's clock.

    `binders`: gangs whose pods are made at the same time.
    """

    def __init__(
        self, events: EventLog, world: World, policy: Policy, queues: Mapping[str, Queue], *, placer: Placer,
        estimator: estimates.Estimator | None = None, binders: int = 1,
    ) -> None:  # fmt: skip
        self.log, self.world, self.policy, self.queues, self.placer = events, world, policy, dict(queues), placer
        self.estimator = estimator or estimates.NoEstimates()
        self.binders = binders
        self.lock = threading.RLock()
        self.wake = threading.Event()
        self.health = Health()
        self.positions: dict[str, int] = {}
        self.reasons: dict[str, str] = {}
        self.starts: Mapping[str, estimates.Start] = {}
        self._new: list[Event] = []
        self._impossible: dict[object, str | None] = {}
        self._told: set[tuple[str, int]] = set()
        self._load()

    def _load(self) -> None:
        """Everything as the log has it; the world is looked at in the next tick."""
        self.records = Records(History(), self.policy.gang_patience_us, keeps_spans=bool(self.policy.half_life_us))
        for event in self.log.events():
            self.records.apply(event)
        # A queue that is configured no more still has its jobs; they come last.
        for entry in self.records.entries.values():
            self.queues.setdefault(entry.job.queue, Queue(entry.job.queue, weight=0))
        self.room: Room | None = None

    @property
    def now(self) -> int:
        """The world's clock, which never goes back here."""
        return max(self.world.now_us(), self.records.last_us)

    # -- what users ask ------------------------------------------------------------------------------------------
    def submit(self, job: Job, template: Template, name: str, key: Key | None = None) -> tuple[Entry, bool]:
        """Accept a job, durably; (its entry, whether it is new). `Reused` for a key of another request."""
        with self.lock:
            if key is not None and (known := self._known(key)) is not None:
                return self.records.entries[known], False
            # No two jobs are submitted at one instant: the order of arrival is the order of submission.
            job = replace(job, submit_us=max(self.now, self.records.last_us + 1))
            event = Event(job.submit_us, "submitted", job.job_id, job_json(job, template) | {"name": name})
            self._commit([event], key, job.job_id)
            if self.room is not None:
                self._enqueue(self.records.entries[job.job_id])
                self._flush()
            self.wake.set()
            return self.records.entries[job.job_id], True

    def cancel(self, job_id: str, by: str) -> Entry:
        """Its user does not want a job any more; one that is over stays as it is. `KeyError` where there is none."""
        with self.lock:
            entry = self.records.entries[job_id]
            if not entry.life.is_over:
                had_run = entry.run
                self._commit([Event(self.now, "cancelled", job_id, {"by": by}, "user")])
                if self.room is not None:
                    if had_run is not None:
                        self.room.release(entry, had_run, will_return=False)
                    else:
                        self.room.withdraw(job_id)
                self.wake.set()
            return entry

    def set_policy(self, document: dict[str, Any], version: int, by: str, key: Key | None = None) -> tuple[int, bool]:
        """Replace the policy document of `version`; (its new version, whether it is new). `Stale`, `Reused`."""
        with self.lock:
            if key is not None and (known := self._known(key)) is not None:
                return int(known), False
            if version != self.records.policy_version:
                raise Stale(self.records.policy_version)
            payload = {"document": document, "version": version + 1, "by": by}
            self._commit([Event(self.now, "policy_set", "", payload)], key, str(version + 1))
            return version + 1, True

    def what_if(self, job: Job) -> WhatIf:
        """What would become of a job that were submitted now, by the present snapshot; nothing is changed."""
        with self.lock:
            if self.room is None:
                return WhatIf(False, reason="not_seen", why="the nodes have not been seen yet")
            scheduler, now = self.room.scheduler, self.now
            if (why := self._never(job)) is not None:
                return WhatIf(False, reason="impossible", why=why)
            waiting = Waiting(job, max(self.records.predictor.predict(job), 1))
            found = scheduler.find(waiting, now)
            in_line = self.policy.backfill == "none" and len(scheduler.pending) > 0
            if isinstance(found, Placement) and not in_line:
                return WhatIf(True, tuple(sorted({scheduler.cluster.nodes[p.node].name for p in found.pods})))
            # Its id comes after all others that are equal.
            mine = order.key(waiting, scheduler.usage, self.policy, now)[:-1]
            keys = (order.key(w, scheduler.usage, self.policy, now)[:-1] for w in scheduler.pending.oldest())
            before = sum(key <= mine for key in keys)
            ahead = before + sum(1 for _ in scheduler.holds)
            return WhatIf(False, (), ahead + 1, "behind_head" if isinstance(found, Placement) else found)

    def _known(self, key: Key) -> str | None:
        found = self.log.known(key.scope, key.key)
        if found is None:
            return None
        if found[0] != key.digest:
            raise Reused(f"idempotency key {key.key} was used for another request")
        return found[1]

    def _commit(self, events: Iterable[Event], key: Key | None = None, result: str = "") -> None:
        events = list(events)
        self.log.append(events, key, result)
        for event in events:
            self.records.apply(event)

    # -- the tick ------------------------------------------------------------------------------------------------
    def tick(self) -> bool:
        """Look, decide, log, act; whether the world answered and the log took it. Call it from one thread only."""
        try:
            seen = self.world.see()
            with self.lock:
                work = self._decide(seen)
                self._flush()
            self._act(work)
            self.health.error = ""
        except Unreachable as error:
            self.health.error = f"world: {error}"
        except (sqlite3.Error, OSError) as error:
            self.reload(f"log: {error}")
        if self.health.error:
            log.warning("%s", self.health.error)
        return not self.health.error

    def reload(self, error: str) -> None:
        """Something failed in between, so that memory may be ahead of the log: all is read again."""
        with self.lock:
            self.health.error = error
            self._new.clear()
            try:
                self._load()
            except sqlite3.Error as again:
                self.health.error = f"log: {again}"

    def _note(self, kind: str, entry: Entry, now: int, payload: dict[str, Any] | None = None, reason: str = "") -> None:
        """An event of this tick: it counts at once and is committed before anything is done."""
        event = Event(now, kind, entry.job.job_id, payload, reason)
        self.records.apply(event)
        self._new.append(event)

    def _flush(self) -> None:
        if self._new:
            self.log.append(self._new)
            self._new.clear()

    def _decide(self, seen: Seen) -> _Work:
        now = max(seen.at_us, self.records.last_us)
        self.health.seen_us = seen.at_us
        if self.room is None or not self.room.fits(seen):
            self._furnish(seen, now)
        assert self.room is not None
        for entry in list(self.records.running.values()):
            self._observe(entry, seen, now)
        self.room.see(seen, self.records)
        self._timers(now)
        self.room.see(seen, self.records)
        self._cycle(now)
        return self._work(seen)

    def _furnish(self, seen: Seen, now: int) -> None:
        """A scheduler over the nodes as they are now, with what runs and waits; notices are given anew if needed."""
        for entry in list(self.records.running.values()):
            if entry.run is not None and entry.run.stop is not None:
                self._note("called_off", entry, now, reason="restart")
        self.room = Room(seen, self.policy, self.queues, self.placer, self.records)
        self._impossible.clear()
        for entry in self.records.entries.values():
            if entry.life.state == "pending" and entry.life.reason == "queued":
                self._enqueue(entry)

    def _enqueue(self, entry: Entry) -> None:
        """A job joins the scheduler, or is named impossible."""
        assert self.room is not None
        if entry.attempts == 0 and (why := self._never(entry.job)) is not None:
            self._note("impossible", entry, self.now, reason=why)
            return
        predicted = self.records.predictor.predict(entry.job)
        rate = entry.job.gpu_milli or 1
        left = predicted - entry.life.safe // rate
        self.room.scheduler.submit(entry.job, left if left > 0 else predicted)

    def _never(self, job: Job) -> str | None:
        assert self.room is not None
        key = (job.queue, job.shape_key)
        if key not in self._impossible:
            self._impossible[key] = self.room.scheduler.impossible(job)
        return self._impossible[key]

    def _observe(self, entry: Entry, seen: Seen, now: int) -> None:
        """What has become of a run: ended, lost pods, has them back, or never came to be."""
        run, job, room = entry.run, entry.job, self.room
        assert run is not None and room is not None
        if not run.is_bound:
            if gone := sorted({node for _, _, node, _ in run.places.pods if node not in seen.ready}):
                self._end(entry, now, is_success=False, reason=f"node {gone[0]} is gone")
            return
        pods = {(r, i): seen.pods.get(pod_name(job.job_id, run.attempt, r, i)) for r, i, *_ in run.whole.pods}
        if failed := next((p for p in pods.values() if p is not None and p.phase == "failed"), None):
            self._end(entry, now, is_success=False, reason=f"pod {failed.name} failed")
            return
        held = [pods[r, i] for r, i, *_ in run.places.pods]
        if held and all(p is not None and p.phase == "succeeded" for p in held):
            self._end(entry, now, is_success=True)
            return
        alive = {
            place
            for place, p in pods.items()
            if p is not None and p.node is not None and (p.phase == "succeeded" or p.node in seen.ready)
        }
        left = tuple(p for p in run.whole.pods if p[:2] in alive)
        if set(left) != set(run.places.pods):
            places = type(run.whole)(run.whole.flavor, left)
            is_enough = all(n >= r.least for n, r in zip(places.counts(job), job.roles, strict=True))
            payload = {"places": places_json(places), "is_enough": is_enough}
            self._note("resized", entry, now, payload, "back" if len(left) > len(run.places.pods) else "lost")
            room.resized(entry, places, now)

    def _end(self, entry: Entry, now: int, *, is_success: bool, reason: str = "") -> None:
        run = entry.run
        assert run is not None and self.room is not None
        self._note("ended", entry, now, {"is_success": is_success}, reason)
        self.room.release(entry, run, will_return=entry.again_us is not None)

    def _timers(self, now: int) -> None:
        """What the time has come for: signals, kills, lost patience, the end of a backoff."""
        assert self.room is not None
        for entry in list(self.records.running.values()):
            run = entry.run
            assert run is not None
            stop = run.stop
            if (
                stop is not None
                and stop.signal_us is not None
                and stop.signal_us <= now
                and entry.life.signalled is None
            ):
                self._note("signalled", entry, now)
            if stop is not None and stop.kill_us <= now:
                self._note("killed", entry, now, {"for_job": stop.for_job})
                if stop.keep is None:
                    self.room.release(entry, run, will_return=entry.again_us is not None)
                else:
                    self.room.shrink(entry, stop.keep)
            elif run.patience_us is not None and run.patience_us <= now and entry.life.reason == "degraded":
                self._note("patience_over", entry, now, reason="lost")
                self.room.release(entry, run, will_return=entry.again_us is not None)
        for entry in list(self.records.again.values()):
            assert entry.again_us is not None
            if entry.again_us <= now and not self.room.is_leaving(entry.job.job_id):
                self._note("resubmitted", entry, now)
                self._enqueue(entry)

    def _cycle(self, now: int) -> None:
        """One cycle of the scheduler; what it decides is noted."""
        assert self.room is not None
        scheduler = self.room.scheduler
        done = scheduler.cycle(now)
        self.health.cycles += 1
        names = [n.name for n in scheduler.cluster.nodes]
        entries = self.records.entries
        for job_id in done.called_off:
            if (entry := entries[job_id]).run is not None and entry.run.stop is not None:
                self._note("called_off", entry, now, reason="not_needed")
        for e in done.evictions:
            keep = places_of(e.keep, names) if e.keep is not None else None
            self._note("noticed", entries[e.job.job_id], now, notice_json(e, keep) | {"lost_us": e.lost_us}, e.kind)
        for start in done.starts:
            entry = entries[start.job.job_id]
            payload = {
                "attempt": entry.attempts + 1,
                "places": places_json(places_of(start.placement, names)),
                "predicted_us": max(start.end_us - now, 1),
            }
            self._note("intended", entry, now, payload)
        for r in done.reserved:
            self._note("reserved", entries[r.job.job_id], now, {"start_us": r.start_us})
        for w in done.withdrawn:
            self._note("withdrawn", entries[w.reservation.job.job_id], now, {"by": w.by}, w.reason)
        self.reasons |= done.reasons
        self._rank(now)

    def _rank(self, now: int) -> None:
        """Positions of all that wait, and estimates of their starts."""
        assert self.room is not None
        scheduler = self.room.scheduler
        held = [hold.job.job_id for hold in scheduler.holds]
        keys = sorted(order.key(w, scheduler.usage, self.policy, now) for w in scheduler.pending.oldest())
        self.positions = {job_id: n for n, job_id in enumerate([*held, *(k[-1] for k in keys)], 1)}
        self.reasons = {job_id: reason for job_id, reason in self.reasons.items() if job_id in self.positions}
        self.starts = self.estimator.estimate(scheduler, now)

    def _work(self, seen: Seen) -> _Work:
        """What keeps the world from being as the log says."""
        work = _Work()
        for pod in sorted(seen.pods.values(), key=lambda p: p.name):
            entry = self.records.entries.get(pod.job_id)
            if entry is None:
                continue
            run = entry.run
            wanted = run is not None and pod.attempt == run.attempt and any(
                pod.name == pod_name(pod.job_id, run.attempt, r, i) for r, i, *_ in run.whole.pods
            )  # fmt: skip
            if not wanted:
                work.stops.append(([pod.name], CANCEL_GRACE_S if entry.life.state == "cancelled" else 0))
        for entry in self.records.running.values():
            run = entry.run
            assert run is not None
            if not run.is_bound:
                work.starts.append((entry, _pods(entry)))
            elif entry.life.signalled is not None and run.stop is not None:
                told = (entry.job.job_id, run.attempt)
                if told not in self._told:
                    self._told.add(told)
                    work.saves.append(([p.name for p in _pods(entry)], run.stop.kill_us))
        return work

    def _act(self, work: _Work) -> None:
        calls: list[Callable[[], None]] = [partial(self.world.stop, *stop) for stop in work.stops]
        calls += [partial(self.world.save, *save) for save in work.saves]
        calls += [partial(self._start, *start) for start in work.starts]
        try:
            if self.binders == 1:
                for call in calls:
                    call()
            elif calls:
                with ThreadPoolExecutor(self.binders, "queue-bind") as pool:
                    for done in [pool.submit(call) for call in calls]:
                        done.result()
        finally:
            with self.lock:
                self._flush()

    def _start(self, entry: Entry, pods: list[Pod]) -> None:
        attempt = pods[0].attempt
        refusal = ""
        try:
            self.world.start(pods)
        except Refused as error:
            refusal = str(error)
        with self.lock:
            if entry.run is None or entry.run.attempt != attempt:
                return  # cancelled meanwhile: the next tick ends its pods
            if refusal:
                self._end(entry, self.now, is_success=False, reason=refusal)
            else:
                self._note("bound", entry, self.now, {"attempt": attempt})


def _pods(entry: Entry) -> list[Pod]:
    run, job = entry.run, entry.job
    assert run is not None
    return [
        Pod(
            pod_name(job.job_id, run.attempt, r, i), job.job_id, run.attempt, job.team, job.roles[r].name, i, node,
            job.roles[r].shape, tuple(d for d, _ in devices), entry.template,
        )
        for r, i, node, devices in run.places.pods
    ]  # fmt: skip
