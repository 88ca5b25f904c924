"""What a plausible user gets wrong, or a hostile one tries: exit code 2, a message that names it, nothing written.

Belongs here: flags, queries and results. Exit codes of whole commands in their usual use stand in test_command.py.
"""

from __future__ import annotations

import io
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipelines import collecting, console, reading, results
from pipelines.commands import options
from pipelines.durations import parse_date, parse_duration, parse_instant, parse_window
from pipelines.settings import load
from warehouse.errors import BadInput

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def reader(tmp_path: Path):
    (tmp_path / "lake").mkdir()
    with reading.open_reader(load({"data": tmp_path}, {}).settings) as con:
        yield con


@pytest.mark.parametrize(
    "sql",
    [
        "copy (select 1) to '{lake}/x.csv'",
        "explain analyze copy (select 1) to '{lake}/x.csv'",
        "explain (analyze) copy (select 1) to '{lake}/x.csv'",
        "explain (analyze, format json) copy (select 1) to '{lake}/x.csv'",
        "explain /* ; */ analyze copy (select 1) to '{lake}/x.csv'",
        "explain analyze create table x as select 1",
        "explain analyze explain analyze copy (select 1) to '{lake}/x.csv'",
        "select 1; explain analyze copy (select 1) to '{lake}/x.csv'",
        "select \udcff",
    ],
)
def test_what_writes_is_refused_also_where_it_is_explained(sql: str, reader, tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        for statement in reading.statements(reader, sql.format(lake=tmp_path / "lake")):
            reading.run(reader, statement)
    assert not list((tmp_path / "lake").iterdir())


@pytest.mark.parametrize("sql", ["explain select 1", "explain analyze select 1", "EXPLAIN (format json) select 1"])
def test_queries_may_be_explained(sql: str, reader) -> None:
    reading.run(reader, reading.one_statement(reader, sql))
    assert reader.fetchall()


def test_csv_of_a_query_runs_no_formula(reader, tmp_path: Path) -> None:
    sql = "select '=1+1' as \"@head\", -1.5 as number, 'plain' as text, '+a' as plus"
    for escape, expected in ((True, "'@head,number,text,plus\n'=1+1,-1.5,plain,'+a\n"),
                             (False, "@head,number,text,plus\n=1+1,-1.5,plain,+a\n")):  # fmt: skip
        reading.run(reader, reading.one_statement(reader, sql))
        results.write(reader, "csv", tmp_path / "out.csv", escape_formulas=escape)
        assert (tmp_path / "out.csv").read_text() == expected


@pytest.mark.parametrize("start", "＝＋－＠")
def test_csv_of_a_query_guards_full_width_signs(start: str, reader, tmp_path: Path) -> None:
    reading.run(reader, reading.one_statement(reader, f"""select '{start}1' as "{start}head", '１' as digit"""))
    results.write(reader, "csv", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == f"'{start}head,digit\n'{start}1,１\n"


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_result_that_cannot_be_written_names_the_path(form: results.Format, reader, tmp_path: Path) -> None:
    reading.run(reader, reading.one_statement(reader, "select 1"))
    for path in (tmp_path, tmp_path / "nowhere" / "x"):
        with pytest.raises(BadInput, match=str(path)):
            results.write(reader, form, path)


@pytest.mark.filterwarnings("error")
def test_parquet_of_a_query_warns_of_nothing(reader, tmp_path: Path) -> None:
    reading.run(reader, reading.one_statement(reader, "select 1 as a"))
    results.write(reader, "parquet", tmp_path / "x.parquet")


def test_text_cannot_steer_a_terminal() -> None:
    out = io.StringIO()
    console.table(("pod",), [("a\x1b[2J\nb",)], stream=out)
    assert out.getvalue().splitlines()[2] == r"a\x1b[2J\nb"


@pytest.mark.parametrize("text", ["9999-12-31", "0001-01-01", "2026-13-01", "", "yesterday"])
def test_dates_out_of_range_are_named(text: str) -> None:
    with pytest.raises(BadInput, match="--as-of"):
        parse_date(text, "--as-of")


@pytest.mark.parametrize(
    "text", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "1970-01-01T00:00:00Z", "99999999999", "noon"]
)
def test_instants_out_of_range_are_named(text: str) -> None:
    with pytest.raises(BadInput, match="--at"):
        parse_instant(text, "--at")


@pytest.mark.parametrize("text", ["99999999999d", "-5s", "5x", "1e9", "", "nan"])
def test_durations_that_are_none(text: str) -> None:
    with pytest.raises(BadInput, match=r"duration|years"):
        parse_duration(text)


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(BadInput, match="--to 2026-03-01 must be after --from 2026-03-02"):
        parse_window("2026-03-02", "2026-03-01")
    assert parse_window(None, None) == (None, None)


def test_flags_of_the_scrape_client_are_checked(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "two").write_text("a\nb: c")
    for timeout in ("0s", "2h"):
        with pytest.raises(BadInput, match="--timeout"):
            collecting.client(timeout, None, None, False)
    for name in ("binary", "two"):
        with pytest.raises(BadInput, match="--token-file"):
            collecting.client("10s", None, tmp_path / name, False)
        with pytest.raises(BadInput, match="--ca-file"):
            collecting.client("10s", tmp_path / name, None, False)
    with pytest.raises(BadInput, match="nowhere"):
        collecting.client("10s", tmp_path / "nowhere", None, False)


def test_a_file_is_no_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "file"
    path.touch()
    with pytest.raises(BadInput, match="is no folder"):
        options.settings(data=path)


def test_a_query_of_another_locale_is_read_as_utf8(reader) -> None:
    sql = "select 'é' as e".encode().decode("ascii", "surrogateescape")
    reading.run(reader, reading.one_statement(reader, sql))
    assert reader.fetchall() == [("é",)]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A query whose answer fits no pipe."""
    data = tmp_path_factory.mktemp("lake")
    return [sys.executable, "-m", "pipelines.cli", "query", "select range from range(3000000)", "--data", str(data)]


@pytest.mark.parametrize("form", ["csv", "json", "parquet", "table"])
def test_a_reader_that_leaves_early_is_no_failure(form: str, large: list[str]) -> None:
    process = subprocess.Popen([*large, "--format", form], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait(timeout=60) == 0, said
    assert b"Error" not in said


def test_closed_output_is_no_failure(large: list[str]) -> None:
    done = subprocess.run(f"{shlex.join(large)} >&-", shell=True, stderr=subprocess.PIPE, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


def test_ctrl_c_ends_a_query_that_would_run_for_ever(large: list[str]) -> None:
    command = [*large[:4], "select * from range(100000000000) order by random()", *large[5:]]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT)
    try:
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) in (130, -signal.SIGINT)
    finally:
        process.kill()
        process.communicate()
