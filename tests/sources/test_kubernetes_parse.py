"""Kubernetes objects to rows: what pods request, when they ended, and lists that are partly bad."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sources.kubernetes import KubeList, parse_lists
from sources.kubernetes.lists import check_list
from sources.kubernetes.pods import devices, effective_requests, finished_at
from sources.kubernetes.quantity import BadObject, instant, is_extended, quantity
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput

AT = datetime(2026, 3, 2, 10)
GPU = "nvidia.com/gpu"


def _container(gpus: int | None = None, name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": {GPU: str(gpus)}} if gpus is not None else {}, **more}


def _pod(name: str = "p", uid: str | None = "u", **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ml", "uid": uid, "creationTimestamp": "2026-03-02T09:00:00Z"}
    return {"kind": "Pod", "metadata": {**metadata, **parts.pop("metadata", {})}, **parts}


def _node(name: str = "n", **status: Any) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "uid": name}, "spec": {}, "status": status}


def _list(*items: Any, kind: str = "List", at: datetime = AT, **metadata: Any) -> KubeList:
    body = orjson.dumps({"apiVersion": "v1", "kind": kind, "metadata": metadata, "items": list(items)})
    return KubeList("c", at, body, "list.json")


# -- values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [("2Ti", 2 * 1024**4), ("500m", "0.5"), ("1e3", 1000), ("1E3", 1000), ("1E", 10**18), ("12k", 12000), ("0", 0),
     ("128974848", 128974848), ("1.5Gi", 1610612736), ("100n", "1e-7"), ("+3", 3), (4, 4)],
)  # fmt: skip
def test_quantities(text: Any, value: Any) -> None:
    assert quantity(text, "x") == Decimal(value)


@pytest.mark.parametrize("text", ["", "two", "1Kib", "1 Gi", None, True, [], "1e", "--1"])
def test_what_is_no_quantity(text: Any) -> None:
    with pytest.raises(BadObject, match=r"spec\.x"):
        quantity(text, "spec.x")


def test_times() -> None:
    assert instant("2026-03-02T10:00:00Z", "t") == AT
    assert instant("2026-03-02T12:00:00.250000+02:00", "t") == AT + timedelta(milliseconds=250)
    assert instant(None, "t") is None
    with pytest.raises(BadObject, match="'soon' is not a time"):
        instant("soon", "t")


def test_extended_resources() -> None:
    names = ["nvidia.com/gpu", "nvidia.com/mig-3g.20gb", "cpu", "hugepages-2Mi", "attachable-volumes-csi-x",
             "kubernetes.io/batch-cpu", "x.kubernetes.io/y", "google.com/tpu"]  # fmt: skip
    assert [n for n in names if is_extended(n)] == ["nvidia.com/gpu", "nvidia.com/mig-3g.20gb", "google.com/tpu"]


# -- what a pod requests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "gpus"),
    [
        ({"containers": [_container(1), _container(2)]}, 3),
        ({"containers": [_container(1)], "initContainers": [_container(4), _container(2)]}, 4),
        ({"containers": [_container(2)], "initContainers": [_container(1, restartPolicy="Always")]}, 3),
        # A sidecar started before runs while the next init container does; one declared after it does not.
        ({"containers": [_container(1)],
          "initContainers": [_container(1, restartPolicy="Always"), _container(4)]}, 5),
        ({"containers": [_container(1)],
          "initContainers": [_container(4), _container(1, restartPolicy="Always")]}, 4),
        ({"containers": [{"resources": {"limits": {GPU: 2}}}]}, 2),
        ({"containers": [{"resources": {"limits": {GPU: "2"}, "requests": {"cpu": "1"}}}]}, 2),
        ({"containers": [{"resources": None}, {}]}, None),
        ({"containers": [_container(0)]}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_devices_requested(spec: dict[str, Any], gpus: int | None) -> None:
    assert devices(effective_requests(spec)) == ({GPU: gpus} if gpus else {})


def test_overhead_and_pod_level_resources_count_for_cpu_and_memory() -> None:
    spec = {"containers": [{"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}], "overhead": {"cpu": "250m"}}
    assert effective_requests(spec)["cpu"] == Decimal("0.75")
    spec["resources"] = {"requests": {"cpu": "2"}}  # type: ignore[assignment]
    assert effective_requests(spec)["cpu"] == Decimal("2.25")


# -- when it ended ------------------------------------------------------------------------------------------------


def _ended(at: str | None, code: int = 0, name: str = "main") -> dict[str, Any]:
    return {"name": name, "state": {"terminated": {"exitCode": code, "finishedAt": at}}}


_RUNNING = {"name": "side", "state": {"running": {}}}
_T1, _T2 = "2026-03-02T09:10:00Z", "2026-03-02T09:20:00Z"
_AT1, _AT2 = datetime(2026, 3, 2, 9, 10), datetime(2026, 3, 2, 9, 20)


def _condition(type_: str, status: str, at: str = _T2) -> dict[str, str]:
    return {"type": type_, "status": status, "lastTransitionTime": at}


@pytest.mark.parametrize(
    ("pod", "at"),
    [
        (_pod(status={"phase": "Succeeded", "containerStatuses": [_ended(_T1), _ended(_T2)]}), _AT2),
        (_pod(status={"phase": "Running", "containerStatuses": [_ended(_T1), _RUNNING]}), None),
        (_pod(status={"phase": "Running", "containerStatuses": [_ended(_T1)]}), _AT1),
        (_pod(spec={"restartPolicy": "Always"}, status={"phase": "Running", "containerStatuses": [_ended(_T1)]}), None),
        (_pod(spec={"restartPolicy": "Never"}, status={"phase": "Running", "containerStatuses": [_ended(_T1)]}), _AT1),
        (_pod(spec={"restartPolicy": "OnFailure"},
              status={"phase": "Running", "containerStatuses": [_ended(_T1, 1)]}), None),
        (_pod(metadata={"deletionTimestamp": _T2}, spec={"restartPolicy": "Always"},
              status={"phase": "Running", "containerStatuses": [_ended(_T1)]}), _AT1),
        # A sidecar still runs after the containers.
        (_pod(spec={"initContainers": [{"name": "side", "restartPolicy": "Always"}]},
              status={"phase": "Running", "containerStatuses": [_ended(_T1)],
                      "initContainerStatuses": [_RUNNING]}), None),
        (_pod(status={"phase": "Succeeded", "containerStatuses": [_ended(_T1)],
                      "initContainerStatuses": [_ended(_T2, name="side")]}), _AT2),
        # Failed in an init container: the main one never ran.
        (_pod(status={"phase": "Failed", "containerStatuses": [{"state": {"waiting": {}}}],
                      "initContainerStatuses": [_ended(_T1, 1)]}), _AT1),
        (_pod(status={"phase": "Failed", "reason": "Evicted"}), None),
        (_pod(status={"phase": "Failed", "conditions": [_condition("Ready", "False", _T1),
                                                        _condition("DisruptionTarget", "True")]}), _AT2),
        (_pod(status={"phase": "Failed", "conditions": [_condition("Ready", "False")]}), _AT2),
        (_pod(metadata={"deletionTimestamp": _T2}, status={"phase": "Failed"}), _AT2),
        (_pod(status={"phase": "Failed", "containerStatuses": [_ended(None), _ended("0001-01-01T00:00:00Z")],
                      "conditions": [_condition("ContainersReady", "False")]}), _AT2),
        (_pod(status={"phase": "Pending"}), None),
        (_pod(), None),
    ],
)  # fmt: skip
def test_end_of_a_pod(pod: dict[str, Any], at: datetime | None) -> None:
    assert finished_at(pod) == at


# -- lists ------------------------------------------------------------------------------------------------------


def _snapshots(*lists: KubeList) -> dict[str, tuple[int, bool]]:
    rows = parse_lists(lists)["raw.kube_snapshots"].to_pylist()
    return {r["kind"]: (r["objects"], r["is_complete"]) for r in rows}


def test_a_mixed_list_with_nodes_covers_pods_too() -> None:
    assert _snapshots(_list(_node(), _pod())) == {"Node": (1, True), "Pod": (1, True)}
    assert _snapshots(_list(_node())) == {"Node": (1, True), "Pod": (0, True)}
    assert _snapshots(_list(_pod())) == {"Pod": (1, True)}
    assert _snapshots(_list(kind="PodList")) == {"Pod": (0, True)}
    assert _snapshots(_list({"metadata": {"name": "n"}}, kind="NodeList")) == {"Node": (1, True)}
    assert _snapshots(_list(kind="NamespaceList")) == {"Namespace": (0, True)}
    assert _snapshots(_list()) == {"List": (0, False)}


def test_a_list_with_more_pages_is_not_complete() -> None:
    half = _list(_pod(), kind="PodList", **{"continue": "x"})
    rest = _list(_pod(uid="v"), kind="PodList")
    assert _snapshots(half) == {"Pod": (1, False)}
    both = KubeList("c", AT, (half.body or b"") + b"\n" + (rest.body or b""))
    assert _snapshots(both) == {"Pod": (2, True)}


def test_a_bad_object_costs_itself_and_the_completeness() -> None:
    bad = _pod(name="bad", uid="v", spec={"containers": [{"resources": {"requests": {GPU: "two"}}}]})
    tables = parse_lists([_list(_pod(), bad, _node(), 7, None)])
    assert tables["raw.kube_pods"]["pod"].to_pylist() == ["p"]
    rows = {r["kind"]: r for r in tables["raw.kube_snapshots"].to_pylist()}
    assert (rows["Pod"]["objects"], rows["Pod"]["is_complete"]) == (1, False)
    assert (
        "Pod ml/bad: spec.containers.resources.requests.nvidia.com/gpu: 'two' is not a quantity" in rows["Pod"]["error"]
    )
    assert rows["Node"]["is_complete"]


def test_two_lists_of_one_instant() -> None:
    pods, nodes = _list(_pod(), kind="PodList"), _list(_node(), _node("m"), at=AT)
    for lists in ([pods, nodes], [nodes, pods]):
        tables = parse_lists(lists)
        assert tables["raw.kube_pods"].num_rows == 1
        assert tables["raw.kube_nodes"].num_rows == 2
    longer = _list(_pod(name="q"), _pod(name="r", uid="w"), kind="PodList")
    assert parse_lists([longer, pods])["raw.kube_pods"]["pod"].to_pylist() == ["q", "r"]


def test_a_failed_list_is_a_known_gap() -> None:
    listed = KubeList("c", AT, None, "/api/v1/pods", lists="Pod", error="HTTP 500")
    (row,) = parse_lists([listed])["raw.kube_snapshots"].to_pylist()
    assert (row["kind"], row["is_complete"], row["error"]) == ("Pod", False, "HTTP 500")


def test_node_fields() -> None:
    node = _node(capacity={"cpu": "128", "memory": "2Ti", GPU: "8"}, allocatable={GPU: "7"},
                 conditions=[_condition("Ready", "Unknown")])  # fmt: skip
    node["spec"] = {"unschedulable": True, "providerID": "aws:///x", "taints": [{"key": "k", "effect": "NoSchedule"}]}
    node["metadata"]["labels"] = {"b": "2", "a": "1"}
    tables = parse_lists([_list(node)])
    (row,) = tables["raw.kube_nodes"].to_pylist()
    assert (row["cpu_milli"], row["memory_bytes"], row["is_unschedulable"]) == (128000, 2 * 1024**4, True)
    assert (row["ready_status"], row["ready_changed_at"]) == ("Unknown", _AT2)
    assert row["labels"] == [("a", "1"), ("b", "2")]
    assert json.loads(row["taints"]) == [{"key": "k", "effect": "NoSchedule"}]
    (resource,) = tables["raw.kube_node_resources"].to_pylist()
    assert (resource["resource"], resource["capacity"], resource["allocatable"]) == (GPU, 8, 7)


def test_pod_fields() -> None:
    owner = [{"kind": "X", "name": "x"}, {"kind": "Job", "name": "j", "uid": "ju", "controller": True}]
    pod = _pod(metadata={"ownerReferences": owner, "labels": {"team": "t"}},
               spec={"nodeName": "n", "containers": [_container(2)], "priority": 10, "schedulerName": "s"},
               status={"phase": "Running", "startTime": _T2, "conditions": [_condition("PodScheduled", "True", _T1)],
                       "containerStatuses": [{"restartCount": 3, "state": {"running": {}}}]})  # fmt: skip
    (row,) = parse_lists([_list(pod)])["raw.kube_pods"].to_pylist()
    assert (row["scheduled_at"], row["pod_started_at"], row["pod_finished_at"]) == (_AT1, _AT2, None)
    assert (row["owner_kind"], row["owner_name"], row["owner_uid"]) == ("Job", "j", "ju")
    assert (row["restarts"], row["priority"], row["node"], row["phase"]) == (3, 10, "n", "Running")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "line 1 column 1"),
        (b'{"kind": "List", "items": [}', "not JSON at line 1 column 28"),
        (b'{"kind": "List",\n "items": [1,]\n}', "not JSON at line 2"),
        (b"[1]", "a JSON object is expected, not list"),
        (b'{"a": 1}', "no kind"),
        (b'{"kind": "PodList", "items": 5}', "items of PodList is no list"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b'{"kind": "x\\ud800"}', "not JSON"),
    ],
)
def test_files_that_are_no_list(body: bytes, message: str) -> None:
    with pytest.raises(BadInput, match=r"^pods\.json: .*" + message.replace("[", r"\[").replace(".", r"\.")):
        check_list(KubeList("c", AT, body, "pods.json"))
    assert not parse_lists([KubeList("c", AT, body, "pods.json")])["raw.kube_snapshots"]["is_complete"][0].as_py()


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=6) | st.sampled_from([GPU, "Always"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["name", "uid", "containers", "resources", "requests", "conditions", "type", "state",
                         "terminated", "finishedAt", "labels", GPU, "capacity", "status", "restartCount"]),
        inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


_object = st.fixed_dictionaries(
    {"kind": st.sampled_from(["Pod", "Node", "Namespace", "ResourceClaim", "ResourceSlice"])},
    optional={"metadata": _json, "spec": _json, "status": _json},
)


@settings(max_examples=200, deadline=None)
@given(st.lists(_object, max_size=3))
def test_no_object_raises(items: list[Any]) -> None:
    try:
        body = orjson.dumps({"kind": "List", "items": items})
    except (TypeError, orjson.JSONEncodeError):
        body = json.dumps({"kind": "List", "items": items}).encode()
    tables = parse_lists([KubeList("c", AT, body)])
    for name, table in tables.items():
        assert table.schema == CONTRACTS[name].arrow_schema


# -- devices ------------------------------------------------------------------------------------------------------


def test_pod_resources() -> None:
    devices_ = [{"resourceName": GPU, "deviceIds": ["GPU-aa::1", "GPU-bb"]},
                {"resourceName": "nvidia.com/mig-1g.5gb", "deviceIds": ["MIG-GPU-cc/7/0", "MIG-dd"]},
                {"resourceName": "cpu", "deviceIds": ["0"]}]  # fmt: skip
    pods = [{"name": "p", "namespace": "ml", "containers": [{"name": "m", "devices": devices_}]},
            {"name": "q", "namespace": "ml", "containers": [{"devices": [{}]}]}]  # fmt: skip
    listed = KubeList("c", AT, orjson.dumps({"podResources": pods}), "pr.json", "pod_resources", "n")
    tables = parse_lists([listed])
    found = {
        r["device_id"]: (r["gpu_uuid"], r["gi_id"], r["container"]) for r in tables["raw.kube_devices"].to_pylist()
    }
    assert found == {"GPU-aa::1": ("GPU-aa", None, "m"), "GPU-bb": ("GPU-bb", None, "m"),
                     "MIG-GPU-cc/7/0": ("GPU-cc", 7, "m"), "MIG-dd": (None, None, "m")}  # fmt: skip
    (snapshot,) = tables["raw.kube_snapshots"].to_pylist()
    assert (snapshot["kind"], snapshot["objects"], snapshot["is_complete"]) == ("PodResources/n", 1, False)
    assert "Pod ml/q" in snapshot["error"]


def test_dra_claims_take_the_uuid_from_their_slice() -> None:
    result = {"driver": "gpu.nvidia.com", "pool": "n", "device": "gpu-0"}
    claim = {"kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "ml"},
             "status": {"allocation": {"devices": {"results": [result]}},
                        "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}}  # fmt: skip
    device = {"name": "gpu-0", "attributes": {"uuid": {"string": "GPU-aa"}}}
    slice_ = {"kind": "ResourceSlice", "spec": {"driver": "gpu.nvidia.com", "pool": {"name": "n"}, "devices": [device]}}
    (row,) = parse_lists([_list(claim, slice_)])["raw.kube_devices"].to_pylist()
    assert (row["pod"], row["pod_uid"], row["node"], row["gpu_uuid"], row["method"]) == ("p", "u", "n", "GPU-aa", "dra")
