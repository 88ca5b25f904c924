"""No value at any place of an object costs more than that object: every field times every kind of junk.

Belongs here: that nothing raises and neighbours stay. What good objects become stands in test_kubernetes_parse.py.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

from sources.kubernetes import KubeList, parse_lists

AT = datetime(2026, 3, 2)
TIME = "2026-03-01T00:00:00Z"
JUNK: tuple[Any, ...] = (
    None, True, 0, -1, 5, 2**63, 2**70, 1e300, -0.5, "", "x", "é" * 3000, "a\0b", "'; drop table x; --", "1e999",
    "1e99999999", "-3", "9" * 400, "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59-14:00", [], {}, [None], [5], ["x"], [[]], [{}], {"a": None}, {"a": {"b": [1]}}, {"": ""},
)  # fmt: skip
CONTAINER = {
    "name": "c", "resources": {"requests": {"nvidia.com/gpu": "1", "cpu": "500m"}, "limits": {"nvidia.com/gpu": "1"}},
}  # fmt: skip
OBJECTS: dict[str, dict[str, Any]] = {
    "Node": {
        "kind": "Node", "metadata": {"name": "n", "uid": "u", "creationTimestamp": TIME, "labels": {"a": "b"},
                                     "annotations": {"a": "b"}},
        "spec": {"providerID": "p", "unschedulable": True, "taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"capacity": {"nvidia.com/gpu": "8", "cpu": "4", "memory": "1Gi"},
                   "allocatable": {"nvidia.com/gpu": "8"},
                   "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": TIME}]},
    },
    "Pod": {
        "kind": "Pod", "metadata": {"name": "p", "namespace": "ns", "uid": "u", "creationTimestamp": TIME,
                                    "deletionTimestamp": TIME, "labels": {"a": "b"}, "annotations": {"a": "b"},
                                    "ownerReferences": [{"kind": "Job", "name": "j", "uid": "j", "controller": True}]},
        "spec": {"nodeName": "n", "priority": 5, "priorityClassName": "high", "containers": [CONTAINER],
                 "initContainers": [{**CONTAINER, "restartPolicy": "Always"}], "overhead": {"cpu": "1"},
                 "resources": {"requests": {"nvidia.com/gpu": "1"}}},
        "status": {"phase": "Succeeded", "reason": "Evicted", "startTime": TIME,
                   "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": TIME}],
                   "containerStatuses": [{"restartCount": 1, "state": {"terminated": {"finishedAt": TIME}},
                                          "lastState": {"terminated": {"finishedAt": TIME}}}],
                   "initContainerStatuses": [{"restartCount": 0, "state": {"terminated": {"finishedAt": TIME}}}]},
    },
    "Namespace": {"kind": "Namespace", "metadata": {"name": "ns", "labels": {"a": "b"}, "annotations": {"a": "b"}}},
    "ResourceClaim": {
        "kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "ns", "uid": "u"},
        "status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
                   "allocation": {"devices": {"results": [{"driver": "gpu.nvidia.com", "pool": "n", "device": "g"}]}}},
    },
    "ResourceSlice": {
        "kind": "ResourceSlice", "metadata": {"name": "s"},
        "spec": {"driver": "gpu.nvidia.com", "pool": {"name": "n"},
                 "devices": [{"name": "g", "attributes": {"uuid": {"string": "GPU-1"}, "profile": {"string": "1g"}}}]},
    },
}  # fmt: skip
NAMES = {
    "Node": ("raw.kube_nodes", "node"), "Pod": ("raw.kube_pods", "pod"),
    "Namespace": ("raw.kube_namespaces", "namespace"),
}  # fmt: skip
KUBELET: dict[str, Any] = {
    "podResources": [{"name": "p", "namespace": "ns", "uid": "u", "containers": [
        {"name": "c", "devices": [{"resourceName": "nvidia.com/gpu", "deviceIds": ["GPU-1::2"]}]}]}],
}  # fmt: skip


def _spoiled(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The value with junk in place of itself and of everything in it, one at a time."""
    for junk in JUNK:
        yield path, junk
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        for where, spoiled in _spoiled(inner, (*path, key)):
            changed = copy.copy(value)
            changed[key] = spoiled
            yield where, changed


@pytest.mark.parametrize("kind", OBJECTS)
def test_junk_in_an_object_costs_no_other(kind: str) -> None:
    good = copy.deepcopy(OBJECTS[kind])
    good["metadata"]["name"] = good["metadata"]["uid"] = "good"
    items = [spoiled for _, spoiled in _spoiled(OBJECTS[kind])]
    body = json.dumps({"kind": f"{kind}List", "metadata": {}, "items": [*items, good]}).encode()
    tables = parse_lists([KubeList("c", AT, body, "list.json", lists=kind)])
    if kind in NAMES:
        table, column = NAMES[kind]
        assert "good" in tables[table][column].to_pylist()
    if kind == "ResourceClaim":
        assert any(r["pod"] == "p" for r in tables["raw.kube_devices"].to_pylist())


@pytest.mark.parametrize("kind", OBJECTS)
def test_junk_in_place_of_a_list_raises_nothing(kind: str) -> None:
    for _, spoiled in _spoiled({"kind": f"{kind}List", "metadata": {"continue": ""}, "items": []}):
        for lists in (kind, None):
            parse_lists([KubeList("c", AT, json.dumps(spoiled).encode(), "list.json", lists=lists)])


def test_junk_in_a_pod_resources_list_raises_nothing() -> None:
    for _, spoiled in _spoiled(KUBELET):
        parse_lists([KubeList("c", AT, json.dumps(spoiled).encode(), "kubelet.json", "pod_resources", "n")])
