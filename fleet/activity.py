"""True activity of every pod as a continuous function of time, with its exact integral.

A pod's SM activity is piecewise linear between knots 30 s apart (counted from its own start), whose
heights are hashed from the pod's seed and shaped by its parameters: drift, flicker, checkpoint dips,
daily wave, bursts. So it can be asked for at any instant, and integrating it at 1 s (knots lie on
whole seconds) gives exactly the closed form used here. What an exporter shows is made from the
integral over its collect interval in `telemetry.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleet.shapes import SHAPE_INDEX
from fleet.substreams import hash64, unit

KNOT_S = 30
# Pods that run when telemetry begins are evaluated from this long before it.
LEAD_S = 3600
_BATCH_KNOTS = 1_000_000
# Share of a notebook's drift cells (25 minutes each) in which somebody runs something.
_BURST_SHARE = 0.11


@dataclass(frozen=True)
class PodTimes:
    """Per pod, in seconds relative to the start of telemetry: held from `start` to `end`, computing from `begin` on."""

    start: np.ndarray
    begin: np.ndarray
    end: np.ndarray


def tail(times: PodTimes) -> np.ndarray:
    """Seconds before its end in which a pod no longer computes: it saves, uploads and shuts down."""
    return np.clip(0.12 * (times.end - times.start), 2 * KNOT_S, 3 * KNOT_S)


class Activity:
    """Activity of pods 0..n-1; `integral` and `value` take arrays of pod indices and instants (seconds)."""

    def __init__(
        self, times: PodTimes, seeds: np.ndarray, shapes: np.ndarray, params: dict[str, np.ndarray], horizon: float,
        origin_of_day: float,
    ) -> None:  # fmt: skip
        """`horizon` is the last instant asked for; `origin_of_day` the time of day at instant 0, in seconds."""
        start = times.start.astype(np.int64)
        skipped = np.maximum(0, (-LEAD_S - start) // KNOT_S)
        self.first = skipped
        self.origin = (start + skipped * KNOT_S).astype(np.float64)
        until = np.minimum(times.end, horizon + KNOT_S)
        count = np.maximum(np.ceil((until - self.origin) / KNOT_S), 0).astype(np.int64) + 2
        self.offset = np.concatenate([[0], np.cumsum(count)])
        total = int(self.offset[-1])
        self.knots = np.zeros(total + 2, dtype=np.float32)
        self.sums = np.zeros(total + 2, dtype=np.float64)
        n = len(start)
        at = 0
        while at < n:
            stop = int(np.searchsorted(self.offset, self.offset[at] + _BATCH_KNOTS, side="right")) - 1
            stop = min(n, max(stop, at + 1))
            self._fill(at, stop, times, seeds, shapes, params, origin_of_day, horizon)
            at = stop

    def _fill(
        self, lo: int, hi: int, times: PodTimes, seeds: np.ndarray, shapes: np.ndarray, params: dict[str, np.ndarray],
        origin_of_day: float, horizon: float,
    ) -> None:  # fmt: skip
        count = np.diff(self.offset[lo : hi + 1])
        pod = np.repeat(np.arange(lo, hi), count)
        j = np.arange(len(pod)) - np.repeat(self.offset[lo:hi] - self.offset[lo], count)
        t = self.origin[pod] + j * KNOT_S
        index = (j + self.first[pod]).astype(np.uint64)
        seed = seeds[pod]
        level, shape = params["level"][pod], shapes[pod]
        flicker = unit(hash64(seed + index)) * 2.0 - 1.0
        pace = params["slow_s"][pod] / KNOT_S
        x = index.astype(np.float64) / pace
        cell = np.floor(x)
        part = x - cell
        key = seed ^ np.uint64(0xA5A5A5A5A5A5A5A5)
        cell_id = cell.astype(np.uint64)
        drift = unit(hash64(key + cell_id)) * (1.0 - part) + unit(hash64(key + cell_id + np.uint64(1))) * part
        v = level * (1.0 + params["slow"][pod] * (2.0 * drift - 1.0) + params["fast"][pod] * flicker)
        # a checkpoint or an evaluation: a minute of little work, every so often
        every = params["dip_every_s"][pod]
        dips = every > 0
        v[dips] *= np.where(
            index[dips].astype(np.int64) * KNOT_S % every[dips].astype(np.int64) < KNOT_S * 2, 0.15, 1.0
        )
        day = (t + origin_of_day) * (2.0 * np.pi / 86400.0)
        serving = shape == SHAPE_INDEX["inference"]
        v[serving] *= 0.72 - 0.28 * np.cos(day[serving] - 0.9)
        # a notebook computes in bursts, each smooth and as long as a drift cell, and most cells have none
        book = shape == SHAPE_INDEX["notebook"]
        burst = np.sin(np.pi * part[book]) ** 2
        burst[unit(hash64((key ^ np.uint64(0xB0))[book] + cell_id[book])) >= _BURST_SHARE] = 0.0
        # none is cut by its pod's end or by an end of telemetry: a pod's few bursts are all that it ever does
        begins = t[book] - part[book] * params["slow_s"][pod[book]]
        ends = begins + params["slow_s"][pod[book]]
        stop_at = times.end[pod[book]] - 4 * KNOT_S
        burst[(ends > stop_at) | (begins < times.begin[pod[book]])] = 0.0
        burst[((begins < 0.0) & (ends > 0.0)) | ((begins < horizon) & (ends > horizon))] = 0.0
        v[book] *= burst
        # activity is back at 0 when the tail begins, one knot after the last that is above it
        v[(t <= times.begin[pod]) | (t > times.end[pod] - tail(times)[pod] - KNOT_S)] = 0.0
        v32 = np.clip(v, 0.0, 0.99).astype(np.float32)
        base, stop = int(self.offset[lo]), int(self.offset[hi])
        self.knots[base:stop] = v32
        # running integral within each pod: cell areas, reset at every pod's first knot
        v64 = v32.astype(np.float64)
        area = np.zeros(len(v64))
        area[1:] = (v64[1:] + v64[:-1]) * (KNOT_S / 2.0)
        heads = self.offset[lo:hi] - base
        area[heads] = 0.0
        running = np.cumsum(area)
        self.sums[base:stop] = running - np.repeat(running[heads], count)

    def value(self, pod: np.ndarray, t: np.ndarray) -> np.ndarray:
        """SM activity of pods at instants within their time."""
        x = (t - self.origin[pod]) / KNOT_S
        j = np.floor(x)
        k = self.offset[pod] + j.astype(np.int64)
        v = self.knots[k].astype(np.float64)
        return v + (self.knots[k + 1] - v) * (x - j)

    def integral(self, pod: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Integral of SM activity from the pod's first knot to `t` (within its time), in seconds."""
        x = (t - self.origin[pod]) / KNOT_S
        j = np.floor(x)
        x -= j
        k = self.offset[pod] + j.astype(np.int64)
        v = self.knots[k].astype(np.float64)
        return self.sums[k] + KNOT_S * x * (v + 0.5 * (self.knots[k + 1] - v) * x)
