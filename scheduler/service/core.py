"""The queue over one world: what users ask of it, and the tick that looks, decides, logs and acts.

Whatever is answered or done was committed to the log before. A start is logged as intended, then made, then logged as
bound; after a crash between, the same pods under the same names are made again, and the world's own record decides
whether there is anything left to do. What should run follows from the log alone, so every tick brings the world there.
Belongs here: the order of these steps and their locks. Not here: the steps (`deciding.py`, `acting.py`,
`estimating.py`), what an event means (`records.py`), HTTP (`api.py`).
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scheduler.model import Job, Queue
from scheduler.placement import Placer
from scheduler.policy import Policy
from scheduler.service import asking
from scheduler.service.acting import Actor
from scheduler.service.asking import WhatIf
from scheduler.service.codec import Template, job_json
from scheduler.service.deciding import Decider
from scheduler.service.estimating import Estimates, Runner, Start
from scheduler.service.journal import Journal, Reused
from scheduler.service.log import Event, EventLog, Key
from scheduler.service.records import Entry, Records
from scheduler.service.room import Room
from scheduler.service.worlds import Unreachable, World

__all__ = ["Health", "QueueService", "Reused", "Stale", "WhatIf"]

log = logging.getLogger(__name__)


class Stale(Exception):
    """The policy document has another version by now; `version` says which."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the policy document is at version {version}")
        self.version = version


@dataclass
class Health:
    """How the loop is: the instant of the last look at the world (us), what went wrong last, cycles run.

    `ticked_s`: when the loop began or its last tick ended, by the monotonic clock; `patience_s`: how long one may take.
    """

    seen_us: int | None = None
    ticked_s: float | None = None
    patience_s: float = 60.0
    error: str = ""
    cycles: int = 0
    cycle_s: float = 0.0

    def trouble(self) -> str:
        """What is wrong, in a word or two; "" where all is well."""
        since_s = time.monotonic() - self.ticked_s if self.ticked_s is not None else 0.0
        if self.error or since_s <= self.patience_s:
            return self.error.split(":")[0]
        return f"no tick has ended for {since_s:.0f} s"


class QueueService:
    """The queue. Requests may come from any thread, ticks from one. Instants are microseconds of the world's clock.

    `runner` computes start estimates; None: there are none. `binders`: gangs whose pods are made at the same time.
    """

    def __init__(
        self, events: EventLog, world: World, policy: Policy, queues: Mapping[str, Queue], *, placer: Placer,
        runner: Runner | None = None, binders: int = 1,
    ) -> None:  # fmt: skip
        self.log, self.world, self.policy, self.queues, self.placer = events, world, policy, dict(queues), placer
        self.binders = binders
        self.lock = threading.RLock()
        self.wake = threading.Event()
        self.health = Health()
        self.estimates = Estimates(runner)
        self._is_torn = False
        self._load()

    def _load(self) -> None:
        """Everything as the log has it; the world is looked at in the next tick."""
        journal = Journal(self.log, self.policy, learns=self.estimates.runner is not None)
        self.journal = journal
        # A queue that is configured no more still has its jobs; they come last.
        for entry in self.records.entries.values():
            self.queues.setdefault(entry.job.queue, Queue(entry.job.queue, weight=0))
        self.decider = Decider(journal, self.policy, self.queues, self.placer, lambda: self.now)
        self.actor = Actor(self.world, journal, self.decider, self.lock, self.binders)
        self._is_torn = False

    @property
    def now(self) -> int:
        """The world's clock, which never goes back here."""
        return max(self.world.now_us(), self.records.last_us)

    @property
    def records(self) -> Records:
        """All jobs, as the log has them."""
        return self.journal.records

    @property
    def room(self) -> Room | None:
        """The scheduler over the nodes; None until they were seen."""
        return self.decider.room

    @property
    def positions(self) -> Mapping[str, int]:
        """Places of all that wait, from 1, as of the last cycle."""
        return self.decider.positions

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why jobs that were looked at still wait."""
        return self.decider.reasons

    def start_of(self, job_id: str) -> Start:
        """When a job that waits is expected to start."""
        return self.estimates.of(job_id, self.now)

    # -- what users ask ------------------------------------------------------------------------------------------
    def submit(self, job: Job, template: Template, name: str, key: Key | None = None) -> tuple[Entry, bool]:
        """Accept a job, durably; (its entry, whether it is new). `Reused` for a key of another request."""
        with self.lock:
            if key is not None and (known := self.journal.known(key)) is not None:
                return self.records.entries[known], False
            # No two jobs are submitted at one instant: the order of arrival is the order of submission.
            job = replace(job, submit_us=max(self.now, self.records.last_us + 1))
            event = Event(job.submit_us, "submitted", job.job_id, job_json(job, template) | {"name": name})
            self.journal.commit([event], key, job.job_id)
            if self.room is not None:
                self.decider.enqueue(self.records.entries[job.job_id])
                self.journal.flush()
            self.wake.set()
            return self.records.entries[job.job_id], True

    def cancel(self, job_id: str, by: str) -> Entry:
        """Its user does not want a job any more; one that is over stays as it is. `KeyError` where there is none."""
        with self.lock:
            entry = self.records.entries[job_id]
            if not entry.life.is_over:
                had_run = entry.run
                self.journal.commit([Event(self.now, "cancelled", job_id, {"by": by}, "user")])
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
            if key is not None and (known := self.journal.known(key)) is not None:
                return int(known), False
            if version != self.records.policy_version:
                raise Stale(self.records.policy_version)
            payload = {"document": document, "version": version + 1, "by": by}
            self.journal.commit([Event(self.now, "policy_set", "", payload)], key, str(version + 1))
            return version + 1, True

    def what_if(self, job: Job) -> WhatIf:
        """What would become of a job that were submitted now, by the present snapshot; nothing is changed."""
        with self.lock:
            return asking.what_if(self.decider, job)

    # -- the tick ------------------------------------------------------------------------------------------------
    def tick(self) -> bool:
        """Look, decide, log, act; whether the world answered and the log took it. Call it from one thread only."""
        try:
            if self._is_torn:
                with self.lock:
                    self._load()
            seen = self.world.see()
            with self.lock:
                now = max(seen.at_us, self.records.last_us)
                self.health.seen_us = seen.at_us
                self.estimates.take(self.journal, now)
                self.decider.decide(seen, now)
                self.health.cycles += 1
                assert self.room is not None
                self.estimates.ask(self.journal, self.room.scheduler, now)
                work, actor = self.actor.work(seen), self.actor
                self.journal.flush()
            actor.act(work)
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
            self._is_torn = True
            self.estimates.forget(self.now)
            try:
                self._load()
            except sqlite3.Error as again:
                self.health.error = f"log: {again}"
