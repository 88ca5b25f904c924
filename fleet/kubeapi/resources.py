"""Which resources the simulated API server has, and the discovery documents that say so.

The list of resources and the discovery JSON belong here; how a request is answered does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fleet.kubeapi.objects import KUBELET_VERSION


@dataclass(frozen=True)
class Resource:
    """A resource of the core group."""

    name: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    has_status: bool = True
    in_all: bool = False

    @property
    def singular(self) -> str:
        """Name of one object in kubectl's output."""
        return self.kind.lower()


RESOURCES: dict[str, Resource] = {
    r.name: r
    for r in (
        Resource("events", "Event", True, ("ev",), has_status=False),
        Resource("namespaces", "Namespace", False, ("ns",)),
        Resource("nodes", "Node", False, ("no",)),
        Resource("pods", "Pod", True, ("po",), in_all=True),
    )
}

VERSION: dict[str, str] = {
    "major": "1",
    "minor": "37",
    "gitVersion": f"{KUBELET_VERSION}+strandline-simulated",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "python",
    "platform": "linux/amd64",
}

API_VERSIONS: dict[str, Any] = {
    "kind": "APIVersions",
    "versions": ["v1"],
    "serverAddressByClientCIDRs": [],
}
API_GROUPS: dict[str, Any] = {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}


def resource_list() -> dict[str, Any]:
    """The APIResourceList of `/api/v1`."""
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    items: list[dict[str, Any]] = []
    for r in RESOURCES.values():
        common = {"singularName": r.singular, "namespaced": r.namespaced, "kind": r.kind}
        entry: dict[str, Any] = {"name": r.name, **common, "verbs": verbs, "shortNames": list(r.short_names)}
        if r.in_all:
            entry["categories"] = ["all"]
        items.append(entry)
        if r.has_status:
            items.append(
                {"name": f"{r.name}/status", **common, "singularName": "", "verbs": ["get", "patch", "update"]}
            )
        if r.name == "pods":
            items.append(
                {"name": "pods/binding", "singularName": "", "namespaced": True, "kind": "Binding", "verbs": ["create"]}
            )
    return {"kind": "APIResourceList", "groupVersion": "v1", "resources": items}
