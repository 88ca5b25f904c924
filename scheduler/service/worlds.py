"""The world that the queue runs in, as a seam: what can be seen of nodes and pods, and what can be done to pods.

Every write may be done again: pods have names that follow from job, attempt, role and index, so a create or bind that
was made before a crash is found to be done. Belongs here: the interface and the in-memory world beside it. Not here:
Kubernetes (`kubeworld.py`), what should run (`core.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from scheduler.model import SECOND_US, Node, Shape
from scheduler.service.codec import Template

Phase = Literal["pending", "running", "succeeded", "failed"]


@dataclass(frozen=True)
class Pod:
    """A pod that should be: its place, and what it runs."""

    name: str
    job_id: str
    attempt: int
    team: str
    role: str
    index: int
    node: str
    shape: Shape
    devices: tuple[int, ...]
    template: Template


@dataclass(frozen=True)
class SeenPod:
    """A pod as the world shows it; `job_id` "" where it is none of the queue's. `node` None: not bound."""

    name: str
    job_id: str
    attempt: int
    node: str | None
    phase: Phase
    gpu_milli: int = 0
    cpu_milli: int = 0
    memory_mib: int = 0

    @property
    def holds(self) -> bool:
        """Whether it takes room on its node."""
        return self.node is not None and self.phase in ("pending", "running")


@dataclass(frozen=True)
class Seen:
    """All nodes and pods at one instant (us); `is_schedulable` of a node also says whether it is Ready.

    `ready`: names of nodes whose pods run (a cordoned node is ready too).
    """

    at_us: int
    nodes: tuple[Node, ...]
    ready: frozenset[str]
    pods: Mapping[str, SeenPod]


class Refused(Exception):
    """The world will not have this pod there; the message says why."""


class Unreachable(Exception):
    """The world does not answer."""


class World(Protocol):
    """What the queue needs of a world. `Unreachable` from any call, `Refused` from `start`."""

    def now_us(self) -> int: ...

    def see(self) -> Seen: ...

    def start(self, pods: list[Pod]) -> None:
        """Create all pods of a gang, then bind them; those that are there and bound so are left alone."""

    def save(self, names: list[str], kill_us: int) -> None:
        """Tell pods to save their work before `kill_us`."""

    def stop(self, names: list[str], grace_s: int) -> None:
        """End pods; those that are gone are left alone."""


def pod_name(job_id: str, attempt: int, role: int, index: int) -> str:
    """The one name that a pod of a gang can have in an attempt."""
    return f"{job_id}-{attempt}-{role}-{index}"


@dataclass
class FakeWorld:
    """Pods in memory under a clock that is set by hand. A bound pod runs at once and ends after its run seconds.

    `refuses`: nodes that refuse to have pods bound to them. `record`: (what, pod name) of everything that was done.
    """

    nodes: tuple[Node, ...]
    at_us: int = 1_800_000_000 * SECOND_US
    pods: dict[str, SeenPod] = field(default_factory=dict)
    ends: dict[str, int] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    refuses: set[str] = field(default_factory=set)
    is_reachable: bool = True
    record: list[tuple[str, str]] = field(default_factory=list)

    def now_us(self) -> int:
        """The clock."""
        return self.at_us

    def advance(self, seconds: float) -> None:
        """Time passes; pods whose time is over end well."""
        self.at_us += round(seconds * SECOND_US)
        for name, end in self.ends.items():
            if name in self.pods and end <= self.at_us and self.pods[name].phase == "running":
                self.pods[name] = replace(self.pods[name], phase="succeeded")

    def see(self) -> Seen:
        """Everything now."""
        self._answer()
        nodes = tuple(replace(n, is_schedulable=n.is_schedulable and n.name not in self.down) for n in self.nodes)
        return Seen(self.at_us, nodes, frozenset(n.name for n in nodes) - self.down, dict(self.pods))

    def start(self, pods: list[Pod]) -> None:
        """As the seam says."""
        self._answer()
        for pod in pods:
            if pod.name not in self.pods:
                shape = pod.shape
                self.pods[pod.name] = SeenPod(
                    pod.name, pod.job_id, pod.attempt, None, "pending", shape.gpu_milli, shape.cpu_milli,
                    shape.memory_mib,
                )  # fmt: skip
                self.record.append(("create", pod.name))
        for pod in pods:
            if pod.node in self.refuses:
                raise Refused(f"node {pod.node} refuses {pod.name}")
            if self.pods[pod.name].node is None:
                self.pods[pod.name] = replace(self.pods[pod.name], node=pod.node, phase="running")
                self.record.append(("bind", pod.name))
                if (seconds := pod.template.annotations.get("strandline.io/run-seconds")) is not None:
                    self.ends[pod.name] = self.at_us + round(float(seconds) * SECOND_US)

    def save(self, names: list[str], kill_us: int) -> None:
        """As the seam says."""
        self._answer()
        self.record += [("save", name) for name in names]

    def stop(self, names: list[str], grace_s: int) -> None:
        """As the seam says; they go at once."""
        self._answer()
        for name in names:
            if self.pods.pop(name, None) is not None:
                self.record.append(("stop", name))

    def _answer(self) -> None:
        if not self.is_reachable:
            raise Unreachable("the fake world is switched off")
