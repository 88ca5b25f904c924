"""Who holds which unit when, as arrays: the bridge from pod records to evaluated telemetry and truth.

A unit is a device, or a MIG instance of one. Nothing is rounded or labelled here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from fleet.activity import Activity, PodTimes
from fleet.catalogue import ACCELERATORS, MIG_MAX_SLICES
from fleet.model import Fault, Node, Pod
from fleet.shapes import SHAPE_INDEX, draw
from fleet.substreams import hash64, seed64, stream, unit


@dataclass(frozen=True)
class NodeUnits:
    """The units of one node and the segments (holdings) on them, in order of unit and start.

    `offset[u]:offset[u + 1]` are unit u's segments. Times are seconds from the start of telemetry;
    `scale` is what this device does of its pod's activity; `base_*` accumulate what came before the
    segment on its unit: scaled activity, held seconds and joules above idle.
    """

    device: np.ndarray
    gi_id: tuple[int | None, ...]
    share: np.ndarray
    offset: np.ndarray
    start: np.ndarray
    end: np.ndarray
    pod: np.ndarray
    scale: np.ndarray
    watts: np.ndarray
    base_activity: np.ndarray
    base_held: np.ndarray
    base_joules: np.ndarray


class Holdings:
    """Pods as arrays (times, parameters, activity) and the segments of every node."""

    def __init__(
        self, seed: int, nodes: Sequence[Node], pods: Sequence[Pod], job: np.ndarray, job_shape: np.ndarray,
        start_at: datetime, end_at: datetime,
    ) -> None:  # fmt: skip
        self.nodes, self.pods, self.start_at = nodes, pods, start_at
        self.start = np.array([(p.scheduled_at - start_at).total_seconds() for p in pods])
        self.begin = np.array([(p.started_at - start_at).total_seconds() for p in pods])
        self.end = np.array([(p.finished_at - start_at).total_seconds() for p in pods])
        self.shape = job_shape[job] if len(pods) else np.zeros(0, dtype=np.int64)
        drawn = draw(stream(seed, "shapes"), job_shape)
        self.params = {name: values[job] if len(pods) else values[:0] for name, values in drawn.items()}
        job_seed = hash64(np.arange(len(job_shape), dtype=np.uint64) ^ np.uint64(seed64(seed, "activity")))
        self.seed = job_seed[job] if len(pods) else job_seed[:0]
        self.horizon = (end_at - start_at).total_seconds()
        warm = self.begin + np.minimum(45.0, 0.05 * (self.end - self.start))
        self.activity = Activity(
            PodTimes(self.start, warm, self.end), self.seed, self.shape, self.params, self.horizon,
            start_at.hour * 3600.0 + start_at.minute * 60.0 + start_at.second,
        )  # fmt: skip
        on_node: dict[tuple[str, str], list[int]] = {}
        for i, p in enumerate(pods):
            if p.node:
                on_node.setdefault((p.cluster, p.node), []).append(i)
        self.units = [self._node_units(n, on_node.get((n.cluster, n.name), [])) for n in nodes]

    def _scales(self, pod: int) -> np.ndarray:
        """What each device of a pod does of the pod's activity: nearly all of it, but some jobs leave half unused."""
        n = len(self.pods[pod].units)
        h = hash64(self.seed[pod : pod + 1] + np.arange(n, dtype=np.uint64) * np.uint64(0x51ED27))
        scale = 1.0 - 0.015 * unit(h)
        lazy = unit(hash64(self.seed[pod : pod + 1] ^ np.uint64(0x1D1E)))[0] < 0.03
        if lazy and n >= 2 and self.shape[pod] == SHAPE_INDEX["training"]:
            scale[(n + 1) // 2 :] = 0.0
        return scale

    def _node_units(self, node: Node, here: list[int]) -> NodeUnits:
        accelerator = ACCELERATORS[node.accelerator]
        device: list[int] = []
        gi: list[int | None] = []
        share: list[float] = []
        for d, dev in enumerate(node.devices):
            for instance in dev.instances:
                device.append(d)
                gi.append(instance.gi_id)
                share.append(instance.slices / MIG_MAX_SLICES)
            if not dev.instances:
                device.append(d)
                gi.append(None)
                share.append(1.0)
        index = {key: u for u, key in enumerate(zip(device, gi, strict=True))}
        rows: list[list[tuple[float, float, int, float]]] = [[] for _ in device]
        for i in here:
            for key, scale in zip(self.pods[i].units, self._scales(i), strict=True):
                rows[index[key]].append((self.start[i], self.end[i], i, float(scale)))
        for r in rows:
            r.sort()
        flat = [x for r in rows for x in r]
        offset = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
        start = np.array([x[0] for x in flat])
        end = np.array([x[1] for x in flat])
        pod = np.array([x[2] for x in flat], dtype=np.int64)
        scale = np.array([x[3] for x in flat])
        room = accelerator.tdp_w - accelerator.idle_w - accelerator.context_w
        watts = room * self.params["power_per_sm"][pod] * scale if flat else np.zeros(0)
        total = np.zeros(0)
        origin = self.activity.origin[pod] if flat else np.zeros(0)
        if flat:
            total = self.activity.integral(pod, np.maximum(np.minimum(end, self.horizon), origin))
        held = np.maximum(np.minimum(end, self.horizon) - origin, 0.0)
        bases = []
        for amount in (scale * total, held, watts * total + accelerator.context_w * held):
            running = np.concatenate([[0.0], np.cumsum(amount)])[:-1] if flat else np.zeros(0)
            heads = (
                np.repeat(running[offset[:-1].clip(max=max(0, len(flat) - 1))], np.diff(offset)) if flat else running
            )
            bases.append(running - heads)
        return NodeUnits(np.array(device), tuple(gi), np.array(share), offset, start, end, pod, scale, watts, *bases)

    def masks(self, faults: Sequence[Fault]) -> dict[tuple[int, int], list[tuple[float, float]]]:
        """Times in which devices do no work, by (node index, device index): lost cards and rebooting nodes."""
        index = {(n.cluster, n.name): i for i, n in enumerate(self.nodes)}
        out: dict[tuple[int, int], list[tuple[float, float]]] = {}
        for f in faults:
            if f.kind not in ("gpu_lost", "node_reboot"):
                continue
            node = index[(f.cluster, f.node)]
            span = ((f.started_at - self.start_at).total_seconds(), (f.finished_at - self.start_at).total_seconds())
            for d, device in enumerate(self.nodes[node].devices):
                if f.pci_bus_id in (None, device.pci_bus_id):
                    out.setdefault((node, d), []).append(span)
        return out
