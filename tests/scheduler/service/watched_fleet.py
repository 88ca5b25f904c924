"""A live fleet for the queue service that keeps its own record of every pod it saw."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from starlette.applications import Starlette
from starlette.routing import Mount

from exporters.server import serving, write_kubeconfig
from fleet.clock import Clock
from fleet.kubeapi.app import ClusterApi, cluster_api
from fleet.kubeapi.fixed import EPOCH, FixedWorld, fixed_node
from fleet.model import Namespace
from scheduler.service.kubeworld import ATTEMPT_LABEL, JOB_LABEL

SPEED = 40.0


@dataclass
class Record:
    """What the fleet saw of pods: names created, bound and running, by the watch log of its API server."""

    api: ClusterApi
    version: int = 0
    created: Counter[str] = field(default_factory=Counter)
    bound: Counter[str] = field(default_factory=Counter)
    ran: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    nodes: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def __post_init__(self) -> None:
        self.version = self.api.store.version
        self.api.store.subscribe(self.changed)

    def changed(self) -> None:
        """Read what is new; called with every change, in the server's own thread."""
        for event in self.api.store.since(self.version):
            self.version = event.version
            if event.resource != "pods" or JOB_LABEL not in (event.object["metadata"].get("labels") or {}):
                continue
            meta, node = event.object["metadata"], event.object["spec"].get("nodeName")
            self.created[meta["name"]] += event.type == "ADDED"
            if event.type != "DELETED" and node and not (event.old or {}).get("spec", {}).get("nodeName"):
                self.bound[meta["name"]] += 1
                self.nodes[meta["name"]].add(node)
            if event.object["status"].get("phase") == "Running":
                self.ran[meta["labels"][JOB_LABEL]].add(int(meta["labels"][ATTEMPT_LABEL]))


@contextmanager
def fleet(folder: Path) -> Iterator[Record]:
    """A live fleet of 12 nodes with 8 GPUs each, its kubeconfig in the folder."""
    world = FixedWorld(
        [fixed_node(f"node-{i:02}") for i in range(12)], namespaces=[Namespace("alpha", "default", {}, {}, EPOCH)]
    )
    api = cluster_api(world, "alpha", Clock(EPOCH, SPEED), log_size=1_000_000)
    record = Record(api)
    with serving(Starlette(routes=[Mount("/clusters/alpha", api.app)])) as url:
        write_kubeconfig(folder / "kubeconfig", ["alpha"], url)
        yield record
