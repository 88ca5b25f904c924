"""What is true in a generated case: hosts, GPUs, jobs, in whole seconds from the window's start.

Belongs here: the shapes and the hardware they use. Does not belong here: how they are drawn (scenario.py, jobs.py), how
they are printed (render.py), what the right answer is (ledger.py works from the printed files alone).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

MODELS = {
    "h100": ("NVIDIA H100 80GB HBM3", {1: "1g.10gb", 2: "2g.20gb", 3: "3g.40gb", 4: "4g.40gb", 7: "7g.80gb"}),
    "a100": ("NVIDIA A100-SXM4-40GB", {1: "1g.5gb", 2: "2g.10gb", 3: "3g.20gb", 4: "4g.20gb", 7: "7g.40gb"}),
    "a30": ("NVIDIA A30", {1: "1g.6gb", 2: "2g.12gb", 4: "4g.24gb"}),
    "t4": ("Tesla T4", {}),
}
# What GR_ENGINE_ACTIVE reads at most, by slices (after DCGM#138).
GR_CAP = {1: 1.0, 2: 0.5, 3: 0.333333, 4: 0.571429, 7: 1.0}


@dataclass
class Gpu:
    """One GPU: address, uuid per time (RMA), MIG layout (gi -> slices), spans in which its rows are absent."""

    pci: str
    uuids: list[tuple[int, str]]
    layout: dict[str, int] = field(default_factory=dict)
    absent: list[tuple[int, int]] = field(default_factory=list)
    hidden: bool = False  # the exporter never shows it
    recut: tuple[int, dict[str, int]] | None = None  # from when another layout
    gaps: list[tuple[int, int]] = field(default_factory=list)  # only its first instance is shown
    frozen: tuple[int, int] | None = None  # profiling counters stand at 0

    def layout_at(self, at: int) -> dict[str, int]:
        """MIG layout at an instant."""
        return self.recut[1] if self.recut and at >= self.recut[0] else self.layout


@dataclass
class Job:
    """One pod: its truth, and how the API server tells it."""

    uid: str
    space: str
    name: str
    team: str
    resource: str
    count: int
    node: str
    start: int
    end: int  # of its last container, or of its deletion
    devices: list[tuple[int, str | None]]  # index of GPU, gi; repeated per replica
    shape: str = "plain"  # plain, two, init, sidecar
    fails: bool = False
    untimed: bool = False  # ends without any finishedAt, as evicted pods do
    deleted: bool = False  # leaves the lists while running
    labelled_from: int = 0
    linger: int = 0
    kept: int = 10**9  # seconds the finished object stays in the lists


@dataclass
class Host:
    """One node of a case with the features drawn for it."""

    cluster: str
    name: str
    model: str
    gpus: list[Gpu]
    replicas: int = 1
    shared_resource: str = "nvidia.com/gpu"
    labels: bool = True  # exporter knows pods
    kubelet: bool = False  # pod-resources lists name the devices
    per_process: bool = False  # GPU_UTIL rows per pod beside the device's own
    single: bool = False  # MIG strategy: nvidia.com/gpu means instances
    tensor: bool = False
    style: str = "old"
    restyle_at: int | None = None
    restyle: str = "old"
    fields: tuple[str, ...] = ("sm", "gr", "util")
    parent: str = "none"  # parent rows on MIG: none, power, full
    label_style: str = "empty"  # empty, omitted, exported, old
    joins: int = -(10**6)
    leaves: int = 10**9
    rejoins: int = 10**9
    not_ready: tuple[int, int] | None = None
    silent_when_not_ready: bool = False
    cordoned: tuple[int, int] | None = None
    short: tuple[int, int, int] | None = None  # allocatable below capacity: from, to, by how many
    unhealthy: tuple[int, int] | None = None  # allocatable tells the lost GPU
    targets: int = 1
    addresses: bool = True  # rows carry pci_bus_id
    plain_labels: bool = True  # nvidia.com/gpu.count label present
    troubles: frozenset[str] = frozenset()
    jobs: list[Job] = field(default_factory=list)

    def present(self, at: int) -> bool:
        """Whether the API server has the node."""
        return self.joins <= at < self.leaves or at >= self.rejoins


@dataclass
class Scenario:
    """A whole case before it is printed; times in seconds from ``base`` (the window's start)."""

    rng: random.Random
    seed: int
    base_hour: int
    length: int
    interval: int
    staleness: int
    hosts: list[Host]
    features: set[str]
    namespaces: dict[str, dict[str, str]]
    evidence_end: int
    regular: bool = False
