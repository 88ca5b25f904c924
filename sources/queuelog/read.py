"""Reads the event log of the queue service beside the service that writes it, and keeps what a damaged one still has.

The log is a SQLite file in WAL mode; a read-only connection sees one consistent state and holds no writer up. What
cannot be read is named by file and event; everything else comes. Belongs here: the file. Not here: what an event's
payload means (`rows.py`), writing tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from sources.queuelog.rows import OF_NONE, BadEvent, JobFacts, Row, columns_of, facts_of, instant, kept, payload_of
from warehouse.errors import BadInput

VERSION = 1
_COLUMNS = "event_id, event_at_us, kind, job_id, payload, reason"
_MOST_TEXT = 1 << 24
_Raw = tuple[int, object, object, object, object, object]


@dataclass
class LogRows:
    """A log's events as rows of `raw.scheduler_events` without cluster, by event id.

    `refused`: a message for every event, or run of events, that is none. `last_id`: the last event of the file.
    """

    path: Path
    log_id: str
    rows: list[Row] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    last_id: int = 0


def log_id_of(path: Path) -> str:
    """The id of a log; `BadInput` names a file that is none."""
    with closing(_opened(path)) as db:
        return _identity(db, path)


def read_log(path: Path, after: int = 0) -> LogRows:
    """Events with an id beyond `after`. `BadInput` where the file is missing, is no log, or of a newer version."""
    with closing(_opened(path)) as db:
        found = LogRows(path, _identity(db, path), last_id=_last(db))
        jobs = _Jobs(db)
        for raw in _events(db, after, found):
            try:
                row = _row(raw, jobs)
            except BadEvent as error:
                found.refused.append(f"{path}: event {raw[0]}: {error}")
                continue
            found.rows.append({**row, "log_id": found.log_id, "source": str(path)})
        return found


def _opened(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise BadInput(f"{path}: no such file; the queue service keeps its log in DATA/queue/events.db")
    try:
        db = _connected(path, "mode=ro")
    except sqlite3.DatabaseError as error:
        wal = path.with_name(path.name + "-wal")
        # A folder that may not be written to has no place for the shared memory of a WAL; without one it is not needed.
        if "unable to open" not in str(error) or (wal.exists() and wal.stat().st_size):
            raise BadInput(f"{path}: {error}") from None
        try:
            db = _connected(path, "mode=ro&immutable=1")
        except sqlite3.DatabaseError as again:
            raise BadInput(f"{path}: {again}") from None
    return db


def _connected(path: Path, how: str) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None)
    try:
        # Text that is no UTF-8 is refused row by row, not by the driver in the middle of a fetch.
        db.text_factory = bytes
        db.execute("begin")
        db.execute("select count(*) from sqlite_schema").fetchone()
    except sqlite3.DatabaseError:
        db.close()
        raise
    return db


def _identity(db: sqlite3.Connection, path: Path) -> str:
    try:
        tables = {bytes(name).decode() for (name,) in db.execute("select name from sqlite_schema where type = 'table'")}
        if "events" not in tables:
            raise BadInput(f"{path}: it has no table events, so it is no event log of the queue")
        (version,) = db.execute("pragma user_version").fetchone()
        if version > VERSION:
            raise BadInput(f"{path}: a log of version {version}; this program reads {VERSION}")
        db.execute(f"select {_COLUMNS} from events limit 0")
        found = db.execute("select log_id from identity").fetchone() if "identity" in tables else None
    except sqlite3.DatabaseError as error:
        raise BadInput(f"{path}: {error}") from None
    if found is None:
        raise BadInput(f"{path}: the log has no id; a start of `strandline queue serve` gives it one")
    return bytes(found[0]).decode()


def _last(db: sqlite3.Connection) -> int:
    try:
        (last,) = db.execute("select coalesce(max(event_id), 0) from events").fetchone()
    except sqlite3.DatabaseError:
        return 0  # what cannot be read is told with the events
    return int(last)


def _events(db: sqlite3.Connection, after: int, found: LogRows) -> Iterator[_Raw]:
    """Rows in order; beyond a damaged place those that can be had from the end, after what lies before it."""
    last = after
    try:
        for raw in db.execute(f"select {_COLUMNS} from events where event_id > ? order by event_id", (after,)):
            last = raw[0]
            yield raw
    except sqlite3.DatabaseError as error:
        tail: list[_Raw] = []
        try:
            for raw in db.execute(
                f"select {_COLUMNS} from events where event_id > ? order by event_id desc", (last,)
            ):  # fmt: skip
                tail.append(raw)
        except sqlite3.DatabaseError:
            pass
        upto = f"up to {tail[-1][0] - 1}" if tail else "to the end"
        found.refused.append(f"{found.path}: events from {last + 1} {upto} cannot be read: {error}")
        yield from reversed(tail)


class _Jobs:
    """Facts of jobs by id, from submissions that were passed or are looked up."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: dict[str, JobFacts | None] = {}

    def learn(self, job_id: str, facts: JobFacts) -> None:
        self._known[job_id] = facts

    def of(self, job_id: str) -> JobFacts:
        """`BadEvent` where the job's submission cannot be read."""
        if job_id not in self._known:
            self._known[job_id] = self._looked_up(job_id)
        facts = self._known[job_id]
        if facts is None:
            raise BadEvent(f"job {job_id} has no submission in this log that can be read")
        return facts

    def _looked_up(self, job_id: str) -> JobFacts | None:
        try:
            found = self._db.execute(
                "select payload from events where job_id = ? and kind = 'submitted' order by event_id", (job_id,)
            ).fetchone()
            return None if found is None else facts_of(payload_of(_text(found[0], "payload")))
        except (sqlite3.DatabaseError, BadEvent):
            return None


def _row(raw: _Raw, jobs: _Jobs) -> Row:
    event_id, at_us, given_kind, given_job, given_payload, given_reason = raw
    kind, job_id = _text(given_kind, "kind"), _text(given_job, "job_id")
    at, payload = instant(at_us, "event_at_us"), payload_of(_text(given_payload, "payload"))
    facts: JobFacts | None = None
    if kind == "submitted":
        facts = facts_of(payload)
        jobs.learn(job_id, facts)
    elif job_id:
        facts = jobs.of(job_id)
    elif kind not in OF_NONE:
        raise BadEvent(f"job_id: {kind} is of a job, and none is named")
    row: Row = {
        "event_id": event_id, "event_at": at, "event_kind": kind, "job_id": job_id or None,
        "team": facts.team if facts else None, "queue": facts.queue if facts else None,
        "size_class": facts.size_class if facts else None, "reason": _text(given_reason, "reason") or None,
        "payload": kept(payload), "hour": at.replace(minute=0, second=0, microsecond=0), "date": at.date(),
    }  # fmt: skip
    return row | columns_of(kind, payload, facts)


def _text(value: object, name: str) -> str:
    if not isinstance(value, bytes) or len(value) > _MOST_TEXT:
        raise BadEvent(f"{name}: not text of a reasonable size")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise BadEvent(f"{name}: not UTF-8") from None
