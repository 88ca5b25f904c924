"""What a node's DCGM exporter measures: exported values of every row at given instants, in arrays.

Here activity is turned into rates of each unit (device or MIG instance); `boards.py` makes the exported
columns of them. Labels and tables are `samples.py`'s. A value is the mean over the collect interval
that ended last before the scrape, on the node's own clock, so it is up to `collect_s` old.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fleet.boards import NodeTrouble, board_columns, board_values, instance_rows, unit_memory
from fleet.catalogue import ACCELERATORS
from fleet.holdings import Holdings, NodeUnits
from fleet.model import Node
from fleet.substreams import hash64, seed64, unit


class Telemetry:
    """Evaluates nodes; `collect_s` is the exporter's collect interval."""

    def __init__(self, seed: int, holdings: Holdings, collect_s: int, troubles: Sequence[NodeTrouble]) -> None:
        self.holdings, self.collect, self.troubles = holdings, float(collect_s), troubles
        self.phase: list[float] = []
        self.key: list[np.uint64] = []
        self.device_noise: list[np.ndarray] = []
        # only pods with several devices talk over NVLink
        self.linked = np.array([1.0 if p.quantity > 1 else 0.0 for p in holdings.pods])
        for n in holdings.nodes:
            h = seed64(seed, f"collect/{n.cluster}/{n.name}")
            # whole milliseconds, so that instants are exact in microseconds
            self.phase.append((h % (collect_s * 1000)) / 1000.0)
            self.key.append(np.uint64(h))
            self.device_noise.append(hash64(np.arange(len(n.devices), dtype=np.uint64) + np.uint64(h)))

    def collected_at(self, node: int, t: np.ndarray) -> np.ndarray:
        """When the values that a scrape at `t` shows were collected."""
        return np.floor((t - self.phase[node]) / self.collect) * self.collect + self.phase[node]

    def holder(self, node: int, t: np.ndarray) -> np.ndarray:
        """Pod index that holds each unit at `t`, -1 where none: shape (units, len(t))."""
        u = self.holdings.units[node]
        i = segment_at(u, t, "right")
        held = i >= 0
        safe = np.maximum(i, 0)
        if not len(u.start):
            return np.full(i.shape, -1, dtype=np.int64)
        return np.where(held & (t[None, :] < u.end[safe]), u.pod[safe], -1)

    def rows(self, node: int, t: np.ndarray) -> dict[str, np.ndarray | None]:
        """Every exported column for scrapes at `t`: arrays of shape (rows, len(t)), None where the card has none.

        Rows are devices in NVML order, each followed by its MIG instances. On instance rows, board
        level columns are NaN.
        """
        model = self.holdings.nodes[node]
        units = self.holdings.units[node]
        c = self.collected_at(node, t)
        values = self._unit_values(node, model, units, c)
        mig = any(d.instances for d in model.devices)
        boards = board_values(model, units, values, self.device_noise[node], c) if mig else values
        trouble = self.troubles[node]
        counted = [(at, self._counters_at(node, at)) for at in trouble.reboots if at <= c[-1]]
        columns = board_columns(model, boards, self.device_noise[node], trouble, counted, c, mig)
        return instance_rows(model, units, columns, values) if mig else columns

    def _counters_at(self, node: int, at: float) -> dict[str, np.ndarray]:
        """Joules above idle and activity of each device at a reboot, from which counters begin anew."""
        model, u = self.holdings.nodes[node], self.holdings.units[node]
        v = self._unit_values(node, model, u, np.array([at]))
        out = {}
        for name in ("joules", "activity"):
            out[name] = np.zeros((len(model.devices), 1))
            np.add.at(out[name], u.device, v[name] * u.share[:, None])
        return out

    def _unit_values(self, node: int, model: Node, u: NodeUnits, c: np.ndarray) -> dict[str, np.ndarray]:
        """Unrounded rates and integrals of each unit at collect instants `c`: shape (units, len(c))."""
        shape = (len(u.device), len(c))
        names = ("m", "h", "gr", "util", "occ", "tensor", "dram", "watts", "pcie", "nvlink")
        out = {n: np.zeros(shape) for n in names}
        out |= {n: np.zeros(shape) for n in ("joules", "activity", "fb")}
        out["alive"] = np.zeros(shape, dtype=bool)
        tick = np.round((c - self.phase[node]) / self.collect).astype(np.int64).astype(np.uint64)
        out["noise"] = hash64(
            tick[None, :] * np.uint64(0x9E3779B1)
            + (self.key[node] + np.arange(shape[0], dtype=np.uint64) * np.uint64(0x2545F491))[:, None]
        )
        if not len(u.start):
            return out
        i = segment_at(u, c, "left")
        some = i >= 0
        seg = np.maximum(i, 0)
        t = np.broadcast_to(c, shape)
        self._add(node, u, seg, t, np.broadcast_to(np.arange(shape[0])[:, None], shape), some, out, ...)
        act = self.holdings.activity
        start, end, pod = u.start[seg], u.end[seg], u.pod[seg]
        at = np.clip(t, start, end)
        origin = act.origin[pod]
        held = np.maximum(at - origin, 0.0)
        done = act.integral(pod, np.maximum(at, origin)) * some
        context = ACCELERATORS[model.accelerator].context_w
        out["activity"] = np.where(some, u.base_activity[seg] + u.scale[seg] * done, 0.0)
        out["joules"] = np.where(some, u.base_joules[seg] + u.watts[seg] * done + context * held, 0.0)
        alive = some & (t < end)
        out["alive"] = alive
        memory = unit_memory(model, u)
        loaded = np.where(t < start + 20.0, 0.02, np.where(u.scale[seg] > 0, 1.0, 0.03))
        out["fb"] = np.where(alive, np.floor(self.holdings.params["memory"][pod] * loaded * memory), 0.0)
        # a pod that ended within the interval, before the one above began, still counts in the means
        before = seg - 1
        heads = u.offset[:-1][:, None]
        ended = some & (before >= heads)
        ended &= u.end[np.maximum(before, 0)] > t - self.collect
        if ended.any():
            r, k = np.nonzero(ended)
            self._add(node, u, before[r, k], t[r, k], r, np.ones(len(r), dtype=bool), out, (r, k))
        return out

    def _add(
        self, node: int, u: NodeUnits, seg: np.ndarray, t: np.ndarray, row: np.ndarray, some: np.ndarray,
        out: dict[str, np.ndarray], where: Any,
    ) -> None:  # fmt: skip
        """Adds what segments did in the collect interval that ends at `t` to `out[...][where]`."""
        act, p = self.holdings.activity, self.holdings.params
        pod = u.pod[seg]
        start, end = u.start[seg], u.end[seg]
        lo = np.minimum(np.maximum(t - self.collect, start), end)
        lo = np.maximum(lo, act.origin[pod])
        hi = np.minimum(np.maximum(t, start), end)
        hi = np.maximum(hi, lo)
        h = (hi - lo) / self.collect * some
        scale = u.scale[seg]
        m = np.maximum(act.integral(pod, hi) - act.integral(pod, lo), 0.0)
        for d, spans in self.troubles[node].masks.items():
            for a, b in spans:
                hit = (u.device[row] == d) & (lo < b) & (hi > a)
                if hit.any():
                    m[hit] -= act.integral(pod[hit], np.minimum(hi[hit], b)) - act.integral(
                        pod[hit], np.maximum(lo[hit], a)
                    )
        m = np.clip(m * scale / self.collect * some, 0.0, h)
        noise = out["noise"][where]
        n0, n1 = unit(noise, 0) - 0.5, unit(noise, 1) - 0.5
        n2, n3 = unit(noise, 2) - 0.5, unit(noise, 3) - 0.5
        busy = np.minimum(1.0, 20.0 * m / np.maximum(h, 1e-9))
        rest = (h - m) * busy
        put = {
            "m": m,
            "h": h,
            "gr": m + rest * p["gr_fill"][pod] * (1.0 + 0.06 * n0),
            "util": m + rest * np.minimum(p["util_fill"][pod] * (1.0 + 0.05 * n1), 1.0),
            "occ": m * p["occupancy_per_sm"][pod] * (1.0 + 0.06 * n2),
            "tensor": m * p["tensor_per_sm"][pod] * (1.0 + 0.06 * n3),
            "dram": np.minimum(m * p["dram_per_sm"][pod] * (1.0 + 0.05 * n0), 0.96),
            "watts": m / np.maximum(scale, 1e-9) * u.watts[seg],
            "pcie": m * p["pcie"][pod] * (1.0 + 0.1 * n1),
            "nvlink": m * p["nvlink"][pod] * (1.0 + 0.1 * n2) * self.linked[pod],
        }
        for name, v in put.items():
            out[name][where] += v


def segment_at(u: NodeUnits, t: np.ndarray, side: str) -> np.ndarray:
    """Index of the last segment of each unit that began before `t` (side left) or at it (right); -1 where none."""
    out = np.empty((len(u.device), len(t)), dtype=np.int64)
    for k in range(len(u.device)):
        lo, hi = int(u.offset[k]), int(u.offset[k + 1])
        found = np.searchsorted(u.start[lo:hi], t, side=side) - 1  # type: ignore[call-overload]
        out[k] = np.where(found >= 0, found + lo, -1)
    return out
