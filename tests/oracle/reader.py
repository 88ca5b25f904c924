"""Reads a golden-style case folder into plain objects: scrapes with their rows, and saved Kubernetes lists.

Belongs here: the oracle's own parsing of DCGM text and Kubernetes JSON, the choice between two bodies of one instant.
Does not belong here: any rule of the ledger (ledger.py, holders.py), anything imported from the project's rooms. The
oracle shares no code with what it checks.

All instants are integer microseconds since the epoch; values are exact fractions of the printed text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

LINE = re.compile(r"^([A-Za-z_:][A-Za-z0-9_:]*)\{(.*)\}\s+(\S+)\s*$")
LABEL = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"\s*(?:,|$)')

# Names of the three activity fields, old and new; the ratio spelling of GPU_UTIL is judged per target.
FIELDS = {
    "DCGM_FI_PROF_SM_ACTIVE": ("sm", Fraction(1)),
    "DCGM_FI_PROF_SM_UTIL_RATIO": ("sm", Fraction(1)),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("gr", Fraction(1)),
    "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO": ("gr", Fraction(1)),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor", Fraction(1)),
    "DCGM_FI_PROF_PIPE_TENSOR_UTIL_RATIO": ("tensor", Fraction(1)),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("dram", Fraction(1)),
    "DCGM_FI_PROF_DRAM_UTIL_RATIO": ("dram", Fraction(1)),
    "DCGM_FI_DEV_GPU_UTIL": ("util", Fraction(1, 100)),
    "dcgm_gpu_utilization": ("util", Fraction(1, 100)),
    "DCGM_FI_DEV_GPU_UTIL_RATIO": ("util", None),
}
SENTINEL = 2147483632
EXPORTER_POD = re.compile(r"dcgm-exporter")


def micros(text: str) -> int:
    """Microseconds since the epoch of an RFC 3339 instant in UTC."""
    when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    delta = when - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds


@dataclass
class Row:
    """What one scrape says of one GPU (gi None) or one MIG instance."""

    slot: str
    gi: str | None
    profile: str | None = None
    model: str | None = None
    uuid: str | None = None
    values: dict[str, Fraction] = field(default_factory=dict)
    pods: list[tuple[str, str, str]] = field(default_factory=list)  # namespace, pod, vgpu


@dataclass
class Scrape:
    """One recorded scrape of one target; no rows where the body was empty or not metrics."""

    cluster: str
    node: str
    target: str
    at: int
    rows: dict[tuple[str, str | None], Row]

    @property
    def slots(self) -> set[str]:
        """Slots of which the body carries any row."""
        return {slot for slot, _ in self.rows}


@dataclass
class KubeList:
    """Objects of one kind that one list showed: name (uid for pods) to object."""

    cluster: str
    at: int
    kind: str
    items: dict[str, dict[str, Any]]


@dataclass
class KubeletList:
    """A pod-resources list of one node: (namespace, pod, GPU uuid)."""

    cluster: str
    node: str
    at: int
    devices: list[tuple[str, str, str]]


@dataclass
class Case:
    """One case folder, parsed."""

    spec: dict[str, Any]
    scrapes: list[Scrape]
    lists: list[KubeList]
    kubelets: list[KubeletList] = field(default_factory=list)


def _better(one: bytes, other: bytes) -> bytes:
    """Of two bodies for one target and instant: the longer, then the one with the smaller sha256."""
    return min(one, other, key=lambda body: (-len(body), hashlib.sha256(body).hexdigest()))


def read_case(folder: Path) -> Case:
    """Parse a case folder: case.json, manifest.jsonl and the files it names, whatever the order."""
    spec = json.loads((folder / "case.json").read_text())
    bodies: dict[tuple[str, str, str, int], bytes] = {}
    lists: dict[tuple[str, int, str], bytes] = {}
    kubelets: dict[tuple[str, str, int], bytes] = {}
    for line in (folder / "manifest.jsonl").read_text().splitlines():
        entry = json.loads(line)
        body, at, cluster = (folder / entry["file"]).read_bytes(), micros(entry["at"]), entry["cluster"]
        if entry["kind"] == "dcgm":
            key = (cluster, entry["node"], entry.get("target", entry["node"]), at)
            bodies[key] = _better(bodies[key], body) if key in bodies else body
        elif entry["kind"] == "pod_resources":
            kubelets[cluster, entry["node"], at] = body
        else:
            for kind in _kinds(json.loads(body)):
                spot = (cluster, at, kind)
                lists[spot] = _fuller(lists[spot], body, kind) if spot in lists else body
    return Case(
        spec,
        sorted(_scrapes(bodies), key=lambda s: (s.at, s.cluster, s.target)),
        sorted((_list(*key, body) for key, body in lists.items()), key=lambda k: (k.at, k.kind)),
        [KubeletList(*key, _kubelet_devices(json.loads(body))) for key, body in sorted(kubelets.items())],
    )


def _fuller(one: bytes, other: bytes, kind: str) -> bytes:
    """Of two lists of one kind at one instant: one with objects before one without, then as for bodies."""
    some = [body for body in (one, other) if _list("", 0, kind, body).items]
    return some[0] if len(some) == 1 else _better(one, other)


def _kubelet_devices(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(namespace, pod, GPU uuid) of the List reply of the kubelet's pod-resources service; without ``::N``."""
    return [
        (pod["namespace"], pod["name"], uuid.split("::")[0])
        for pod in document.get("podResources", [])
        for container in pod.get("containers", [])
        for device in container.get("devices", [])
        for uuid in device["deviceIds"]
    ]


def _kinds(document: dict[str, Any]) -> set[str]:
    """Kinds a saved list is complete for. A mixed v1 List with nodes in it is taken to list the pods as well."""
    kind = document["kind"]
    if kind != "List":
        return {kind.removesuffix("List")}
    kinds = {item["kind"] for item in document["items"]}
    return kinds | {"Pod"} if "Node" in kinds else kinds


def _list(cluster: str, at: int, kind: str, body: bytes) -> KubeList:
    document = json.loads(body)
    default = document["kind"].removesuffix("List")
    items = {}
    for item in document["items"]:
        if item.get("kind", default) == kind:
            meta = item["metadata"]
            items[meta["uid"] if kind == "Pod" else meta["name"]] = item
    return KubeList(cluster, at, kind, items)


def _lines(body: bytes) -> Iterator[tuple[str, dict[str, str], str]]:
    """(metric, labels, value text) of every well-formed line; equal series after the first are dropped."""
    seen = set()
    for text in body.decode("utf-8", "replace").splitlines():
        match = LINE.match(text)
        if text.startswith("#") or not match:
            continue
        labels, position = {}, 0
        while position < len(match[2]):
            label = LABEL.match(match[2], position)
            if not label:
                break
            labels[label[1]] = label[2]
            position = label.end()
        if position < len(match[2]):
            continue  # an unescaped quote: the line is rejected, the rest of the body stands
        try:
            float(match[3])
        except ValueError:
            continue
        series = (match[1], tuple(sorted(labels.items())))
        if series not in seen:
            seen.add(series)
            yield match[1], {k: v for k, v in labels.items() if v != ""}, match[3]


def _scrapes(bodies: dict[tuple[str, str, str, int], bytes]) -> Iterable[Scrape]:
    parsed = {key: list(_lines(body)) for key, body in bodies.items()}
    ratio_texts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (cluster, _, target, _), lines in parsed.items():
        ratio_texts[cluster, target] += [v for name, _, v in lines if name == "DCGM_FI_DEV_GPU_UTIL_RATIO"]
    for (cluster, node, target, at), lines in parsed.items():
        factor = _ratio_factor(ratio_texts[cluster, target])
        yield Scrape(cluster, node, target, at, _rows(lines, factor))


def _ratio_factor(texts: list[str]) -> Fraction:
    """GPU_UTIL_RATIO is percent where a target prints integers or any value above 1 (sentinels aside)."""
    values = [t for t in texts if abs(float(t)) < SENTINEL]
    percent = any("." not in t or float(t) > 1 for t in values)
    return Fraction(1, 100) if percent else Fraction(1)


def _rows(lines: list[tuple[str, dict[str, str], str]], ratio: Fraction) -> dict[tuple[str, str | None], Row]:
    rows: dict[tuple[str, str | None], Row] = {}
    from_device: set[tuple[str, str | None, str]] = set()
    for name, labels, text in lines:
        uuid = labels.get("UUID") or labels.get("uuid") or labels.get("gpu_uuid")
        slot = labels.get("pci_bus_id") or (f"uuid:{uuid}" if uuid else None)
        if slot is None:
            continue
        gi = labels.get("GPU_I_ID")
        row = rows.setdefault((slot, gi), Row(slot, gi))
        row.profile = row.profile or labels.get("GPU_I_PROFILE")
        row.uuid = row.uuid or uuid
        row.model = row.model or labels.get("modelName")
        pod = _pod(labels)
        if pod and pod not in row.pods:
            row.pods.append(pod)
        if name in FIELDS:
            what, factor = FIELDS[name]
            if (slot, gi, what) in from_device or (pod and what in row.values):
                continue  # copies per sharer repeat the device's value; the row without a pod is the device's own
            if not pod:
                from_device.add((slot, gi, what))
            value = _ratio(text, factor if factor is not None else ratio)
            row.values.pop(what, None)
            if value is not None:
                row.values[what] = value
    return rows


def _ratio(text: str, factor: Fraction) -> Fraction | None:
    """A ratio 0-1; above 1 to 1.1 is clamped, everything else out of range is nothing."""
    if text.lstrip("+-").lower() in {"nan", "inf"}:
        return None
    value = Fraction(text) * factor
    if value < 0 or value > Fraction(11, 10):
        return None
    return min(value, Fraction(1))


def _pod(labels: dict[str, str]) -> tuple[str, str, str] | None:
    """(namespace, pod, vgpu) a row names: exported_* first, never the exporter's own pod."""
    pod = labels.get("exported_pod") or labels.get("pod") or labels.get("pod_name")
    space = labels.get("exported_namespace") or labels.get("namespace") or labels.get("pod_namespace")
    if not pod or not space or ("exported_pod" not in labels and EXPORTER_POD.search(pod)):
        return None
    return space, pod, labels.get("vgpu", "")
