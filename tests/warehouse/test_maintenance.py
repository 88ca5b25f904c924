"""Compaction and vacuum change no row and take nothing that a reader may need."""

from __future__ import annotations

import os
from datetime import date, timedelta

import pytest
from small_lake import CONTRACTS, at, contents, published, put

from warehouse.engine import connect
from warehouse.errors import BadInput
from warehouse.export import export_table
from warehouse.maintenance import compact, vacuum


def files(lake):
    return sorted((lake.root / "lake").glob("**/*.parquet"))


def grow_old(lake):
    for path in files(lake):
        os.utime(path, (1, 1))


@pytest.fixture
def hours(lake):
    for hour in range(6):
        put(lake, at(1, hour), [f"p{hour}"])
        put(lake, at(2, hour), [f"q{hour}"])
    return lake


def test_compaction_merges_old_dates_and_publishes_them(hours):
    hours.publish("one")
    before = contents(hours, "raw.events")
    report = compact(hours, date(2026, 3, 2))
    assert (report.partitions, report.files_before, report.files_after) == (1, 12, 7)
    assert contents(hours, "raw.events") == before
    assert len(hours.published().tables["raw.events"].files) == 7
    assert published(hours, "select count(*) from raw.events") == [(12,)]
    assert compact(hours, date(2026, 3, 2)).partitions == 0


def test_compaction_does_not_publish_what_no_build_finished(hours):
    hours.publish("one")
    put(hours, at(1, 7), ["late"])
    compact(hours, date(2026, 3, 2))
    assert hours.published().build_id == "one"
    assert published(hours, "select count(*) from raw.events") == [(12,)]


def test_vacuum_keeps_published_files_and_open_readers(hours):
    hours.publish("one")
    compact(hours, date(2026, 3, 3))
    grow_old(hours)
    with connect(hours.root, contracts=CONTRACTS) as reader:
        assert vacuum(hours, dry_run=True).files == 0
        # the manifest from before the compaction is young: its twelve files stay
        assert vacuum(hours).files == 0
        assert vacuum(hours, timedelta(0)).files == 12
        assert reader.execute("select count(*) from raw.events").fetchall() == [(12,)]
    assert vacuum(hours, timedelta(0)).files == 0
    assert len(files(hours)) == 2


def test_vacuum_keeps_closed_publications_for_good(hours, tmp_path):
    kept = hours.publish("close-2026-02", keep=True)
    put(hours, at(1), ["changed"])
    hours.publish("two")
    grow_old(hours)
    vacuum(hours, timedelta(0))
    with connect(hours.root, manifest=kept, contracts=CONTRACTS) as reader:
        assert reader.execute("select min(pod) from raw.events").fetchall() == [("p0",)]


def test_vacuum_leaves_young_files(hours):
    put(hours, at(1), ["changed"])
    hours.publish("one")
    assert vacuum(hours, timedelta(0)).files == 0


def test_an_old_publication_that_is_gone_says_so(hours, tmp_path):
    hours.publish("one")
    for path in files(hours):
        path.unlink()
    with pytest.raises(BadInput, match="not kept any more"):
        export_table(hours.root, "raw.events", "csv", tmp_path / "x.csv", contracts=CONTRACTS)
