"""Which exporters to scrape: URLs, or Prometheus service discovery in its JSON form (file_sd, http_sd).

Fetching them stands in `collect.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import urllib3

from warehouse.errors import BadInput

_NODE_LABELS = ("node", "__meta_kubernetes_node_name", "__meta_kubernetes_pod_node_name", "kubernetes_node", "nodename")


@dataclass(frozen=True)
class Target:
    """An exporter: URL, cluster, `instance` (names the target in the lake) and node if known."""

    url: str
    cluster: str
    instance: str
    node: str | None = None


def targets_of_urls(urls: Iterable[str], cluster: str = "default", node: str | None = None) -> list[Target]:
    """Targets of URLs; a bare `host:port` means `http://host:port/metrics`. `BadInput` names a bad one."""
    return [_target(url, cluster, node, None) for url in urls]


def _target(url: str, cluster: str, node: str | None, instance: str | None) -> Target:
    full = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(full)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadInput(f"target {url!r}: {error}") from None
    if parts.scheme not in ("http", "https") or not host or " " in url:
        raise BadInput(f"target {url!r} is no http or https URL")
    if parts.path in ("", "/"):
        full = parts._replace(path="/metrics").geturl()
    return Target(full, cluster, instance or parts.netloc.rpartition("@")[2], node)


def targets_of_discovery(source: str, cluster: str = "default", timeout_s: float = 10.0) -> list[Target]:
    """Targets of a file_sd JSON file or an http_sd URL: `[{"targets": ["host:port"], "labels": {...}}]`.

    Labels read: `node` (or the Kubernetes meta labels), `cluster`, `instance`, `__scheme__`,
    `__metrics_path__`. Of equal targets one stays. `BadInput` names source, group and field.
    """
    try:
        groups = orjson.loads(_load(source, timeout_s))
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{source}: not JSON at line {error.lineno} column {error.colno}: {error.msg}") from None
    if not isinstance(groups, list):
        raise BadInput(f"{source}: a JSON list of target groups is expected")
    found: dict[tuple[str, str], Target] = {}
    for number, group in enumerate(groups):
        for target in _of_group(group, f"{source}: group {number}", cluster):
            found.setdefault((target.cluster, target.instance), target)
    return list(found.values())


def _of_group(group: Any, where: str, cluster: str) -> Sequence[Target]:
    if not isinstance(group, dict):
        raise BadInput(f"{where}: a JSON object is expected")
    labels, targets = group.get("labels") or {}, group.get("targets")
    if not isinstance(targets, list) or not all(isinstance(t, str) for t in targets):
        raise BadInput(f"{where}: targets must be a list of host:port")
    if not isinstance(labels, dict) or not all(isinstance(v, str) for v in labels.values()):
        raise BadInput(f"{where}: labels must map names to text")
    node = next((labels[n] for n in _NODE_LABELS if labels.get(n)), None)
    path = labels.get("__metrics_path__") or "/metrics"
    result = []
    for address in targets:
        url = address if "://" in address else f"{labels.get('__scheme__') or 'http'}://{address}{path}"
        # One instance label over several targets would make them one; then the address tells them apart.
        instance = labels.get("instance") if len(targets) == 1 else None
        try:
            result.append(_target(url, labels.get("cluster") or cluster, node, instance))
        except BadInput as error:
            raise BadInput(f"{where}: {error}") from None
    return result


def _load(source: str, timeout_s: float) -> bytes:
    if not source.startswith(("http://", "https://")):
        try:
            return Path(source).read_bytes()
        except OSError as error:
            raise BadInput(f"{source}: {error.strerror}") from None
    try:
        answer = urllib3.request("GET", source, timeout=timeout_s, retries=False)
    except urllib3.exceptions.HTTPError as error:
        raise BadInput(f"{source}: {error}") from None
    if answer.status != 200:
        raise BadInput(f"{source}: HTTP {answer.status}")
    return answer.data
