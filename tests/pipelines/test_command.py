"""The command: help everywhere, exit codes, messages that name what is wrong, and the forms of a result."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

COMMANDS = (
    [], ["demo"], ["fleet"], ["fleet", "serve"], ["ingest"], ["ingest", "dcgm"], ["ingest", "kubernetes"],
    ["ingest", "manifest"], ["ingest", "bills"], ["ingest", "seal"], ["build"], ["query"], ["sql"], ["export"],
    ["catalog"], ["report"], ["doctor"], ["ui"], ["version"],
)  # fmt: skip
BODY = b"""# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",pci_bus_id="00000000:00:04.0",device="nvidia0",modelName="Tesla T4"} 50
"""


def strandline(*args: str | Path, cwd: Path, stdin: str | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a folder of its own, without any STRANDLINE_ variable."""
    import os

    environ = {k: v for k, v in os.environ.items() if not k.startswith("STRANDLINE_")}
    command = [sys.executable, "-m", "pipelines.cli", *map(str, args)]
    root = Path(__file__).resolve().parent.parent.parent
    environ["PYTHONPATH"] = str(root)
    data = None if stdin is None else stdin.encode()
    return subprocess.run(command, cwd=cwd, env=environ, input=data, capture_output=True, check=False, timeout=120)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose data/ holds one ingested and built scrape."""
    folder = tmp_path_factory.mktemp("lake")
    (folder / "body.prom").write_bytes(BODY)
    done = strandline("ingest", "dcgm", "body.prom", "--node", "n1", "--at", "2026-03-01T10:00:00Z", cwd=folder)
    assert done.returncode == 0, done.stderr
    built = strandline("build", "--from", "2026-03-01", "--to", "2026-03-02", cwd=folder)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(command: list[str], tmp_path: Path) -> None:
    done = strandline(*command, "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert b"Usage" in done.stdout
    assert not list(tmp_path.iterdir())


def test_help_is_quick_and_names_only_what_works(tmp_path: Path) -> None:
    begun = time.perf_counter()
    text = strandline("--help", cwd=tmp_path).stdout.decode()
    # Under a second on an idle machine; the allowance is for tests that run beside others.
    assert time.perf_counter() - begun < 5
    for later in ("forecast", "plan", "scheduler", "series"):
        assert f" {later} " not in text


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["nonsense"], "nonsense"),
        (["query"], "sql"),
        (["query", "select 1", "--format", "xml"], "xml"),
        (["query", "selec 1"], "selec"),
        (["query", "select 1; select 2"], "expected one query, found 2"),
        (["query", ""], "expected one query, found 0"),
        (["query", "select nothing from mart.gpu_ledger_hourly"], "nothing"),
        (["query", "select * from mart.gpu_ledger"], "gpu_ledger"),
        (["query", "drop view mart.gpu_ledger_hourly"], "DROP is refused"),
        (["query", "create table t as select 1"], "CREATE is refused"),
        (["query", "copy (select 1) to 'x.csv'"], "COPY is refused"),
        (["query", "set memory_limit = '1GB'"], "SET is refused"),
        (["query", "select * from read_csv('/etc/passwd')"], "/etc/passwd"),
        (["query", "select * from read_text('body.prom')"], "body.prom"),
        (["query", "select 1", "--data", "absent"], "absent: no such folder"),
        (["query", "select 1", "--format", "table", "--out", "x"], "--out"),
        (["query", "select 1", "--memory-limit", "lots"], "flag --memory-limit"),
        (["sql", "--format", "parquet"], "parquet"),
        (["build", "mart.nothing"], "mart.nothing"),
        (["build", "--from", "yesterday"], "--from: 'yesterday'"),
        (["build", "--from", "2026-03-02", "--to", "2026-03-01"], "must be after"),
        (["export", "mart.nothing"], "mart.nothing"),
        (["export", "mart.gpu_ledger_hourly", "--as-of", "then"], "--as-of"),
        (["export", "mart.gpu_ledger_hourly", "--as-of", "2020-01-01"], "2020-01-01"),
        (["export", "mart.gpu_ledger_hourly", "--out", "."], "directory"),
        (["catalog", "core.nothing"], "core.nothing"),
        (["report", "--from", "2020-01-01", "--to", "2020-01-02"], "mart.stranding_hourly is empty"),
        (["report", "--from", "2026-03-02", "--to", "2026-03-01"], "must be after"),
        (["report", "--out", "body.prom"], "in the way"),
        (["doctor", "--data"], "--data"),
        (["ingest", "dcgm"], "nothing to read"),
        (["ingest", "dcgm", "absent.prom"], "absent.prom: no such file"),
        (["ingest", "dcgm", "body.prom"], "needs --node and --at"),
        (["ingest", "dcgm", "body.prom", "--node", "n", "--at", "noon"], "--at: 'noon'"),
        (["ingest", "dcgm", "manifest.jsonl", "--node", "n", "--at", "2026-03-01"], "no DCGM sample in it; line 1"),
        (["ingest", "dcgm", "http://127.0.0.1:1", "--every", "soon"], "'soon' is no duration"),
        (["ingest", "dcgm", "http://127.0.0.1:1", "--every", "1s", "--at", "2026-03-01"], "exclude each other"),
        (["ingest", "dcgm", "ftp://x"], "ftp://x"),
        (["ingest", "kubernetes", "--from-file", "absent.json", "--at", "2026-03-01"], "absent.json"),
        (["ingest", "kubernetes", "--from-file", "body.prom", "--at", "2026-03-01"], "body.prom: not JSON at line 1"),
        (["ingest", "kubernetes", "--from-file", "body.prom"], "needs --at"),
        (["ingest", "kubernetes", "--kubeconfig", "absent"], "absent: no such kubeconfig"),
        (["ingest", "kubernetes", "--kubeconfig", "body.prom"], "body.prom"),
        (["ingest", "manifest", "absent.jsonl"], "absent.jsonl"),
        (["ingest", "manifest", "manifest.jsonl"], "manifest.jsonl:2: "),
        (["fleet", "serve", "--at", "noon"], "--at: 'noon'"),
        (["fleet", "serve", "--faults", "gremlins"], "gremlins"),
        (["demo", "--faults", "gremlins", "--data", "other"], "gremlins"),
        (["demo", "--interval", "0.5s"], "--interval"),
        (["demo", "--end-at", "someday"], "--end-at"),
        (["demo", "--trace", "absent.parquet"], "absent.parquet"),
        (["demo", "--trace", "trace.csv"], "trace.csv"),
        (["demo", "--trace-from", "2026-01-01"], "--trace"),
        (["demo", "--days", "0"], "--days"),
        (["demo"], "which no demo made"),
        (["ui", "--port", "0"], "--port"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_bad_input_is_named_and_ends_with_2(args: list[str], says: str, lake: Path) -> None:
    (lake / "manifest.jsonl").write_text(
        '{"kind": "dcgm", "file": "body.prom", "at": "2026-03-01T10:00:00Z", "node": "n1"}\n{"kind": "dcgm"}\n'
    )
    (lake / "trace.csv").write_text("a,b\n1,2\n")
    done = strandline(*args, cwd=lake)
    assert done.returncode == 2, done.stderr.decode()
    error = done.stderr.decode()
    assert says in error
    assert "Traceback" not in error
    assert not done.stdout
    assert not (lake / "x.csv").exists()


def test_json_is_an_array_of_objects_and_nothing_else(lake: Path) -> None:
    sql = (
        "select 1.50::decimal(18, 6) as d, 1e0 as x, 'nan'::double as n, null as z, date '2026-03-01' as day, "
        "timestamp '2026-03-01 10:00:00' as t, 1 as d, map {'a': 1} as m, [1, 2] as l, true as b"
    )
    done = strandline("query", sql, "--format", "json", cwd=lake)
    assert done.returncode == 0
    assert b'"d":1.500000' in done.stdout
    assert json.loads(done.stdout) == [
        {"d": 1.5, "x": 1.0, "n": None, "z": None, "t": "2026-03-01T10:00:00Z", "day": "2026-03-01", "d_1": 1,
         "m": {"a": 1}, "l": [1, 2], "b": True}
    ]  # fmt: skip
    empty = strandline("query", "select 1 as a where false", "--format", "json", cwd=lake)
    assert json.loads(empty.stdout) == []


def test_csv_table_and_parquet(lake: Path) -> None:
    sql = "select node, sampled_at, gpu_util_ratio from raw.dcgm_samples order by all"
    rows = list(csv.reader(io.StringIO(strandline("query", sql, "--format", "csv", cwd=lake).stdout.decode())))
    assert rows == [["node", "sampled_at", "gpu_util_ratio"], ["n1", "2026-03-01T10:00:00Z", "0.5"]]
    table = strandline("query", sql, cwd=lake)
    assert table.stdout.decode().splitlines()[0].split() == rows[0]
    assert b"1 row" in table.stderr
    done = strandline("query", sql, "--format", "parquet", "--out", "samples.parquet", cwd=lake)
    assert done.returncode == 0, done.stderr
    assert pq.read_table(lake / "samples.parquet").num_rows == 1
    piped = strandline("query", sql, "--format", "parquet", cwd=lake)
    assert pq.read_table(io.BytesIO(piped.stdout)).column_names == rows[0]


def test_other_ways_to_ask(lake: Path) -> None:
    for sql in ("describe raw.dcgm_samples", "show all tables", "values (1)", "from range(3)", "explain select 1"):
        assert strandline("query", sql, cwd=lake).returncode == 0, sql
    piped = strandline("query", "-", "--format", "json", cwd=lake, stdin="select 42 as answer")
    assert json.loads(piped.stdout) == [{"answer": 42}]


def test_the_shell_reads_a_script(lake: Path) -> None:
    script = ".schema raw.scrapes\nselect 1 as a;\nselect 2 as b;\n"
    done = strandline("sql", "--format", "csv", cwd=lake, stdin=script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines()[-4:] == ["a", "1", "b", "2"]
    wrong = strandline("sql", cwd=lake, stdin="select 1;\nselect wrong;\n")
    assert wrong.returncode == 2
    assert b"wrong" in wrong.stderr


def test_a_closed_pipe_is_no_error(lake: Path) -> None:
    command = f"{sys.executable} -m pipelines.cli query 'from range(1000000)' --format csv | head -1"
    root = Path(__file__).resolve().parent.parent.parent
    done = subprocess.run(
        command, shell=True, cwd=lake, env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}, capture_output=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert done.stdout == b"range\n"
    assert b"Traceback" not in done.stderr


def test_exports(lake: Path) -> None:
    done = strandline("export", "raw.dcgm_samples", cwd=lake)
    assert done.returncode == 0, done.stderr
    path = lake / done.stdout.decode().strip()
    assert path.name == "raw.dcgm_samples.csv"
    assert len(path.read_text().splitlines()) == 2
    assert (
        strandline("export", "raw.dcgm_samples", "--format", "parquet", "--out", "s.parquet", cwd=lake).returncode == 0
    )
    assert pq.read_table(lake / "s.parquet").num_rows == 1


def test_catalog_and_doctor(lake: Path) -> None:
    text = strandline("catalog", "mart.gpu_ledger_hourly", cwd=lake).stdout.decode()
    assert "grain: hour, unit" in text
    everything = json.loads(strandline("catalog", "--format", "json", cwd=lake).stdout)
    assert {"raw.scrapes", "core.gpu_units", "mart.stranding_hourly"} <= {t["table"] for t in everything}
    doctor = strandline("doctor", "--json", cwd=lake)
    assert doctor.returncode == 0, doctor.stdout
    report = json.loads(doctor.stdout)
    assert report["settings"]["data"]["origin"] == "default"
    assert {c["name"]: c["result"] for c in report["checks"]}["engine"] == "ok"


def test_doctor_tells_origins(tmp_path: Path) -> None:
    (tmp_path / "strandline.toml").write_text('staleness = "90s"\n')
    done = strandline("doctor", "--data", "elsewhere", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    settings = done.stdout.decode().split("Checks")[0]
    lines = {line.split()[0]: line for line in settings.splitlines() if line.strip()}
    assert "90s" in lines["staleness"]
    assert "file" in lines["staleness"]
    assert "flag --data" in lines["data"]


def test_ingesting_again_changes_nothing(lake: Path) -> None:
    before = strandline("query", "select * from raw.dcgm_samples", "--format", "json", cwd=lake).stdout
    done = strandline("ingest", "dcgm", "body.prom", "--node", "n1", "--at", "2026-03-01T10:00:00Z", cwd=lake)
    assert done.returncode == 0
    assert strandline("build", cwd=lake).returncode == 0
    assert strandline("query", "select * from raw.dcgm_samples", "--format", "json", cwd=lake).stdout == before


def test_an_exporter_that_does_not_answer_is_a_failure_and_a_gap(tmp_path: Path) -> None:
    done = strandline("ingest", "dcgm", "http://127.0.0.1:1/metrics", cwd=tmp_path)
    assert done.returncode == 1
    assert b"127.0.0.1:1" in done.stderr
    assert strandline("build", cwd=tmp_path).returncode == 0
    rows = json.loads(strandline("query", "select is_up from raw.scrapes", "--format", "json", cwd=tmp_path).stdout)
    assert rows == [{"is_up": False}]
