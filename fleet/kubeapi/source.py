"""What the world puts into a cluster's object store at an instant.

From `World` to store entries belongs here; the JSON of each object is in `objects`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Protocol

from fleet.kubeapi.objects import namespace_object, node_object, pod_object
from fleet.kubeapi.store import Entry
from fleet.model import Namespace, NodeState, PodState


class KubeWorld(Protocol):
    """What the API needs of a world; `fleet.world.World` has it, tests hand in a small one."""

    @property
    def namespaces(self) -> Iterable[Namespace]:
        """All namespaces of all clusters."""

    def nodes_at(self, at: datetime, cluster: str | None = None) -> Iterable[NodeState]:
        """Nodes as listed at `at`."""

    def pods_at(self, at: datetime, cluster: str | None = None) -> Iterable[PodState]:
        """Pods as listed at `at`."""


def world_source(world: KubeWorld, cluster: str) -> Callable[[datetime], Iterator[Entry]]:
    """A source for `Store`: namespaces, nodes and pods of the cluster; the records themselves are the tokens."""
    namespaces = [namespace for namespace in world.namespaces if namespace.cluster == cluster]

    def entries(at: datetime) -> Iterator[Entry]:
        for namespace in namespaces:
            yield Entry("namespaces", "", namespace.name, namespace, partial(namespace_object, namespace))
        for node in world.nodes_at(at, cluster):
            yield Entry("nodes", "", node.node.name, node, partial(node_object, node))
        for pod in world.pods_at(at, cluster):
            yield Entry("pods", pod.pod.namespace, pod.pod.name, pod, partial(pod_object, pod))

    return entries
