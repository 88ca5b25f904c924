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


OPENAPI_V3: dict[str, Any] = {"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1"}}}


def openapi() -> dict[str, Any]:
    """The OpenAPI v3 document of `/api/v1`, as far as kubectl needs it before `create` and `apply`.

    It looks for the `fieldValidation` parameter of a kind's patch to learn that the server validates; schemas are left
    out.
    """
    paths: dict[str, Any] = {}
    for r in RESOURCES.values():
        prefix = "/api/v1/namespaces/{namespace}" if r.namespaced else "/api/v1"
        patch = {
            "x-kubernetes-group-version-kind": {"group": "", "version": "v1", "kind": r.kind},
            "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
            "responses": {},
        }
        paths[f"{prefix}/{r.name}/{{name}}"] = {"patch": patch}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]}, "paths": paths}
