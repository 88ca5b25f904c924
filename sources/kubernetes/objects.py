"""Single objects of the Kubernetes API to rows of raw tables.

Each reader gives pairs of table and row, without the columns of the snapshot, and raises `BadObject`
naming the field it cannot read. Requests and ends of pods are worked out in `pods.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from sources.kubernetes import devices, pods
from sources.kubernetes.quantity import (
    MOST_DEVICES,
    BadObject,
    instant,
    is_extended,
    mapping,
    objects,
    quantity,
    text,
    whole,
)

Json = dict[str, Any]


def _name(metadata: Json) -> str:
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise BadObject("metadata.name is missing")
    return name


def _texts(value: Any, name: str) -> list[tuple[str, str]]:
    return sorted((k, v if isinstance(v, str) else orjson.dumps(v).decode()) for k, v in mapping(value, name).items())


def _integer(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise BadObject(f"{name}: {value!r} is no whole number")
    return value


def _node(node: Json, metadata: Json) -> list[tuple[str, Json]]:
    name = _name(metadata)
    spec, status = mapping(node.get("spec"), "spec"), mapping(node.get("status"), "status")
    capacity = mapping(status.get("capacity"), "status.capacity")
    allocatable = mapping(status.get("allocatable"), "status.allocatable")
    conditions = objects(status.get("conditions"), "status.conditions")
    ready = next((c for c in conditions if c.get("type") == "Ready"), {})
    taints = objects(spec.get("taints"), "spec.taints")

    def amount(source: Json, resource: str, scale: int = 1) -> int | None:
        if resource not in source:
            return None
        path = f"status.capacity.{resource}"
        read = quantity(source[resource], path) * scale
        return whole(read, path, MOST_DEVICES) if is_extended(resource) else whole(read, path)

    rows = [("raw.kube_nodes", {
        "node": name, "node_uid": text(metadata.get("uid"), "metadata.uid"),
        "created_at": instant(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
        "provider_id": text(spec.get("providerID"), "spec.providerID"),
        "labels": _texts(metadata.get("labels"), "metadata.labels"),
        "annotations": _texts(metadata.get("annotations"), "metadata.annotations"),
        "taints": orjson.dumps(taints, option=orjson.OPT_SORT_KEYS).decode() if taints else None,
        "is_unschedulable": bool(spec.get("unschedulable")),
        "ready_status": text(ready.get("status"), "Ready.status"),
        "ready_changed_at": instant(ready.get("lastTransitionTime"), "Ready.lastTransitionTime"),
        "cpu_milli": amount(capacity, "cpu", 1000), "memory_bytes": amount(capacity, "memory"),
    })]  # fmt: skip
    for resource in sorted(r for r in {**capacity, **allocatable} if is_extended(r)):
        rows.append(("raw.kube_node_resources", {
            "node": name, "resource": resource, "capacity": amount(capacity, resource),
            "allocatable": amount(allocatable, resource),
        }))  # fmt: skip
    return rows


def _pod(pod: Json, metadata: Json) -> list[tuple[str, Json]]:
    name = _name(metadata)
    namespace = text(metadata.get("namespace"), "metadata.namespace") or "default"
    spec, status = mapping(pod.get("spec"), "spec"), mapping(pod.get("status"), "status")
    # Hand-made lists may lack the UID; name and creation time then stand for it.
    uid = text(metadata.get("uid"), "metadata.uid")
    uid = uid or f"{namespace}/{name}@{metadata.get('creationTimestamp') or ''}"
    requests = pods.effective_requests(spec)
    kind, owner_name, owner_uid = pods.owner(metadata)
    rows = [("raw.kube_pods", {
        "pod_uid": uid, "namespace": namespace, "pod": name, "node": text(spec.get("nodeName"), "spec.nodeName"),
        "phase": text(status.get("phase"), "status.phase"), "reason": text(status.get("reason"), "status.reason"),
        "created_at": instant(metadata.get("creationTimestamp"), "metadata.creationTimestamp"),
        "scheduled_at": pods.scheduled_at(status),
        "pod_started_at": instant(status.get("startTime"), "status.startTime"),
        "pod_finished_at": pods.finished_at(pod),
        "deletion_requested_at": instant(metadata.get("deletionTimestamp"), "metadata.deletionTimestamp"),
        "priority": _integer(spec.get("priority"), "spec.priority"),
        "priority_class": text(spec.get("priorityClassName"), "spec.priorityClassName"),
        "scheduler_name": text(spec.get("schedulerName"), "spec.schedulerName"),
        "owner_kind": text(kind, "ownerReferences.kind"), "owner_name": text(owner_name, "ownerReferences.name"),
        "owner_uid": text(owner_uid, "ownerReferences.uid"),
        "labels": _texts(metadata.get("labels"), "metadata.labels"),
        "annotations": _texts(metadata.get("annotations"), "metadata.annotations"),
        "cpu_milli": whole(requests["cpu"] * 1000, "cpu") if "cpu" in requests else None,
        "memory_bytes": whole(requests["memory"], "memory") if "memory" in requests else None,
        "restarts": pods.restarts(status),
    })]  # fmt: skip
    for resource, amount in pods.devices(requests).items():
        rows.append(("raw.kube_pod_resources", {"pod_uid": uid, "resource": resource, "quantity": amount}))
    return rows


def _namespace(namespace: Json, metadata: Json) -> list[tuple[str, Json]]:
    row = {"namespace": _name(metadata), "labels": _texts(metadata.get("labels"), "metadata.labels"),
           "annotations": _texts(metadata.get("annotations"), "metadata.annotations")}  # fmt: skip
    return [("raw.kube_namespaces", row)]


def _claim(claim: Json, metadata: Json) -> list[tuple[str, Json]]:
    return [("raw.kube_devices", row) for row in devices.claim_devices(claim, metadata)]


# By kind: the object and its metadata to (table, row) pairs.
READERS: dict[str, Callable[[Json, Json], list[tuple[str, Json]]]] = {
    "Node": _node, "Pod": _pod, "Namespace": _namespace, "ResourceClaim": _claim,
}  # fmt: skip
