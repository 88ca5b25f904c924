"""Reads of the simulated Kubernetes API with the official client: lists, selectors, pages, tokens, the instant told."""

from __future__ import annotations

import json

import httpx
import pytest
from kubernetes import client
from kubernetes.client.rest import ApiException
from live_api import Live

from fleet.kubeapi.fixed import fixed_pod

pytestmark = pytest.mark.integration


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


def test_simulated_instant_is_told(live: Live) -> None:
    assert httpx.get(f"{live.api}/api/v1/nodes").headers["x-strandline-simulated-at"] == "2026-06-01T01:00:00Z"
    told = httpx.post(f"{live.url}/clock", json={"at": "2026-06-02T00:00:00Z", "advance_s": 0.5}).json()
    assert told == {"now": "2026-06-02T00:00:00.500000Z", "speed": 0, "simulated": True}
    assert httpx.get(f"{live.api}/api/v1/nodes").headers["x-strandline-simulated-at"] == told["now"]
    assert httpx.post(f"{live.url}/clock", json={"at": "yesterday"}).status_code == 400
