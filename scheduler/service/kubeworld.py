"""A Kubernetes cluster as the queue's world: the live simulated fleet, or a real one, through the official client.

Pods carry the queue's scheduler name, so nobody else places them; they are created whole gang first and then bound
under a precondition of their UID. Simulated time is told by the fleet's own header. Belongs here: objects and requests.
Not here: what should run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import urllib3
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from scheduler.model import SECOND_US, Node
from scheduler.service.worlds import Phase, Pod, Refused, Seen, SeenPod, Unreachable
from sources.kubernetes.quantity import BadObject, quantity

SCHEDULER_NAME = "strandline"
JOB_LABEL, ATTEMPT_LABEL, TEAM_LABEL = "strandline.io/job", "strandline.io/attempt", "team"
DEVICES_NOTE, EVICT_NOTE = "strandline.io/devices", "strandline.io/evicted-at"
SIMULATED_AT = "X-Strandline-Simulated-At"
# Extended resource and the node label that names the model of its accelerators.
RESOURCES = (("nvidia.com/gpu", "nvidia.com/gpu.product"), ("google.com/tpu", "cloud.google.com/gke-tpu-accelerator"))
_FLAVORLESS = "unlabelled"
_TOLERATED = {resource for resource, _ in RESOURCES}
_CONFLICT, _NOT_FOUND, _SERVER_ERROR = 409, 404, 500
_TOO_MANY = 429
_PAGE = 1000


class KubeWorld:
    """Nodes and pods of one cluster; the queue's own pods live in `namespace`, which is made where it is missing.

    `image` stands where a job names none; simulated kubelets do not look at it.
    """

    def __init__(
        self, api: client.ApiClient, namespace: str = "strandline", timeout_s: float = 30.0, image: str = "none"
    ) -> None:
        self._core = client.CoreV1Api(api)
        self._namespace, self._timeout_s, self._image = namespace, timeout_s, image
        self._seen_us: int | None = None
        self._resources: dict[str, str] = {}
        self._has_namespace = False

    def now_us(self) -> int:
        """The simulated instant of the last answer; of a real cluster the time of this machine."""
        return time.time_ns() // 1000 if self._seen_us is None else self._seen_us

    def see(self) -> Seen:
        """All nodes and pods, in pages."""
        nodes, self._resources = [], {}
        for item in self._list(self._core.list_node):
            node, is_ready, resource = _node(item)
            nodes.append((node, is_ready))
            self._resources[node.name] = resource
        pods = [_pod(item, self._namespace) for item in self._list(self._core.list_pod_for_all_namespaces)]
        ready = frozenset(node.name for node, is_ready in nodes if is_ready)
        return Seen(self.now_us(), tuple(node for node, _ in nodes), ready, {p.name: p for p in pods})

    def start(self, pods: list[Pod]) -> None:
        """Create all, then bind all."""
        self._ensure_namespace()
        uids = [self._create(pod) for pod in pods]
        for pod, uid in zip(pods, uids, strict=True):
            self._bind(pod, uid)

    def _create(self, pod: Pod) -> str:
        """The UID of the pod, made now or before."""
        body = _body(pod, self._resources.get(pod.node, RESOURCES[0][0]), self._image)
        try:
            made = self._ask(self._core.create_namespaced_pod, self._namespace, body)
        except ApiException as error:
            there = self._read(pod.name) if error.status == _CONFLICT else None
            if there is None or (there["metadata"].get("labels") or {}).get(JOB_LABEL) != pod.job_id:
                raise Refused(f"{pod.name}: {_why(error)}") from None
            made = there
        return str(made["metadata"]["uid"])

    def _bind(self, pod: Pod, uid: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": self._namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": pod.node},
        }
        try:
            # The reply is a Status, which the client cannot read as a Binding.
            self._ask(self._core.create_namespaced_pod_binding, pod.name, self._namespace, body)
        except ApiException as error:
            if error.status != _CONFLICT:
                raise Refused(f"{pod.name}: {_why(error)}") from None
            there = self._read(pod.name)
            if there is None or "deletionTimestamp" in there["metadata"] or there["spec"].get("nodeName") != pod.node:
                raise Refused(f"{pod.name}: {_why(error)}") from None

    def save(self, names: list[str], kill_us: int) -> None:
        """The instant of the kill as an annotation, which a pod may read through the downward API."""
        at = datetime.fromtimestamp(kill_us / SECOND_US, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for name in names:
            patch = {"metadata": {"annotations": {EVICT_NOTE: at}}}
            self._gone_is_fine(self._core.patch_namespaced_pod, name, self._namespace, patch)

    def stop(self, names: list[str], grace_s: int) -> None:
        """Delete them."""
        for name in names:
            self._gone_is_fine(self._core.delete_namespaced_pod, name, self._namespace, grace_period_seconds=grace_s)

    def _read(self, name: str) -> dict[str, Any] | None:
        try:
            return self._ask(self._core.read_namespaced_pod, name, self._namespace)
        except ApiException as error:
            if error.status == _NOT_FOUND:
                return None
            raise Refused(f"{name}: {_why(error)}") from None

    def _ensure_namespace(self) -> None:
        if not self._has_namespace:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
            self._once(self._core.create_namespace, body)
            self._has_namespace = True

    def _once(self, create: Callable[..., Any], *args: Any) -> None:
        """Create what may be there already."""
        try:
            self._ask(create, *args)
        except ApiException as error:
            if error.status != _CONFLICT:
                raise Refused(_why(error)) from None

    def _gone_is_fine(self, call: Callable[..., Any], *args: Any, **more: Any) -> None:
        try:
            self._ask(call, *args, **more)
        except ApiException as error:
            if error.status not in (_NOT_FOUND, _CONFLICT):
                raise Unreachable(_why(error)) from None

    def _list(self, lister: Callable[..., Any]) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        position: str | None = None
        while True:
            more = {"_continue": position} if position else {}
            try:
                document = self._ask(lister, limit=_PAGE, **more)
            except ApiException as error:
                raise Unreachable(_why(error)) from None
            items += document["items"]
            position = (document.get("metadata") or {}).get("continue")
            if not position:
                return items

    def _ask(self, call: Callable[..., Any], *args: Any, **more: Any) -> dict[str, Any]:
        """The JSON of an answer. `Unreachable` where there is none, or the server is not well."""
        try:
            answer = call(*args, _preload_content=False, _request_timeout=self._timeout_s, **more)
            data = answer.data
            answer.release_conn()
        except ApiException as error:
            if error.status is None or error.status >= _SERVER_ERROR or error.status == _TOO_MANY:
                raise Unreachable(_why(error)) from None
            raise
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"{type(error).__name__}: {error}") from None
        if (told := answer.headers.get(SIMULATED_AT)) is not None:
            at = datetime.fromisoformat(told).replace(tzinfo=UTC)
            self._seen_us = max(self._seen_us or 0, round(at.timestamp() * SECOND_US))
        try:
            found: dict[str, Any] = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise Unreachable(f"an answer is no JSON: {error}") from None
        return found


def _why(error: ApiException) -> str:
    try:
        return f"HTTP {error.status}: {orjson.loads(error.body or '')['message']}"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return f"HTTP {error.status} {error.reason}"


def _amount(amounts: Mapping[str, Any], name: str, scale: int, unit: int = 1) -> int:
    """A quantity times `scale`, in `unit`s, rounded up; 0 where it cannot be read."""
    try:
        return -int(-(quantity(amounts.get(name, 0), name) * scale) // unit)
    except BadObject:
        return 0


def _node(item: dict[str, Any]) -> tuple[Node, bool, str]:
    """A node, whether its kubelet is well, and the extended resource of its devices."""
    meta, spec, status = item["metadata"], item.get("spec") or {}, item.get("status") or {}
    labels, free = meta.get("labels") or {}, status.get("allocatable") or {}
    gpus, flavor, has = 0, "", RESOURCES[0][0]
    for resource, label in RESOURCES:
        if count := _amount(free, resource, 1):
            gpus, flavor, has = count, labels.get(label, _FLAVORLESS), resource
    is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
    is_kept_off = any(
        t.get("effect") in ("NoSchedule", "NoExecute") and t.get("key") not in _TOLERATED
        for t in spec.get("taints") or ()
    )
    node = Node(
        meta["name"], flavor or "none", gpus, _amount(free, "cpu", 1000), _amount(free, "memory", 1, 1 << 20), labels,
        is_ready and not is_kept_off and not spec.get("unschedulable", False),
    )  # fmt: skip
    return node, is_ready, has


_PHASES: dict[str, Phase] = {"Running": "running", "Succeeded": "succeeded", "Failed": "failed"}


def _pod(item: dict[str, Any], namespace: str) -> SeenPod:
    """A pod; one of another namespace has that before its name, so that no name is met twice."""
    meta, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    labels = meta.get("labels") or {}
    is_ours = meta["namespace"] == namespace and JOB_LABEL in labels and labels.get(ATTEMPT_LABEL, "").isdigit()
    sums = [0, 0, 0]
    for container in spec.get("containers") or ():
        asked = (container.get("resources") or {}).get("requests") or {}
        sums[0] += sum(_amount(asked, resource, 1000) for resource, _ in RESOURCES)
        sums[1] += _amount(asked, "cpu", 1000)
        sums[2] += _amount(asked, "memory", 1, 1 << 20)
    return SeenPod(
        meta["name"] if meta["namespace"] == namespace else f"{meta['namespace']}/{meta['name']}",
        labels[JOB_LABEL] if is_ours else "", int(labels[ATTEMPT_LABEL]) if is_ours else 0,
        spec.get("nodeName") or None, _PHASES.get(status.get("phase", ""), "pending"), *sums,
    )  # fmt: skip


def _body(pod: Pod, resource: str, image: str) -> dict[str, Any]:
    amounts: dict[str, str] = {}
    if pod.shape.gpus:
        amounts[resource] = str(pod.shape.gpus)
    if pod.shape.cpu_milli:
        amounts["cpu"] = f"{pod.shape.cpu_milli}m"
    if pod.shape.memory_mib:
        amounts["memory"] = f"{pod.shape.memory_mib}Mi"
    container: dict[str, Any] = {
        "name": pod.role,
        "image": pod.template.image or image,
        "resources": {"limits": amounts, "requests": amounts},
    }
    if pod.template.command:
        container["command"] = list(pod.template.command)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "labels": {JOB_LABEL: pod.job_id, ATTEMPT_LABEL: str(pod.attempt), TEAM_LABEL: pod.team},
            "annotations": {**pod.template.annotations, DEVICES_NOTE: ",".join(map(str, pod.devices))},
        },
        "spec": {
            "schedulerName": SCHEDULER_NAME,
            "restartPolicy": "Never",
            "tolerations": [{"key": name, "operator": "Exists"} for name, _ in RESOURCES],
            "containers": [container],
        },
    }
