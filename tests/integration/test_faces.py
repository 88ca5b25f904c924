"""The live faces against the history face, through the command: serve, ingest what is served, compare raw tables.

A server stands still at the instants at which the history has scrapes and lists; `strandline ingest … --at` stamps what
it answers with them. What only one of the two can know is left out: how long a scrape took, the size and hash of a body
that the history never wrote, the words of an error.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from simulated_lakes import command, environment, succeed

from fleet.model import FleetSpec
from fleet.world import World
from pipelines import simulated
from warehouse.contracts import CONTRACTS
from warehouse.lake import Lake

pytestmark = pytest.mark.integration

FLAGS = ("--seed", "11", "--days", "1", "--scale", "0.1", "--faults", "all")
SPEC = FleetSpec(seed=11, days=1, scale=0.1, faults="all")
UNKNOWN = {
    "raw.scrapes": ("duration_s", "body_bytes", "body_sha256", "error"),
    "raw.kube_snapshots": ("body_bytes", "body_sha256"),
}
KUBE = [name for name in CONTRACTS if name.startswith("raw.kube_") and name != "raw.kube_devices"]


@dataclass(frozen=True)
class Served:
    """A running server, its kubeconfig, and what its exporters are called."""

    url: str
    kubeconfig: Path
    targets: dict[tuple[str, str], dict]

    def stand_at(self, at: datetime) -> None:
        """Moves the fleet's clock."""
        httpx.post(f"{self.url}/clock", json={"at": at.isoformat()}).raise_for_status()


@pytest.fixture(scope="module")
def world() -> World:
    return World.build(SPEC)


@pytest.fixture(scope="module")
def history(world: World, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """What the demo writes for this world."""
    lake = Lake(tmp_path_factory.mktemp("history"))
    with lake.writer():
        simulated.write_history(lake, world, lambda _: None)
    return lake


@pytest.fixture(scope="module")
def served(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    kubeconfig = folder / "kubeconfig"
    serve = subprocess.Popen(
        [*command(), "fleet", "serve", "--port", "0", "--speed", "0", "--at", world.start_at.isoformat(), *FLAGS,
         "--end-at", SPEC.end_at.isoformat(), "--kubeconfig", str(kubeconfig), "--data", str(folder)],
        env=environment(), text=True, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert serve.stderr is not None
        said = next((line for line in serve.stderr if "SIMULATED" in line), None)
        assert said is not None, "the server ended before it was up"
        url = next(word for word in said.split() if word.startswith("http://"))
        groups = httpx.get(f"{url}/sd/targets").raise_for_status().json()
        yield Served(url, kubeconfig, {(g["labels"]["cluster"], g["labels"]["node"]): g for g in groups})
    finally:
        serve.send_signal(signal.SIGINT)
        serve.communicate(timeout=30)
    assert serve.returncode == 0


def at(table: pa.Table, column: str, when: datetime) -> pa.Table:
    return table.filter(pc.equal(table.column(column), pa.scalar(when, table.schema.field(column).type)))


def of_node(table: pa.Table, cluster: str, node: str) -> pa.Table:
    return table.filter(pc.and_(pc.equal(table.column("cluster"), cluster), pc.equal(table.column("node"), node)))


def assert_equal(live: pa.Table, history: pa.Table, name: str) -> None:
    """The same rows in the order of the key; names the first column that differs."""
    keys = [(key, "ascending") for key in CONTRACTS[name].key]
    assert live.num_rows == history.num_rows, name
    live, history = live.sort_by(keys), history.sort_by(keys)
    for column in CONTRACTS[name].arrow_schema.names:
        if column not in UNKNOWN.get(name, ()):
            assert live.column(column).to_pylist() == history.column(column).to_pylist(), f"{name}.{column}"


def middle(world: World, kind: str) -> datetime:
    fault = next(f for f in world.faults if f.kind == kind)
    return fault.started_at + (fault.finished_at - fault.started_at) / 2


def test_lists_equal_history(world: World, history: Lake, served: Served, tmp_path: Path) -> None:
    """At an ordinary instant, in a reboot and while a GPU is lost and a node cordoned, for every cluster."""
    step = timedelta(seconds=SPEC.snapshot_s)
    wanted = [world.start_at + timedelta(hours=9), *(middle(world, k) for k in ("node_reboot", "gpu_lost", "cordon"))]
    instants = sorted({world.start_at + (when - world.start_at) // step * step for when in wanted})
    data = tmp_path / "lake"
    for when in instants:
        served.stand_at(when)
        succeed(
            "ingest", "kubernetes", "--kubeconfig", served.kubeconfig, "--all-contexts", "--at", when.isoformat(),
            "--data", data,
        )  # fmt: skip
    live = Lake(data)
    for name in KUBE:
        rows, past = live.read(name), history.read(name)
        assert rows.num_rows, name
        assert set(rows.column("snapshot_at").to_pylist()) == set(instants), name
        for when in instants:
            assert_equal(at(rows, "snapshot_at", when), at(past, "snapshot_at", when), name)
    shown = live.read("raw.kube_nodes")
    assert {"True", "Unknown"} <= set(shown.column("ready_status").to_pylist())
    assert len(set(shown.column("cluster").to_pylist())) == 3


def test_scrapes_equal_history(world: World, history: Lake, served: Served, tmp_path: Path) -> None:
    """Of a MIG node, one with sentinels, one that answers an empty body, one whose exporter is down, and others."""
    attempts, samples = history.read("raw.scrapes"), history.read("raw.dcgm_samples")
    cut = next(n for n in world.nodes if n.target and any(d.instances for d in n.devices))
    whole = [n for n in world.nodes if n.target and n is not cut][:1]
    wanted = [((n.cluster, n.name), world.start_at + timedelta(hours=11)) for n in (cut, *whole)]
    for kind in ("sentinels", "empty_body", "exporter_down", "gpu_lost"):
        fault = next(f for f in world.faults if f.kind == kind)
        wanted.append(((fault.cluster, fault.node), middle(world, kind)))
    data = tmp_path / "lake"
    found = []
    for number, (key, near) in enumerate(wanted):
        stamps = of_node(attempts, *key).column("scrape_at").to_pylist()
        when = min(stamps, key=lambda s: abs(s - near))
        (tmp_path / f"{number}.json").write_text(json.dumps([served.targets[key]]))
        served.stand_at(when)
        call = ("ingest", "dcgm", "--sd", tmp_path / f"{number}.json", "--at", when.isoformat(), "--data", data)
        is_up = at(of_node(attempts, *key), "scrape_at", when).column("is_up")[0].as_py()
        if is_up:
            succeed(*call)
        else:
            with pytest.raises(AssertionError, match="exited 1"):
                succeed(*call)
        found.append((key, when))
    live = Lake(data)
    lived, measured = live.read("raw.scrapes"), live.read("raw.dcgm_samples")
    assert lived.num_rows == len(set(found))
    compared = 0
    for key, when in found:
        assert_equal(
            at(of_node(lived, *key), "scrape_at", when), at(of_node(attempts, *key), "scrape_at", when), "raw.scrapes"
        )
        rows = at(of_node(measured, *key), "sampled_at", when)
        assert_equal(rows, at(of_node(samples, *key), "sampled_at", when), "raw.dcgm_samples")
        compared += rows.num_rows
    assert compared == measured.num_rows > 20
    assert {True, False} == set(lived.column("is_up").to_pylist())
    assert 0 in lived.filter(lived.column("is_up")).column("samples").to_pylist()
    assert pc.sum(pc.is_valid(measured.column("gi_id"))).as_py() > 0


def test_every_exporter_at_one_instant(world: World, served: Served, tmp_path: Path) -> None:
    """Discovery finds all of them, and what they say at an instant is the fleet's state of that instant."""
    when = world.start_at + timedelta(hours=11, seconds=7)
    served.stand_at(when)
    succeed("ingest", "dcgm", "--sd", f"{served.url}/sd/targets", "--at", when.isoformat(), "--data", tmp_path / "lake")
    live = Lake(tmp_path / "lake")
    skewed = {(f.cluster, f.node) for f in world.faults if f.kind == "clock_skew"}
    nodes = [(n.cluster, n.name) for n in world.nodes if n.target and (n.cluster, n.name) not in skewed]
    assert len(live.read("raw.scrapes")) == sum(n.target is not None for n in world.nodes)
    rows = live.read("raw.dcgm_samples")
    keys = zip(rows.column("cluster").to_pylist(), rows.column("node").to_pylist(), strict=True)
    rows = rows.filter(pa.array([key in nodes for key in keys]))
    assert_equal(rows, world.sample_rows([when], nodes), "raw.dcgm_samples")
