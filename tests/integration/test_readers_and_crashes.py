"""Readers beside real builds, and the real command killed at any moment.

Belongs here: what only whole processes show. The lake's own promises are tested in tests/warehouse.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import lake_reader
import pytest
from busy_lake import ROOT, body, contents, extra_scrapes, land, running, simulate, strandline

from pipelines import building
from pipelines.settings import load
from warehouse.engine import connect
from warehouse.lake import Lake
from warehouse.landing import Landing
from warehouse.state import manifest_history

pytestmark = pytest.mark.integration

READS, READERS, LEAST_BUILDS, KILLS = 1_000, 2, 4, 10
PENDING = (101, 102, 103)


@pytest.fixture(scope="module")
def fleet_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built lake of a small simulated fleet. Copy it before changing it."""
    data = tmp_path_factory.mktemp("fleet") / "lake"
    simulate(data)
    strandline("build", data=data)
    return data


def test_a_thousand_reads_beside_builds_see_one_build_each(fleet_lake: Path, tmp_path: Path) -> None:
    data = tmp_path / "lake"
    shutil.copytree(fleet_lake, data)
    strandline("build", data=data)  # the views in the copied strandline.duckdb still pointed at the original
    outputs = [tmp_path / f"reads{i}.jsonl" for i in range(READERS)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, lake_reader.__file__, str(data)]
    readers = [subprocess.Popen([*command, str(o)], env=environ, stderr=subprocess.PIPE, text=True) for o in outputs]
    builds = 0
    try:
        while builds < LEAST_BUILDS or sum(_lines(o) for o in outputs) < READS:
            assert all(r.poll() is None for r in readers), [r.communicate()[1] for r in readers]
            land(data, builds)
            strandline("build", data=data)
            builds += 1
    finally:
        (tmp_path / "stop").touch()
        failures = [(r.wait(timeout=60), r.communicate()[1]) for r in readers]
    assert failures == [(0, "")] * READERS
    published = set()
    for _, manifest in manifest_history(Lake(data).state):
        with connect(data, manifest=manifest, threads=1) as con:
            published.add(tuple(con.execute(lake_reader.QUERY).fetchall()[0]))
    assert len(published) == builds + 1, "every build has figures of its own"
    for raw, core, mart, *sums in published:
        assert raw == core == mart
        capacity, by_team, parts, utilized, utilized_by_team, rest, rest_by_team = sums
        assert (capacity, utilized, rest) == (by_team, utilized_by_team, rest_by_team)
        assert capacity == parts
    ways: Counter[str] = Counter()
    seen = set()
    for output in outputs:
        reads = [json.loads(line) for line in output.read_text().splitlines()]
        rows = [tuple(row) for _, row in reads]
        ways.update(how for how, _ in reads)
        assert set(rows) <= published
        seen |= set(rows)
    assert ways.total() >= READS and min(ways.values()) >= READS // 4
    assert len(seen) >= LEAST_BUILDS


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.fixture(scope="module")
def unbuilt(fleet_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lake with bodies landed, not sealed: what a build has to do."""
    data = tmp_path_factory.mktemp("unbuilt") / "lake"
    shutil.copytree(fleet_lake, data)
    for number in PENDING:
        land(data, number)
    return data


def test_a_build_killed_at_any_moment_and_run_again_is_as_if_never_killed(unbuilt: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(unbuilt, whole)
    begun = time.monotonic()
    said = strandline("build", data=whole).splitlines()
    seconds, steps = time.monotonic() - begun, len(said) - 1  # the last line is the summary
    expected = contents(whole)
    assert len({row[0] for row in expected["raw.scrapes"]} & {"extra"}) == 1
    chance = random.Random(20260615)
    # A step and a part of it: drawn over the run, and just as even on a machine that is busy.
    moments = [(chance.randrange(steps), chance.random()) for _ in range(KILLS)]

    def kill(number: int) -> bool:
        step, part = moments[number]
        data = tmp_path / f"killed{number}"
        shutil.copytree(unbuilt, data)
        with running("build", data=data) as process:
            assert process.stderr is not None
            for _ in range(step + 1):
                process.stderr.readline()
            time.sleep(part * seconds / steps)
            process.send_signal(signal.SIGKILL)
            return process.wait() == -signal.SIGKILL

    with ThreadPoolExecutor(2) as lanes:
        killed = sum(lanes.map(kill, range(KILLS)))
    for number, (step, part) in enumerate(moments):
        data = tmp_path / f"killed{number}"
        # What was published before is still whole.
        with connect(data, threads=1) as con:
            assert con.execute("select count(*) > 0 from mart.gpu_ledger_hourly").fetchall() == [(True,)]
        building.build(load({"data": data}, {}).settings, None, None, (), lambda _: None)
        _same(contents(data), expected, f"killed in step {step} ({said[step]}), {part:.2f} of it")
        assert Lake(data).marks() == []
        assert Landing(data).files() == []
        shutil.rmtree(data)
    assert killed >= KILLS - 1


def _same(found: dict, expected: dict, where: str) -> None:
    for table, rows in expected.items():
        assert found[table] == rows, f"{table} differs: {where}"


def _manifest(folder: Path) -> Path:
    """A manifest of 40 nodes with six bodies each."""
    folder.mkdir()
    lines = []
    for number in range(40):
        for i, scrape in enumerate(extra_scrapes(number)):
            name = f"{number}-{i}.prom"
            (folder / name).write_bytes(scrape.body or b"")
            entry = {"kind": "dcgm", "file": name, "node": scrape.node, "cluster": "extra", "at": scrape.at.isoformat()}
            lines.append(json.dumps(entry))
    path = folder / "manifest.jsonl"
    path.write_text("\n".join(lines))
    return path


def test_a_killed_import_loses_nothing_acknowledged_and_doubles_nothing(tmp_path: Path) -> None:
    manifest = _manifest(tmp_path / "captured")
    strandline("ingest", "manifest", manifest, data=tmp_path / "whole")
    expected = contents(tmp_path / "whole", ("raw",))
    chance = random.Random(7)
    for number, acknowledged in enumerate((False, True, True)):
        data = tmp_path / f"killed{number}"
        with running("ingest", "manifest", manifest, data=data) as process:
            if acknowledged:
                assert process.stderr is not None
                assert "landed 240 dcgm" in process.stderr.readline()
                time.sleep(chance.uniform(0, 0.6))
            else:
                _wait_for(lambda data=data: (data / "landing").exists())
            process.send_signal(signal.SIGKILL)
        if acknowledged:  # said to be landed: it needs no second import
            strandline("ingest", "seal", data=data)
        else:
            strandline("ingest", "manifest", manifest, data=data)
        _same(contents(data, ("raw",)), expected, f"kill {number}")


class _Exporter(BaseHTTPRequestHandler):
    """Serves one GPU and counts what it has served."""

    served = 0

    def do_GET(self) -> None:
        text = body(1)
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        type(self).served += 1

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def _exporter() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Exporter)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_killed_collector_loses_nothing_landed_and_doubles_nothing(tmp_path: Path) -> None:
    data = tmp_path / "lake"
    chance = random.Random(11)
    landed: set[tuple[object, ...]] = set()
    with _exporter() as address:
        for kill in range(2):
            before = _Exporter.served
            with running("ingest", "dcgm", address, "--every", "1s", data=data) as process:
                _wait_for(lambda before=before: _Exporter.served >= before + 3)
                if kill == 1:  # sealed under a running collector
                    landed |= _instants(data)
                    strandline("ingest", "seal", data=data)
                time.sleep(chance.uniform(0, 1))
                process.send_signal(signal.SIGKILL)
                process.wait()
            landed |= _instants(data)
            # Bodies land once a second: at most the last two, and one under way, were not yet on disk.
            assert len(landed | _sealed(data)) >= _Exporter.served - 3 * (kill + 1)
    strandline("ingest", "seal", data=data)
    rows = contents(data, ("raw",))
    instants = [(r[0], r[1]) for r in rows["raw.scrapes"]]
    assert len(instants) == len(set(instants))
    assert {at for _, at in instants} >= {at for _, at in landed}
    samples = [(r[0], r[1]) for r in rows["raw.dcgm_samples"]]
    assert sorted(samples) == sorted(instants), "one GPU, one sample a scrape"


def _instants(data: Path) -> set[tuple[object, ...]]:
    landing = Landing(data)
    return {(r.cluster, r.at) for f in landing.files() for r in landing.read(f) or ()}


def _sealed(data: Path) -> set[tuple[object, ...]]:
    return set(zip(*(Lake(data).read("raw.scrapes", ["cluster", "scrape_at"]).to_pydict().values()), strict=True))


def _wait_for(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened in time"
        time.sleep(0.01)
