"""The snapshot reader: lists from an API server through the official client, page by page, as raw JSON.

The client authenticates and talks; its models are not used, because they cost ten times the memory of
the text (kubernetes-client#1231, #2284). What the JSON means is read in `parse.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException

from sources.kubernetes.lists import KubeList
from sources.pacing import ticks
from warehouse.errors import BadInput

_PAGE = 500
_RESTARTS = 3
_EXPIRED, _FORBIDDEN, _NOT_FOUND = 410, 403, 404
Lister = Callable[..., Any]


@dataclass(frozen=True)
class Cluster:
    """A cluster to read: the name it has in the lake and the connection. `timeout_s` bounds each request."""

    name: str
    api: client.ApiClient
    timeout_s: float = 60.0


def connect(
    kubeconfig: str | None = None, context: str | None = None, name: str | None = None, host: str | None = None
) -> Cluster:
    """A cluster by kubeconfig and context, by plain URL (`host`), or from inside a pod when nothing is given
    and no kubeconfig is found. `BadInput` where that does not work."""
    if host:
        settings = client.Configuration()
        settings.host = host.rstrip("/")
        return Cluster(name or host.split("://", 1)[-1].split("/", 1)[0], client.ApiClient(settings))
    try:
        api = config.new_client_from_config(config_file=kubeconfig, context=context)
        return Cluster(name or context or _current_context(kubeconfig), api)
    except (ConfigException, OSError) as error:
        if kubeconfig or context:
            raise BadInput(
                f"kubeconfig {kubeconfig or '(default)'}, context {context or '(current)'}: {error}"
            ) from None
    try:
        config.load_incluster_config()
        return Cluster(name or "in-cluster", client.ApiClient())
    except ConfigException:
        raise BadInput("no kubeconfig was found, and this is no pod of a cluster") from None


def _current_context(kubeconfig: str | None) -> str:
    _, current = config.list_kube_config_contexts(config_file=kubeconfig)
    return str(current["name"])


def read_cluster(cluster: Cluster, at: datetime | None = None, page: int = _PAGE) -> list[KubeList]:
    """Nodes, pods and namespaces, and DRA claims with their slices where they are served.

    All carry `at` (naive UTC; default now). A list that fails is there too, with its error and no body,
    so that the gap is known. `page` is the number of objects asked for at a time.
    """
    at = at or datetime.now(UTC).replace(tzinfo=None)
    core, dra = client.CoreV1Api(cluster.api), client.ResourceV1Api(cluster.api)
    wanted: tuple[tuple[str, str, Lister], ...] = (
        ("Node", "/api/v1/nodes", core.list_node),
        ("Pod", "/api/v1/pods", core.list_pod_for_all_namespaces),
        ("Namespace", "/api/v1/namespaces", core.list_namespace),
    )
    found = [_read(cluster, at, kind, path, list(pages), page) for kind, path, *pages in wanted]
    both: list[Lister] = [dra.list_resource_claim_for_all_namespaces, dra.list_resource_slice]
    claims = _read(cluster, at, "ResourceClaim", "/apis/resource.k8s.io/v1/resourceclaims", both, page, optional=True)
    return [*found, claims] if claims.body is not None else found


def _read(  # noqa: PLR0917
    cluster: Cluster, at: datetime, kind: str, path: str, listers: Sequence[Lister], page: int, optional: bool = False
) -> KubeList:
    try:
        body = b"\n".join(part for lister in listers for part in _pages(cluster, lister, page))
        return KubeList(cluster.name, at, body, path, lists=kind)
    except ApiException as error:
        reason = f"HTTP {error.status} {error.reason}"
        if optional and error.status in (_FORBIDDEN, _NOT_FOUND):
            reason = "not served"
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
    return KubeList(cluster.name, at, None, path, lists=kind, error=reason[:500])


def _pages(cluster: Cluster, lister: Lister, page: int) -> list[bytes]:
    """The pages of a list, slimmed. When the server has forgotten the position (410), all over again."""
    for attempt in range(_RESTARTS + 1):
        parts: list[bytes] = []
        position: str | None = None
        try:
            while True:
                more = {"_continue": position} if position else {}
                answer = lister(limit=page, _preload_content=False, _request_timeout=cluster.timeout_s, **more)
                document = orjson.loads(answer.data)
                answer.release_conn()
                position = (document.get("metadata") or {}).get("continue")
                parts.append(orjson.dumps(_slim(document)))
                if not position:
                    return parts
        except ApiException as error:
            if error.status != _EXPIRED or attempt == _RESTARTS:
                raise
    raise AssertionError("unreachable")


def _slim(document: dict[str, Any]) -> dict[str, Any]:
    """A page without what nobody reads: field ownership, and container environments, which may hold secrets."""
    for item in document.get("items") or ():
        (item.get("metadata") or {}).pop("managedFields", None)
        spec = item.get("spec") or {}
        for part in ("containers", "initContainers"):
            for container in spec.get(part) or ():
                for name in ("env", "envFrom", "command", "args", "volumeMounts"):
                    container.pop(name, None)
    return document


def collect_clusters(
    clusters: Sequence[Cluster], sink: Callable[[Sequence[KubeList]], object], every_s: float, stop: threading.Event
) -> int:
    """Read every cluster each `every_s` seconds until `stop`; returns the number of lists given to the sink.

    Clusters are read at the same time, and each reaches the sink (called from this thread) when it is done.
    """
    count = 0
    with ThreadPoolExecutor(max(1, len(clusters))) as pool:
        for _ in ticks(every_s, stop):
            for lists in _as_done(pool, clusters):
                sink(lists)
                count += len(lists)
    return count


def _as_done(pool: ThreadPoolExecutor, clusters: Sequence[Cluster]) -> Iterator[list[KubeList]]:
    for future in as_completed([pool.submit(read_cluster, cluster) for cluster in clusters]):
        yield future.result()
