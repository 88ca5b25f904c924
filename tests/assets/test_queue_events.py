"""The queue's log in the lake: again and late, beside a writing service, damaged, foreign, made anew, put back."""

from __future__ import annotations

import json
import shutil
import sqlite3
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from queue_log import estimated, hand_worked, raw_log, started, submitted, us, waiting, write_log

from assets.computed import load_all_models
from assets.queue_events import TABLE, QueueReport, load_queue_events
from scheduler.service.log import Event, EventLog
from warehouse import runner
from warehouse.lake import Lake

D2, D3 = date(2026, 6, 2), date(2026, 6, 3)
TABLES = ("core.job_spells", "core.job_starts", "mart.queue_daily", "mart.slo_daily")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def load(lake: Lake, *paths: Path, cluster: str = "c") -> QueueReport:
    return load_queue_events(lake, paths, cluster)


def held(lake: Lake) -> list[tuple[str, int, str, str | None]]:
    rows = lake.read(TABLE, ["log_id", "event_id", "event_kind", "job_id"]).to_pylist()
    return sorted((r["log_id"], r["event_id"], r["event_kind"], r["job_id"]) for r in rows)


def marked(lake: Lake) -> set[date]:
    return {m.date for m in lake.marks()}


def tables(lake: Lake) -> dict[str, list[str]]:
    return {name: sorted(map(str, lake.read(name).to_pylist())) for name in TABLES}


def build(lake: Lake) -> dict[str, list[str]]:
    models = {name: m for name, m in load_all_models().items() if name in TABLES}
    runner.build(lake, models=models)
    return tables(lake)


def test_a_log_lands_whole_and_twice_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    path = write_log(tmp_path / "events.db", hand_worked())
    report = load(lake, path)
    assert (report.read, report.new, report.refused) == (len(hand_worked()), len(hand_worked()), [])
    assert marked(lake) == {D2, D3}
    version = lake.version(TABLE)
    lake.clear(lake.marks())
    again = load(lake, path, path)
    assert (again.new, again.refused, lake.version(TABLE), marked(lake)) == (0, [], version, set())
    payloads = lake.read(TABLE, ["payload"]).column("payload").to_pylist()
    assert not [p for p in payloads if "secret" in p]


def test_reading_in_pieces_gives_the_same_tables(lake: Lake, tmp_path: Path) -> None:
    events, path = hand_worked(), tmp_path / "events.db"
    whole = Lake(tmp_path / "whole")
    log = EventLog(path)
    for first in range(0, len(events), 4):
        log.append(events[first : first + 4])
        # the service has the file and goes on writing
        assert load(lake, path).refused == []
        build(lake)
    load(whole, path)
    log.close()
    assert build(whole) == build(lake) == tables(lake)
    assert len(lake.read("mart.queue_daily", ["date"])) == 6


def test_days_without_an_event_are_built_once_it_is_known_that_a_job_waited(lake: Lake, tmp_path: Path) -> None:
    path = tmp_path / "events.db"
    log = EventLog(path)
    log.append([submitted("j", "2026-06-02T12:00:00", 1), waiting("j", "2026-06-02T12:00:01")])
    load(lake, path)
    build(lake)
    assert lake.dates("mart.queue_daily") == [D2]
    log.append(started("j", "2026-06-05T12:00:00", 1))
    load(lake, path)
    log.close()
    build(lake)
    found = {r["date"].day: float(r["waiting_job_hours"]) for r in lake.read("mart.queue_daily").to_pylist()}
    assert found == {2: 12, 3: 24, 4: 24, 5: 12}


def test_a_log_made_anew_counts_beside_the_old_one(lake: Lake, tmp_path: Path) -> None:
    one = write_log(tmp_path / "one.db", [submitted("j", "08:00:00", 1)])
    two = write_log(tmp_path / "two.db", [submitted("k", "09:00:00", 1)])
    assert [load(lake, p).new for p in (one, two, one)] == [1, 1, 0]
    assert [(i, job) for _, i, _, job in held(lake)] in ([(1, "j"), (1, "k")], [(1, "k"), (1, "j")])


def test_a_log_put_back_to_an_older_copy_is_refused(lake: Lake, tmp_path: Path) -> None:
    path = write_log(tmp_path / "events.db", [submitted("j", "08:00:00", 1)])
    shutil.copy(path, tmp_path / "copy.db")
    write_log(path, [submitted("k", "09:00:00", 1), submitted("l", "09:00:01", 1)])
    load(lake, path)
    before = held(lake)
    (refusal,) = load(lake, tmp_path / "copy.db").refused
    assert "copy.db: the log ends with event 1, and the lake has 3" in refusal
    write_log(tmp_path / "copy.db", [submitted(n, "10:00:00", 1) for n in "xyz"])
    (refusal,) = load(lake, tmp_path / "copy.db").refused
    assert (
        "event 3 is submitted at 2026-06-02 10:00:00, and in the lake it is submitted at 2026-06-02 09:00:01" in refusal
    )
    assert held(lake) == before


def test_a_log_is_of_one_cluster(lake: Lake, tmp_path: Path) -> None:
    path = write_log(tmp_path / "events.db", [submitted("j", "08:00:00", 1)])
    load(lake, path, cluster="c")
    (refusal,) = load(lake, path, cluster="d").refused
    assert "cluster c, not d" in refusal


def good(job_id: str = "g", at: str = "08:00:00") -> tuple[Any, ...]:
    event = submitted(job_id, at, 1)
    return (event.event_at_us, event.kind, job_id, event.payload, "")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((us("09:00:00"), "teleported", "g", {}, ""), "kind: 'teleported' is unknown"),
        ((us("09:00:00"), "bound", "g", "{", ""), "payload: not JSON"),
        ((us("09:00:00"), "bound", "g", "[]", ""), "payload: not a JSON object"),
        ((us("09:00:00"), "bound", "g", {"attempt": "one"}, ""), "attempt: 'one' is no whole number"),
        ((us("09:00:00"), "bound", "other", {"attempt": 1}, ""), "job other has no submission"),
        ((us("09:00:00"), "bound", "", {"attempt": 1}, ""), "job_id: bound is of a job"),
        ((-5, "bound", "g", {"attempt": 1}, ""), "event_at_us: -5 is no instant"),
        (("noon", "bound", "g", {"attempt": 1}, ""), "event_at_us: b'noon'"),
        ((us("09:00:00"), b"\xff\xfe", "g", {}, ""), "kind: not UTF-8"),
        ((us("09:00:00"), None, "g", {}, ""), "kind: not text"),
        (
            (us("09:00:00"), "submitted", "h", {"job": {"team": "a", "queue": "a", "roles": []}}, ""),
            "roles: not a list",
        ),
        ((us("09:00:00"), "intended", "g", {"attempt": 1, "places": {"pods": [1]}}, ""), "places: not pods"),
        ((us("09:00:00"), "ended", "g", {"is_success": "yes"}, ""), "is_success: 'yes' is neither"),
        ((us("09:00:00"), "ended", "g", {"lost": -1, "is_success": False}, ""), "lost: -1"),
        (
            (us("09:00:00"), "estimated", "g", {"at_us": us("09:00:00"), "method": "x", "p50_us": 1}, ""),
            "p50_us: 1 is no",
        ),
    ],
)
def test_a_bad_event_is_named_and_the_others_land(lake: Lake, tmp_path: Path, row: tuple, message: str) -> None:
    report = load(lake, raw_log(tmp_path / "log.db", [good(), row, good("later", "10:00:00")]))
    (refusal,) = report.refused
    assert f"{tmp_path / 'log.db'}: event 2: " in refusal
    assert message in refusal
    assert [job for *_, job in held(lake)] == ["g", "later"]
    # once it can be read, by a newer version say, it takes its place
    (tmp_path / "log.db").unlink()
    mended = raw_log(tmp_path / "log.db", [good(), good("middle", "09:00:00"), good("later", "10:00:00")])
    assert load(lake, mended).new == 1
    assert [job for *_, job in held(lake)] == ["g", "middle", "later"]


def foreign(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("create table songs (title text)")
    db.commit()
    db.close()


def newer(path: Path) -> None:
    raw_log(path, [good()])
    db = sqlite3.connect(path)
    db.execute("pragma user_version = 2")
    db.commit()
    db.close()


def nameless(path: Path) -> None:
    raw_log(path, [good()])
    db = sqlite3.connect(path)
    db.execute("drop table identity")
    db.commit()
    db.close()


def other_columns(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("create table events (event_id integer primary key, what text)")
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: None, "no such file"),
        (lambda p: p.mkdir(), "no such file"),
        (lambda p: p.write_text("hello " * 500), "not a database"),
        (lambda p: p.write_bytes(b""), "no table events"),
        (foreign, "no table events"),
        (other_columns, "no such column"),
        (newer, "version 2"),
        (nameless, "no id"),
    ],
)
def test_what_is_no_log_is_named_and_the_next_file_lands(lake: Lake, tmp_path: Path, make: Any, message: str) -> None:
    bad = tmp_path / "bad.db"
    make(bad)
    report = load(lake, bad, raw_log(tmp_path / "good.db", [good()]))
    (refusal,) = report.refused
    assert refusal.startswith(f"{bad}: ")
    assert message in refusal
    assert report.new == 1


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_damaged_log_gives_what_it_still_has(lake: Lake, tmp_path: Path, share: float) -> None:
    path = raw_log(tmp_path / "log.db", [good(f"j{i}", f"08:{i // 60:02}:{i % 60:02}") for i in range(600)])
    whole = path.read_bytes()
    middle = int(len(whole) * share) // 4096 * 4096
    path.write_bytes(whole[:middle] + bytes(4096) + whole[middle + 4096 :])
    report = load(lake, path)
    assert report.refused
    assert "cannot be read" in report.refused[0]
    assert 500 < report.new < 600
    path.write_bytes(whole)
    assert load(lake, path).refused == []
    assert len(held(lake)) == 600


def test_a_truncated_log_gives_what_it_still_has(lake: Lake, tmp_path: Path) -> None:
    path = raw_log(tmp_path / "log.db", [good(f"j{i}", f"08:{i // 60:02}:{i % 60:02}") for i in range(600)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    report = load(lake, path)
    assert report.refused
    assert str(path) in report.refused[0]
    path.write_bytes(whole)
    assert load(lake, path).refused == []
    assert len(held(lake)) == 600


def test_what_a_dead_service_left_in_its_wal_is_read(lake: Lake, tmp_path: Path) -> None:
    log = EventLog(tmp_path / "events.db")
    log.append([submitted("j", "08:00:00", 1), *started("j", "08:00:00", 1), estimated("j", "08:00:00", None, None)])
    (tmp_path / "dead").mkdir()
    for name in ("events.db", "events.db-wal"):
        shutil.copy(tmp_path / name, tmp_path / "dead" / name)
    log.close()
    assert load(lake, tmp_path / "dead" / "events.db").new == 3


def test_a_name_that_means_something_in_an_address_is_read(lake: Lake, tmp_path: Path) -> None:
    path = write_log(tmp_path / "q #1?.db", [submitted("j", "08:00:00", 1)])
    assert load(lake, path).new == 1
    assert lake.read(TABLE, ["source"]).column("source").to_pylist() == [str(path)]


def test_the_policy_document_is_an_event_of_no_job(lake: Lake, tmp_path: Path) -> None:
    event = Event(us("08:00:00"), "policy_set", "", {"version": 1, "document": {"teams": {}}, "by": "root"})
    load(lake, write_log(tmp_path / "events.db", [event]))
    (row,) = lake.read(TABLE).to_pylist()
    assert (row["job_id"], row["queue"], json.loads(row["payload"])["version"]) == (None, None, 1)
