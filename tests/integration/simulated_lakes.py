"""Lakes of small simulated worlds, made once for all tests of a run, and runs of the command.

Belongs here: which worlds the end-to-end tests look at and how they come into a lake (the demo's own history, the
build of `strandline build`). Does not belong here: what is to be true of them.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

import duckdb
import pytest

from fleet.model import FleetSpec
from fleet.world import World
from pipelines import building, simulated
from pipelines.settings import load
from warehouse.engine import connect
from warehouse.lake import Lake

ROOT = Path(__file__).resolve().parent.parent.parent
SPEC = FleetSpec(seed=11, scale=0.3, days=2, history_days=8, faults="none")
SPECS = {
    "clean": SPEC,
    "coarse": replace(SPEC, interval_s=300),
    "broken": replace(SPEC, faults="all"),
}


@dataclass(frozen=True)
class SimulatedLake:
    """A built lake, the spec of the world in it, and its days `[start, end)`."""

    root: Path
    spec: FleetSpec
    start: date
    end: date

    def connect(self) -> duckdb.DuckDBPyConnection:
        """Its published tables."""
        return connect(self.root)


def command() -> list[str]:
    """The installed command beside the interpreter, else the module it runs."""
    script = Path(sys.executable).parent / "strandline"
    return [str(script)] if script.exists() else [sys.executable, "-m", "pipelines.cli"]


def environment() -> dict[str, str]:
    """The environment without settings of the person who runs the tests."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("STRANDLINE_", "DAGSTER_"))}


def run(*args: str | Path, cwd: Path = ROOT, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """One call of the command, whatever it exits with."""
    return subprocess.run(
        [*command(), *map(str, args)], cwd=cwd, env=environment(), text=True, capture_output=True, timeout=timeout,
        check=False,
    )  # fmt: skip


def succeed(*args: str | Path, **more: object) -> str:
    """Standard output of a call that has to exit 0."""
    done = run(*args, **more)  # type: ignore[arg-type]
    assert done.returncode == 0, f"{args[:2]} exited {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills once for all workers of a test run; who comes later waits for it."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, done = base / name, base / f"{name}.done"
    with open(base / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(folder)
            done.touch()
    return folder


def simulated_lake(factory: pytest.TempPathFactory, name: str) -> SimulatedLake:
    """The lake of one of SPECS."""
    spec = SPECS[name]
    start, end = simulated.spec_window(spec)

    def make(root: Path) -> None:
        lake = Lake(root)
        world = World.build(spec)
        with lake.writer():
            simulated.write_settings(lake, world, start)
            simulated.write_history(lake, world, lambda _: None)
        building.build(load({"data": root}).settings, start, end, (), lambda _: None)

    return SimulatedLake(once(factory, f"lake-{name}", make), spec, start, end)
