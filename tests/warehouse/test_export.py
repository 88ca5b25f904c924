"""Exports and the catalogue: escaping, formats, errors."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime, timedelta

import duckdb
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_lake import CONTRACTS, at, put

from warehouse import catalog
from warehouse.errors import BadInput
from warehouse.export import export_query, export_table

ODD = """select '=1+1' as "=head", '+a' as b, '-a' as c, '@a' as d, chr(9) || 'a' as e, 'a=b' as f, -1.5 as number,
cast(null as varchar) as empty, '' as blank, timestamp '2026-03-01 01:02:03' as at_second,
timestamp '2026-03-01 01:02:03.000004' as at_micro, date '2026-03-01' as day, map {'k': '=v'} as tags, [1, 2] as list,
cast(1.5 as decimal(18, 6)) as quantity, cast('nan' as double) as nan, true as flag"""


@pytest.fixture
def connection():
    with duckdb.connect() as opened:
        yield opened


def test_csv(connection, tmp_path):
    report = export_query(connection, ODD, "csv", tmp_path / "new" / "x.csv")
    assert report.rows == 1
    assert (tmp_path / "new" / "x.csv").read_bytes() == (
        b"'=head,b,c,d,e,f,number,empty,blank,at_second,at_micro,day,tags,list,quantity,nan,flag\n"
        b"'=1+1,'+a,'-a,'@a,'\ta,a=b,-1.5,,\"\",2026-03-01T01:02:03Z,2026-03-01T01:02:03.000004Z,2026-03-01,"
        b'"{""k"":""=v""}","[1,2]",1.500000,nan,true\n'
    )
    export_query(connection, ODD, "csv", tmp_path / "raw.csv", escape_formulas=False)
    assert (tmp_path / "raw.csv").read_text().startswith("=head,b")


def test_json(connection, tmp_path):
    export_query(connection, ODD, "json", tmp_path / "x.json")
    (row,) = json.loads((tmp_path / "x.json").read_text())
    assert row["=head"] == "=1+1"
    assert row["at_second"] == "2026-03-01T01:02:03Z"
    assert row["nan"] is None
    assert row["list"] == [1, 2]
    assert row["quantity"] == 1.5


def test_parquet_keeps_types(connection, tmp_path):
    export_query(connection, ODD, "parquet", tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    assert str(table.schema.field("quantity").type) == "decimal128(18, 6)"
    assert str(table.schema.field("at_micro").type) == "timestamp[us]"


def test_text(connection, tmp_path):
    export_query(connection, "select 1 as a, 'x' as longer union all select 20, null", "table", tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text().splitlines()[:2] == ["a   longer", "--  ------"]


@settings(max_examples=40, deadline=None)
@given(
    text=st.one_of(
        st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1),
        st.sampled_from("=+-@\t\r\n＝＋－＠").map(lambda c: f"{c}1+1"),
    )
)
def test_no_text_cell_starts_a_formula_and_nothing_else_changes(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    with duckdb.connect() as opened:
        opened.execute("create table t as select $text::varchar as cell", {"text": text})
        export_query(opened, "select cell from t", "csv", path)
    with open(path, newline="", encoding="utf-8") as file:
        cell = list(csv.reader(file))[1][0]
    assert cell == (f"'{text}" if text[0] in "=+-@\t\r\n＝＋－＠" else text)


@pytest.mark.parametrize("start", "=+-@\t\r\n＝＋－＠")
def test_every_start_of_a_formula_is_guarded_in_cells_and_headers(connection, tmp_path, start):
    path = tmp_path / "x.csv"
    export_query(connection, f"""select '{start}1' as "{start}head", 'a{start}' as inside""", "csv", path)
    with open(path, newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [[f"'{start}head", "inside"], [f"'{start}1", f"a{start}"]]


@pytest.mark.parametrize("format", ["xlsx", "", "CSV"])
def test_an_unknown_format_is_refused(connection, tmp_path, format):
    with pytest.raises(BadInput, match="there are csv, parquet, json, table"):
        export_query(connection, "select 1 as a", format, tmp_path / "x")


def test_a_failed_export_leaves_the_old_file_and_no_rest(connection, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("old")
    with pytest.raises(duckdb.Error):
        export_query(connection, "select error('stop') as a", "csv", path)
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]
    assert path.read_text() == "old"
    with pytest.raises(BadInput, match="is a directory"):
        export_query(connection, "select 1 as a", "csv", tmp_path)
    with pytest.raises(BadInput, match="cannot be written"):
        export_query(connection, "select 1 as a", "csv", path / "below" / "x.csv")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_order_of_a_large_query_is_kept(connection, tmp_path, form):
    connection.execute("set threads = 4; set preserve_insertion_order = false")
    columns = "i, 'pod-' || i as pod, timestamp '2026-03-01' + interval 1 second * i as at_second"
    sql = f"select {columns} from range(300000) as r(i) order by i desc"
    export_query(connection, sql, form, tmp_path / "x")
    if form == "csv":
        with open(tmp_path / "x", newline="") as file:
            found = [int(row["i"]) for row in csv.DictReader(file)]
    else:
        found = pq.read_table(tmp_path / "x").column("i").to_pylist()
    assert found == list(range(299_999, -1, -1))


def test_a_published_table_is_exported_in_order(lake, tmp_path):
    out = tmp_path / "events.csv"
    with pytest.raises(BadInput, match="nothing has been published"):
        export_table(lake.root, "raw.events", "csv", out, contracts=CONTRACTS)
    put(lake, at(2), ["b", "a"])
    put(lake, at(1), ["=c"])
    lake.publish("one")
    put(lake, at(3), ["unpublished"])
    report = export_table(lake.root, "raw.events", "csv", out, contracts=CONTRACTS)
    assert (report.rows, report.build_id) == (3, "one")
    with open(out, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [r["pod"] for r in rows] == ["'=c", "b", "a"]
    assert rows[0]["seen_at"] == "2026-03-01T00:00:00Z"
    assert rows[0]["tags"] == '{"team":"=c"}'
    export_table(lake.root, "raw.events", "csv", out, start=at(2), contracts=CONTRACTS)
    assert len(out.read_text().splitlines()) == 3


def test_as_of_reads_what_was_published(lake, tmp_path):
    put(lake, at(1), ["a"])
    lake.publish("one")
    today = datetime.now(UTC).date()
    out = tmp_path / "x.csv"
    assert export_table(lake.root, "raw.events", "csv", out, as_of=today, contracts=CONTRACTS).build_id == "one"
    with pytest.raises(BadInput, match="nothing that was published"):
        export_table(lake.root, "raw.events", "csv", out, as_of=today - timedelta(days=1), contracts=CONTRACTS)


@pytest.mark.parametrize("name", ["mart.day", "days", "raw.events; drop table x", "events"])
def test_an_unknown_table_is_named(lake, tmp_path, name):
    lake.publish("one")
    with pytest.raises(BadInput, match="there is no table"):
        export_table(lake.root, name, "csv", tmp_path / "x.csv", contracts=CONTRACTS)


def test_catalogue(lake):
    put(lake, at(1), ["a"])
    lake.publish("one")
    (events,) = json.loads(catalog.render("json", ["raw.events"], lake=lake, contracts=CONTRACTS))
    assert (events["rows"], events["key"], events["grain"]) == (1, ["seen_at", "pod"], "seen_at, pod")
    assert events["columns"][0] == {
        "column": "seen_at", "type": "timestamp", "nullable": False, "low": None, "high": None, "values": [],
        "description": "what seen_at means",
    }  # fmt: skip
    text = catalog.render("text", lake=lake, contracts=CONTRACTS)
    assert all(name in text for name in CONTRACTS)
    assert "| `load` | double | what load means (from 0 to 1) |" in catalog.render("markdown", contracts=CONTRACTS)
    with pytest.raises(BadInput, match="unknown format"):
        catalog.render("html", contracts=CONTRACTS)
    assert date(2026, 3, 1) in lake.dates("raw.events")
