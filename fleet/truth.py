"""Ground truth of the simulated fleet: what every pod held, truly used, and what faults hide of it.

Made from holdings and activity alone, never from exported samples. The activity integral is exact for
a function whose knots lie on whole seconds, so it equals summing it second by second.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa

from fleet.faults import BLINDING
from fleet.holdings import Holdings
from fleet.model import Fault
from fleet.samples import EPOCH
from warehouse.contracts import CONTRACTS

DAY_S = 86400


def _union(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    out: list[tuple[float, float]] = []
    for a, b in sorted(spans):
        if out and a <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], b))
        else:
            out.append((a, b))
    return out


def _quantity(values: np.ndarray) -> pa.Array:
    micro = np.rint(values * 1e6).astype(np.int64)
    return pa.array([Decimal(int(v)).scaleb(-6) for v in micro], pa.decimal128(18, 6))


def _instants(at: Sequence[datetime]) -> pa.Array:
    return pa.array([(x - EPOCH) // timedelta(microseconds=1) for x in at], pa.int64()).cast(pa.timestamp("us"))


class Truth:
    """Integrates what pods held and did over any span."""

    def __init__(self, holdings: Holdings, faults: Sequence[Fault], start_at: datetime) -> None:
        self.holdings, self.start_at = holdings, start_at
        parts: list[list[np.ndarray]] = []
        for n, u in enumerate(holdings.units):
            unit = np.repeat(np.arange(len(u.device)), np.diff(u.offset))
            parts.append([u.pod, u.start, u.end, u.scale, u.share[unit], np.full(len(unit), n), u.device[unit]])
        self.pod, self.start, self.end, self.scale, self.share, self.node, self.device = (
            np.concatenate([p[i] for p in parts]) if parts else np.zeros(0) for i in range(7)
        )
        self.idle = [(node, d, a, b) for (node, d), spans in holdings.masks(faults).items() for a, b in _union(spans)]
        index = {(n.cluster, n.name): i for i, n in enumerate(holdings.nodes)}
        blind: dict[tuple[int, int], list[tuple[float, float]]] = {}
        for f in faults:
            node = index[(f.cluster, f.node)]
            span = ((f.started_at - start_at).total_seconds(), (f.finished_at - start_at).total_seconds())
            for d, device in enumerate(holdings.nodes[node].devices):
                if f.kind in BLINDING or (f.kind == "gpu_lost" and f.pci_bus_id == device.pci_bus_id):
                    blind.setdefault((node, d), []).append(span)
        self.blind = [(node, d, a, b) for (node, d), spans in blind.items() for a, b in _union(spans)]
        self.dark = np.array([n.target is None for n in holdings.nodes], dtype=bool)

    def totals(self, lo: float, hi: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Held, truly utilized and hidden GPU-seconds of every pod over `[lo, hi)` (seconds of telemetry)."""
        act = self.holdings.activity
        n = len(self.holdings.pods)
        a, b = np.maximum(self.start, lo), np.minimum(self.end, hi)
        on = np.nonzero(b > a)[0]
        a, b, pod = a[on], b[on], self.pod[on].astype(np.int64)
        share, scale = self.share[on], self.scale[on]
        node, device = self.node[on].astype(np.int64), self.device[on].astype(np.int64)
        work = act.integral(pod, b) - act.integral(pod, a)
        for k, d, x, y in self.idle:
            hit = (node == k) & (device == d) & (a < y) & (b > x)
            if hit.any():
                p = pod[hit]
                work[hit] -= act.integral(p, np.minimum(b[hit], y)) - act.integral(p, np.maximum(a[hit], x))
        hidden = np.where(self.dark[node], b - a, 0.0)
        for k, d, x, y in self.blind:
            hit = (node == k) & (device == d)
            hidden[hit] += np.maximum(np.minimum(b[hit], y) - np.maximum(a[hit], x), 0.0)
        out = []
        for amount in ((b - a) * share, np.maximum(work, 0.0) * scale * share, hidden * share):
            total = np.zeros(n)
            np.add.at(total, pod, amount)
            out.append(total)
        return out[0], out[1], out[2]

    def table(self, start: datetime, end: datetime) -> pa.Table:
        """raw.fleet_truth: one row per pod and UTC date on which it held anything within `[start, end)`."""
        schema = CONTRACTS["raw.fleet_truth"].arrow_schema
        tables = [schema.empty_table()]
        day = start.date()
        while datetime(day.year, day.month, day.day) < end:
            midnight = datetime(day.year, day.month, day.day)
            lo, hi = max(start, midnight), min(end, midnight + timedelta(days=1))
            tables.append(self._day(day, lo, hi, schema))
            day += timedelta(days=1)
        return pa.concat_tables(tables)

    def _day(self, day: date, lo: datetime, hi: datetime, schema: pa.Schema) -> pa.Table:
        held, used, hidden = self.totals((lo - self.start_at).total_seconds(), (hi - self.start_at).total_seconds())
        rows = np.nonzero(held > 0)[0]
        pods = [self.holdings.pods[int(i)] for i in rows]
        columns = {
            "cluster": pa.array([p.cluster for p in pods], pa.string()),
            "date": pa.array([day] * len(pods), pa.date32()),
            "pod_uid": pa.array([p.uid for p in pods], pa.string()),
            "namespace": pa.array([p.namespace for p in pods], pa.string()),
            "pod": pa.array([p.name for p in pods], pa.string()),
            "node": pa.array([p.node for p in pods], pa.string()),
            "team": pa.array([p.team for p in pods], pa.string()),
            "shape": pa.array([p.shape for p in pods], pa.string()),
            "devices": pa.array([p.quantity for p in pods], pa.int64()),
            "started_at": _instants([p.scheduled_at for p in pods]),
            "finished_at": _instants([p.finished_at for p in pods]),
            "held_gpu_seconds": _quantity(held[rows]),
            "true_utilized_gpu_seconds": _quantity(used[rows]),
            "hidden_gpu_seconds": _quantity(hidden[rows]),
        }
        return pa.Table.from_arrays([columns[f.name] for f in schema], schema=schema)
