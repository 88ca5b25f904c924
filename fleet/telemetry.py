"""What a node's DCGM exporter measures: exported values of every row at given instants, in arrays.

Only numbers are made here (rounded as the exporter prints them and multiplied back, see
`exported.py`); labels and tables are `samples.py`'s. A value is the mean over the collect interval
that ended last before the scrape, on the node's own clock, so it is up to `collect_s` old.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fleet.catalogue import ACCELERATORS, MIG_GR_CEILING, MIG_MAX_SLICES
from fleet.exported import EXPORTED, MIB
from fleet.holdings import Holdings, NodeUnits
from fleet.model import Node
from fleet.substreams import hash64, seed64, unit

FORMAT = {e.column: e for e in EXPORTED}
COLUMNS = tuple(e.column for e in EXPORTED)
# XID codes that a failing card shows one after the other: ECC error, row remap, fell off the bus.
FAILING_XIDS = (48, 63, 94)
LOST_XID = 79


@dataclass
class NodeTrouble:
    """What faults do to one node's values, in seconds from the start of telemetry; devices by index."""

    masks: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    reboots: list[float] = field(default_factory=list)
    failing: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    lost: dict[int, list[tuple[float, float]]] = field(default_factory=dict)


class Telemetry:
    """Evaluates nodes; `collect_s` is the exporter's collect interval."""

    def __init__(self, seed: int, holdings: Holdings, collect_s: int, troubles: Sequence[NodeTrouble]) -> None:
        self.holdings, self.collect, self.troubles = holdings, float(collect_s), troubles
        self.phase = []
        self.key = []
        self.device_noise = []
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
        i = _segment(u, t, "right")
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
        if any(d.instances for d in model.devices):
            return self._mig_rows(node, model, units, values, c)
        return self._board(node, model, values, c, mig=False)

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
        i = _segment(u, c, "left")
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
        accelerator = ACCELERATORS[model.accelerator]
        memory = np.array([
            next((x.memory_mib for x in model.devices[d].instances if x.gi_id == gi), accelerator.memory_mib - accelerator.reserved_mib)
            for d, gi in zip(u.device, u.gi_id, strict=True)
        ], dtype=np.float64)  # fmt: skip
        loaded = np.where(t < start + 20.0, 0.02, np.where(u.scale[seg] > 0, 1.0, 0.03))
        out["fb"] = np.where(alive, np.floor(self.holdings.params["memory"][pod] * loaded * memory[:, None]), 0.0)
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
        out: dict[str, np.ndarray], where: object,
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
        noise = out["noise"][where]  # type: ignore[index]
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
            "nvlink": m * p["nvlink"][pod] * (1.0 + 0.1 * n2) * self._linked(pod),
        }
        for name, v in put.items():
            out[name][where] += v  # type: ignore[index]

    def _linked(self, pod: np.ndarray) -> np.ndarray:
        return self._multi[pod]

    @property
    def _multi(self) -> np.ndarray:
        cached = getattr(self, "_multi_cache", None)
        if cached is None:
            cached = np.array([1.0 if q.quantity > 1 else 0.0 for q in self.holdings.pods])
            self._multi_cache = cached
        return cached

    def _board(
        self, node: int, model: Node, v: dict[str, np.ndarray], c: np.ndarray, mig: bool
    ) -> dict[str, np.ndarray | None]:
        """Board rows from per-device values: shape (devices, len(c))."""
        a = ACCELERATORS[model.accelerator]
        trouble = self.troubles[node]
        noise = v["noise"]
        n1, n3 = unit(noise, 1) - 0.5, unit(noise, 3) - 0.5
        own = self.device_noise[node][:, None]
        u0, u1, u2, u3 = unit(own, 0), unit(own, 1), unit(own, 2), unit(own, 3)
        idle_w = a.idle_w * (0.96 + 0.08 * u0)
        above = a.context_w * v["h"] + v["watts"]
        power = np.minimum(idle_w + above * (1.0 + 0.02 * n1) + 0.6 * n3, a.tdp_w * 1.03)
        joules = (u1 * 4e8 + 5e6) + idle_w * (c + 86400.0)[None, :] + v["joules"]
        activity = v["activity"]
        failing = np.zeros(power.shape, dtype=bool)
        slow_ns = np.zeros(power.shape)
        xid = np.zeros(power.shape)
        sbe = np.floor(np.maximum(c + 86400.0, 0.0)[None, :] * 2e-6 * u2)
        for d, spans in trouble.failing.items():
            for begin, end in spans:
                t = (c >= begin) & (c < end)
                failing[d, t] = True
                grown = np.clip(c - begin, 0.0, end - begin)
                slow_ns[d] += grown * 0.22e9
                sbe[d] += np.floor(grown / 900.0)
                for k, code in enumerate(FAILING_XIDS):
                    xid[d, c >= begin + (end - begin) * k / len(FAILING_XIDS)] = code
        for d, spans in trouble.lost.items():
            for _, end in spans:
                xid[d, c >= end] = LOST_XID
        resets = trouble.reboots
        capped_ns = activity * (0.03e9 * u3)
        volatile = sbe.copy()
        for at in resets:
            later = c >= at
            if later.any():
                zero = self._counters_at(node, at)
                joules[:, later] += zero["base"] - (u1 * 4e8 + 5e6) - idle_w * (at + 86400.0) - zero["joules"][:, None]
                capped_ns[:, later] -= zero["activity"][:, None] * (0.03e9 * u3)
                xid[:, later] = 0.0
                volatile[:, later] = 0.0
                slow_ns[:, later] = np.maximum(slow_ns[:, later] - 0.0, 0.0)
        alive = v["alive"]
        load = power / a.tdp_w
        clock = np.where(
            alive, a.sm_clock_max * (1.0 - 0.13 * load * load) * np.where(failing, 0.62, 1.0), a.sm_clock_idle
        )
        temp = 26.0 + 5.0 * u2 + 36.0 * load + np.where(failing, 13.0, 0.0) + n3
        used = v["fb"]
        dram = _ratio(v["dram"])
        nothing = np.zeros(power.shape)
        out: dict[str, np.ndarray | None] = {
            "sm_clock_hz": np.floor(clock / 15.0) * 15.0 * 1e6,
            "mem_clock_hz": np.where(alive, a.mem_clock_max * 1e6, a.mem_clock_idle * 1e6),
            "mem_temp_c": np.rint(temp + 6.0 + 9.0 * load) if a.hbm else nothing,
            "gpu_temp_c": np.rint(temp),
            "power_w": np.round(power, 6),
            "energy_j": np.floor(joules * 1000.0) * 0.001,
            "pcie_replay_total": np.floor(np.broadcast_to(u3 * 3.0, power.shape)),
            "gpu_util_ratio": None if mig else np.rint(np.minimum(v["util"], 1.0) * 100.0) * 0.01,
            "mem_copy_ratio": None if mig else np.rint(np.minimum(dram * 1.2, 1.0) * 100.0) * 0.01,
            "enc_ratio": None if mig else nothing,
            "dec_ratio": None if mig else nothing,
            "xid_last": xid,
            "fb_free_bytes": (a.memory_mib - a.reserved_mib - used) * MIB,
            "fb_used_bytes": used * MIB,
            "fb_reserved_bytes": np.full(power.shape, a.reserved_mib * MIB),
            "nvlink_bytes_per_second": None if a.nvlink_mb is None else np.floor(v["nvlink"] * a.nvlink_mb) * 1e6,
            "vgpu_license_status": nothing,
            "uncorrectable_remapped_rows_total": None if not a.has_row_remap else nothing,
            "correctable_remapped_rows_total": None if not a.has_row_remap else np.floor(sbe / 40.0),
            "row_remap_failure": None if not a.has_row_remap else nothing,
            "ecc_sbe_volatile_total": volatile,
            "ecc_dbe_volatile_total": nothing,
            "ecc_sbe_aggregate_total": sbe + np.floor(u2 * 5.0),
            "ecc_dbe_aggregate_total": nothing,
            "power_violation_ns_total": np.floor(np.maximum(capped_ns, 0.0)),
            "thermal_violation_ns_total": np.floor(slow_ns),
            "pcie_tx_bytes_per_second": np.floor(v["pcie"] * a.pcie_bytes * 0.3 + 90e3 + 20e3 * n1),
            "pcie_rx_bytes_per_second": np.floor(v["pcie"] * a.pcie_bytes + 140e3 + 30e3 * n3),
        }
        return out | _profiling(v)

    def _counters_at(self, node: int, at: float) -> dict[str, np.ndarray]:
        """Joules above idle and activity of each device at a reboot, from which they count anew, and the new base."""
        model, u = self.holdings.nodes[node], self.holdings.units[node]
        v = self._unit_values(node, model, u, np.array([at]))
        joules = np.zeros(len(model.devices))
        activity = np.zeros(len(model.devices))
        np.add.at(joules, u.device, v["joules"][:, 0] * u.share)
        np.add.at(activity, u.device, v["activity"][:, 0] * u.share)
        return {"joules": joules, "activity": activity, "base": np.zeros((len(joules), 1))}

    def _mig_rows(
        self, node: int, model: Node, u: NodeUnits, v: dict[str, np.ndarray], c: np.ndarray
    ) -> dict[str, np.ndarray | None]:
        """Rows of boards and of their instances; board values weigh instances by their compute slices."""
        summed = ("m", "h", "gr", "util", "occ", "tensor", "dram", "watts", "pcie", "joules", "activity")
        devices = len(model.devices)
        board = {name: np.zeros((devices, len(c))) for name in summed}
        for name in summed:
            np.add.at(board[name], u.device, v[name] * u.share[:, None])
        board["fb"] = np.zeros((devices, len(c)))
        np.add.at(board["fb"], u.device, v["fb"])
        board["nvlink"] = np.zeros((devices, len(c)))
        board["alive"] = np.zeros((devices, len(c)), dtype=bool)
        np.logical_or.at(board["alive"], u.device, v["alive"])
        board["noise"] = hash64(
            self.device_noise[node][:, None] + (c * 1000).astype(np.int64).astype(np.uint64)[None, :]
        )
        boards = self._board(node, model, board, c, mig=True)
        slices = np.rint(u.share * MIG_MAX_SLICES).astype(int)
        inner = dict(v)
        inner["gr"] = v["gr"] * np.array([MIG_GR_CEILING[s] for s in slices])[:, None]
        memory = np.array([
            next(x.memory_mib for x in model.devices[d].instances if x.gi_id == gi)
            for d, gi in zip(u.device, u.gi_id, strict=True)
        ], dtype=np.float64)[:, None]  # fmt: skip
        xid = boards["xid_last"]
        assert xid is not None
        instances: dict[str, np.ndarray | None] = _profiling(inner) | {
            "xid_last": xid[u.device],
            "fb_used_bytes": v["fb"] * MIB,
            "fb_free_bytes": (memory - v["fb"]) * MIB,
            "fb_reserved_bytes": np.zeros(v["fb"].shape),
        }
        order = [r for d in range(devices) for r in (d, *(devices + np.nonzero(u.device == d)[0]))]
        blank = np.full(v["m"].shape, np.nan)
        out: dict[str, np.ndarray | None] = {}
        for column, values in boards.items():
            below = instances.get(column)
            out[column] = None if values is None else np.concatenate([values, blank if below is None else below])[order]
        return out


def _segment(u: NodeUnits, t: np.ndarray, side: str) -> np.ndarray:
    """Index of the last segment of each unit that began before `t` (side left) or at it (right); -1 where none."""
    out = np.empty((len(u.device), len(t)), dtype=np.int64)
    for k in range(len(u.device)):
        lo, hi = int(u.offset[k]), int(u.offset[k + 1])
        found = np.searchsorted(u.start[lo:hi], t, side=side) - 1  # type: ignore[call-overload]
        out[k] = np.where(found >= 0, found + lo, -1)
    return out


def _ratio(x: np.ndarray) -> np.ndarray:
    return np.round(np.minimum(x, 1.0), 6)


def _profiling(v: dict[str, np.ndarray]) -> dict[str, np.ndarray | None]:
    return {
        "gr_engine_ratio": _ratio(v["gr"]),
        "sm_active_ratio": _ratio(v["m"]),
        "sm_occupancy_ratio": _ratio(v["occ"]),
        "tensor_ratio": _ratio(v["tensor"]),
        "dram_ratio": _ratio(v["dram"]),
    }
