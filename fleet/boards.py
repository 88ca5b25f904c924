"""From rates of units to the exporter's columns: power, energy, clocks, temperatures, counters, rounding.

Arrays have the shape (rows, instants). Every number is rounded as the exporter prints it and
multiplied by its factor (`exported.py`), so that parsing the printed text gives the same double.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fleet.catalogue import ACCELERATORS, MIG_GR_CEILING, MIG_MAX_SLICES
from fleet.exported import MIB
from fleet.holdings import NodeUnits
from fleet.model import Node
from fleet.substreams import hash64, unit

Columns = dict[str, np.ndarray | None]
# XID codes that a failing card shows one after the other: ECC error, row remap, contained error.
FAILING_XIDS = (48, 63, 94)
# ... and what the driver says of one that fell off the bus.
LOST_XID = 79
# Counters began this long before telemetry.
_UP_S = 86400.0
# Share of time that a failing card is throttled for heat, and nanoseconds of power capping per busy second at most.
_THROTTLED = 0.22
_CAPPED_NS = 0.03e9


@dataclass
class NodeTrouble:
    """What faults do to one node's values, in seconds from the start of telemetry; devices by index."""

    masks: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    reboots: list[float] = field(default_factory=list)
    failing: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    lost: dict[int, list[tuple[float, float]]] = field(default_factory=dict)


@dataclass
class _Health:
    """What ails the devices at each instant."""

    failing: np.ndarray
    throttled_ns: np.ndarray
    xid: np.ndarray
    sbe: np.ndarray
    sbe_volatile: np.ndarray


def unit_memory(model: Node, u: NodeUnits) -> np.ndarray:
    """MiB that a process can use on each unit: shape (units, 1)."""
    a = ACCELERATORS[model.accelerator]
    whole = a.memory_mib - a.reserved_mib
    sizes = [
        next((x.memory_mib for x in model.devices[d].instances if x.gi_id == gi), whole)
        for d, gi in zip(u.device, u.gi_id, strict=True)
    ]
    return np.array(sizes, dtype=np.float64)[:, None]


def board_values(
    model: Node, u: NodeUnits, v: dict[str, np.ndarray], own: np.ndarray, c: np.ndarray
) -> dict[str, np.ndarray]:
    """Rates of boards cut into MIG instances: those of the instances, weighed by their compute slices."""
    shape = (len(model.devices), len(c))
    out: dict[str, np.ndarray] = {}
    for name in ("m", "h", "gr", "util", "occ", "tensor", "dram", "watts", "pcie", "joules", "activity"):
        out[name] = np.zeros(shape)
        np.add.at(out[name], u.device, v[name] * u.share[:, None])
    out["fb"] = np.zeros(shape)
    np.add.at(out["fb"], u.device, v["fb"])
    out["nvlink"] = np.zeros(shape)  # MIG instances have no NVLink
    out["alive"] = np.zeros(shape, dtype=bool)
    np.logical_or.at(out["alive"], u.device, v["alive"])
    out["noise"] = hash64(own[:, None] + np.rint(c * 1000).astype(np.int64).astype(np.uint64)[None, :])
    return out


def board_columns(
    model: Node, v: dict[str, np.ndarray], own: np.ndarray, trouble: NodeTrouble,
    counted: Sequence[tuple[float, dict[str, np.ndarray]]], c: np.ndarray, mig: bool,
) -> Columns:  # fmt: skip
    """Exported columns of whole boards at collect instants `c`; None where the card or the mode has none.

    `own` are hashes that make cards of one model differ; `counted` what the counters stood at when the
    node rebooted, at each reboot.
    """
    a = ACCELERATORS[model.accelerator]
    n1, n3 = unit(v["noise"], 1) - 0.5, unit(v["noise"], 3) - 0.5
    u0, u1, u2, u3 = (unit(own[:, None], lane) for lane in range(4))
    idle_w = a.idle_w * (0.96 + 0.08 * u0)
    power = idle_w + (a.context_w * v["h"] + v["watts"]) * (1.0 + 0.02 * n1) + 0.6 * n3
    power = np.minimum(power, a.tdp_w * 1.03)
    joules = u1 * 4e8 + 5e6 + idle_w * (c + _UP_S)[None, :] + v["joules"]
    capped_ns = v["activity"] * _CAPPED_NS * u3
    for at, zero in counted:
        later = c >= at
        joules[:, later] = idle_w * (c[later] - at)[None, :] + v["joules"][:, later] - zero["joules"]
        capped_ns[:, later] = (v["activity"][:, later] - zero["activity"]) * _CAPPED_NS * u3
    ill = _health(power.shape, trouble, [at for at, _ in counted], c, u2)
    load = power / a.tdp_w
    slowed = np.where(ill.failing, 0.62, 1.0)
    clock = np.where(v["alive"], a.sm_clock_max * (1.0 - 0.13 * load * load) * slowed, a.sm_clock_idle)
    temp = 26.0 + 5.0 * u2 + 36.0 * load + np.where(ill.failing, 13.0, 0.0) + n3
    nothing = np.zeros(power.shape)
    copying = np.rint(np.minimum(v["dram"] * 1.2, 1.0) * 100.0) * 0.01
    out: Columns = {
        "sm_clock_hz": np.floor(clock / 15.0) * 15.0 * 1e6,
        "mem_clock_hz": np.where(v["alive"], a.mem_clock_max * 1e6, a.mem_clock_idle * 1e6),
        "mem_temp_c": np.rint(temp + 6.0 + 9.0 * load) if a.hbm else nothing,
        "gpu_temp_c": np.rint(temp),
        "power_w": np.round(power, 6),
        "energy_j": np.floor(joules * 1000.0) * 0.001,
        "pcie_replay_total": np.broadcast_to(np.floor(u3 * 3.0), power.shape),
        "gpu_util_ratio": None if mig else np.rint(np.minimum(v["util"], 1.0) * 100.0) * 0.01,
        "mem_copy_ratio": None if mig else copying,
        "enc_ratio": None if mig else nothing,
        "dec_ratio": None if mig else nothing,
        "xid_last": ill.xid,
        "fb_free_bytes": (a.memory_mib - a.reserved_mib - v["fb"]) * MIB,
        "fb_used_bytes": v["fb"] * MIB,
        "fb_reserved_bytes": np.full(power.shape, a.reserved_mib * MIB),
        "nvlink_bytes_per_second": None if a.nvlink_mb is None else np.floor(v["nvlink"] * a.nvlink_mb) * 1e6,
        "vgpu_license_status": nothing,
        "uncorrectable_remapped_rows_total": nothing if a.has_row_remap else None,
        "correctable_remapped_rows_total": np.floor(ill.sbe / 40.0) if a.has_row_remap else None,
        "row_remap_failure": nothing if a.has_row_remap else None,
        "ecc_sbe_volatile_total": ill.sbe_volatile,
        "ecc_dbe_volatile_total": nothing,
        "ecc_sbe_aggregate_total": ill.sbe + np.floor(u2 * 5.0),
        "ecc_dbe_aggregate_total": nothing,
        "power_violation_ns_total": np.floor(np.maximum(capped_ns, 0.0)),
        "thermal_violation_ns_total": np.floor(ill.throttled_ns),
        "pcie_tx_bytes_per_second": np.floor(v["pcie"] * a.pcie_bytes * 0.3 + 90e3 + 20e3 * n1),
        "pcie_rx_bytes_per_second": np.floor(v["pcie"] * a.pcie_bytes + 140e3 + 30e3 * n3),
    }
    return out | _profiling(v)


def _health(
    shape: tuple[int, ...], trouble: NodeTrouble, reboots: Sequence[float], c: np.ndarray, u2: np.ndarray
) -> _Health:
    """Failing and lost cards; volatile counters and the last XID begin anew at a reboot."""
    booted = np.full(len(c), -_UP_S)
    for at in reboots:
        booted[c >= at] = at
    sbe = np.floor((c + _UP_S)[None, :] * 2e-6 * u2)
    before_boot = np.floor((booted + _UP_S)[None, :] * 2e-6 * u2)
    ill = _Health(np.zeros(shape, dtype=bool), np.zeros(shape), np.zeros(shape), sbe, sbe - before_boot)
    for d, spans in trouble.failing.items():
        for begin, end in spans:
            ill.failing[d, (c >= begin) & (c < end)] = True
            grown = np.clip(c - begin, 0.0, end - begin)
            since_boot = grown - np.clip(booted - begin, 0.0, end - begin)
            ill.throttled_ns[d] += since_boot * _THROTTLED * 1e9
            ill.sbe[d] += np.floor(grown / 900.0)
            ill.sbe_volatile[d] += np.floor(since_boot / 900.0)
            for k, code in enumerate(FAILING_XIDS):
                shown = begin + (end - begin) * k / len(FAILING_XIDS)
                ill.xid[d, (c >= shown) & (booted <= shown)] = code
    for d, spans in trouble.lost.items():
        for _, end in spans:
            ill.xid[d, (c >= end) & (booted <= end)] = LOST_XID
    return ill


def instance_rows(model: Node, u: NodeUnits, boards: Columns, v: dict[str, np.ndarray]) -> Columns:
    """Rows of boards with their MIG instances after each; board-level columns are NaN on instance rows."""
    ceiling = np.array([MIG_GR_CEILING[round(s * MIG_MAX_SLICES)] for s in u.share])[:, None]
    xid = boards["xid_last"]
    assert xid is not None
    instances: Columns = _profiling(v | {"gr": v["gr"] * ceiling}) | {
        "xid_last": xid[u.device],
        "fb_used_bytes": v["fb"] * MIB,
        "fb_free_bytes": (unit_memory(model, u) - v["fb"]) * MIB,
        "fb_reserved_bytes": np.zeros(v["fb"].shape),
    }
    devices = len(model.devices)
    order = [r for d in range(devices) for r in (d, *(devices + np.nonzero(u.device == d)[0]))]
    blank = np.full(v["m"].shape, np.nan)
    out: Columns = {}
    for column, values in boards.items():
        below = instances.get(column)
        out[column] = None if values is None else np.concatenate([values, blank if below is None else below])[order]
    return out


def _profiling(v: dict[str, np.ndarray]) -> Columns:
    names = {
        "gr_engine_ratio": "gr", "sm_active_ratio": "m", "sm_occupancy_ratio": "occ", "tensor_ratio": "tensor",
        "dram_ratio": "dram",
    }  # fmt: skip
    return {column: np.round(np.minimum(v[name], 1.0), 6) for column, name in names.items()}
