"""A world of handed-in states, the fake beside `fleet.world.World`: for tests of the API and the exporter.

It holds whatever it was last given, at every instant; nothing is simulated here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa

from fleet.model import Device, Namespace, Node, NodeState, Pod, PodState, ScrapeOutcome
from warehouse.contracts import CONTRACTS

EPOCH = datetime(2026, 6, 1)


@dataclass
class FixedWorld:
    """Lists that a test may change between looks (the API looks again once the clock has moved)."""

    node_states: list[NodeState] = field(default_factory=list)
    pod_states: list[PodState] = field(default_factory=list)
    namespaces: list[Namespace] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)
    outcomes: dict[str, ScrapeOutcome] = field(default_factory=dict)

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the node states."""
        return [state.node for state in self.node_states]

    def nodes_at(self, at: datetime, cluster: str | None = None) -> list[NodeState]:
        """The node states, whatever the instant."""
        return [state for state in self.node_states if cluster in (None, state.node.cluster)]

    def pods_at(self, at: datetime, cluster: str | None = None) -> list[PodState]:
        """The pod states, whatever the instant."""
        return [state for state in self.pod_states if cluster in (None, state.pod.cluster)]

    def scrape_outcome(self, cluster: str, node: str, at: datetime) -> ScrapeOutcome:
        """The outcome set for the node, else ok."""
        return self.outcomes.get(node, "ok")

    def sample_rows(self, times: Sequence[datetime], nodes: Iterable[tuple[str, str]] | None = None) -> pa.Table:
        """The rows of the nodes, stamped with each instant."""
        wanted = None if nodes is None else set(nodes)
        schema = CONTRACTS["raw.dcgm_samples"].arrow_schema
        made = [
            row
            | {"sampled_at": at, "hour": at.replace(minute=0, second=0, microsecond=0), "date": at.date(), "copy": 0}
            for at in times
            for row in self.rows
            if wanted is None or (row["cluster"], row["node"]) in wanted
        ]
        return pa.Table.from_pylist(made, schema=schema)


def fixed_node(name: str, cluster: str = "alpha", gpus: int = 8) -> NodeState:
    """A Ready node with whole GPUs."""
    devices = tuple(
        Device(i, f"GPU-{name}-{i}", f"00000000:{i + 1:02X}:00.0", f"nvidia{i}", "NVIDIA H100 80GB HBM3", 0, 0)
        for i in range(gpus)
    )
    node = Node(
        cluster=cluster,
        name=name,
        uid=f"00000000-0000-0000-0000-{name[-12:]:0>12}",
        provider="acme",
        region="north",
        zone="north-1",
        instance_type="h100.8",
        provider_id=f"acme:///north-1/{name}",
        accelerator="H100",
        driver="580.105.08",
        cpu_milli=96000,
        memory_bytes=1024 * 2**30,
        capacity={"nvidia.com/gpu": gpus},
        labels={"kubernetes.io/hostname": name, "pool": "h100"},
        annotations={},
        created_at=EPOCH,
        devices=devices,
        target=f"{name}:9400",
    )
    return NodeState(node, "True", EPOCH, False, {"nvidia.com/gpu": gpus})


def fixed_pod(name: str, cluster: str = "alpha", node: str | None = None, namespace: str = "team-a") -> PodState:
    """A pod that asks for one GPU: pending, or running since a minute after `EPOCH` where a node is given."""
    created, started = EPOCH, EPOCH + timedelta(minutes=1)
    pod = Pod(
        uid=f"10000000-0000-0000-0000-{name[-12:]:0>12}",
        cluster=cluster,
        namespace=namespace,
        name=name,
        container="main",
        node=node or "",
        resource="nvidia.com/gpu",
        quantity=1,
        units=((0, None),),
        cpu_milli=4000,
        memory_bytes=16 * 2**30,
        team="a",
        shape="training",
        owner_kind="Job",
        owner_name=name,
        owner_uid=f"20000000-0000-0000-0000-{name[-12:]:0>12}",
        labels={"app": name, "team": "a"},
        annotations={},
        priority=0,
        priority_class="",
        created_at=created,
        scheduled_at=created,
        started_at=started,
        finished_at=EPOCH + timedelta(days=30),
        listed_until=EPOCH + timedelta(days=31),
    )
    if node is None:
        return PodState(pod, "Pending", None, None, None, None, None, 0)
    return PodState(pod, "Running", node, created, started, None, None, 0)


def fixed_world(nodes: int = 3, running: int = 5, pending: int = 2) -> FixedWorld:
    """One cluster `alpha` with nodes `node-<i>`, running pods `run-<i>` and pending pods `wait-<i>` in `team-a`."""
    node_states = [fixed_node(f"node-{i}") for i in range(nodes)]
    pods = [fixed_pod(f"run-{i:03d}", node=f"node-{i % nodes}") for i in range(running)]
    pods += [fixed_pod(f"wait-{i:03d}") for i in range(pending)]
    spaces = [
        Namespace("alpha", name, {"kubernetes.io/metadata.name": name}, {}, EPOCH) for name in ("default", "team-a")
    ]
    rows: list[dict[str, object]] = [
        {
            "cluster": "alpha",
            "target": state.node.target,
            "node": state.node.name,
            "gpu_uuid": device.gpu_uuid,
            "gpu_index": device.gpu_index,
            "pci_bus_id": device.pci_bus_id,
            "device": device.device,
            "model": device.model,
            "driver": state.node.driver,
            "gpu_util_ratio": 50 * 0.01,
            "power_w": 409.692,
        }
        for state in node_states
        for device in state.node.devices
    ]
    return FixedWorld(node_states, pods, spaces, rows)
