"""The kubeconfig that points clients at the simulated clusters: one context per cluster, plain HTTP on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def kubeconfig(clusters: Iterable[str], base_url: str) -> dict[str, Any]:
    """The kubeconfig object; servers are `<base_url>/clusters/<cluster>` and nobody needs credentials."""
    names = list(clusters)
    base = base_url.rstrip("/")
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "preferences": {},
        "clusters": [{"name": name, "cluster": {"server": f"{base}/clusters/{name}"}} for name in names],
        "users": [{"name": "simulated", "user": {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": "simulated"}} for name in names],
        "current-context": names[0] if names else "",
    }


def as_text(config: dict[str, Any]) -> str:
    """The kubeconfig as a file: JSON, which every YAML reader reads."""
    return json.dumps(config, indent=2) + "\n"
