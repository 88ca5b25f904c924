"""From API servers to the lake: lands the lists that were read, then seals them.

Belongs here: what `strandline ingest kubernetes` does once its flags are read. It stands apart from `collecting.py`
because the Kubernetes client takes long to import. Not here: reading and parsing (`sources/kubernetes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import yaml
from kubernetes import config

from pipelines import console
from pipelines.collecting import seal
from pipelines.settings import Settings
from sources.kubernetes.read import Cluster, collect_clusters, connect, read_cluster
from sources.pacing import stop_on_signals
from warehouse.errors import BadInput
from warehouse.landing import Landing


def contexts_of(kubeconfig: Path | None) -> list[str]:
    """Names of all contexts of a kubeconfig; `BadInput` where it cannot be read."""
    if kubeconfig is not None:
        check_kubeconfig(kubeconfig)
    try:
        contexts, _ = config.list_kube_config_contexts(config_file=None if kubeconfig is None else str(kubeconfig))
    except (config.ConfigException, OSError) as e:
        raise BadInput(f"kubeconfig {kubeconfig or '(default)'}: {e}") from e
    return [str(c["name"]) for c in contexts]


def clusters(kubeconfig: Path | None, contexts: Sequence[str], name: str | None) -> list[Cluster]:
    """API servers to read: one a context, named by it or by `name`; no context means the current one."""
    if name is not None and len(contexts) > 1:
        raise BadInput("--cluster names one cluster; with several contexts each is named by its context")
    path = None if kubeconfig is None else str(kubeconfig)
    if kubeconfig is not None:
        check_kubeconfig(kubeconfig)
    return [connect(path, context, name) for context in (contexts or (None,))]


def check_kubeconfig(path: Path) -> None:
    """`BadInput` where the file is no kubeconfig: the client fails on those in ways that name nothing."""
    try:
        content = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError) as e:
        raise BadInput(f"kubeconfig {path}: {e}") from e
    if not isinstance(content, dict) or not isinstance(content.get("clusters"), list):
        raise BadInput(f"kubeconfig {path}: no list of clusters in it")


def list_now(settings: Settings, servers: Sequence[Cluster], at: datetime | None) -> int:
    """Read every API server once, land and seal what came; how many lists failed."""
    lists = [found for server in servers for found in read_cluster(server, at)]
    failed = [found for found in lists if found.body is None]
    for found in failed:
        console.say(f"{found.cluster} {found.source}: {found.error}")
    Landing(settings.data).append(found.record() for found in lists)
    seal(settings)
    return len(failed)


def list_until_stopped(settings: Settings, servers: Sequence[Cluster], every_s: float) -> None:
    """Read every API server each `every_s` seconds until SIGINT or SIGTERM; lists land as scrapes do."""
    landing = Landing(settings.data)
    with stop_on_signals() as stop:
        console.say(f"listing {', '.join(s.name for s in servers)} every {every_s:g} s; Ctrl-C stops")
        count = collect_clusters(servers, lambda some: landing.append(s.record() for s in some), every_s, stop)
    console.say(f"{count:,} lists landed; they are sealed by the hour in Dagster, or by `strandline build`")
