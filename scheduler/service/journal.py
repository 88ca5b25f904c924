"""Log and records side by side: what is committed before it counts, and what counts at once and is committed with the
rest of its tick.

Belongs here: the order of writing and folding. Not here: what an event means (`records.py`), the file (`log.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from scheduler.policy import Policy
from scheduler.predict import History
from scheduler.service.learning import Learner
from scheduler.service.log import Event, EventLog, Key
from scheduler.service.records import Entry, Records


class Reused(Exception):
    """An idempotency key was used before for another request."""


class Journal:
    """A log and what it amounts to. Call it under the queue's lock. `learns`: what estimates need is kept too."""

    def __init__(self, events: EventLog, policy: Policy, *, learns: bool) -> None:
        self.log = events
        predictor = History()
        learner = Learner(predictor.predict) if learns else None
        self.records = Records(
            predictor, policy.gang_patience_us, keeps_spans=bool(policy.half_life_us), learner=learner
        )  # fmt: skip
        self._new: list[Event] = []
        for event in self.log.events():
            self.records.apply(event)

    def known(self, key: Key) -> str | None:
        """What a key stands for; None where it was not used, `Reused` for a key of another request."""
        found = self.log.known(key.scope, key.key)
        if found is None:
            return None
        if found[0] != key.digest:
            raise Reused(f"idempotency key {key.key} was used for another request")
        return found[1]

    def commit(self, events: Iterable[Event], key: Key | None = None, result: str = "") -> None:
        """Write events, and with them what a key stands for; then they count."""
        events = list(events)
        self.log.append(events, key, result)
        for event in events:
            self.records.apply(event)

    def note(self, kind: str, entry: Entry, now: int, payload: dict[str, Any] | None = None, reason: str = "") -> None:
        """An event that counts at once and is committed by `flush`, before anything is done about it."""
        # Requests are stamped while a tick decides as of its look: the log's time never goes back.
        event = Event(max(now, self.records.last_us), kind, entry.job.job_id, payload, reason)
        if outcome := self.records.apply(event):
            event = replace(event, payload={**(payload or {}), **outcome})
        self._new.append(event)

    def flush(self) -> None:
        """Commit what was noted."""
        if self._new:
            self.log.append(self._new)
            self._new.clear()
