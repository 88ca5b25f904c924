"""A hand-worked event log of the queue, and small ones made by hand, as the service writes them.

The day is 2 June 2026, cluster c, queue a; GPUs held and asked are whole. What happens:

    a1  1 GPU    08:00 submitted and started at once, bound 08:00:02, ends well 10:00
    a2  2 GPUs   08:00 submitted, passed over, told P50 09:00 and P90 11:00 as of 08:01 (bound's P90: 12:00),
                 started 10:00, bound 10:00:04, killed for another at 11:00 (half an hour's work of 2 GPUs lost),
                 queued again 11:01, started 12:00, bound 12:00:02, runs over midnight
    a3  8 GPUs   09:00 submitted, passed over, never told a time ("nothing like it"), started 22:00 on 3 June
    a4  2 GPUs   09:00 submitted, told P50 09:30 and P90 10:30 as of 09:00, cancelled 09:30
    b1  16 GPUs  queue b, 09:00 submitted, impossible
    a5  1 GPU    23:00 submitted, passed over, started 23:30 before any estimate, fails 23:45 for good (a quarter lost)
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scheduler.model import MILLI, Job, Role, Shape
from scheduler.service.codec import Places, Template, job_json, places_json
from scheduler.service.log import Event, EventLog

GPU_S = 1_000_000_000


def us(text: str, day: str = "2026-06-02") -> int:
    """Microseconds of a time of the day, or of a whole instant."""
    given = text if "T" in text else f"{day}T{text}"
    return round(datetime.fromisoformat(given).replace(tzinfo=UTC).timestamp()) * 1_000_000


def submitted(job_id: str, at: str, gpus: int, queue: str = "a", backoff_limit: int = 6) -> Event:
    """A job of one pod with so many GPUs."""
    role = Role("worker", Shape(gpus * MILLI), 1)
    job = Job(job_id, queue, queue, (role,), us(at), backoff_limit=backoff_limit)
    return Event(us(at), "submitted", job_id, job_json(job, Template("image", ("secret",))) | {"name": job_id})


def started(job_id: str, at: str, gpus: int, attempt: int = 1, bound: str | None = None) -> list[Event]:
    """A start on node n0, and its bind."""
    pods = ((0, 0, "n0", tuple((d, MILLI) for d in range(gpus))),)
    payload = {"attempt": attempt, "places": places_json(Places("H100", pods)), "predicted_us": 1}
    events = [Event(us(at), "intended", job_id, payload)]
    return events + ([Event(us(bound), "bound", job_id, {"attempt": attempt})] if bound else [])


def estimated(
    job_id: str, at: str, p50: str | None, p90: str | None, bound_s: int | None = None, why: str = ""
) -> Event:
    """What a job was told, as of the same instant."""
    payload = {
        "at_us": us(at), "size_class": "-", "position": 1, "method": "none" if p50 is None else "forward",
        "p50_us": p50 and us(p50), "p90_us": p90 and us(p90), "raw50_us": None, "raw90_us": None,
        "bound50_us": None, "bound90_us": bound_s and bound_s * 1_000_000,
    }  # fmt: skip
    return Event(us(at), "estimated", job_id, payload, why)


def waiting(job_id: str, at: str) -> Event:
    """A cycle left it waiting."""
    return Event(us(at), "waiting", job_id, {"position": 1}, "no_room")


def hand_worked() -> list[Event]:
    """The events above, in the order of time."""
    return [
        submitted("a1", "08:00:00", 1),
        submitted("a2", "08:00:00", 2),
        *started("a1", "08:00:00", 1, bound="08:00:02"),
        waiting("a2", "08:00:01"),
        estimated("a2", "08:01:00", "09:00:00", "11:00:00", bound_s=4 * 3600 - 60),
        submitted("a3", "09:00:00", 8),
        submitted("a4", "09:00:00", 2),
        submitted("b1", "09:00:00", 16, "b"),
        Event(us("09:00:00"), "impossible", "b1", {}, "the nodes could not hold it, even empty"),
        waiting("a3", "09:00:00"),
        waiting("a4", "09:00:00"),
        estimated("a3", "09:00:00", None, None, why="nothing like it has waited yet"),
        estimated("a4", "09:00:00", "09:30:00", "10:30:00"),
        Event(us("09:30:00"), "cancelled", "a4", {"by": "a"}, "user"),
        Event(us("10:00:00"), "ended", "a1", {"is_success": True, "lost": 0, "will_return": False}),
        *started("a2", "10:00:00", 2, bound="10:00:04"),
        Event(us("11:00:00"), "killed", "a2", {"for_job": "x", "lost": 3600 * GPU_S, "will_return": True}),
        Event(us("11:01:00"), "resubmitted", "a2", {}),
        *started("a2", "12:00:00", 2, 2, bound="12:00:02"),
        submitted("a5", "23:00:00", 1, backoff_limit=0),
        waiting("a5", "23:00:01"),
        *started("a5", "23:30:00", 1),
        Event(us("23:45:00"), "ended", "a5", {"is_success": False, "lost": 900 * GPU_S, "will_return": False}, "bad"),
        *started("a3", "2026-06-03T22:00:00", 8),
        Event(us("2026-06-03T23:00:00"), "policy_set", "", {"version": 1, "document": {}, "by": "root"}),
    ]  # fmt: skip


def write_log(path: Path, events: Iterable[Event]) -> Path:
    """A log with these events, as the service writes it."""
    log = EventLog(path)
    try:
        log.append(list(events))
    finally:
        log.close()
    return path


def raw_log(path: Path, rows: Iterable[tuple[Any, ...]], log_id: str = "by-hand") -> Path:
    """A log with rows (at us, kind, job, payload, reason) of any kind, written without the service."""
    db = sqlite3.connect(path)
    db.execute("create table events (event_id integer primary key, event_at_us, kind, job_id, payload, reason)")
    db.execute("create table identity (log_id text)")
    db.execute("insert into identity values (?)", (log_id,))
    db.executemany(
        "insert into events (event_at_us, kind, job_id, payload, reason) values (?, ?, ?, ?, ?)",
        [tuple(json.dumps(v) if isinstance(v, dict) else v for v in row) for row in rows],
    )
    db.execute("pragma user_version = 1")
    db.commit()
    db.close()
    return path
