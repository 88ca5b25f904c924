"""Marks, publications and the writer lock."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import date, datetime, timedelta

import duckdb
import pytest
from small_lake import CONTRACTS, at, published, put

from warehouse.engine import connect
from warehouse.errors import BadInput, LakeBusy
from warehouse.lake import Lake
from warehouse.state import Manifest, read_marks, write_marks


def test_a_changed_raw_hour_marks_its_date(lake):
    put(lake, at(2), ["a"])
    assert {m.date for m in lake.marks()} == {date(2026, 3, 2)}
    lake.clear(lake.marks())
    put(lake, at(2), [])
    assert {m.date for m in lake.marks()} == {date(2026, 3, 2)}


def test_clearing_leaves_later_marks(lake):
    lake.mark([date(2026, 3, 1)], "first")
    seen = lake.marks()
    lake.mark([date(2026, 3, 1)], "second")
    lake.clear(seen)
    assert [m.reason for m in lake.marks()] == ["second"]
    lake.clear(seen)


def test_readers_see_what_was_published(lake):
    assert lake.published() is None
    assert published(lake, "select count(*) from raw.events") == [(0,)]
    put(lake, at(1), ["a"])
    first = lake.publish("one")
    put(lake, at(1), ["a", "b"])
    assert published(lake, "select count(*) from raw.events") == [(1,)]
    lake.publish("two")
    assert published(lake, "select count(*) from raw.events") == [(2,)]
    with connect(lake.root, manifest=first, contracts=CONTRACTS) as old:
        assert old.execute("select count(*) from raw.events").fetchall() == [(1,)]
    assert lake.published().tables["raw.events"].rows == 2
    assert lake.published_as_of(first.created_at) is None
    assert lake.published_as_of(first.created_at + timedelta(microseconds=1)) == first


def test_the_published_database_opens_in_plain_duckdb(lake):
    put(lake, at(1), ["a"])
    lake.publish("one")
    with duckdb.connect(str(lake.root / "strandline.duckdb"), read_only=True) as connection:
        assert connection.execute("select pod, date from raw.events").fetchall() == [("a", date(2026, 3, 1))]
        assert connection.execute("select count(*) from mart.days").fetchall() == [(0,)]
    assert [p.name for p in lake.root.iterdir() if p.name.startswith(".")] == []


def test_every_contract_is_a_view_with_its_types(lake):
    put(lake, at(1), ["a"])
    lake.publish("one")
    with connect(lake.root, contracts=CONTRACTS) as connection:
        for name, contract in CONTRACTS.items():
            described = connection.execute(f"describe {name}").fetchall()
            assert [row[0] for row in described] == list(contract.columns)
        assert connection.execute("select current_setting('TimeZone')").fetchall() == [("UTC",)]


def test_manifests_survive_the_round_trip_and_bad_ones_are_named():
    manifest = Manifest("b", datetime(2026, 3, 1, 12, 0, 0, 5), {}, "note", True)
    assert Manifest.from_json(manifest.to_json(), "x") == manifest
    with pytest.raises(BadInput, match="some/file"):
        Manifest.from_json(b"{}", "some/file")


@pytest.mark.parametrize("build_id", ["", "../up", "a/b", "x" * 101])
def test_a_build_id_is_a_plain_name(lake, build_id):
    with pytest.raises(BadInput, match="build id"):
        lake.publish(build_id)


def test_the_lock_is_reentrant_and_keeps_threads_out(lake):
    failures = []

    def other():
        try:
            with lake.writer(0.05):
                failures.append("got in")
        except LakeBusy as error:
            failures.append(str(error))

    with lake.writer(), lake.writer():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(failures) == 1
    assert "another thread" in failures[0]
    with lake.writer(0):
        pass


def test_another_process_is_kept_out_and_its_death_frees_the_lock(lake, project_root):
    script = (
        "import sys, time; from warehouse.lake import Lake\n"
        "with Lake(sys.argv[1]).writer():\n    print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(lake.root)], stdout=subprocess.PIPE, text=True, cwd=project_root
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LakeBusy, match=f"process {holder.pid} on "), Lake(lake.root).writer(0.1):
            pass
    finally:
        holder.kill()
        holder.wait()
    with lake.writer(1):
        pass


def test_a_mark_whose_content_is_lost_still_marks_its_date(tmp_path):
    (mark,) = write_marks(tmp_path, [date(2026, 3, 1)], "changed")
    next(tmp_path.glob("*.json")).write_bytes(b"")
    assert [(m.date, m.token) for m in read_marks(tmp_path)] == [(mark.date, mark.token)]
    (tmp_path / "nonsense--x.json").touch()
    with pytest.raises(BadInput, match="nonsense"):
        read_marks(tmp_path)
