"""Watches of the simulated Kubernetes API: every change once, bookmarks, selectors, versions that are gone."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace

import httpx
import pytest
from kubernetes import watch
from kubernetes.client.rest import ApiException
from live_api import Live

from fleet.kubeapi.fixed import fixed_pod

pytestmark = pytest.mark.integration


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
