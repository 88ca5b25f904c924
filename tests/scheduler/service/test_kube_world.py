"""The Kubernetes world against the live fleet's API: what is seen, writes that may be made again, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from kubernetes import client
from starlette.applications import Starlette
from starlette.routing import Mount

from exporters.server import serving
from fleet.clock import Clock
from fleet.kubeapi.app import ClusterApi, cluster_api
from fleet.kubeapi.fixed import EPOCH, FixedWorld, fixed_node, fixed_pod
from scheduler.model import MILLI, Shape
from scheduler.service.codec import Template
from scheduler.service.kubeworld import KubeWorld
from scheduler.service.worlds import Pod, Refused, Unreachable, pod_name

pytestmark = pytest.mark.integration
EPOCH_US = 1_780_272_000_000_000  # 2026-06-01T00:00:00Z


class Fleet:
    """A served cluster, its clock, and the world that is tested."""

    def __init__(self, url: str, api: ClusterApi, clock: Clock, states: FixedWorld) -> None:
        settings = client.Configuration()
        settings.host = f"{url}/clusters/alpha"
        self.api, self.clock, self.states = api, clock, states
        self.world = KubeWorld(client.ApiClient(settings))

    def advance(self, seconds: float) -> None:
        self.clock.set(advance_s=seconds)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    nodes = [fixed_node(f"node-{i}") for i in range(3)]
    labelled = replace(nodes[0].node, labels={"nvidia.com/gpu.product": "H100"})
    nodes[0] = replace(nodes[0], node=labelled)
    nodes[1] = replace(nodes[1], ready_status="Unknown")
    nodes[2] = replace(nodes[2], is_unschedulable=True)
    states = FixedWorld(nodes, [fixed_pod("run-000", node="node-0"), fixed_pod("wait-000")])
    clock = Clock(EPOCH, 0)
    api = cluster_api(states, "alpha", clock)
    with serving(Starlette(routes=[Mount("/clusters/alpha", api.app)])) as url:
        yield Fleet(url, api, clock, states)


def pod(index: int = 0, node: str = "node-0", seconds: int = 30) -> Pod:
    template = Template(annotations={"strandline.io/run-seconds": str(seconds)})
    return Pod(
        pod_name("j1", 1, 0, index), "j1", 1, "a", "worker", index, node, Shape(2 * MILLI, 500), (0, 1), template
    )


def test_what_is_seen(fleet: Fleet) -> None:
    seen = fleet.world.see()
    assert seen.at_us == fleet.world.now_us() == EPOCH_US
    assert {n.name: (n.flavor, n.gpus, n.is_schedulable) for n in seen.nodes} == {
        "node-0": ("H100", 8, True),
        "node-1": ("unlabelled", 8, False),
        "node-2": ("unlabelled", 8, False),
    }
    assert seen.ready == {"node-0", "node-2"}
    assert (seen.nodes[0].cpu_milli, seen.nodes[0].memory_mib) == (96_000, 1 << 20)
    other = seen.pods["team-a/run-000"]
    assert (other.job_id, other.node, other.holds, other.gpu_milli, other.cpu_milli) == ("", "node-0", True, 1000, 4000)
    assert not seen.pods["team-a/wait-000"].holds


def test_a_gang_from_create_to_its_end(fleet: Fleet) -> None:
    pods = [pod(0), pod(1)]
    fleet.world.start(pods)
    fleet.world.start(pods)
    fleet.advance(5)
    seen = fleet.world.see().pods
    assert {(p.job_id, p.attempt, p.node, p.phase) for n, p in seen.items() if n.startswith("j1")} == {
        ("j1", 1, "node-0", "running")
    }
    made = fleet.api.store.get("pods", ("strandline", "j1-1-0-0"))
    assert made is not None
    assert made["spec"]["schedulerName"] == "strandline"
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "2", "cpu": "500m"}
    fleet.world.save(["j1-1-0-0", "gone"], EPOCH_US + 60_000_000)
    made = fleet.api.store.get("pods", ("strandline", "j1-1-0-0"))
    assert made is not None
    assert made["metadata"]["annotations"]["strandline.io/evicted-at"] == "2026-06-01T00:01:00Z"
    fleet.advance(60)
    assert {p.phase for n, p in fleet.world.see().pods.items() if n.startswith("j1")} == {"succeeded"}
    fleet.world.stop(["j1-1-0-0", "j1-1-0-1", "gone"], 0)
    assert not [n for n in fleet.world.see().pods if n.startswith("j1")]


def test_a_pod_bound_elsewhere_is_refused(fleet: Fleet) -> None:
    fleet.world.start([pod(0)])
    with pytest.raises(Refused, match="already assigned"):
        fleet.world.start([pod(0, node="node-2")])
    with pytest.raises(Refused, match="already exists"):
        fleet.world.start([replace(pod(0), job_id="other")])


def test_a_server_that_is_away(fleet: Fleet) -> None:
    settings = client.Configuration()
    settings.host = "http://127.0.0.1:9"
    settings.retries = 0
    with pytest.raises(Unreachable):
        KubeWorld(client.ApiClient(settings)).see()
