"""The served faces: scrapes with faults, discovery, kubeconfig."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from exporters.dcgm import render_rows
from exporters.serve import build_app
from exporters.server import serving
from fleet.clock import Clock
from fleet.kubeapi.fixed import EPOCH, FixedWorld, fixed_world

pytestmark = pytest.mark.integration
START = EPOCH + timedelta(hours=1)


@pytest.fixture
def served() -> Iterator[tuple[str, FixedWorld, Clock]]:
    world, clock = fixed_world(), Clock(START, speed=0)
    with serving(build_app(world, clock, slow_s=0.5)) as url:
        yield url, world, clock


def test_a_scrape_is_the_exporter_text_of_the_instant(served: tuple[str, FixedWorld, Clock]) -> None:
    url, world, _ = served
    answer = httpx.get(f"{url}/clusters/alpha/nodes/node-1/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-strandline-simulated-at"] == "2026-06-01T01:00:00Z"
    assert answer.content == render_rows(world.sample_rows([START], [("alpha", "node-1")]))
    assert b'DCGM_FI_DEV_POWER_USAGE{gpu="7",UUID="GPU-node-1-7",pci_bus_id="00000000:08:00.0"' in answer.content
    assert httpx.get(f"{url}/nodes/node-1/metrics").content == answer.content
    assert httpx.get(f"{url}/nodes/node-9/metrics").status_code == 404


def test_faults_show(served: tuple[str, FixedWorld, Clock]) -> None:
    url, world, _ = served
    world.outcomes = {"node-0": "down", "node-1": "empty", "node-2": "timeout"}
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{url}/nodes/node-0/metrics")
    empty = httpx.get(f"{url}/nodes/node-1/metrics")
    assert (empty.status_code, empty.content) == (200, b"")
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(f"{url}/nodes/node-2/metrics", timeout=0.1)
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(f"{url}/nodes/node-2/metrics", timeout=5)


def test_discovery_and_kubeconfig(served: tuple[str, FixedWorld, Clock]) -> None:
    url, _, _ = served
    groups = httpx.get(f"{url}/sd/targets").json()
    assert len(groups) == 3
    labels = groups[0]["labels"]
    assert labels["instance"] == "node-0:9400"
    assert httpx.get(f"http://{groups[0]['targets'][0]}{labels['__metrics_path__']}").status_code == 200
    config = httpx.get(f"{url}/kubeconfig").json()
    assert config["clusters"] == [{"name": "alpha", "cluster": {"server": f"{url}/clusters/alpha"}}]
    assert "simulated" in httpx.get(url).text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_ends_well_when_stopped(project_root: Path, number: int) -> None:
    program = (
        "from exporters.serve import build_app; from exporters.server import run; from fleet.clock import Clock\n"
        "from fleet.kubeapi.fixed import EPOCH, fixed_world\n"
        "run(build_app(fixed_world(), Clock(EPOCH)), port=0, started=lambda url: print(url, flush=True))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=project_root, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with httpx.stream("GET", f"{url}/clusters/alpha/api/v1/pods?watch=true", timeout=20) as stream:
            next(stream.iter_lines())  # an open watch does not keep it
            server.send_signal(number)
            assert server.wait(10) == 0
