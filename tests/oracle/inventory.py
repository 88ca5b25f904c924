"""Slots of a node and their state over time: capacity, Ready, cordon, allocatable, lost.

Belongs here: rules 1 and 2 of the ledger as plain intervals, and the cut of a device into MIG instances and replicas.
Does not belong here: holders (holders.py), cover and sums (ledger.py).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .holders import FOREVER, Device, Layout
from .reader import Case, Scrape, micros

LOST_AFTER = 300 * 1_000_000
Span = tuple[int, int]
Ends = dict[tuple[str, str, int], int]  # cluster, target, instant -> end of that scrape's cover


@dataclass
class Slot:
    """One GPU slot: capacity spans, lost spans, layouts over time, model, and whether it was scraped."""

    name: str
    known: bool
    model: str = ""
    cuts: list[tuple[int, dict[str, str]]] = field(default_factory=list)  # since when which instances
    capacity: list[Span] = field(default_factory=list)
    lost: list[Span] = field(default_factory=list)

    def instances(self, at: int) -> dict[str, str]:
        """MIG instances (gi -> profile) at an instant; the first layout also before it was seen."""
        index = bisect_right([t for t, _ in self.cuts], at) - 1
        return self.cuts[max(0, index)][1] if self.cuts else {}

    def weight(self, profile: str) -> Fraction:
        """Compute slices of an instance over the model's most (A30 4, else 7)."""
        slices = int(profile.partition("g.")[0].rpartition(".")[2].removesuffix("g"))
        return Fraction(slices, 4 if "A30" in self.model.replace("-", " ").split() else 7)


@dataclass
class Node:
    """One node: slots, replicas per device, and the states its lists tell."""

    cluster: str
    name: str
    slots: dict[str, Slot]
    layout: Layout
    scrapes: list[Scrape]
    lists: list[tuple[int, dict[str, Any] | None]]  # None: a complete node list without this node
    transitions: list[tuple[int, bool]] = field(default_factory=list)

    def ready(self, at: int) -> bool:
        """Ready as of the last transition known at or before the instant."""
        index = bisect_right([t for t, _ in self.transitions], at) - 1
        return self.transitions[index][1] if index >= 0 else True

    def shown(self, at: int) -> dict[str, Any] | None:
        """The node as the latest list at or before the instant showed it."""
        index = bisect_right([t for t, _ in self.lists], at) - 1
        return self.lists[index][1] if index >= 0 else None

    def units(self, at: int) -> list[tuple[Device, str | None]]:
        """Devices that can be held at an instant, with their profiles; only of slots that count as capacity."""
        units: list[tuple[Device, str | None]] = []
        for slot in self.slots.values():
            if inside(at, slot.capacity):
                cut = slot.instances(at)
                units += [((slot.name, gi), profile) for gi, profile in cut.items()] or [((slot.name, None), None)]
        return units


def _quantity(node: dict[str, Any], which: str, resource: str) -> int:
    return int(node["status"].get(which, {}).get(resource, 0))


def gpu_resources(node: dict[str, Any]) -> set[str]:
    """nvidia.com/* resources a node advertises."""
    return {r for r in node["status"].get("capacity", {}) if r.startswith("nvidia.com/")}


def _single(node: dict[str, Any]) -> bool:
    """Whether nvidia.com/gpu counts MIG instances."""
    return (node["metadata"].get("labels") or {}).get("nvidia.com/mig.strategy") == "single"


def _replicas(node: dict[str, Any]) -> int:
    """Replicas per device: the label of GPU feature discovery, else capacity over nvidia.com/gpu.count, else 1."""
    labels = node["metadata"].get("labels") or {}
    if "nvidia.com/gpu.replicas" in labels:
        return max(1, int(labels["nvidia.com/gpu.replicas"]))
    count = int(labels.get("nvidia.com/gpu.count", 0))
    units = _quantity(node, "capacity", "nvidia.com/gpu") + _quantity(node, "capacity", "nvidia.com/gpu.shared")
    return units // count if count and units > count and units % count == 0 else 1


def _physical(node: dict[str, Any]) -> int:
    """Physical GPUs a node list shows: nvidia.com/gpu.count, else units over replicas."""
    labels = node["metadata"].get("labels") or {}
    if "nvidia.com/gpu.count" in labels:
        return int(labels["nvidia.com/gpu.count"])
    units = _quantity(node, "capacity", "nvidia.com/gpu") + _quantity(node, "capacity", "nvidia.com/gpu.shared")
    return units // _replicas(node)


def read_nodes(case: Case, cover_end: Ends) -> list[Node]:
    """Every node with its slots and states."""
    names = {(s.cluster, s.node) for s in case.scrapes}
    names |= {(k.cluster, name) for k in case.lists if k.kind == "Node" for name in k.items}
    nodes = []
    for cluster, name in sorted(names):
        scrapes = [s for s in case.scrapes if (s.cluster, s.node) == (cluster, name)]
        lists = [(k.at, k.items.get(name)) for k in case.lists if k.kind == "Node" and k.cluster == cluster]
        shown = [item for _, item in lists if item]
        layout = Layout(_replicas(shown[-1]), _single(shown[-1])) if shown else Layout()
        node = Node(cluster, name, {}, layout, scrapes, lists)
        _slots(node, max((_physical(item) for item in shown), default=0))
        _capacity(node)
        _lost(node, cover_end)
        _transitions(node)
        nodes.append(node)
    return nodes


def _slots(node: Node, advertised: int) -> None:
    seen: dict[str, list[tuple[int, dict[str, str]]]] = defaultdict(list)
    for scrape in node.scrapes:
        rows = sorted(scrape.rows.items(), key=lambda kv: (kv[0][0], kv[0][1] or ""))
        for (name, gi), row in rows:
            slot = node.slots.setdefault(name, Slot(name, True))
            slot.model = slot.model or row.model or ""
            if not seen[name] or seen[name][-1][0] != scrape.at:
                seen[name].append((scrape.at, {}))
            if gi is not None:
                seen[name][-1][1][gi] = row.profile or "7g"
    if not node.layout.single:
        for number in range(len(node.slots), advertised):
            name = f"unseen-{number}"
            node.slots[name] = Slot(name, False)
    for slot in node.slots.values():
        slot.cuts = _cuts(seen[slot.name])
        for _, cut in slot.cuts:
            if sum((slot.weight(profile) for profile in cut.values()), Fraction(0)) > 1:
                raise ValueError(f"{node.name} {slot.name}: more slices than the model has")


def _cuts(seen: list[tuple[int, dict[str, str]]]) -> list[tuple[int, dict[str, str]]]:
    """Layouts from sets of instances shown: one shown for under 5 minutes between two equal ones is rows missing."""
    runs: list[tuple[int, dict[str, str]]] = []
    for at, cut in seen:
        if not runs or runs[-1][1] != cut:
            runs.append((at, cut))
    index = 1
    while index + 1 < len(runs):
        if runs[index - 1][1] == runs[index + 1][1] and runs[index + 1][0] - runs[index][0] < LOST_AFTER:
            del runs[index : index + 2]
            index = max(1, index - 1)
        else:
            index += 1
    return runs


def _capacity(node: Node) -> None:
    """Spans from first to last evidence; a complete list without the node ends a span."""
    events: list[tuple[int, int, Any]] = [(at, 0, item) for at, item in node.lists]
    events += [(s.at, 1, s) for s in node.scrapes]
    first: dict[str, int] = {}
    last: dict[str, int] = {}

    def close() -> None:
        for name, start in first.items():
            node.slots[name].capacity.append((start, last[name]))
        first.clear()
        last.clear()

    for at, kind, what in sorted(events, key=lambda e: (e[0], e[1])):
        if kind == 1:
            shows = what.slots
        elif what is None:
            close()
            continue
        else:
            shows = set(first)
            for name in node.slots:
                counted = sum(max(1, len(node.slots[n].instances(at))) if _single(what) else 1 for n in shows)
                if name not in shows and counted < _physical(what):
                    shows.add(name)
        for name in shows:
            first.setdefault(name, at)
            last[name] = at
    close()


def _lost(node: Node, cover_end: Ends) -> None:
    """Spans in which a slot is lost, by the five minutes of rule 2, within each capacity span."""
    for slot in node.slots.values():
        targets = {s.target for s in node.scrapes if slot.name in s.slots} or {s.target for s in node.scrapes}
        own: dict[int, int] = defaultdict(int)
        for s in node.scrapes:
            if slot.name in s.slots:
                own[s.at] = max(own[s.at], cover_end[s.cluster, s.target, s.at])
        without = [s.at for s in node.scrapes if s.target in targets and s.slots and slot.name not in s.slots]
        for start, end in slot.capacity:
            came = max((at for at, item in node.lists if item is None and at < start), default=-FOREVER)
            inside = sorted(at for at in own if start <= at <= end)
            for before, after in zip([None, *inside], [*inside, end], strict=True):
                since = before if before is not None else came
                missing = min((at for at in without if since <= at < after and at != before), default=None)
                if missing is not None and after - missing > LOST_AFTER:
                    slot.lost.append((max(start, missing) if before is None else own[before], after))


def _transitions(node: Node) -> None:
    """Ready and not Ready from each lastTransitionTime the lists show."""
    seen: dict[int, bool] = {}
    for at, item in node.lists:
        for condition in (item or {}).get("status", {}).get("conditions") or []:
            if condition["type"] == "Ready":
                seen[min(at, micros(condition["lastTransitionTime"]))] = condition["status"] == "True"
    node.transitions = sorted(seen.items())


def inside(at: int, spans: list[Span]) -> bool:
    """Whether a half-open span contains the instant."""
    return any(start <= at < end for start, end in spans)


def moments(node: Node) -> set[int]:
    """Instants at which any state of the node can change."""
    cuts = {t for t, _ in node.transitions} | {t for t, _ in node.lists}
    for slot in node.slots.values():
        cuts |= {t for t, _ in slot.cuts}
        cuts |= {t for span in slot.capacity + slot.lost for t in span if t < FOREVER}
    return cuts
