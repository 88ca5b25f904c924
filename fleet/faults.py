"""Injected faults: which, where and when, and what they do to pods. Each is a row of raw.fleet_faults.

Planned after placement and so that they change no placement: with faults and without them the same
work gets the same devices. How a fault shows in scrapes and lists is in `telemetry.py` and `states.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import get_args

import numpy as np

from fleet.model import Fault, FaultKind, Node, Pod
from fleet.substreams import stream
from warehouse.errors import BadInput

KINDS: tuple[str, ...] = get_args(FaultKind)
# Kinds during which nothing useful comes from any device of the node.
BLINDING = ("exporter_down", "empty_body", "slow_scrape", "sentinels", "node_reboot")
MILD: dict[str, int] = {
    "failing_gpu": 2, "exporter_down": 1, "empty_body": 2, "node_reboot": 1, "gpu_lost": 1, "cordon": 1,
    "label_flap": 1,
}  # fmt: skip
ALL: dict[str, int] = {
    "failing_gpu": 3, "exporter_down": 2, "empty_body": 3, "slow_scrape": 2, "node_reboot": 2, "pod_deleted": 2,
    "label_flap": 2, "gpu_lost": 2, "clock_skew": 1, "sentinels": 2, "cordon": 2,
}  # fmt: skip
# Seconds that a fault of the kind lasts, low and high.
LASTS: dict[str, tuple[int, int]] = {
    "exporter_down": (1200, 5400), "empty_body": (60, 400), "slow_scrape": (600, 1800), "node_reboot": (420, 1100),
    "pod_deleted": (1, 2), "label_flap": (3600, 10800), "gpu_lost": (1800, 18000), "clock_skew": (7200, 18000),
    "sentinels": (1200, 5400), "cordon": (7200, 21600), "failing_gpu": (86400, 6 * 86400),
}  # fmt: skip
SKEW_S = 37.0


def counts(faults: str | tuple[str, ...]) -> dict[str, int]:
    """How many of each kind a spec's `faults` asks for; `BadInput` names an unknown kind."""
    if faults in ("none", "", ()):
        return {}
    if faults == "mild":
        return MILD
    if faults == "all":
        return ALL
    names = tuple(f.strip() for f in faults.split(",")) if isinstance(faults, str) else faults
    for name in names:
        if name not in KINDS:
            raise BadInput(f"unknown fault {name!r}; known are none, mild, all and {', '.join(KINDS)}")
    return {name: ALL[name] for name in names}


class Planner:
    """Finds places and times for faults, one fault to a node as far as there are nodes."""

    def __init__(
        self, seed: int, nodes: Sequence[Node], pods: list[Pod], start_at: datetime, end_at: datetime, ttl_s: int
    ) -> None:
        self.seed, self.nodes, self.pods = seed, nodes, pods
        self.start_at, self.end_at, self.ttl = start_at, end_at, timedelta(seconds=ttl_s)
        self.span = (end_at - start_at).total_seconds()
        self.by_node: dict[tuple[str, str], list[int]] = {}
        for i, pod in enumerate(pods):
            if pod.node:
                self.by_node.setdefault((pod.cluster, pod.node), []).append(i)
        self.used: set[tuple[str, str]] = set()
        self.faults: list[Fault] = []

    def plan(self, wanted: dict[str, int]) -> None:
        """Adds the wanted number of faults of each kind; those that find no place are left out."""
        for kind in KINDS:
            rng = stream(self.seed, f"faults/{kind}")
            for n in range(wanted.get(kind, 0)):
                found = self._find(kind, rng, f"{kind}-{n + 1}")
                if found is not None:
                    self.faults.append(found)
                    self.used.add((found.cluster, found.node))
                    self._apply(found)

    def _window(self, kind: str, rng: np.random.Generator) -> tuple[datetime, datetime]:
        low, high = LASTS[kind]
        lasts = min(float(rng.uniform(low, high)), max(self.span * 0.12, min(low, self.span * 0.3)))
        at = self.start_at + timedelta(seconds=int(rng.uniform(0.04 * self.span, 0.95 * self.span - lasts)))
        return at, at + timedelta(seconds=max(1, int(lasts)))

    def _find(self, kind: str, rng: np.random.Generator, fault_id: str) -> Fault | None:
        last: Fault | None = None
        for attempt in range(400):
            node = self.nodes[int(rng.integers(len(self.nodes)))]
            a, b = self._window(kind, rng)
            u = float(rng.random())
            key = (node.cluster, node.name)
            if node.target is None or (key in self.used and attempt < 200):
                continue
            pods = [self.pods[i] for i in self.by_node.get(key, ())]
            held = [p for p in pods if p.scheduled_at <= a and p.finished_at >= b]
            fault = Fault(fault_id, kind, node.cluster, node.name, a, b)  # type: ignore[arg-type]
            pad = timedelta(seconds=180)
            if kind in ("failing_gpu", "gpu_lost"):
                whole = [d for d, dev in enumerate(node.devices) if not dev.instances]
                if len(whole) < 2:
                    continue
                d = whole[int(u * len(whole))]
                fault = replace(fault, pci_bus_id=node.devices[d].pci_bus_id)
                on_device = [p for p in pods if any(unit[0] == d for unit in p.units)]
                if kind == "gpu_lost" and (
                    _moves(on_device, a - pad, b + pad) or not any(p in held for p in on_device)
                ):
                    continue
            elif (kind == "cordon" and any(a <= p.scheduled_at < b for p in pods)) or (
                kind == "node_reboot" and (_moves(pods, a - pad, b + pad) or not held)
            ):
                continue
            elif kind == "pod_deleted":
                long = [p for p in held if p.owner_kind == "Job" and (p.finished_at - b).total_seconds() > 1800
                        and (a - p.scheduled_at).total_seconds() > 1800]  # fmt: skip
                if not long:
                    continue
                fault = replace(fault, pod_uid=long[int(u * len(long))].uid)
            elif kind == "clock_skew":
                if a.date() != (b + pad).date():
                    continue
                fault = replace(fault, amount=SKEW_S)
            last = fault
            if held or kind in ("cordon", "failing_gpu"):
                return fault
        return last

    def _apply(self, fault: Fault) -> None:
        if fault.kind == "pod_deleted":
            i = next(i for i, p in enumerate(self.pods) if p.uid == fault.pod_uid)
            at = fault.started_at
            self.pods[i] = replace(self.pods[i], finished_at=at, gone_at=at, listed_until=at)
        if fault.kind == "node_reboot":
            back = fault.finished_at
            for i in self.by_node.get((fault.cluster, fault.node), ()):
                p = self.pods[i]
                if not p.scheduled_at <= fault.started_at < p.finished_at:
                    continue
                if p.owner_kind == "Job":
                    # the kubelet reports the end of a job's containers when it is back
                    self.pods[i] = replace(
                        p, finished_at=back, listed_until=back + self.ttl, end_phase="Failed", end_reason="Error"
                    )
                else:
                    self.pods[i] = replace(p, restarts_at=(*p.restarts_at, back))


def _moves(pods: Sequence[Pod], a: datetime, b: datetime) -> bool:
    return any(a <= p.scheduled_at < b or a <= p.finished_at < b for p in pods)


def plan(
    seed: int, faults: str | tuple[str, ...], nodes: Sequence[Node], pods: list[Pod], start_at: datetime,
    end_at: datetime, ttl_s: int,
) -> tuple[tuple[Fault, ...], list[Pod]]:  # fmt: skip
    """The faults of a spec, in order of start, and the pods as they fare with them."""
    planner = Planner(seed, nodes, list(pods), start_at, end_at, ttl_s)
    planner.plan(counts(faults))
    return tuple(sorted(planner.faults, key=lambda f: (f.started_at, f.fault_id))), planner.pods
