"""The things a simulated fleet is made of, as frozen records.

Records only: nothing here generates, places or measures. Timestamps are naive UTC datetimes on
whole seconds, as the Kubernetes API prints them; intervals are half-open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Shape = Literal["training", "inference", "notebook", "starved", "sweep", "batch"]
FaultKind = Literal[
    "exporter_down", "empty_body", "slow_scrape", "node_reboot", "pod_deleted", "label_flap",
    "gpu_lost", "clock_skew", "sentinels", "cordon", "failing_gpu",
]  # fmt: skip
ScrapeOutcome = Literal["ok", "down", "empty", "timeout"]


@dataclass(frozen=True)
class MigInstance:
    """A MIG GPU instance of a board. `memory_mib` is what the instance may use."""

    gi_id: int
    profile: str
    slices: int
    memory_mib: int

    @property
    def resource(self) -> str:
        """Extended resource under the mixed strategy, e.g. `nvidia.com/mig-3g.20gb`."""
        return f"nvidia.com/mig-{self.profile}"


@dataclass(frozen=True)
class Device:
    """One board (or TPU chip) of a node. `gpu_uuid` is empty for a TPU, which has no DCGM exporter."""

    gpu_index: int
    gpu_uuid: str
    pci_bus_id: str
    device: str
    model: str
    numa: int
    nvlink_island: int
    instances: tuple[MigInstance, ...] = ()


@dataclass(frozen=True)
class Node:
    """A node as the API server lists it; `accelerator` is its key in the catalogue.

    `target` is the exporter's `host:port`, None where the node has no DCGM exporter.
    `capacity` holds extended resources only.
    """

    cluster: str
    name: str
    uid: str
    provider: str
    region: str
    zone: str
    instance_type: str
    provider_id: str
    accelerator: str
    driver: str
    cpu_milli: int
    memory_bytes: int
    capacity: Mapping[str, int]
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    created_at: datetime
    devices: tuple[Device, ...]
    target: str | None


@dataclass(frozen=True)
class Namespace:
    """A namespace as listed."""

    cluster: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    created_at: datetime


@dataclass(frozen=True)
class Pod:
    """A pod and all that will happen to it.

    `units` are the units it holds as (index into `node.devices`, gi_id or None); one for each of
    `quantity`. `scheduled_at` to `finished_at` is the time it holds them; `started_at` is when its
    container runs. `gone_at` is set where the pod vanishes from the lists without an end (then
    `finished_at` equals it); otherwise it is listed as `end_phase` until `listed_until`.
    `restarts_at` are container restarts. `team` is the true team, `(unmapped)` where nothing says.
    """

    uid: str
    cluster: str
    namespace: str
    name: str
    container: str
    node: str
    resource: str
    quantity: int
    units: tuple[tuple[int, int | None], ...]
    cpu_milli: int
    memory_bytes: int
    team: str
    shape: Shape
    owner_kind: str
    owner_name: str
    owner_uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    priority: int
    priority_class: str
    created_at: datetime
    scheduled_at: datetime
    started_at: datetime
    finished_at: datetime
    listed_until: datetime
    end_phase: Literal["Succeeded", "Failed"] = "Succeeded"
    end_reason: str | None = None
    gone_at: datetime | None = None
    restarts_at: tuple[datetime, ...] = ()
    scheduler_name: str = "default-scheduler"


@dataclass(frozen=True)
class Fault:
    """An injected fault over `[started_at, finished_at)`; `amount` is the skew in seconds for clock_skew."""

    fault_id: str
    kind: FaultKind
    cluster: str
    node: str
    started_at: datetime
    finished_at: datetime
    pci_bus_id: str | None = None
    pod_uid: str | None = None
    amount: float = 0.0


@dataclass(frozen=True)
class NodeState:
    """A node at an instant. `allocatable` holds extended resources; `taints` are API objects."""

    node: Node
    ready_status: Literal["True", "False", "Unknown"]
    ready_changed_at: datetime
    is_unschedulable: bool
    allocatable: Mapping[str, int]
    taints: tuple[Mapping[str, str], ...] = ()


@dataclass(frozen=True)
class PodState:
    """A pod at an instant, as the API server would show it.

    `scheduled_at`, `started_at` and `finished_at` are None while they lie in the future; `node` is None
    while the pod is not bound. `phase` is Pending, Running, Succeeded or Failed.
    """

    pod: Pod
    phase: Literal["Pending", "Running", "Succeeded", "Failed"]
    node: str | None
    scheduled_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    reason: str | None
    restarts: int


@dataclass(frozen=True)
class TraceJob:
    """A job handed in from a trace: submit time and duration in seconds, whole GPUs, group (becomes the team)."""

    submit_s: float
    duration_s: float
    num_gpus: int
    group: str


@dataclass(frozen=True)
class FleetSpec:
    """What to simulate.

    `end_at` anchors the clock: telemetry covers `[end_at - days, end_at)`, allocation history the
    `history_days` before it. `interval_s` is the scrape interval of the history face, `snapshot_s`
    that of its Kubernetes lists, `collect_s` the exporter's collect interval. `scale` multiplies the
    number of nodes of the default fleet. `faults` is "none", "mild", "all" or fault kinds.
    `jobs` replaces the seeded work by a trace (sorted or not; times relative to anything): the
    jobs submitted in the `days` from `jobs_from_s` (default: the first submit) are shifted so that
    they fill the telemetry window, and the fleet is sized to them. `kube_labels` is the exporter's
    Kubernetes mapping.
    """

    seed: int = 7
    end_at: datetime = datetime(2026, 6, 15)
    days: int = 14
    history_days: int = 120
    interval_s: int = 60
    snapshot_s: int = 300
    collect_s: int = 30
    scale: float = 1.0
    faults: str | tuple[str, ...] = "mild"
    kube_labels: bool = True
    finished_ttl_s: int = 1800
    jobs: tuple[TraceJob, ...] | None = field(default=None, repr=False)
    jobs_from_s: float | None = None
