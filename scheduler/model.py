"""What the queue decides about: jobs as gangs of pods, nodes, queues with quota. Frozen records, nothing decides here.

Units: GPUs in milli (1000 is one device), CPU in milli, memory in MiB, times in whole microseconds since 1970 (UTC).
All are integers, so that sums and comparisons are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

MILLI = 1000
# CPU or memory of a node that nobody has counted.
UNBOUNDED = 1 << 40
SECOND_US = 1_000_000
HOUR_US = 3600 * SECOND_US

JobState = Literal["pending", "running", "stopping", "succeeded", "failed", "cancelled", "impossible"]


@dataclass(frozen=True)
class Shape:
    """What one pod asks of one node.

    `gpu_milli` is a multiple of 1000 (whole devices) or below 1000 (a share of one device). `accelerators` are the
    flavors it may run on, best liked first; empty: any.
    """

    gpu_milli: int
    cpu_milli: int = 0
    memory_mib: int = 0
    accelerators: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.gpu_milli < 0 or self.cpu_milli < 0 or self.memory_mib < 0:
            raise ValueError("a shape asks for nothing negative")
        if self.gpu_milli > MILLI and self.gpu_milli % MILLI:
            raise ValueError("more than one GPU is asked for in whole devices")

    @property
    def gpus(self) -> int:
        """Whole devices; 0 for a share of one."""
        return self.gpu_milli // MILLI


@dataclass(frozen=True)
class Role:
    """Pods of one shape: `count` wanted, at least `min_count` for the gang to run."""

    name: str
    shape: Shape
    count: int
    min_count: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.least <= self.count:
            raise ValueError(f"role {self.name}: min count {self.min_count} and count {self.count} do not fit together")

    @property
    def least(self) -> int:
        """Pods without which the gang does not run."""
        return self.count if self.min_count is None else self.min_count


@dataclass(frozen=True)
class Topology:
    """A label of nodes whose value all pods should share; `is_required`: must share."""

    key: str
    is_required: bool


@dataclass(frozen=True)
class Job:
    """A gang that starts whole or not at all.

    `priority` is the value of its priority class. `estimate_us` is what the user expects, `limit_us` when it is
    stopped. `checkpoint_us` is the interval in which it saves its work; None: never. `save_us` is how long it takes to
    save when told to; None: it does not listen. `submit_us` never changes: a requeued job keeps its age.
    """

    job_id: str
    team: str
    queue: str
    roles: tuple[Role, ...]
    submit_us: int
    priority_class: str = "normal"
    priority: int = 0
    is_critical: bool = False
    is_preemptible: bool = True
    estimate_us: int | None = None
    limit_us: int | None = None
    checkpoint_us: int | None = None
    topology: Topology | None = None
    deadline_us: int | None = None
    backoff_limit: int = 6
    save_us: int | None = None
    labels: tuple[tuple[str, str], ...] = ()

    @cached_property
    def shape_key(self) -> tuple[object, ...]:
        """Equal for jobs that any snapshot answers alike."""
        return (self.roles, self.topology, self.is_preemptible, self.is_critical, self.priority_class)

    @cached_property
    def gpu_milli(self) -> int:
        """GPUs of the whole gang."""
        return sum(r.count * r.shape.gpu_milli for r in self.roles)

    @cached_property
    def least_gpu_milli(self) -> int:
        """GPUs of the gang at its smallest."""
        return sum(r.least * r.shape.gpu_milli for r in self.roles)

    @cached_property
    def widest(self) -> int:
        """Whole devices of its largest pod."""
        return max(r.shape.gpus for r in self.roles)

    @cached_property
    def full_counts(self) -> tuple[int, ...]:
        """Pods of each role as asked."""
        return tuple(r.count for r in self.roles)

    @cached_property
    def least_counts(self) -> tuple[int, ...]:
        """Pods of each role of the gang at its smallest."""
        return tuple(r.least for r in self.roles)

    @cached_property
    def demands(self) -> dict[tuple[tuple[int, ...], str], dict[Kind, int]]:
        """Demands known by counts and flavor, see `demand`."""
        return {}

    @cached_property
    def is_elastic(self) -> bool:
        """Whether it may run smaller than asked."""
        return any(r.least < r.count for r in self.roles)

    @cached_property
    def accelerators(self) -> tuple[str, ...] | None:
        """Flavors every role may run on, best liked first; None: any."""
        lists = [r.shape.accelerators for r in self.roles if r.shape.accelerators]
        return tuple(a for a in lists[0] if all(a in other for other in lists)) if lists else None


@dataclass(frozen=True)
class Node:
    """A node: `flavor` is its accelerator model, `gpus` whole devices; `labels` name topology domains."""

    name: str
    flavor: str
    gpus: int
    cpu_milli: int = UNBOUNDED
    memory_mib: int = UNBOUNDED
    labels: Mapping[str, str] = field(default_factory=dict)
    is_schedulable: bool = True


# (resource, flavor): resources are GPU, CPU and MEMORY in the units of the module
Kind = tuple[str, str]
GPU, CPU, MEMORY = "gpu", "cpu", "memory"


@dataclass(frozen=True)
class Quota:
    """Of one resource of one flavor: guaranteed, how much may be borrowed beyond it and lent of it (None: no limit)."""

    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True)
class Queue:
    """A team's queue. `weight` 0 comes last. Queues of one `cohort` borrow from each other.

    A kind without a quota is not limited by any.
    """

    name: str
    weight: int = 1
    cohort: str = ""
    quotas: Mapping[Kind, Quota] = field(default_factory=dict)


@dataclass(frozen=True)
class PodPlace:
    """One pod's place: role, index in the role, node index, and the devices it gets with how much of each (milli)."""

    role: int
    index: int
    node: int
    devices: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Placement:
    """Places of a whole gang, all on nodes of one flavor."""

    flavor: str
    pods: tuple[PodPlace, ...]

    @cached_property
    def gpu_milli(self) -> int:
        """GPUs of all its pods."""
        return sum(milli for pod in self.pods for _, milli in pod.devices)

    def counts(self, job: Job) -> tuple[int, ...]:
        """Pods of each role."""
        if len(self.pods) == sum(job.full_counts):
            return job.full_counts
        return tuple(sum(p.role == r for p in self.pods) for r in range(len(job.roles)))


@dataclass(frozen=True)
class Ask:
    """A gang that wants places: `counts[r]` pods of each role r, all on nodes of `flavor`."""

    job: Job
    counts: tuple[int, ...]
    flavor: str


def demand(job: Job, counts: tuple[int, ...], flavor: str) -> dict[Kind, int]:
    """What a gang of `counts[r]` pods of each role uses of every kind. Kept for the job: not to be changed."""
    known = job.demands.get((counts, flavor))
    if known is None:
        known = job.demands[counts, flavor] = _demand(job, counts, flavor)
    return known


def _demand(job: Job, counts: tuple[int, ...], flavor: str) -> dict[Kind, int]:
    totals: dict[Kind, int] = {}
    for n, role in zip(counts, job.roles, strict=True):
        for resource, amount in (
            (GPU, role.shape.gpu_milli),
            (CPU, role.shape.cpu_milli),
            (MEMORY, role.shape.memory_mib),
        ):
            if amount:
                totals[resource, flavor] = totals.get((resource, flavor), 0) + n * amount
    return totals


def full(job: Job) -> tuple[int, ...]:
    """The counts of a gang as asked."""
    return job.full_counts


def least(job: Job) -> tuple[int, ...]:
    """The counts of a gang at its smallest."""
    return job.least_counts
