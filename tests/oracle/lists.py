"""Saved lists of a scenario: nodes, pods and namespaces of the API server, pod-resources of the kubelets.

Belongs here: when lists are taken, what lands in which file. Does not belong here: object forms (kube.py), scrapes
(render.py).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .kube import node_object, pod_objects
from .world import Host

if TYPE_CHECKING:
    from .render import Printer


def add_kubelet_lists(printer: Printer, host: Host) -> None:
    """Pod-resources lists of a node, as the kubelet's service replies."""
    at = -printer.rng.randrange(0, 300)
    while at <= printer.scene.evidence_end:
        pods = []
        for job in host.jobs:
            if job.start + 2 <= at < job.end and host.present(at):
                ids = []
                for replica, (number, _) in enumerate(job.devices):
                    uuid = [u for since, u in host.gpus[number].uuids if since <= at][-1]
                    ids.append(uuid + (f"::{replica}" if host.replicas > 1 else ""))
                held = {"resourceName": job.resource, "deviceIds": ids}
                pods.append(
                    {"name": job.name, "namespace": job.space, "containers": [{"name": "main", "devices": [held]}]}
                )
        where = {"kind": "pod_resources", "node": host.name, "cluster": host.cluster, "at": printer.stamp(at)}
        name = f"kubelet_{host.cluster}_{host.name}_{'m' if at < 0 else ''}{abs(at):06d}.json"
        printer.add(name, json.dumps({"podResources": pods}), **where)
        at += printer.rng.randrange(60, 500)


def add_lists(printer: Printer, cluster: str, hosts: list[Host]) -> None:
    """Lists of nodes, pods and namespaces of one cluster, in one file or one a kind."""
    rng, say, scene = printer.rng, printer.scene.features.add, printer.scene
    split = rng.random() < 0.3
    at = -rng.randrange(0, 300)
    while at <= scene.evidence_end:
        nodes = [node_object(printer, h, at) for h in hosts if h.present(at)]
        pods = [p for h in hosts for p in pod_objects(printer, h, at)]
        spaces = [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": n, **{k: {"team": v} for k, v in more.items()}},
            }
            for n, more in scene.namespaces.items()
        ]
        where = {"kind": "kubernetes", "cluster": cluster, "at": printer.stamp(at)}
        stem = f"kube_{cluster}_{'m' if at < 0 else ''}{abs(at):06d}"
        if split and nodes:
            say("nodes and pods in lists of their own")
            for kind, items in (("NodeList", nodes), ("PodList", pods), ("NamespaceList", spaces)):
                bare = [{k: v for k, v in i.items() if k not in {"kind", "apiVersion"}} for i in items]
                document = {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": bare}
                printer.add(f"{stem}_{kind}.json", json.dumps(document), **where)
        elif nodes:
            document = {
                "apiVersion": "v1",
                "kind": "List",
                "metadata": {"resourceVersion": "1"},
                "items": nodes + pods + spaces,
            }
            printer.add(f"{stem}.json", json.dumps(document), **where)
        else:
            document = {"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
            printer.add(f"{stem}_none.json", json.dumps(document), **where)
            document = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": pods}
            printer.add(f"{stem}_pods.json", json.dumps(document), **where)
        if rng.random() < 0.08:
            _second_list(printer, stem, where, nodes, pods)
        at += rng.randrange(200, 700)


def _second_list(
    printer: Printer, stem: str, where: dict[str, Any], nodes: list[dict[str, Any]], pods: list[dict[str, Any]]
) -> None:
    """Another list of pods at the same instant that must not count: a part of it, or a long one without objects."""
    printer.scene.features.add("two lists of one kind at one instant")
    meta: dict[str, Any] = {"resourceVersion": "2"}
    items = pods[: len(pods) // 2]
    if printer.rng.random() < 0.5:
        items, meta = [], {"resourceVersion": "2", "note": "x" * 60000}
    document = {"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items}
    printer.add(f"{stem}_again.json", json.dumps(document), **where)
    if nodes:
        document = {"kind": "NodeList", "apiVersion": "v1", "metadata": meta, "items": []}
        printer.add(f"{stem}_again_nodes.json", json.dumps(document), **where)
