"""Kubernetes JSON of the world's nodes, pods and namespaces, as an API server would list them.

States to objects belongs here, one pure function per kind; resourceVersions are the store's. List items carry no kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

from fleet.model import Namespace, NodeState, Pod, PodState

KUBELET_VERSION = "v1.37.2"
_MAX_PODS = 110  # the kubelet's default --max-pods


def rfc3339(at: datetime | None) -> str | None:
    """Time as metav1.Time prints it: whole seconds, UTC."""
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _plain(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return dict(mapping)


def _memory(amount: int) -> str:
    return f"{amount // 1024}Ki" if amount % 1024 == 0 else str(amount)


def _cpu(milli: int) -> str:
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"


def namespace_object(namespace: Namespace) -> dict[str, Any]:
    """A namespace; the label that every API server adds (`kubernetes.io/metadata.name`) is the world's to carry."""
    metadata: dict[str, Any] = {"name": namespace.name, "uid": _uid(namespace.cluster, namespace.name)}
    metadata["creationTimestamp"] = rfc3339(namespace.created_at)
    _labels(metadata, namespace.labels, namespace.annotations)
    return {"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def _uid(*parts: str) -> str:
    # Namespaces have no UID in the world; version 5 keeps it the same for the same world.
    return str(uuid5(NAMESPACE_DNS, ".".join(parts)))


def _labels(metadata: dict[str, Any], labels: Mapping[str, str], annotations: Mapping[str, str]) -> None:
    if labels:
        metadata["labels"] = _plain(labels)
    if annotations:
        metadata["annotations"] = _plain(annotations)


def node_object(state: NodeState) -> dict[str, Any]:
    """A node with capacity, allocatable, conditions and nodeInfo."""
    node = state.node
    metadata: dict[str, Any] = {"name": node.name, "uid": node.uid, "creationTimestamp": rfc3339(node.created_at)}
    _labels(metadata, node.labels, node.annotations)
    spec: dict[str, Any] = {"providerID": node.provider_id}
    if state.taints:
        spec["taints"] = [_plain(taint) for taint in state.taints]
    if state.is_unschedulable:
        spec["unschedulable"] = True
    common = {"cpu": _cpu(node.cpu_milli), "memory": _memory(node.memory_bytes), "pods": str(_MAX_PODS)}
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {
            "capacity": common | {name: str(count) for name, count in sorted(node.capacity.items())},
            "allocatable": common | {name: str(count) for name, count in sorted(state.allocatable.items())},
            "conditions": _node_conditions(state),
            "addresses": [{"type": "Hostname", "address": node.name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": node.uid.replace("-", ""),
                "systemUUID": node.uid,
                "bootID": _uid(node.cluster, node.name, "boot"),
                "kernelVersion": "6.8.0-simulated",
                "osImage": "Strandline simulated node",
                "containerRuntimeVersion": "containerd://2.1.0",
                "kubeletVersion": KUBELET_VERSION,
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        },
    }


def _node_conditions(state: NodeState) -> list[dict[str, Any]]:
    # The heartbeat stands at the transition: one that moves would make every node change at every look.
    reasons = {
        "True": ("KubeletReady", "kubelet is posting ready status"),
        "False": ("KubeletNotReady", "container runtime is down"),
        "Unknown": ("NodeStatusUnknown", "Kubelet stopped posting node status."),
    }
    reason, message = reasons[state.ready_status]
    created, changed = rfc3339(state.node.created_at), rfc3339(state.ready_changed_at)
    conditions: list[dict[str, Any]] = [
        {
            "type": kind,
            "status": "False" if state.ready_status != "Unknown" else "Unknown",
            "lastHeartbeatTime": created if state.ready_status != "Unknown" else changed,
            "lastTransitionTime": created if state.ready_status != "Unknown" else changed,
            "reason": f"KubeletHas{ok}" if state.ready_status != "Unknown" else reason,
            "message": f"kubelet has {words}" if state.ready_status != "Unknown" else message,
        }
        for kind, ok, words in (
            ("MemoryPressure", "SufficientMemory", "sufficient memory available"),
            ("DiskPressure", "NoDiskPressure", "no disk pressure"),
            ("PIDPressure", "SufficientPID", "sufficient PID available"),
        )
    ]
    conditions.append(
        {
            "type": "Ready",
            "status": state.ready_status,
            "lastHeartbeatTime": changed,
            "lastTransitionTime": changed,
            "reason": reason,
            "message": message,
        }
    )
    return conditions


def pod_object(state: PodState) -> dict[str, Any]:
    """A pod with one container, its requests and limits, conditions and container status."""
    pod = state.pod
    metadata: dict[str, Any] = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod.uid,
        "creationTimestamp": rfc3339(pod.created_at),
    }
    _labels(metadata, pod.labels, pod.annotations)
    if pod.owner_kind:
        metadata["ownerReferences"] = [
            {
                "apiVersion": _OWNER_API.get(pod.owner_kind, "v1"),
                "kind": pod.owner_kind,
                "name": pod.owner_name,
                "uid": pod.owner_uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    return {"metadata": metadata, "spec": _pod_spec(pod, state.node), "status": _pod_status(state)}


_OWNER_API = {
    "Job": "batch/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "Notebook": "kubeflow.org/v1",
}


def _pod_spec(pod: Pod, node: str | None) -> dict[str, Any]:
    devices = {pod.resource: str(pod.quantity)} if pod.quantity else {}
    amounts = {"cpu": _cpu(pod.cpu_milli), "memory": _memory(pod.memory_bytes)} | devices
    spec: dict[str, Any] = {
        "containers": [
            {
                "name": pod.container,
                "image": _image(pod),
                "resources": {"limits": dict(amounts), "requests": dict(amounts)},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Never" if pod.owner_kind == "Job" else "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "securityContext": {},
        "schedulerName": pod.scheduler_name,
        "enableServiceLinks": True,
        "priority": pod.priority,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    if pod.priority_class:
        spec["priorityClassName"] = pod.priority_class
    if node is not None:
        spec["nodeName"] = node
    return spec


def _image(pod: Pod) -> str:
    return f"registry.example/{pod.namespace}/{pod.container}:1"


def _pod_status(state: PodState) -> dict[str, Any]:
    status: dict[str, Any] = {"phase": state.phase, "conditions": _pod_conditions(state)}
    if state.reason:
        status["reason"] = state.reason
    if state.started_at is not None:
        status["startTime"] = rfc3339(state.started_at)
    if state.node is not None:
        status["containerStatuses"] = [_container_status(state)]
    status["qosClass"] = "Guaranteed"
    return status


def _pod_conditions(state: PodState) -> list[dict[str, Any]]:
    def condition(kind: str, ok: bool, at: datetime | None, reason: str = "", message: str = "") -> dict[str, Any]:
        out = {"type": kind, "status": "True" if ok else "False", "lastProbeTime": None}
        out["lastTransitionTime"] = rfc3339(at)
        return out | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})

    if state.scheduled_at is None:
        message = f"0/0 nodes are available: Insufficient {state.pod.resource}."
        return [condition("PodScheduled", False, state.pod.created_at, "Unschedulable", message)]
    ended = state.finished_at is not None
    running = state.phase == "Running"
    at = state.finished_at or state.started_at or state.scheduled_at
    reason = ""
    if ended:
        reason = "PodCompleted" if state.phase == "Succeeded" else "PodFailed"
    elif not running:
        reason = "ContainersNotReady"
    return [
        condition("PodReadyToStartContainers", running, at),
        condition("Initialized", True, state.scheduled_at),
        condition("Ready", running, at, reason),
        condition("ContainersReady", running, at, reason),
        condition("PodScheduled", True, state.scheduled_at),
    ]


def _container_status(state: PodState) -> dict[str, Any]:
    pod = state.pod
    ident = f"containerd://{pod.uid.replace('-', '')}"
    container: dict[str, Any]
    if state.finished_at is not None:
        failed = state.phase == "Failed"
        container = {
            "terminated": {
                "exitCode": 1 if failed else 0,
                "reason": "Error" if failed else "Completed",
                "startedAt": rfc3339(state.started_at),
                "finishedAt": rfc3339(state.finished_at),
                "containerID": ident,
            }
        }
    elif state.started_at is not None:
        container = {"running": {"startedAt": rfc3339(state.started_at)}}
    else:
        container = {"waiting": {"reason": "ContainerCreating"}}
    started = state.started_at is not None
    return {
        "name": pod.container,
        "state": container,
        "lastState": {},
        "ready": state.phase == "Running",
        "started": state.phase == "Running",
        "restartCount": state.restarts,
        "image": _image(pod),
        "imageID": "",
    } | ({"containerID": ident} if started else {})
