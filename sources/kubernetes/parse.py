"""Many Kubernetes lists to raw.kube_snapshots and the tables of nodes, pods, namespaces and devices.

Which of two lists of one instant counts is decided here; fields of single objects are read in
`objects.py`. A bad object costs itself and the completeness of its list,
never the list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from sources.dcgm.scrape import naive_utc
from sources.kubernetes import devices
from sources.kubernetes.lists import Json, KubeList, documents
from sources.kubernetes.objects import READERS
from sources.kubernetes.quantity import BadObject, mapping
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput

Rows = dict[str, list[Json]]
_ERROR_LENGTH = 2000
KUBE_TABLES = (
    "raw.kube_snapshots", "raw.kube_nodes", "raw.kube_node_resources", "raw.kube_pods", "raw.kube_pod_resources",
    "raw.kube_namespaces", "raw.kube_devices",
)  # fmt: skip
# What a list of a kind fills; raw.kube_devices rows are told apart by method (and node).
TABLES_OF_KIND = {
    "Node": ("raw.kube_nodes", "raw.kube_node_resources"),
    "Pod": ("raw.kube_pods", "raw.kube_pod_resources"),
    "Namespace": ("raw.kube_namespaces",),
    "ResourceClaim": ("raw.kube_devices",),
    "PodResources": ("raw.kube_devices",),
}


@dataclass
class Content:
    """What one list says about one kind: counted objects, rows by table, and what was wrong."""

    listed: KubeList
    kind: str
    is_complete: bool = True
    objects: int = 0
    rows: Rows = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    slices: dict[str, Json] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sort key among lists of one (cluster, instant, kind): the smallest counts (see `rank`)."""
        body = self.listed.body
        return rank(self.objects, None if body is None else len(body), self.listed.sha256, self.error)

    @property
    def error(self) -> str | None:
        return "; ".join(self.errors)[:_ERROR_LENGTH] or None


def rank(count: int | None, size: int | None, sha256: str | None, error: str | None) -> tuple[Any, ...]:
    """Total order of lists for one (cluster, instant, kind); the smallest wins, whatever came first.

    One with objects beats one without, then the longer body, then the smaller hash.
    """
    return (not count, size is None, -(size or 0), sha256 or "~", error or "")


def parse_lists(lists: Sequence[KubeList]) -> dict[str, pa.Table]:
    """Raw tables of those lists, in the contracts' schemas.

    A `List` of mixed kinds counts for every kind it holds, and with nodes in it for pods too (it was
    asked for both). A list with `metadata.continue` left, a rejected object or a failed page is not
    complete: it proves no absence. Nothing in a body raises; errors stand in raw.kube_snapshots.
    """
    chosen: dict[tuple[str, datetime, str], Content] = {}
    for listed in lists:
        for content in read_list(listed):
            key = (listed.cluster, naive_utc(listed.at), content.kind)
            if key not in chosen or content.rank < chosen[key].rank:
                chosen[key] = content
    rows: Rows = defaultdict(list)
    for (cluster, at, kind), content in sorted(chosen.items(), key=lambda item: item[0]):
        stamp = {"cluster": cluster, "snapshot_at": at, "hour": at.replace(minute=0, second=0, microsecond=0),
                 "date": at.date()}  # fmt: skip
        body = content.listed.body
        rows["raw.kube_snapshots"].append({
            **stamp, "kind": kind, "objects": content.objects, "is_complete": content.is_complete,
            "body_bytes": None if body is None else len(body), "body_sha256": content.listed.sha256,
            "error": content.error,
        })  # fmt: skip
        for table, found in content.rows.items():
            rows[table] += [{**stamp, **row} for row in _once(table, found)]
    return {name: pa.Table.from_pylist(rows[name], schema=CONTRACTS[name].arrow_schema) for name in KUBE_TABLES}


def _once(table: str, rows: list[Json]) -> list[Json]:
    """Rows of one list without repeats of a key: two claims of a pod may share a device."""
    if table != "raw.kube_devices":
        return rows
    key = [c for c in CONTRACTS[table].key if c not in ("cluster", "snapshot_at")]
    return list({tuple(row[c] for c in key): row for row in reversed(rows)}.values())[::-1]


def read_list(listed: KubeList) -> list[Content]:
    """What a list says, by kind. One that cannot be read at all gives a content with only an error."""
    if listed.kind == "pod_resources":
        return [_pod_resources(listed)]
    contents: dict[str, Content] = {}

    def content(kind: str) -> Content:
        return contents.setdefault(kind, Content(listed, kind))

    asked = {listed.lists} if listed.lists else set()
    trouble = [listed.error] if listed.error else []
    more = False
    try:
        for document in documents(listed.body, listed.source) if listed.body is not None else ():
            kind = str(document.get("kind") or "")
            more = bool(mapping(document.get("metadata"), "metadata").get("continue"))
            items = objects_of(document)
            if kind.endswith("List") and kind != "List":
                asked.add(kind.removesuffix("List"))
            for item in items:
                own = item.get("kind") if isinstance(item, dict) else None
                _read_object(item, str(own or kind.removesuffix("List") or "?"), content)
            if kind == "List" and any(isinstance(i, dict) and i.get("kind") == "Node" for i in items):
                asked.add("Pod")
    except (BadInput, BadObject) as error:
        trouble.append(str(error))
    for kind in asked:
        if kind in TABLES_OF_KIND:
            content(kind)
    if not contents:
        content("List").is_complete = False
        trouble = trouble or ["no object of a kind that is read"]
    for each in contents.values():
        for row in each.rows["raw.kube_devices"]:
            row.update(each.slices.get(row["device_id"], {}))
        each.is_complete = each.is_complete and not (more or trouble or each.errors)
        each.errors = trouble + each.errors
    return [c for c in contents.values() if c.kind in TABLES_OF_KIND or c.kind == "List"]


def objects_of(document: Json) -> list[Any]:
    """The objects of a document: the items of a list, or the document itself."""
    if not str(document.get("kind") or "").endswith("List"):
        return [document]
    items = document.get("items")
    if items is None:
        return []
    if not isinstance(items, list):
        raise BadObject(f"items of {document['kind']} is no list")
    return items


def _read_object(item: Any, kind: str, content: Callable[[str], Content]) -> None:
    if kind == "ResourceSlice":
        _read_slice(item, content("ResourceClaim"))
        return
    read = READERS.get(kind)
    if read is None:
        if not isinstance(item, dict):
            content("List").errors.append("an item is no object")
        return
    into = content(kind)
    name = "?"
    try:
        if not isinstance(item, dict):
            raise BadObject("the item is no object")
        metadata = mapping(item.get("metadata"), "metadata")
        name = "/".join(str(p) for p in (metadata.get("namespace"), metadata.get("name")) if p) or "?"
        rows = read(item, metadata)
    except BadObject as error:
        into.errors.append(f"{kind} {name}: {error}")
        return
    identity = str(metadata.get("uid") or name) if kind == "Pod" else name
    if identity in into.seen:  # an object may come twice when a page is taken again
        return
    into.seen.add(identity)
    into.objects += 1
    for table, row in rows:
        into.rows[table].append(row)


def _read_slice(item: Any, into: Content) -> None:
    try:
        into.slices.update(devices.slice_devices(mapping(item, "the item")))
    except BadObject as error:
        into.errors.append(f"ResourceSlice: {error}")


def _pod_resources(listed: KubeList) -> Content:
    content = Content(listed, f"PodResources/{listed.node}")
    try:
        if listed.error:
            raise BadInput(listed.error)
        for document in documents(listed.body or b"", listed.source):
            count, rows, errors = devices.pod_resource_devices(document, listed.node)
            content.objects += count
            content.rows["raw.kube_devices"] += rows
            content.errors += errors
    except (BadInput, BadObject) as error:
        content.errors.append(str(error))
    content.is_complete = not content.errors
    return content
