"""The event log: committed means readable after any end, rows are final, one process has it, keys stand for results."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from scheduler.service.log import Event, EventLog, Key
from warehouse.errors import BadInput, LakeBusy


def test_a_log_keeps_its_id_and_a_new_one_has_another(tmp_path: Path) -> None:
    ids = []
    for name in ("q.db", "q.db", "other.db"):
        log = EventLog(tmp_path / name)
        ids.append(log.log_id)
        log.close()
    assert ids[0] == ids[1] != ids[2]


def test_events_come_back_in_order(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "q.db")
    ids = log.append([Event(5, "submitted", "a", {"x": [1, "é"]}), Event(3, "ended", "b", reason="why")])
    log.close()
    again = EventLog(tmp_path / "q.db")
    assert [(e.event_id, e.event_at_us, e.kind, e.job_id, e.payload, e.reason) for e in again.events()] == [
        (ids[0], 5, "submitted", "a", {"x": [1, "é"]}, ""),
        (ids[1], 3, "ended", "b", {}, "why"),
    ]
    assert [e.kind for e in again.events(after=ids[0])] == ["ended"]
    assert [e.kind for e in again.events(job_id="a")] == ["submitted"]


def test_an_append_is_all_or_nothing(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "q.db")
    log.append([Event(1, "submitted", "a")], Key("s", "k", "d"), "a")
    with pytest.raises(sqlite3.IntegrityError):
        log.append([Event(2, "submitted", "b")], Key("s", "k", "other"), "b")
    assert [e.job_id for e in log.events()] == ["a"]
    assert log.known("s", "k") == ("d", "a")
    assert log.known("other", "k") is None


def test_rows_are_final(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "q.db")
    log.append([Event(1, "submitted", "a")])
    other = sqlite3.connect(tmp_path / "q.db")
    for statement in ("update events set kind = 'x'", "delete from events"):
        with pytest.raises(sqlite3.IntegrityError, match="final"):
            other.execute(statement)


def test_it_waits_for_the_disk(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "q.db")
    assert log._db.execute("pragma synchronous").fetchone() == (2,)
    assert log._db.execute("pragma journal_mode").fetchone() == ("wal",)


def test_one_owner_and_no_other_file(tmp_path: Path) -> None:
    log = EventLog(tmp_path / "q.db")
    with pytest.raises(LakeBusy, match="another queue service"):
        EventLog(tmp_path / "q.db")
    log.close()
    EventLog(tmp_path / "q.db").close()
    (tmp_path / "text.db").write_text("this is no database, however long one reads it " * 50)
    with pytest.raises(BadInput, match=r"text\.db"):
        EventLog(tmp_path / "text.db")
