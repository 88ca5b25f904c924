"""Workload shapes: how each kind of work loads a card, in all metrics jointly.

Parameters and their ranges belong here; evaluating activity over time is `activity.py`'s, and
turning it into exported values is `telemetry.py`'s.

The metrics of a device hang together as follows, with `m` the SM activity (the hidden truth), all of
them means over one collect interval and `h` the share of it in which the pod was running:

    sm_active = m                      gr_engine = m + (h - m) * gr_fill * s        s = min(1, m / 0.05 h)
    tensor    = tensor_per_sm * m      gpu_util  = m + (h - m) * util_fill * s
    dram      = dram_per_sm * m        occupancy = occupancy_per_sm * m
    power     = idle + context * h + (tdp - idle - context) * power_per_sm * m

so gr_engine and gpu_util are never below sm_active, and idle is exactly 0 in all of them.

Signatures by which a shape can be told from metrics alone (means over a pod's samples):

    shape      sm_active              tensor/sm    dram/sm     gpu_util/sm   other
    training   0.70-0.95, steady      0.30-0.45    0.35-0.55   1.0-1.3       memory 60-92 %
    starved    0.14-0.42, unsteady    0.30-0.45    0.35-0.55   1.2-3         PCIe receive high for its activity
    sweep      0.42-0.68              0.16-0.24    0.20-0.32   1.3-1.9       memory 12-40 %
    batch      0.45-0.72              0.00-0.03    0.75-1.00   1.2-1.8       no tensor work
    inference  0.05-0.38, daily wave  0.07-0.13    1.00-1.35   2-8           low occupancy
    notebook   0 most of the time     0.14-0.24    0.50-0.65   when active   memory held, mean sm < 0.06

On MIG instances the same holds but for gpu_util, which the driver does not report there, and for
gr_engine, which tops out at 1/2 or 1/3 on larger instances (`catalogue.MIG_GR_CEILING`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SHAPES: tuple[str, ...] = ("training", "inference", "notebook", "starved", "sweep", "batch")
SHAPE_INDEX = {name: i for i, name in enumerate(SHAPES)}


@dataclass(frozen=True)
class Signature:
    """Ranges (low, high) that a pod's parameters are drawn from, uniformly.

    `level` is typical SM activity while working; `slow` and `fast` the relative amplitudes of its
    drift (knots `slow_s` apart) and of its flicker (knots 30 s apart); `dip_every_s` how often work
    pauses for a checkpoint or an evaluation (0: never). The rest is in the module's docstring;
    `memory` is the share of the device's memory, `pcie` and `nvlink` shares of the link at m = 1.
    """

    level: tuple[float, float]
    slow: float
    fast: float
    slow_s: int
    dip_every_s: tuple[int, int]
    gr_fill: tuple[float, float]
    util_fill: tuple[float, float]
    occupancy_per_sm: tuple[float, float]
    tensor_per_sm: tuple[float, float]
    dram_per_sm: tuple[float, float]
    power_per_sm: tuple[float, float]
    memory: tuple[float, float]
    pcie: tuple[float, float]
    nvlink: tuple[float, float]


SIGNATURES: dict[str, Signature] = {
    "training": Signature((0.78, 0.92), 0.03, 0.02, 900, (1800, 5400), (0.45, 0.7), (0.8, 0.97), (0.42, 0.62),
                          (0.31, 0.44), (0.36, 0.54), (0.84, 0.93), (0.62, 0.92), (0.02, 0.06), (0.25, 0.55)),
    "starved": Signature((0.20, 0.32), 0.30, 0.25, 600, (0, 1), (0.04, 0.12), (0.18, 0.38), (0.42, 0.62),
                         (0.31, 0.44), (0.36, 0.54), (0.70, 0.82), (0.45, 0.85), (0.75, 1.0), (0.25, 0.55)),
    "sweep": Signature((0.47, 0.64), 0.06, 0.05, 300, (480, 1200), (0.45, 0.65), (0.6, 0.8), (0.28, 0.42),
                       (0.17, 0.23), (0.21, 0.31), (0.62, 0.72), (0.12, 0.38), (0.06, 0.15), (0.1, 0.25)),
    "batch": Signature((0.50, 0.66), 0.10, 0.05, 900, (0, 1), (0.35, 0.55), (0.5, 0.75), (0.5, 0.7),
                       (0.001, 0.02), (0.78, 0.98), (0.70, 0.80), (0.25, 0.7), (0.25, 0.5), (0.0, 0.02)),
    "inference": Signature((0.16, 0.34), 0.25, 0.20, 1200, (0, 1), (0.40, 0.55), (0.65, 0.85), (0.16, 0.26),
                           (0.075, 0.125), (1.02, 1.32), (0.85, 1.05), (0.72, 0.9), (0.03, 0.1), (0.05, 0.15)),
    "notebook": Signature((0.35, 0.6), 0.0, 0.03, 1500, (0, 1), (0.2, 0.4), (0.4, 0.7), (0.3, 0.45),
                          (0.15, 0.23), (0.51, 0.64), (0.55, 0.7), (0.08, 0.5), (0.05, 0.1), (0.0, 0.05)),
}  # fmt: skip

DRAWN: tuple[str, ...] = (
    "level", "dip_every_s", "gr_fill", "util_fill", "occupancy_per_sm", "tensor_per_sm", "dram_per_sm",
    "power_per_sm", "memory", "pcie", "nvlink",
)  # fmt: skip


def draw(rng: np.random.Generator, shapes: np.ndarray) -> dict[str, np.ndarray]:
    """Parameters for jobs of those shapes (indices into `SHAPES`): name -> float64 array of the same length.

    Also returns `slow`, `fast` and `slow_s`, which are fixed for a shape.
    """
    low = {n: np.array([getattr(SIGNATURES[s], n)[0] for s in SHAPES], dtype=np.float64) for n in DRAWN}
    high = {n: np.array([getattr(SIGNATURES[s], n)[1] for s in SHAPES], dtype=np.float64) for n in DRAWN}
    out = {}
    for name in DRAWN:
        u = rng.random(len(shapes))
        out[name] = low[name][shapes] + (high[name] - low[name])[shapes] * u
    # odd multiples of 30 s, so that pauses do not keep step with scrapes
    out["dip_every_s"] = np.where(out["dip_every_s"] < 60, 0.0, np.floor(out["dip_every_s"] / 60) * 60 + 30)
    for name in ("slow", "fast", "slow_s"):
        out[name] = np.array([getattr(SIGNATURES[s], name) for s in SHAPES], dtype=np.float64)[shapes]
    return out
