"""Rows of raw.dcgm_samples: evaluated telemetry with labels, and what faults do to scrapes.

Values come from `telemetry.py`; here they get the columns of the contract. Which node is scraped when
is the caller's affair (`history.py`, the HTTP exporter).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fleet.exported import EXPORTED
from fleet.model import Fault, Node, Pod, ScrapeOutcome
from fleet.substreams import hash64
from fleet.telemetry import Telemetry
from warehouse.contracts import CONTRACTS

CONTRACT = CONTRACTS["raw.dcgm_samples"]
EPOCH = datetime(1970, 1, 1)
HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
# DCGM's own "no value" numbers, as they reach a scrape (DCGM dcgm_structs.h), in the printed unit.
FP64_BLANK = 140737488355328.0
INT32_BLANK = 2147483632.0
INT64_NOT_SUPPORTED = 9223372036854775794.0
_SENTINELS = {
    "sm_active_ratio": FP64_BLANK, "gr_engine_ratio": FP64_BLANK, "tensor_ratio": FP64_BLANK,
    "dram_ratio": FP64_BLANK, "sm_occupancy_ratio": FP64_BLANK, "power_w": FP64_BLANK,
    "gpu_util_ratio": INT32_BLANK * 0.01, "mem_copy_ratio": INT32_BLANK * 0.01, "gpu_temp_c": INT32_BLANK,
    "mem_temp_c": INT64_NOT_SUPPORTED,
}  # fmt: skip
_OUTCOMES: tuple[tuple[str, ScrapeOutcome], ...] = (
    ("empty_body", "empty"), ("slow_scrape", "timeout"), ("exporter_down", "down"), ("node_reboot", "down"),
)  # fmt: skip
_CODES: tuple[ScrapeOutcome, ...] = ("ok", "empty", "timeout", "down")


@dataclass(frozen=True)
class RowLabels:
    """The constant columns of one node's rows, one value per row; `unit` is the row's unit or -1 (MIG board)."""

    columns: dict[str, pa.Array]
    unit: np.ndarray
    device: np.ndarray
    board: np.ndarray


class Samples:
    """Makes rows of raw.dcgm_samples for nodes with an exporter."""

    def __init__(
        self, telemetry: Telemetry, nodes: Sequence[Node], pods: Sequence[Pod], faults: Sequence[Fault],
        start_at: datetime, kube_labels: bool,
    ) -> None:  # fmt: skip
        self.telemetry, self.nodes, self.start_at, self.kube_labels = telemetry, nodes, start_at, kube_labels
        self.start_us = (start_at - EPOCH) // timedelta(microseconds=1)
        self.by_node: dict[tuple[str, str], list[Fault]] = {}
        for f in faults:
            self.by_node.setdefault((f.cluster, f.node), []).append(f)
        self.labels = [_row_labels(n) for n in nodes]
        self.pod_names = {
            "hint_namespace": pa.array([p.namespace for p in pods], pa.string()),
            "hint_pod": pa.array([p.name for p in pods], pa.string()),
            "hint_container": pa.array([p.container for p in pods], pa.string()),
        }
        self._repeated: dict[tuple[int, int], dict[str, pa.Array]] = {}

    def seconds(self, at: datetime) -> float:
        """An instant in seconds from the start of telemetry."""
        return (at - self.start_at) / timedelta(seconds=1)

    def outcomes(self, node: int, t: np.ndarray) -> np.ndarray:
        """Index into ok, empty, timeout, down for scrapes of the node at `t`."""
        out = np.zeros(len(t), dtype=np.int8)
        n = self.nodes[node]
        for kind, outcome in _OUTCOMES:
            for f in self.by_node.get((n.cluster, n.name), ()):
                if f.kind == kind:
                    out[self._during(f, t)] = _CODES.index(outcome)
        return out

    def outcome(self, node: int, t: np.ndarray) -> list[ScrapeOutcome]:
        """The same in words."""
        return [_CODES[i] for i in self.outcomes(node, t)]

    def stamps(self, node: int, t: np.ndarray) -> np.ndarray:
        """Microseconds since the epoch that a scrape at `t` is stamped with: off by the skew while a clock is wrong."""
        us = np.rint(t * 1e6).astype(np.int64) + self.start_us
        n = self.nodes[node]
        for f in self.by_node.get((n.cluster, n.name), ()):
            if f.kind == "clock_skew":
                us[self._during(f, t)] += int(f.amount * 1e6)
        return us

    def _during(self, f: Fault, t: np.ndarray) -> np.ndarray:
        return (t >= self.seconds(f.started_at)) & (t < self.seconds(f.finished_at))

    def rows(self, node: int, t: np.ndarray, cache: bool = False) -> pa.Table:
        """Rows for scrapes of one node at `t` (seconds), in order of row and time; failed scrapes give none.

        `cache` keeps the constant columns for another call with as many instants.
        """
        n = self.nodes[node]
        ok = self.outcomes(node, t) == 0
        whole = bool(ok.all())
        if not whole:
            t = t[ok]
        if n.target is None or not len(t):
            return CONTRACT.arrow_schema.empty_table()
        faults = self.by_node.get((n.cluster, n.name), [])
        labels = self.labels[node]
        values = self.telemetry.rows(node, t)
        self._sentinels(faults, t, values)
        count = len(labels.unit) * len(t)
        columns = dict(self._constants(node, len(t), cache and whole))
        us = np.tile(self.stamps(node, t), len(labels.unit))
        columns["sampled_at"] = pa.array(us).cast(pa.timestamp("us"))
        columns["hour"] = pa.array(us - us % HOUR_US).cast(pa.timestamp("us"))
        columns["date"] = pa.array((us // DAY_US).astype(np.int32)).cast(pa.date32())
        columns |= self._hints(node, labels, t, faults)
        for e in EXPORTED:
            v = values[e.column]
            if v is None:
                continue
            mixed = labels.unit.min() < 0 and e.level == "gpu"
            flat = np.ascontiguousarray(v).reshape(-1)
            columns[e.column] = pa.array(flat, mask=np.isnan(flat)) if mixed else pa.array(flat)
        nothing = pa.nulls(count, pa.float64())
        table = pa.Table.from_arrays(
            [columns.get(f.name, nothing) for f in CONTRACT.arrow_schema], schema=CONTRACT.arrow_schema
        )
        gone = self._gone(faults, labels, t)
        return table if gone is None else table.filter(pa.array(~gone.reshape(-1)))

    def _constants(self, node: int, times: int, cache: bool) -> dict[str, pa.Array]:
        found = self._repeated.get((node, times))
        if found is None:
            labels = self.labels[node]
            index = pa.array(np.repeat(np.arange(len(labels.unit), dtype=np.int32), times))
            found = {name: column.take(index) for name, column in labels.columns.items()}
            if cache:
                self._repeated[(node, times)] = found
        return found

    def _hints(self, node: int, labels: RowLabels, t: np.ndarray, faults: Sequence[Fault]) -> dict[str, pa.Array]:
        count = len(labels.unit) * len(t)
        out: dict[str, pa.Array] = {"hint_pod_uid": pa.nulls(count, pa.string()), "vgpu": pa.nulls(count, pa.string())}
        if not self.kube_labels:
            return out | {name: pa.nulls(count, pa.string()) for name in self.pod_names}
        held = self.telemetry.holder(node, t)
        pod = np.where(labels.unit[:, None] >= 0, held[np.maximum(labels.unit, 0)], -1)
        for f in faults:
            if f.kind == "label_flap":
                flaps = self._during(f, t)
                tick = np.rint(t * 1e3).astype(np.int64).astype(np.uint64)
                flaps &= (hash64(tick) & np.uint64(1)).astype(bool)
                pod[:, flaps] = -1
        pod = pod.reshape(-1)
        index = pa.array(np.maximum(pod, 0), mask=pod < 0)
        return out | {name: names.take(index) for name, names in self.pod_names.items()}

    def _sentinels(self, faults: Sequence[Fault], t: np.ndarray, values: dict[str, np.ndarray | None]) -> None:
        for f in faults:
            hit = self._during(f, t)
            if f.kind != "sentinels" or not hit.any():
                continue
            for column, blank in _SENTINELS.items():
                v = values[column]
                if v is not None:
                    v = v.copy()
                    v[:, hit] = np.where(np.isnan(v[:, hit]), np.nan, blank)
                    values[column] = v

    def _gone(self, faults: Sequence[Fault], labels: RowLabels, t: np.ndarray) -> np.ndarray | None:
        gone: np.ndarray | None = None
        for f in faults:
            if f.kind != "gpu_lost":
                continue
            hit = self._during(f, t)
            if hit.any():
                if gone is None:
                    gone = np.zeros((len(labels.unit), len(t)), dtype=bool)
                bus = np.array(
                    [b == f.pci_bus_id for b in pc.cast(labels.columns["pci_bus_id"], pa.string()).to_pylist()]
                )
                gone |= bus[:, None] & hit[None, :]
        return gone


def _row_labels(n: Node) -> RowLabels:
    rows = []
    unit = 0
    for d, device in enumerate(n.devices):
        common = {"gpu_uuid": device.gpu_uuid, "gpu_index": device.gpu_index, "pci_bus_id": device.pci_bus_id,
                  "device": device.device, "model": device.model, "d": d}  # fmt: skip
        if not device.instances:
            rows.append(common | {"gi_id": None, "mig_profile": None, "unit": unit})
            unit += 1
            continue
        rows.append(common | {"gi_id": None, "mig_profile": None, "unit": -1})
        for instance in device.instances:
            rows.append(common | {"gi_id": instance.gi_id, "mig_profile": instance.profile, "unit": unit})
            unit += 1
    k = len(rows)
    types = {f.name: f.type for f in CONTRACT.arrow_schema}
    columns = {
        name: pa.array([r[name] for r in rows], types[name])
        for name in ("gpu_uuid", "gi_id", "gpu_index", "pci_bus_id", "device", "mig_profile", "model")
    }
    columns |= {
        name: pa.array([value] * k, types[name])
        for name, value in (
            ("cluster", n.cluster),
            ("target", n.target),
            ("node", n.name),
            ("copy", 0),
            ("driver", n.driver),
        )
    }
    return RowLabels(
        columns, np.array([r["unit"] for r in rows]), np.array([r["d"] for r in rows]),
        np.array([r["gi_id"] is None for r in rows]),
    )  # fmt: skip
