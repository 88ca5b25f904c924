"""What a tick decides: what has become of runs, what the time has come for, and one cycle of the scheduler.

Everything is noted as an event before anything is done about it. Belongs here: from a look at the world to events. Not
here: what an event means (`records.py`), what is done to the world (`acting.py`), the room on nodes (`room.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scheduler import order
from scheduler.model import Job, Queue
from scheduler.placement import Placer
from scheduler.policy import Policy
from scheduler.service.codec import notice_json, places_json, places_of
from scheduler.service.journal import Journal
from scheduler.service.records import Entry
from scheduler.service.room import Room
from scheduler.service.worlds import Seen, pod_name


class Decider:
    """Decisions over one journal. `now`: the queue's clock. `room` is None until the world was seen.

    `positions` and `reasons` are of all that wait, as of the last cycle.
    """

    def __init__(
        self, journal: Journal, policy: Policy, queues: Mapping[str, Queue], placer: Placer, now: Callable[[], int]
    ) -> None:
        self.journal, self.policy, self.queues, self.placer, self.now = journal, policy, queues, placer, now
        self.room: Room | None = None
        self.positions: dict[str, int] = {}
        self.reasons: dict[str, str] = {}
        self._impossible: dict[object, str | None] = {}

    def decide(self, seen: Seen, now: int) -> None:
        """All that follows from this look at the world."""
        if self.room is None or not self.room.fits(seen):
            self._furnish(seen, now)
        assert self.room is not None
        for entry in list(self.journal.records.running.values()):
            self._observe(entry, seen, now)
        self.room.see(seen, self.journal.records)
        self._timers(now)
        self.room.see(seen, self.journal.records)
        self._cycle(now)

    def _furnish(self, seen: Seen, now: int) -> None:
        """A scheduler over the nodes as they are now, with what runs and waits; notices are given anew if needed."""
        for entry in list(self.journal.records.running.values()):
            if entry.run is not None and entry.run.stop is not None:
                self.journal.note("called_off", entry, now, reason="restart")
        self.room = Room(seen, self.policy, self.queues, self.placer, self.journal.records)
        self._impossible.clear()
        for entry in self.journal.records.entries.values():
            if entry.life.state == "pending" and entry.life.reason == "queued":
                self.enqueue(entry)

    def enqueue(self, entry: Entry) -> None:
        """A job joins the scheduler, or is named impossible."""
        assert self.room is not None
        if entry.attempts == 0 and (why := self.never(entry.job)) is not None:
            self.journal.note("impossible", entry, self.now(), reason=why)
            return
        predicted = self.journal.records.predictor.predict(entry.job)
        rate = entry.job.gpu_milli or 1
        left = predicted - entry.life.safe // rate
        self.room.scheduler.submit(entry.job, left if left > 0 else predicted)

    def never(self, job: Job) -> str | None:
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
                self.end(entry, now, is_success=False, reason=f"node {gone[0]} is gone")
            return
        pods = {(r, i): seen.pods.get(pod_name(job.job_id, run.attempt, r, i)) for r, i, *_ in run.whole.pods}
        if failed := next((p for p in pods.values() if p is not None and p.phase == "failed"), None):
            self.end(entry, now, is_success=False, reason=f"pod {failed.name} failed")
            return
        held = [pods[r, i] for r, i, *_ in run.places.pods]
        if held and all(p is not None and p.phase == "succeeded" for p in held):
            self.end(entry, now, is_success=True)
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
            self.journal.note("resized", entry, now, payload, "back" if len(left) > len(run.places.pods) else "lost")
            room.resized(entry, places, now)

    def end(self, entry: Entry, now: int, *, is_success: bool, reason: str = "") -> None:
        run = entry.run
        assert run is not None and self.room is not None
        self.journal.note("ended", entry, now, {"is_success": is_success}, reason)
        self.room.release(entry, run, will_return=entry.again_us is not None)

    def _timers(self, now: int) -> None:
        """What the time has come for: signals, kills, lost patience, the end of a backoff."""
        assert self.room is not None
        for entry in list(self.journal.records.running.values()):
            run = entry.run
            assert run is not None
            stop = run.stop
            if (
                stop is not None
                and stop.signal_us is not None
                and stop.signal_us <= now
                and entry.life.signalled is None
            ):
                self.journal.note("signalled", entry, now)
            if stop is not None and stop.kill_us <= now:
                self.journal.note("killed", entry, now, {"for_job": stop.for_job})
                if stop.keep is None:
                    self.room.release(entry, run, will_return=entry.again_us is not None)
                else:
                    self.room.shrink(entry, stop.keep)
            elif run.patience_us is not None and run.patience_us <= now and entry.life.reason == "degraded":
                self.journal.note("patience_over", entry, now, reason="lost")
                self.room.release(entry, run, will_return=entry.again_us is not None)
        for entry in list(self.journal.records.again.values()):
            assert entry.again_us is not None
            if entry.again_us <= now and not self.room.is_leaving(entry.job.job_id):
                self.journal.note("resubmitted", entry, now)
                self.enqueue(entry)

    def _cycle(self, now: int) -> None:
        """One cycle of the scheduler; what it decides is noted."""
        assert self.room is not None
        scheduler = self.room.scheduler
        scheduler.repredict(self.journal.records.predictor.revised(now))
        done = scheduler.cycle(now)
        names = [n.name for n in scheduler.cluster.nodes]
        entries = self.journal.records.entries
        for job_id in done.called_off:
            if (entry := entries[job_id]).run is not None and entry.run.stop is not None:
                self.journal.note("called_off", entry, now, reason="not_needed")
        for e in done.evictions:
            keep = places_of(e.keep, names) if e.keep is not None else None
            self.journal.note(
                "noticed", entries[e.job.job_id], now, notice_json(e, keep) | {"lost_us": e.lost_us}, e.kind
            )
        for start in done.starts:
            entry = entries[start.job.job_id]
            payload = {
                "attempt": entry.attempts + 1,
                "places": places_json(places_of(start.placement, names)),
                "predicted_us": max(start.end_us - now, 1),
            }
            self.journal.note("intended", entry, now, payload)
        for r in done.reserved:
            self.journal.note("reserved", entries[r.job.job_id], now, {"start_us": r.start_us})
        for w in done.withdrawn:
            self.journal.note("withdrawn", entries[w.reservation.job.job_id], now, {"by": w.by}, w.reason)
        self.reasons |= done.reasons
        self._rank(now)

    def _rank(self, now: int) -> None:
        """Positions of all that wait, and an event for each that a cycle has left waiting for the first time."""
        assert self.room is not None
        scheduler = self.room.scheduler
        held = [hold.job.job_id for hold in scheduler.holds]
        keys = sorted(order.key(w, scheduler.usage, self.policy, now) for w in scheduler.pending.oldest())
        self.positions = {job_id: n for n, job_id in enumerate([*held, *(k[-1] for k in keys)], 1)}
        self.reasons = {job_id: reason for job_id, reason in self.reasons.items() if job_id in self.positions}
        for job_id, position in self.positions.items():
            entry = self.journal.records.entries[job_id]
            if entry.passed_over < entry.attempts:
                why = "held" if position <= len(held) else self.reasons.get(job_id, "behind_head")
                self.journal.note("waiting", entry, now, {"position": position}, why)
