"""The durable event log: everything the queue accepted and decided, in order, in one SQLite file.

A transaction that `append` made is on disk before it returns (WAL, synchronous=FULL), so whoever answers or acts after
it may be killed at any moment. Rows are never changed: triggers refuse it. Belongs here: events and idempotency keys.
Not here: what they mean (`records.py`).
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from warehouse.errors import BadInput, LakeBusy

_SCHEMA = """
create table if not exists events (
    event_id integer primary key autoincrement,
    event_at_us integer not null,
    kind text not null,
    job_id text not null,
    payload text not null,
    reason text not null
) strict;
create index if not exists events_of_job on events (job_id);
create table if not exists idempotency (
    scope text not null,
    key text not null,
    digest text not null,
    result text not null,
    event_id integer not null,
    primary key (scope, key)
) strict, without rowid;
create table if not exists identity (log_id text not null) strict;
create trigger if not exists events_stay before update on events begin select raise(abort, 'events are final'); end;
create trigger if not exists events_last before delete on events begin select raise(abort, 'events are final'); end;
"""
_VERSION = 1
_SELECT = "select event_at_us, kind, job_id, payload, reason, event_id from events where event_id > ?"


@dataclass(frozen=True)
class Event:
    """One thing that happened to a job ("" where to none) at an instant (us). `event_id` 0: not written yet."""

    event_at_us: int
    kind: str
    job_id: str = ""
    payload: dict[str, Any] | None = None
    reason: str = ""
    event_id: int = 0


@dataclass(frozen=True)
class Key:
    """An idempotency key: of whom for what (`scope`), the key, and a digest of the request that used it."""

    scope: str
    key: str
    digest: str


class EventLog:
    """The log in a file. One process has it at a time: `LakeBusy` where another does, `BadInput` where it is no log.

    Safe to use from several threads.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        # The lock dies with its process, however that ends.
        self._owner = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._owner)
            raise LakeBusy(f"{path}: another queue service has this log") from None
        try:
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("pragma journal_mode=wal")
            self._db.execute("pragma synchronous=full")
            (version,) = self._db.execute("pragma user_version").fetchone()
            if version not in (0, _VERSION):
                raise BadInput(f"{path}: a log of version {version}; this program reads {_VERSION}")
            self._db.executescript(_SCHEMA)
            self._db.execute(f"pragma user_version={_VERSION}")
            # A log that is made anew counts its events from 1 again; the name tells them from those of the old one.
            self._db.execute("insert into identity select ? where not exists (select 1 from identity)", (uuid4().hex,))
            (self.log_id,) = self._db.execute("select log_id from identity").fetchone()
        except sqlite3.DatabaseError as error:
            os.close(self._owner)
            raise BadInput(f"{path}: {error}") from None

    def append(self, events: Sequence[Event], key: Key | None = None, result: str = "") -> list[int]:
        """Write the events, and with them the key and what it stands for, or nothing; returns their ids."""
        ids: list[int] = []
        with self._lock:
            self._db.execute("begin immediate")
            try:
                for e in events:
                    payload = json.dumps(e.payload or {}, separators=(",", ":"), sort_keys=True)
                    found = self._db.execute(
                        "insert into events (event_at_us, kind, job_id, payload, reason) values (?, ?, ?, ?, ?)",
                        (e.event_at_us, e.kind, e.job_id, payload, e.reason),
                    )
                    ids.append(int(found.lastrowid or 0))
                if key is not None:
                    self._db.execute(
                        "insert into idempotency values (?, ?, ?, ?, ?)",
                        (key.scope, key.key, key.digest, result, ids[-1] if ids else 0),
                    )
                self._db.execute("commit")
            except BaseException:
                self._db.execute("rollback")
                raise
        return ids

    def known(self, scope: str, key: str) -> tuple[str, str] | None:
        """Digest and result that a key stands for; None where it was not used."""
        with self._lock:
            row = self._db.execute(
                "select digest, result from idempotency where scope = ? and key = ?", (scope, key)
            ).fetchone()
        return None if row is None else (row[0], row[1])

    def events(self, after: int = 0, job_id: str | None = None) -> Iterator[Event]:
        """Events with an id beyond `after`, of one job or all, in order."""
        query = _SELECT
        values: tuple[Any, ...] = (after,)
        if job_id is not None:
            query, values = query + " and job_id = ?", (after, job_id)
        with self._lock:
            rows = self._db.execute(query + " order by event_id", values).fetchall()
        yield from map(_event, rows)

    def close(self) -> None:
        """Give the log to others."""
        with self._lock:
            self._db.close()
            os.close(self._owner)


def _event(row: tuple[Any, ...]) -> Event:
    at, kind, job, payload, reason, event_id = row
    return Event(at, kind, job, json.loads(payload), reason, event_id)
