"""A small simulated lake that changes from build to build, and what every table of it holds.

Belongs here: making it, adding to it, running the real command over it. Does not: kills, readers, what is asserted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fleet.model import FleetSpec
from fleet.world import World
from pipelines import simulated
from sources.dcgm import Scrape
from warehouse.contracts import CONTRACTS
from warehouse.engine import connect
from warehouse.lake import Lake
from warehouse.landing import Landing

ROOT = Path(__file__).resolve().parent.parent.parent
SPEC = FleetSpec(scale=0.01, days=1, history_days=0, interval_s=1800, snapshot_s=1800, faults="none")
DAY = SPEC.end_at - timedelta(days=1)
EXTRA = "extra"


def start(*arguments: str | Path, data: Path, **options: object) -> subprocess.Popen[str]:
    """The real command in a process of its own, without any STRANDLINE_ variable; stderr is a pipe."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("STRANDLINE_")}
    environ["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-m", "pipelines.cli", *map(str, arguments), "--data", str(data)]
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options
    )


def strandline(*arguments: str | Path, data: Path) -> str:
    """Run the command to its end; it must succeed. What it said on stderr."""
    process = start(*arguments, data=data)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said


@contextmanager
def running(*arguments: str | Path, data: Path) -> Iterator[subprocess.Popen[str]]:
    """The command while the block runs; killed at its end if it is not gone by then."""
    process = start(*arguments, data=data)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def simulate(data: Path) -> None:
    """One day of a small fleet as raw tables, sealed and marked, not built."""
    lake = Lake(data)
    with lake.writer():
        world = _one_cluster(World.build(SPEC))
        simulated.write_settings(lake, world, DAY.date())
        written = simulated.write_history(lake, world, lambda _: None)
        lake.mark(written["raw.dcgm_samples"], "simulated")


def _one_cluster(world: World) -> Any:
    """The world as far as the history's writer looks, cut down to its first cluster: builds take seconds."""
    cluster = world.nodes[0].cluster

    def raw_tables() -> Iterator[tuple[str, pa.Table]]:
        for name, table in world.raw_tables():
            whole = name in simulated.SETTING_TABLES
            yield name, table if whole else table.filter(pc.equal(table["cluster"], cluster))

    nodes = [n for n in world.nodes if n.cluster == cluster]
    return SimpleNamespace(nodes=nodes, spec=world.spec, raw_tables=raw_tables)


def body(number: int) -> bytes:
    """Exporter text of one GPU that no other number has."""
    labels = f'gpu="0",UUID="GPU-{EXTRA}-{number}",pci_bus_id="00000000:00:04.0",device="nvidia0",modelName="Tesla T4"'
    return f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {number % 100}\n".encode()


def extra_scrapes(number: int, count: int = 6) -> list[Scrape]:
    """Scrapes of a node that was not there before, in two hours of the simulated day."""
    node = f"{EXTRA}-{number}"
    first = DAY + timedelta(hours=10, minutes=30)
    return [Scrape(EXTRA, node, node, first + timedelta(minutes=10 * i), body(number)) for i in range(count)]


def land(data: Path, number: int) -> None:
    """Make the next build differ: one more node."""
    Landing(data).append(s.record() for s in extra_scrapes(number))


def contents(data: Path, layers: tuple[str, ...] = ("raw", "core", "mart")) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every published table, ordered by key. Raw is the newest version, published or not."""
    published, newest = Lake(data).published(), Lake(data).newest()
    rows: dict[str, list[tuple[object, ...]]] = {}
    for manifest, chosen in ((published, {"core", "mart"}), (newest, {"raw"})):
        if not chosen & set(layers):
            continue
        with connect(data, manifest=manifest, threads=1) as con:
            for name, contract in CONTRACTS.items():
                if contract.layer in chosen & set(layers):
                    key = ", ".join(f'"{c}" nulls first' for c in contract.key)
                    rows[name] = con.execute(f"select * from {name} order by {key}").fetchall()
    return rows
