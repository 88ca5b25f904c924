"""Server-side printing: the Table form of lists that `kubectl get` asks for.

Columns and cells per resource belong here (they follow kubernetes/pkg/printers); choosing the form does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from fleet.kubeapi.kubelet import parse_time

Object = dict[str, Any]

# name, type, format, priority (0 always, 1 with -o wide)
_COLUMNS: dict[str, tuple[tuple[str, str, str, int], ...]] = {
    "pods": (
        ("Name", "string", "name", 0),
        ("Ready", "string", "", 0),
        ("Status", "string", "", 0),
        ("Restarts", "string", "", 0),
        ("Age", "string", "", 0),
        ("IP", "string", "", 1),
        ("Node", "string", "", 1),
        ("Nominated Node", "string", "", 1),
        ("Readiness Gates", "string", "", 1),
    ),
    "nodes": (
        ("Name", "string", "name", 0),
        ("Status", "string", "", 0),
        ("Roles", "string", "", 0),
        ("Age", "string", "", 0),
        ("Version", "string", "", 0),
        ("Internal-IP", "string", "", 1),
        ("External-IP", "string", "", 1),
        ("OS-Image", "string", "", 1),
        ("Kernel-Version", "string", "", 1),
        ("Container-Runtime", "string", "", 1),
    ),
    "namespaces": (("Name", "string", "name", 0), ("Status", "string", "", 0), ("Age", "string", "", 0)),
    "events": (
        ("Last Seen", "string", "", 0),
        ("Type", "string", "", 0),
        ("Reason", "string", "", 0),
        ("Object", "string", "", 0),
        ("Message", "string", "", 0),
    ),
}


def table(
    resource: str, items: Iterable[Object], now: datetime, list_meta: Object, include: str = "Metadata"
) -> Object:
    """A meta.k8s.io/v1 Table of the items; `include` is the request's includeObject."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta,
        "columnDefinitions": [
            {"name": name, "type": kind, "format": form, "description": "", "priority": priority}
            for name, kind, form, priority in _COLUMNS[resource]
        ],
        "rows": [{"cells": cells(resource, item, now), "object": _embedded(item, include)} for item in items],
    }


def _embedded(item: Object, include: str) -> Object | None:
    if include == "None":
        return None
    if include == "Object":
        return item
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": item["metadata"]}


def cells(resource: str, item: Object, now: datetime) -> list[Any]:
    """The cells of one row."""
    meta = item["metadata"]
    age = duration(now, parse_time(meta.get("creationTimestamp")))
    if resource == "pods":
        return _pod_cells(item, now, age)
    if resource == "nodes":
        return _node_cells(item, age)
    if resource == "namespaces":
        return [meta["name"], item["status"].get("phase", ""), age]
    involved = item.get("involvedObject") or {}
    seen = duration(now, parse_time(item.get("lastTimestamp") or meta.get("creationTimestamp")))
    what = f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"
    return [seen, item.get("type", ""), item.get("reason", ""), what, item.get("message", "")]


def _pod_cells(item: Object, now: datetime, age: str) -> list[Any]:
    meta, spec, status = item["metadata"], item["spec"], item["status"]
    statuses = status.get("containerStatuses") or []
    ready = sum(1 for c in statuses if c.get("ready"))
    word = status.get("reason") or status.get("phase", "")
    for container in reversed(statuses):
        state = container.get("state") or {}
        for kind in ("waiting", "terminated"):
            if (state.get(kind) or {}).get("reason") and not status.get("reason"):
                word = state[kind]["reason"]
    if "deletionTimestamp" in meta:
        word = "Terminating"
    restarts = sum(c.get("restartCount", 0) for c in statuses)
    return [
        meta["name"],
        f"{ready}/{len(spec.get('containers') or [])}",
        word,
        str(restarts),
        age,
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        "<none>",
    ]


def _node_cells(item: Object, age: str) -> list[Any]:
    meta, status = item["metadata"], item["status"]
    conditions = status.get("conditions") or []
    ready = next((c["status"] for c in conditions if c["type"] == "Ready"), "Unknown")
    words = ["Ready" if ready == "True" else "NotReady"]
    if item.get("spec", {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key[len(prefix) :] for key in meta.get("labels") or {} if key.startswith(prefix))
    info = status.get("nodeInfo") or {}
    addresses = {a["type"]: a["address"] for a in status.get("addresses") or []}
    return [
        meta["name"],
        ",".join(words),
        ",".join(roles) or "<none>",
        age,
        info.get("kubeletVersion", ""),
        addresses.get("InternalIP", "<none>"),
        addresses.get("ExternalIP", "<none>"),
        info.get("osImage", "<unknown>"),
        info.get("kernelVersion", "<unknown>"),
        info.get("containerRuntimeVersion", "<unknown>"),
    ]


# Below this many seconds an age is printed in these units: (bound, major unit, its length, minor unit, its length).
_AGES: tuple[tuple[int, str, int, str, int], ...] = (
    (120, "s", 1, "", 1),
    (600, "m", 60, "s", 1),
    (3 * 3600, "m", 60, "", 1),
    (8 * 3600, "h", 3600, "m", 60),
    (48 * 3600, "h", 3600, "", 1),
    (8 * 86400, "d", 86400, "h", 3600),
    (2 * 365 * 86400, "d", 86400, "", 1),
    (8 * 365 * 86400, "y", 365 * 86400, "d", 86400),
)


def duration(now: datetime, then: datetime | None) -> str:
    """Age as kubectl prints it (k8s.io/apimachinery `duration.HumanDuration`)."""
    if then is None:
        return "<unknown>"
    seconds = int((now - then).total_seconds())
    if seconds < 0:
        return "0s" if seconds >= -1 else "<invalid>"
    for bound, major, length, minor, small in _AGES:
        if seconds < bound:
            rest = seconds % length // small if minor else 0
            return f"{seconds // length}{major}" + (f"{rest}{minor}" if rest else "")
    return f"{seconds // (365 * 86400)}y"
