"""Replacing windows: idempotent, exact, checked, and never wider than asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_lake import CONTRACTS, DAYS, EVENTS, HOUR, at, contents, day_rows, events, published, put

from warehouse.contracts.model import Field, Table
from warehouse.errors import BadInput
from warehouse.lake import Lake


def test_replacing_twice_gives_the_same_table(lake):
    put(lake, at(1), ["a", "b"])
    once = contents(lake, "raw.events")
    put(lake, at(1), ["a", "b"])
    assert contents(lake, "raw.events") == once
    assert len(once) == 2


def test_only_the_window_is_replaced(lake):
    for hour in range(4):
        put(lake, at(1, hour), [f"p{hour}"])
    put(lake, at(2), ["next"])
    put(lake, at(1, 2), ["x", "y"])
    assert sorted(r["pod"] for r in contents(lake, "raw.events")) == ["next", "p0", "p1", "p3", "x", "y"]


def test_an_hour_inside_a_compacted_file_is_replaced_alone(lake):
    day = pa.concat_tables([events(at(1, h), [f"p{h}"]) for h in range(24)])
    lake.replace("raw.events", day, at(1), at(2))
    put(lake, at(1, 5), ["new"])
    assert {r["pod"] for r in contents(lake, "raw.events")} == {f"p{h}" for h in range(24) if h != 5} | {"new"}


def test_empty_data_clears_the_window_and_nothing_else(lake):
    put(lake, at(1), ["a"])
    put(lake, at(1, 1), ["b"])
    put(lake, at(1), [])
    assert [r["pod"] for r in contents(lake, "raw.events")] == ["b"]


def test_a_run_of_windows_is_one_commit(lake):
    put(lake, at(1), ["a"])
    before = lake.version("raw.events")
    rows = pa.concat_tables([events(at(d), ["a"]) for d in (1, 2, 3)])
    assert lake.replace("raw.events", rows, at(1), at(4)) == before + 1


def test_the_run_id_and_window_are_in_the_log(lake):
    put(lake, at(1), ["a"])
    newest = DeltaTable(str(lake.root / "lake/raw/events")).history(1)[0]
    assert newest["run_id"] == "test"
    assert newest["window"] == f"{at(1)}/{at(1, 1)}"


@pytest.mark.parametrize(
    ("rows", "start", "end", "message"),
    [
        (events(at(1, 3), ["a"]), at(1), at(1, 1), "outside the window"),
        (events(at(1), ["a", "a"]).set_column(0, "seen_at", pa.array([at(1)] * 2, pa.timestamp("us"))), at(1), at(2),
         "rows with one key"),
        (events(at(1), ["a"], load=1.5), at(1), at(2), "load above 1"),
        (events(at(1), ["a"], load=-0.5), at(1), at(2), "load below 0"),
        (events(at(1), ["a"], load=float("nan")), at(1), at(2), "load"),
        (events(at(1), ["a"]).set_column(1, "pod", pa.array([None], pa.string())), at(1), at(2), "pod is null"),
        (events(at(1), ["a"]).set_column(4, "hour", pa.array([None], pa.timestamp("us"))), at(1), at(2),
         "hour is null"),
        (events(at(1), ["a"]).set_column(4, "hour", pa.array([at(1) + HOUR / 2], pa.timestamp("us"))), at(1), at(2),
         "not on the hour"),
        (events(at(1), ["a"]).set_column(5, "date", pa.array([date(2026, 3, 2)])), at(1), at(2), "not the date"),
        (events(at(1), ["a"]).drop_columns(["load"]), at(1), at(2), "columns missing: load"),
        (events(at(1), ["a"]).append_column("extra", pa.array([1])), at(1), at(2), "not in the contract: extra"),
        (events(at(1), ["a"]).set_column(2, "load", pa.array(["0.5"])), at(1), at(2), "load is VARCHAR"),
        (events(at(1), ["a"]).set_column(0, "seen_at", pa.array([at(1)], pa.timestamp("us", "UTC"))), at(1), at(2),
         "seen_at is TIMESTAMP WITH TIME ZONE"),
    ],
)  # fmt: skip
def test_rows_that_break_the_contract_are_refused_and_nothing_changes(lake, rows, start, end, message):
    put(lake, at(1), ["kept"])
    before = contents(lake, "raw.events"), lake.version("raw.events")
    with pytest.raises(BadInput, match=message):
        lake.replace("raw.events", rows, start, end)
    assert (contents(lake, "raw.events"), lake.version("raw.events")) == before


@pytest.mark.parametrize(
    ("table", "start", "end"),
    [
        ("raw.events", None, None),
        ("raw.events", at(1), None),
        ("raw.events", at(2), at(1)),
        ("raw.events", at(1), at(1)),
        ("raw.events", date(2026, 3, 1), date(2026, 3, 2)),
        ("raw.events", at(1) + HOUR / 2, at(2)),
        ("raw.events", at(1).replace(tzinfo=UTC), at(2).replace(tzinfo=UTC)),
        ("raw.events", "2026-03-01' or true --", "2026-03-02"),
        ("mart.days", at(1), at(2)),
        ("mart.totals", date(2026, 3, 1), date(2026, 3, 2)),
        ("mart.unknown", None, None),
    ],
)
def test_a_window_that_does_not_fit_the_table_is_refused(lake, table, start, end):
    put(lake, at(1), ["kept"])
    with pytest.raises(BadInput):
        lake.replace(table, EVENTS.arrow_schema.empty_table(), start, end)
    assert [r["pod"] for r in contents(lake, "raw.events")] == ["kept"]


def test_quantities_must_be_exact(lake):
    rows = day_rows(date(2026, 3, 1), [1]).set_column(2, "stay_seconds", pa.array([1.5]))
    with pytest.raises(BadInput, match="stay_seconds is DOUBLE"):
        lake.replace("mart.days", rows, date(2026, 3, 1), date(2026, 3, 2))
    exact = rows.set_column(2, "stay_seconds", pa.array([Decimal("1.5")], pa.decimal128(38, 1)))
    lake.replace("mart.days", exact, date(2026, 3, 1), date(2026, 3, 2))
    assert contents(lake, "mart.days")[0]["stay_seconds"] == Decimal("1.500000")


def test_a_stream_of_batches_is_taken(lake):
    table = pa.concat_tables([events(at(1, h), ["a", "b"]) for h in range(3)])
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))
    lake.replace("raw.events", reader, at(1), at(2))
    assert len(contents(lake, "raw.events")) == 6


def test_a_stream_that_fails_changes_nothing(lake):
    put(lake, at(1), ["kept"])

    def batches():
        yield from events(at(1), ["new"]).to_batches()
        raise OSError("the source went away")

    with pytest.raises(Exception, match="the source went away"):
        lake.replace("raw.events", pa.RecordBatchReader.from_batches(EVENTS.arrow_schema, batches()), at(1), at(2))
    assert [r["pod"] for r in contents(lake, "raw.events")] == ["kept"]


def test_reading_has_the_contract_schema_and_prunes(lake):
    assert lake.read("raw.events").schema == EVENTS.arrow_schema
    for day in (1, 2, 3):
        put(lake, at(day), ["a"])
    read = lake.read("raw.events", start=at(2), end=at(3))
    assert read.schema == EVENTS.arrow_schema
    assert read["tags"].to_pylist() == [[("team", "a")]]
    assert lake.read("raw.events", ["pod"], start=date(2026, 3, 2)).num_rows == 2
    with pytest.raises(BadInput, match="no column"):
        lake.read("raw.events", ["pods"])


def test_old_versions_can_be_read(lake):
    first = put(lake, at(1), ["a"])
    put(lake, at(1), ["b"])
    assert lake.read("raw.events", version=first)["pod"].to_pylist() == ["a"]
    with pytest.raises(BadInput, match="no version 99"):
        lake.read("raw.events", version=99)


def test_delta_keeps_ranges_and_uses_only_plain_features(lake):
    put(lake, at(1), ["a"])
    table = DeltaTable(str(lake.root / "lake/raw/events"))
    constraints = [v for k, v in table.metadata().configuration.items() if k.startswith("delta.constraints.")]
    assert constraints == ["load IS NULL OR load >= 0 AND load <= 1"]
    assert set(table.protocol().reader_features or ()) <= {"timestampNtz"}
    assert "deletionVectors" not in (table.protocol().writer_features or ())
    statistics = pa.table(table.get_add_actions(flatten=True)).to_pylist()[0]
    assert (statistics["min.hour"], statistics["max.seen_at"]) == (at(1), at(1))


def test_a_new_column_reads_null_in_old_rows(lake, tmp_path):
    put(lake, at(1), ["a"])
    lake.publish("before")
    wider = Table(
        EVENTS.name, EVENTS.grain, EVENTS.key, (*EVENTS.fields, Field("zone", "string", "zone")), "hour", ""
    )  # fmt: skip
    later = Lake(lake.root, {**CONTRACTS, wider.name: wider})
    rows = events(at(2), ["b"]).append_column("zone", pa.array(["z"]))
    later.replace("raw.events", rows, at(2), at(2) + HOUR)
    assert later.read("raw.events", ["pod", "zone"]).sort_by("pod").to_pylist() == [
        {"pod": "a", "zone": None},
        {"pod": "b", "zone": "z"},
    ]
    with pytest.raises(BadInput, match="does not fit its contract any more"):
        put(lake, at(3), ["c"])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    writes=st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 12), st.sets(st.integers(0, 51), max_size=10)), max_size=5
    )
)
def test_any_sequence_of_replacements_equals_a_dictionary(tmp_path_factory, writes):
    lake = Lake(tmp_path_factory.mktemp("lake"), CONTRACTS)
    expected: dict[datetime, int] = {}
    for number, (first, length, offsets) in enumerate(writes):
        start, end = at(1) + first * HOUR, at(1) + (first + length) * HOUR
        hours = [at(1) + o * HOUR for o in sorted(offsets) if start <= at(1) + o * HOUR < end]
        tables = [events(h, [f"w{number}"]) for h in hours] or [EVENTS.arrow_schema.empty_table()]
        lake.replace("raw.events", pa.concat_tables(tables), start, end, mark=False)
        expected = {h: n for h, n in expected.items() if not start <= h < end} | dict.fromkeys(hours, number)
    assert {r["hour"]: r["pod"] for r in contents(lake, "raw.events")} == {h: f"w{n}" for h, n in expected.items()}


def test_whole_tables_are_replaced_whole(lake):
    schema = CONTRACTS["mart.totals"].arrow_schema
    lake.replace("mart.totals", pa.Table.from_pylist([{"pod": "a", "days": 1}], schema=schema))
    lake.replace("mart.totals", pa.Table.from_pylist([{"pod": "b", "days": 2}], schema=schema))
    assert contents(lake, "mart.totals") == [{"pod": "b", "days": 2}]


def test_dates_are_replaced_by_date(lake):
    first = date(2026, 3, 1)
    lake.replace("mart.days", day_rows(first, [1, 2, 3]), first, first + timedelta(days=3))
    lake.replace("mart.days", day_rows(first + timedelta(days=1), [9]), date(2026, 3, 2), date(2026, 3, 3))
    assert [r["pods"] for r in contents(lake, "mart.days")] == [1, 9, 3]
    assert lake.dates("mart.days") == [first + timedelta(days=i) for i in range(3)]
    assert DAYS.key == ("date",)


def test_a_lake_published_before_a_column_came_reads_it_as_null(lake):
    lake.replace("mart.days", day_rows(date(2026, 3, 1), [1, 2]), date(2026, 3, 1), date(2026, 3, 3))
    lake.publish("old")
    wider = replace(DAYS, fields=(*DAYS.fields, Field("nodes", "integer", "new")))
    newer = Lake(lake.root, {**CONTRACTS, "mart.days": wider})
    assert published(newer, "select pods, nodes from mart.days order by date") == [(1, None), (2, None)]
    assert newer.read("mart.days", ["nodes"]).to_pylist() == [{"nodes": None}] * 2
    newer.publish("new")
    assert published(newer, "select pods, nodes from mart.days order by date") == [(1, None), (2, None)]


@pytest.mark.parametrize("name", ["a?b", 'it\'s "here"', "x[1]*", "ünï;code", "a b#c"])
def test_the_folder_may_have_any_other_name(tmp_path, name):
    lake = Lake(tmp_path / name, CONTRACTS)
    put(lake, at(1), ["a"])
    lake.publish("one")
    assert published(lake, "select pod from raw.events") == [("a",)]
    with duckdb.connect(str(lake.root / "strandline.duckdb"), read_only=True) as con:
        assert con.execute("select pod from raw.events").fetchall() == [("a",)]


def test_a_folder_that_delta_cannot_take_is_named(tmp_path):
    with pytest.raises(BadInput, match="a%20b"):
        Lake(tmp_path / "a%20b")
