"""The demo on a small fleet: twice the same, replaced whole, and what it prints and exports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from pipelines.demo import busy_start
from sources.traces import Job
from warehouse.contracts import CONTRACTS
from warehouse.engine import connect
from warehouse.lake import Lake

ROOT = Path(__file__).resolve().parent.parent.parent
DAY = 86_400


def demo(data: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipelines.cli", "demo", "--data", str(data), *flags]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=500)


def fingerprint(con: duckdb.DuckDBPyConnection) -> dict[str, tuple[int, str]]:
    """Rows and an order-free hash of every table."""
    return {
        name: con.execute(f"select count(*), coalesce(bit_xor(hash(t)), 0)::varchar from {name} as t").fetchall()[0]
        for name in CONTRACTS
    }


def seen(data: Path) -> dict[str, tuple[int, str]]:
    with connect(data) as con:
        return fingerprint(con)


@pytest.mark.integration
@pytest.mark.slow
def test_one_seed_gives_one_result_whatever_was_there(tmp_path: Path) -> None:
    small = ("--days", "2", "--scale", "0.1", "--faults", "all")
    first = demo(tmp_path / "a", *small)
    assert first.returncode == 0, first.stderr
    tables = seen(tmp_path / "a")
    assert all(tables[t][0] for t in ("raw.dcgm_samples", "raw.fleet_truth", "core.pod_allocations",
                                      "mart.stranding_hourly"))  # fmt: skip

    # Something longer, of another seed and with other work, and back.
    other = demo(tmp_path / "a", "--days", "3", "--scale", "0.1", "--seed", "8", "--faults", "none")
    assert other.returncode == 0, other.stderr
    assert seen(tmp_path / "a") != tables
    again = demo(tmp_path / "a", *small)
    assert again.returncode == 0, again.stderr
    assert seen(tmp_path / "a") == tables
    assert not Lake(tmp_path / "a").marks()
    assert again.stdout == first.stdout

    text = first.stdout
    assert text.startswith("SIMULATED")
    for word in ("capacity", "allocated", "utilized (SM)", "resident (GPU_UTIL)", "stranded", "unobserved", "all"):
        assert word in text
    paths = [Path(line.strip()) for line in text.splitlines() if line.startswith("  ")]
    pages = [p for p in paths if p.suffix == ".html"]
    assert {p.name for p in pages} == {"stranding.html", "cost.html"} and all(p.is_file() for p in pages)
    assert {p.name for p in paths} - {p.name for p in pages} == {
        t.name for t in CONTRACTS.values() if t.layer == "mart"
    }
    for suffix in (".csv", ".parquet"):
        assert all(p.with_name(p.name + suffix).is_file() for p in paths if p not in pages)

    # What the team chain and the mapping of the fleet's namespaces say is kept with the lake.
    built = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "build", "--data", str(tmp_path / "a")],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    assert seen(tmp_path / "a") == tables


@pytest.mark.integration
def test_a_trace_makes_its_teams(tmp_path: Path) -> None:
    rows = [f"2017-10-02 {h:02}:00:00,7200,{1 + h % 4},vc{h % 3}" for h in range(24)]
    (tmp_path / "jobs.csv").write_text("submit_time,duration_s,num_gpus,vc\n" + "\n".join(rows) + "\n")
    done = demo(tmp_path / "a", "--trace", str(tmp_path / "jobs.csv"), "--days", "1", "--faults", "none")
    assert done.returncode == 0, done.stderr
    assert "a job trace" in done.stdout
    # owned nodes: a card and no bill
    assert "Cost by team in USD (simulated)" in done.stdout and "DIFFERENCE" not in done.stdout
    with connect(tmp_path / "a") as con:
        teams = con.execute("select distinct team from mart.stranding_hourly where team is not null").fetchall()
        pods = con.execute("select count(distinct pod_uid) from core.pod_allocations").fetchall()[0][0]
    assert {t[0] for t in teams} == {"vc0", "vc1", "vc2"}
    assert pods >= 24
    marker = json.loads((tmp_path / "a" / "state" / "simulated.json").read_text())
    assert marker["clusters"] == ["trace"]


def test_a_trace_starts_at_its_first_busy_monday() -> None:
    monday = 1_506_902_400  # 2017-10-02
    quiet = [Job(monday - 14 * DAY + n * DAY, 60, 1) for n in range(14)]
    busy = [Job(monday + n * 600, 60, 1) for n in range(3 * 7 * 144)]
    assert busy_start(quiet + busy, 7) == monday
    assert busy_start([Job(5 * DAY + n, 60, 1) for n in range(9)], 7) == 5 * DAY  # seconds from nowhere: no weekdays


def test_philly_starts_on_the_second_of_october(shared_dir: Path) -> None:
    from sources.traces import read_trace

    jobs = read_trace(shared_dir / "traces" / "philly" / "philly_jobs_2017-09_10.parquet")
    assert busy_start(jobs, 14) == 1_506_902_400
