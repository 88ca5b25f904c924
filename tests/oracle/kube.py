"""Nodes and pods of a scenario as the API server would show them at one instant.

Belongs here: object forms. Does not belong here: when lists are taken and how they are filed (render.py).
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol

from .world import MODELS, Host, Job


class Stamps(Protocol):
    """Turns seconds of a case into RFC 3339."""

    def stamp(self, second: int) -> str:
        """RFC 3339 of a second of the case."""


def node_object(clock: Stamps, host: Host, at: int) -> dict[str, Any]:
    """The Node at an instant: capacity, allocatable, Ready, cordon."""
    capacity: Counter[str] = Counter()
    for gpu in host.gpus:
        for slices in gpu.layout_at(at).values():
            capacity["nvidia.com/gpu" if host.single else f"nvidia.com/mig-{MODELS[host.model][1][slices]}"] += 1
    whole = sum(1 for g in host.gpus if not g.layout_at(at))
    capacity[host.shared_resource] += whole * host.replicas
    allocatable = dict(capacity)
    if host.short and host.short[0] <= at < host.short[1]:
        allocatable[host.shared_resource] -= host.short[2]
    if host.unhealthy and host.unhealthy[0] <= at < host.unhealthy[1]:
        allocatable[host.shared_resource] = max(0, allocatable[host.shared_resource] - 1)
    labels = {"kubernetes.io/hostname": host.name, "nvidia.com/gpu.product": MODELS[host.model][0].replace(" ", "-")}
    if host.plain_labels:
        labels["nvidia.com/gpu.count"] = str(len(host.gpus))
    if host.replicas > 1:
        labels["nvidia.com/gpu.replicas"] = str(host.replicas)
    if any(g.layout for g in host.gpus):
        labels["nvidia.com/mig.strategy"] = "single" if host.single else "mixed"
    if host.single:
        labels["nvidia.com/gpu.count"] = str(capacity["nvidia.com/gpu"])
        labels["nvidia.com/gpu.product"] += "-MIG-" + MODELS[host.model][1][next(iter(host.gpus[0].layout.values()))]
    since, status = max(-86400, host.joins), "True"
    if at >= host.rejoins:
        since = host.rejoins
    if host.not_ready and host.not_ready[0] <= at:
        since, status = (host.not_ready[0], "Unknown") if at < host.not_ready[1] else (host.not_ready[1], "True")
        since = max(since, host.rejoins) if at >= host.rejoins else max(since, host.joins)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": host.name, "uid": f"uid-{host.cluster}-{host.name}", "labels": labels,
                     "creationTimestamp": clock.stamp(max(-86400, host.joins))},
        "spec": {"unschedulable": True} if host.cordoned and host.cordoned[0] <= at < host.cordoned[1] else {},
        "status": {
            "capacity": {"cpu": "64", "memory": "1Ti", **{k: str(v) for k, v in capacity.items()}},
            "allocatable": {"cpu": "64", "memory": "1Ti", **{k: str(v) for k, v in allocatable.items()}},
            "conditions": [
                {"type": "MemoryPressure", "status": "False", "lastTransitionTime": clock.stamp(-86400)},
                {"type": "Ready", "status": status, "lastTransitionTime": clock.stamp(since), "reason": "Kubelet"},
            ],
        },
    }  # fmt: skip


def pod_objects(clock: Stamps, host: Host, at: int) -> list[dict[str, Any]]:
    """Pods of a node in the list taken at an instant, one unbound pod that waits among them."""
    found = [_pod(clock, job, at) for job in host.jobs if job.start - 5 <= at and _listed(job, at)]
    waiting = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{host.name}-waits", "namespace": "ml", "uid": f"{host.cluster}-{host.name}-w",
                     "creationTimestamp": clock.stamp(-600), "labels": {"team": "waiting"}},
        "spec": {"containers": [_container("main", host.jobs[0].resource if host.jobs else "nvidia.com/gpu", 1)]},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                   "reason": "Unschedulable", "lastTransitionTime": clock.stamp(-600)}]},
    }  # fmt: skip
    return [*found, waiting]


def _listed(job: Job, at: int) -> bool:
    return at < job.end if job.deleted else at < job.end + job.kept


def _container(name: str, resource: str, count: int, **more: Any) -> dict[str, Any]:
    ask = {resource: str(count)} if count else {}
    return {"name": name, "image": "x", "resources": {"requests": ask, "limits": ask} if ask else {}, **more}


def _spec(job: Job) -> dict[str, Any]:
    """Four ways to ask for the same number of devices."""
    n, r = job.count, job.resource
    spec: dict[str, Any] = {"containers": [_container("main", r, n)], "restartPolicy": "Never"}
    if job.shape == "two":
        spec["containers"] = [_container("main", r, n), _container("side", r, 0)]
        if n > 1:
            spec["containers"] = [_container("main", r, n - 1), _container("side", r, 1)]
    elif job.shape == "init":
        spec["initContainers"] = [_container("prepare", r, n)]
        spec["containers"] = [_container("main", r, max(0, n - 1))]
    elif job.shape == "sidecar":
        spec["initContainers"] = [_container("proxy", r, 1 if n > 1 else 0, restartPolicy="Always")]
        spec["containers"] = [_container("main", r, n - 1 if n > 1 else n)]
    return spec


def _pod(clock: Stamps, job: Job, at: int) -> dict[str, Any]:
    meta = {"name": job.name, "namespace": job.space, "uid": job.uid, "creationTimestamp": clock.stamp(job.start - 5)}
    labels = {"app": "x", **({"team": job.team} if job.team else {})}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "labels": labels}, "spec": _spec(job), "status": {}}
    if at < job.start:
        no = {"type": "PodScheduled", "status": "False", "lastTransitionTime": clock.stamp(job.start - 5)}
        pod["status"] = {"phase": "Pending", "conditions": [no]}
        return pod
    pod["spec"]["nodeName"] = job.node  # type: ignore[index]
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": clock.stamp(job.start)}
    runs = min(job.start + 15, job.end - 1)
    status: dict[str, Any] = {"phase": "Running", "startTime": clock.stamp(job.start + 1), "conditions": [bound]}
    if at < runs:
        status["phase"] = "Pending"
    else:
        ended = at >= job.end
        if ended:
            status["phase"] = "Failed" if job.fails else "Succeeded"
        names = [c["name"] for c in pod["spec"]["containers"]]  # type: ignore[index]
        ends = {name: job.end - 30 * index for index, name in enumerate(names)}
        if ended and job.untimed:
            pod["status"] = {**status, "reason": "Evicted"}
            return pod
        status["containerStatuses"] = [_status(clock, n, runs, max(runs, ends[n]), at, job.fails) for n in names]
        inits = [c["name"] for c in pod["spec"].get("initContainers", [])]  # type: ignore[attr-defined]
        if inits:
            stop = runs if inits == ["prepare"] else job.end
            status["initContainerStatuses"] = [_status(clock, n, job.start, stop, at, False) for n in inits]
    pod["status"] = status
    return pod


def _status(clock: Stamps, name: str, start: int, end: int, at: int, fails: bool) -> dict[str, Any]:
    state: dict[str, Any] = {"running": {"startedAt": clock.stamp(start)}}
    if at >= end:
        code, reason = (137, "Error") if fails else (0, "Completed")
        times = {"startedAt": clock.stamp(start), "finishedAt": clock.stamp(end)}
        state = {"terminated": {"exitCode": code, "reason": reason, **times}}
    return {"name": name, "ready": at < end, "restartCount": 0, "image": "x", "imageID": "", "state": state}
