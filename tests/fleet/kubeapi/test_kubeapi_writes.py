"""Writes to the simulated Kubernetes API: pods made, bound and deleted, status and spec, events, refusals."""

from __future__ import annotations

import json
import time

import httpx
import pytest
from kubernetes import client
from kubernetes.client.rest import ApiException
from live_api import Live, body

pytestmark = pytest.mark.integration


def test_create_bind_run_delete(live: Live) -> None:
    live.clock.set(speed=20)
    made = live.core.create_namespaced_pod("team-a", body("mine", **{"strandline.io/run-seconds": "30"}))
    assert made.status.phase == "Pending"
    assert made.spec.containers[0].resources.requests == {"nvidia.com/gpu": "1"}
    with pytest.raises(ApiException) as twice:
        live.core.create_namespaced_pod("team-a", body("mine"))
    assert json.loads(twice.value.body)["reason"] == "AlreadyExists"
    target = client.V1Binding(
        metadata=client.V1ObjectMeta(name="mine"), target=client.V1ObjectReference(kind="Node", name="node-1")
    )
    live.core.create_namespaced_pod_binding("mine", "team-a", target, _preload_content=False)
    bound = live.core.read_namespaced_pod("mine", "team-a")
    assert bound.spec.node_name == "node-1"
    with pytest.raises(ApiException) as again:
        live.core.create_namespaced_pod_binding("mine", "team-a", target, _preload_content=False)
    assert again.value.status == 409
    phases = set()
    for _ in range(100):
        phases.add(phase := live.core.read_namespaced_pod("mine", "team-a").status.phase)
        if phase == "Succeeded":
            break
        time.sleep(0.05)
    assert {"Running", "Succeeded"} <= phases
    live.core.delete_namespaced_pod("mine", "team-a")
    with pytest.raises(ApiException):
        live.core.read_namespaced_pod("mine", "team-a")


def test_binding_a_pod_of_the_world_and_deleting_it(live: Live) -> None:
    target = {"metadata": {"name": "wait-000"}, "target": {"kind": "Node", "name": "node-0"}}
    answer = httpx.post(f"{live.api}/api/v1/namespaces/team-a/pods/wait-000/binding", json=target)
    assert (answer.status_code, answer.json()["status"]) == (201, "Success")
    live.step()
    assert live.core.read_namespaced_pod("wait-000", "team-a").spec.node_name == "node-0"
    live.core.delete_namespaced_pod("wait-000", "team-a")
    live.step()
    assert "wait-000" not in [p.metadata.name for p in live.core.list_pod_for_all_namespaces().items]


def test_status_and_spec_writes(live: Live) -> None:
    condition = {"type": "Strandline", "status": "True", "lastTransitionTime": "2026-06-01T00:00:00Z"}
    live.core.patch_node_status("node-0", {"status": {"conditions": [condition]}})
    node = live.core.read_node("node-0")
    assert {"Ready", "Strandline"} <= {c.type for c in node.status.conditions}
    live.core.patch_node("node-0", {"spec": {"unschedulable": True}, "status": {"phase": "ignored"}})
    node = live.core.read_node("node-0")
    assert node.spec.unschedulable
    assert node.status.phase is None
    pod = httpx.get(f"{live.api}/api/v1/namespaces/team-a/pods/wait-001").json()
    pod["status"]["nominatedNodeName"] = "node-2"
    path = f"{live.api}/api/v1/namespaces/team-a/pods/wait-001/status"
    assert httpx.put(path, json=pod).json()["status"]["nominatedNodeName"] == "node-2"
    stale = httpx.put(path, json=pod)
    assert (stale.status_code, stale.json()["reason"]) == (409, "Conflict")
    removed = [{"op": "remove", "path": "/spec/unschedulable"}]
    headers = {"content-type": "application/json-patch+json"}
    patched = httpx.patch(f"{live.api}/api/v1/nodes/node-0", content=json.dumps(removed), headers=headers)
    assert "unschedulable" not in patched.json()["spec"]


def test_errors_are_status_objects(live: Live) -> None:
    for method, path, code in (
        ("GET", "/api/v1/widgets", 404),
        ("PUT", "/api/v1/pods", 405),
        ("POST", "/api/v1/namespaces/nowhere/pods", 404),
    ):
        answer = httpx.request(method, f"{live.api}{path}", json=body("x") if method == "POST" else None)
        assert answer.status_code == code
        assert answer.json()["kind"] == "Status"
    path = f"{live.api}/api/v1/namespaces/team-a/pods"
    broken = httpx.post(path, content=b"{", headers={"content-type": "application/json"})
    assert (broken.status_code, broken.json()["reason"]) == (400, "BadRequest")


def test_events_are_accepted(live: Live) -> None:
    event = {
        "metadata": {"generateName": "run-000."},
        "involvedObject": {"kind": "Pod", "name": "run-000", "namespace": "team-a"},
        "reason": "Scheduled",
        "message": "hello",
        "type": "Normal",
    }
    assert httpx.post(f"{live.api}/api/v1/namespaces/team-a/events", json=event).status_code == 201
    listed = live.core.list_namespaced_event("team-a", field_selector="involvedObject.name=run-000").items
    assert [e.reason for e in listed] == ["Scheduled"]
