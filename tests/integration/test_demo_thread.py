"""`strandline demo` as a person runs it: what it says and leaves, the same for one seed, on a real job trace.

Replacing an earlier demo in a folder is tested with the command (tests/pipelines).
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from simulated_lakes import ROOT, command, environment, once

from fleet.model import FleetSpec
from fleet.world import World
from pipelines import simulated
from warehouse.contracts import CONTRACTS
from warehouse.engine import connect
from warehouse.lake import Lake

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SMALL = ("--seed", "7", "--scale", "0.05", "--days", "2")
SPEC = FleetSpec(seed=7, scale=0.05, days=2)
RUNS = ("first", "again")
TITLES = ("capacity", "allocated", "utilized (SM)", "resident (GPU_UTIL)", "stranded", "unobserved")
TRACE_DAY = "2017-10-02"


@dataclass(frozen=True)
class Demo:
    """A finished run: its lake and what it printed."""

    data: Path
    stdout: str


def start(data: Path, *flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*command(), "demo", "--data", str(data), *flags], cwd=ROOT, env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def finish(process: subprocess.Popen[str], data: Path) -> Demo:
    stdout, stderr = process.communicate(timeout=600)
    assert process.returncode == 0, stderr[-2000:]
    return Demo(data, stdout)


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Demo]:
    """Two runs of one seed, side by side in folders of their own."""

    def make(root: Path) -> None:
        root.mkdir()
        running = {name: start(root / name, *SMALL) for name in RUNS}
        for name, process in running.items():
            (root / f"{name}.txt").write_text(finish(process, root / name).stdout)

    root = once(tmp_path_factory, "demos", make)
    return {name: Demo(root / name, (root / f"{name}.txt").read_text()) for name in RUNS}


def hashes(con: duckdb.DuckDBPyConnection) -> dict[str, tuple[int, str]]:
    """For every table, its rows and a hash of them in the order of its key."""
    out = {}
    for name, contract in CONTRACTS.items():
        order = ", ".join(f'"{key}" nulls first' for key in contract.key)
        out[name] = con.execute(
            f"select count(*), md5(coalesce(string_agg(hash(t)::varchar, ',' order by {order}), '')) from {name} as t"
        ).fetchall()[0]
    return out


def rows(lake: Lake, name: str) -> pa.Table:
    """A table in the order of its key."""
    return lake.read(name).sort_by([(key, "ascending") for key in CONTRACTS[name].key])


def named_files(text: str) -> list[Path]:
    """The files that a demo names: pages as they are, exports without their endings."""
    named = [Path(line.strip()) for line in text.splitlines() if line.startswith("  ")]
    pages = [p for p in named if p.suffix == ".html"]
    return pages + [p.with_name(p.name + end) for p in named if p not in pages for end in (".csv", ".parquet")]


def test_it_says_where_gpu_hours_are_stranded(demos: dict[str, Demo]) -> None:
    text = demos["first"].stdout
    assert "simulated" in text.splitlines()[0].lower()
    lines = text.splitlines()
    head = next(n for n, line in enumerate(lines) if line.startswith("team "))
    assert all(title in lines[head] for title in TITLES)
    table = {line.split("  ")[0]: line.split() for line in lines[head + 2 : lines.index("", head)]}
    assert len(table) > 5
    assert "all" in table
    with connect(demos["first"].data) as con:
        sums = ", ".join(f"sum({p}_gpu_seconds) / 3600" for p in
                         ("capacity", "allocated", "utilized", "resident", "stranded", "unobserved"))  # fmt: skip
        total = con.execute(f"select {sums} from mart.stranding_hourly").fetchone()
        teams = con.execute("select distinct team from mart.stranding_hourly where team is not null").fetchall()
    assert table["all"][1:7] == [f"{float(v):,.0f}" for v in total]
    assert {t[0] for t in teams} < set(table)


def test_it_says_what_that_cost(demos: dict[str, Demo]) -> None:
    """The cost table holds every charge, is told to add up, and names each commitment."""
    lines = demos["first"].stdout.splitlines()
    head = lines.index("Cost by team in USD (simulated)")
    table = {line.split("  ")[0]: line.split("  ")[1:] for line in lines[head + 3 : lines.index("", head)]}
    with connect(demos["first"].data) as con:
        total = con.execute("select sum(effective_cost) from core.charges").fetchall()[0][0]
        names = con.execute("select distinct commitment_name from raw.commitments order by 1").fetchall()
    assert f"{total:,.2f}" in " ".join(table["all"])
    assert {"unallocated", "committed unused", "not in cluster", "other services", "credits", "tax"} <= set(table)
    assert len([line for line in lines if line.endswith(": equal to the cent")]) == 3
    told = [line for line in lines if line.startswith("commitment ")]
    assert len(told) == 5 and all(any(f", {name}: " in line for line in told) for (name,) in names)


def test_the_paths_it_names_exist(demos: dict[str, Demo]) -> None:
    for demo in demos.values():
        named = named_files(demo.stdout)
        assert {p.name for p in named} >= {"mart.stranding_hourly.csv", "mart.gpu_ledger_hourly.parquet"}
        assert [p for p in named if not p.is_file() or not p.is_relative_to(demo.data)] == []
        csv = next(p for p in named if p.name == "mart.stranding_hourly.csv")
        with connect(demo.data) as con:
            n = con.execute("select count(*) from mart.stranding_hourly").fetchone()[0]
        assert len(csv.read_text().splitlines()) == n + 1 > 100


def test_one_seed_gives_identical_tables(demos: dict[str, Demo]) -> None:
    found = {}
    for name, demo in demos.items():
        with connect(demo.data) as con:
            found[name] = hashes(con)
    assert {t for t in CONTRACTS if found["first"][t] != found["again"][t]} == set()
    filled = {t for t, (rows, _) in found["first"].items() if rows}
    assert {"raw.dcgm_samples", "core.device_assignments", "mart.gpu_ledger_hourly", "mart.job_efficiency"} <= filled
    first, again = (demos[name].stdout.replace(str(demos[name].data), "DATA") for name in RUNS)
    assert first == again


def test_another_seed_is_another_fleet(demos: dict[str, Demo], tmp_path: Path) -> None:
    """Nothing of what is read of it is the same: samples, pods, nodes, faults, truth."""
    other = Lake(tmp_path)
    with other.writer():
        simulated.write_history(other, World.build(replace(SPEC, seed=8)), lambda _: None)
    first = Lake(demos["first"].data)
    names = ("raw.dcgm_samples", "raw.kube_pods", "raw.kube_nodes", "raw.fleet_truth", "raw.fleet_faults")
    assert [name for name in names if rows(first, name) == rows(other, name)] == []
    same = Lake(tmp_path / "same")
    with same.writer():
        simulated.write_history(same, World.build(SPEC), lambda _: None)
    assert [name for name in names if rows(first, name) != rows(same, name)] == []


def test_a_hash_sees_one_row_changed(demos: dict[str, Demo]) -> None:
    with connect(demos["first"].data) as con:
        text = "select md5(string_agg(hash(t)::varchar, ',' order by hour, cluster, node, pci_bus_id, gi_id, holder))"
        before = con.execute(f"{text} from mart.gpu_ledger_hourly as t").fetchone()
        changed = """(
            select * replace (stranded_gpu_seconds + case when row_number() over (order by hour, cluster, node,
                pci_bus_id, gi_id, holder) = 7 then 0.000001 else 0 end as stranded_gpu_seconds)
            from mart.gpu_ledger_hourly)"""
        assert con.execute(f"{text} from {changed} as t").fetchone() != before


def test_a_real_trace_makes_its_groups_teams(shared_dir: Path, tmp_path: Path) -> None:
    """One day of the Philly log at a coarse interval: each job is there with its GPUs, its VC is its team."""
    trace = shared_dir / "traces" / "philly" / "philly_jobs_2017-09_10.parquet"
    flags = ("--trace", str(trace), "--trace-from", TRACE_DAY, "--days", "1", "--interval", "300s")
    demo = finish(start(tmp_path / "lake", *flags), tmp_path / "lake")
    assert "simulated" in demo.stdout.splitlines()[0].lower()
    assert "trace" in demo.stdout.splitlines()[0]
    with connect(demo.data) as con:
        want = con.execute(
            f"""
            select vc, count(*), sum(num_gpus) from '{trace}'
            where num_gpus > 0 and submit_time >= date '{TRACE_DAY}' and submit_time < date '{TRACE_DAY}' + 1
            group by vc order by vc
            """
        ).fetchall()
        found = con.execute(
            """
            select substr(namespace, 4) as vc, count(distinct owner_name), sum(quantity)
            from (
                select distinct p.cluster, p.pod_uid, p.namespace, p.owner_name, r.quantity
                from raw.kube_pods as p
                inner join raw.kube_pod_resources as r
                    on r.cluster = p.cluster and r.pod_uid = p.pod_uid and r.snapshot_at = p.snapshot_at
            )
            group by vc order by vc
            """
        ).fetchall()
        teams = con.execute(
            "select team, namespace, count(*) from core.pod_allocations group by team, namespace"
        ).fetchall()
        seen, placed = con.execute(
            """
            select (select count(distinct team) from mart.stranding_hourly where team is not null),
                (select count(distinct team) from raw.fleet_truth)
            """
        ).fetchone()
    assert len(want) > 5
    assert found == want
    assert all(namespace == f"vc-{team}" for team, namespace, _ in teams)
    assert {team for team, _, _ in teams} <= {vc for vc, _, _ in want}
    assert seen == placed > 3
    assert sum(n for _, _, n in teams) > 500
