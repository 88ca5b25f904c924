"""The history face: the world written straight as raw tables, a day at a time.

Rows equal those that collecting from the HTTP faces at the same instants would give. Samples and
lists are made in `samples.py` and `lists.py`; this module decides the instants and lays out the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from fleet.exported import EXPORTED
from fleet.lists import Lists
from fleet.model import Fault, Node
from fleet.samples import DAY_US, EPOCH, HOUR_US, Samples
from fleet.substreams import seed64
from warehouse.contracts import CONTRACTS

_TIMEOUT_S = 10.0


def scrape_offset(seed: int, node: Node, interval_s: int, phase_s: float, collect_s: float) -> float:
    """When within the interval a target is scraped: spread by its name over the interval, in whole milliseconds.

    The exporter collects on its own clock (`phase_s`, every `collect_s`). The two keep their distance
    for good, here up to a sixth of the collect interval, so values are 1 s to 6 s old by default.
    """
    h = seed64(seed, f"scrape/{node.cluster}/{node.name}")
    age = collect_s / 30.0 + (h % 10_000) / 10_000.0 * collect_s / 6.0
    turns = max(1, int(interval_s // collect_s))
    return round((phase_s + age + ((h >> 20) % turns) * collect_s) % interval_s, 3)


def _times(schema: pa.Schema, at: np.ndarray, name: str, columns: dict[str, Any]) -> pa.Table:
    every = {
        name: pa.array(at).cast(pa.timestamp("us")),
        "hour": pa.array(at - at % HOUR_US).cast(pa.timestamp("us")),
        "date": pa.array((at // DAY_US).astype(np.int32)).cast(pa.date32()),
    } | columns
    return pa.Table.from_arrays([every.get(f.name, pa.nulls(len(at), f.type)) for f in schema], schema=schema)


class History:
    """Writes days of the world as tables of the raw layer."""

    def __init__(
        self, seed: int, nodes: Sequence[Node], samples: Samples, lists: Lists, interval_s: int, snapshot_s: int,
        end_s: int,
    ) -> None:  # fmt: skip
        self.nodes, self.samples, self.lists = nodes, samples, lists
        self.interval, self.snapshot, self.end = interval_s, snapshot_s, end_s
        telemetry = samples.telemetry
        self.offset = [
            scrape_offset(seed, n, interval_s, telemetry.phase[i], telemetry.collect) for i, n in enumerate(nodes)
        ]

    def day(self, lo: float, hi: float) -> Iterator[tuple[str, pa.Table]]:
        """Tables of the scrapes and lists in `[lo, hi)` seconds of telemetry."""
        rows, scrapes, maps = [], [], []
        for n, node in enumerate(self.nodes):
            if node.target is None:
                continue
            first = int(np.ceil((lo - self.offset[n]) / self.interval))
            last = int(np.ceil((hi - self.offset[n]) / self.interval))
            t = np.arange(first, last) * float(self.interval) + self.offset[n]
            if not len(t):
                continue
            table = self.samples.rows(n, t, cache=True)
            rows.append(table)
            scrapes.append(self._scrapes(n, node, t, table))
            maps.append(self._maps(node, table))
        if rows:
            yield "raw.scrapes", pa.concat_tables(scrapes)
            yield "raw.field_maps", pa.concat_tables(maps)
            yield "raw.dcgm_samples", pa.concat_tables(rows)
        at = np.arange(int(np.ceil(lo / self.snapshot)), int(np.ceil(hi / self.snapshot)), dtype=np.int64)
        at *= self.snapshot
        if lo < self.end <= hi:
            # the collector lists once more when it stops, so that what came last is seen too
            at = np.unique(np.append(at, self.end - 1))
        if len(at):
            yield from self.lists.tables(at * 1_000_000 + self.samples.start_us)

    def _scrapes(self, n: int, node: Node, t: np.ndarray, table: pa.Table) -> pa.Table:
        outcome = self.samples.outcomes(n, t)
        at = self.samples.stamps(n, t)
        # sample lines of each body: the values that are there, counted per instant
        filled = np.zeros(table.num_rows, dtype=np.int64)
        for e in EXPORTED:
            column = table.column(e.column)
            if column.null_count == 0:
                filled += 1
            elif column.null_count < table.num_rows:
                filled += np.asarray(column.is_valid())
        stamps = np.asarray(table.column("sampled_at").cast(pa.int64()))
        samples = np.zeros(len(t), dtype=np.int64)
        order = np.argsort(at, kind="stable")
        np.add.at(samples, order[np.searchsorted(at[order], stamps)], filled)
        up = outcome <= 1
        # a scrape takes a few milliseconds and some for every line; a timeout takes its ten seconds
        took = np.where(outcome == 2, _TIMEOUT_S, np.where(outcome == 3, 0.001, np.round(0.004 + 4e-5 * samples, 6)))
        errors = pa.array([None, None, "timed out", "connection refused"], pa.string())
        zero = pa.array(np.zeros(len(t), dtype=np.int64))  # also for a failed scrape: it had no line
        schema = CONTRACTS["raw.scrapes"].arrow_schema
        return _times(schema, at, "scrape_at", {
            "cluster": pa.array([node.cluster] * len(t), pa.string()),
            "target": pa.array([node.target] * len(t), pa.string()),
            "node": pa.array([node.name] * len(t), pa.string()),
            "is_up": pa.array(up),
            "http_status": pa.array(np.full(len(t), 200, dtype=np.int64), mask=~up),
            "duration_s": pa.array(took),
            "samples": pa.array(samples),
            "rejected_lines": zero, "duplicate_lines": zero,
            "error": errors.take(pa.array(outcome.astype(np.int64))),
        })  # fmt: skip

    def _maps(self, node: Node, table: pa.Table) -> pa.Table:
        schema = CONTRACTS["raw.field_maps"].arrow_schema
        hours = (
            np.unique(np.asarray(table.column("hour").cast(pa.int64()))) if table.num_rows else np.zeros(0, np.int64)
        )
        known = sorted(
            (e for e in EXPORTED if table.num_rows and table.column(e.column).null_count < table.num_rows),
            key=lambda e: (e.column, e.metric),
        )
        k, h = len(known), len(hours)
        at = np.repeat(hours, k)
        return _times(schema, at, "hour", {
            "cluster": pa.array([node.cluster] * (k * h), pa.string()),
            "target": pa.array([node.target] * (k * h), pa.string()),
            "column_name": pa.array([e.column for e in known] * h, pa.string()),
            "source_name": pa.array([e.metric for e in known] * h, pa.string()),
            "factor": pa.array([e.factor for e in known] * h, pa.float64()),
            "verdict": pa.array(["table"] * (k * h), pa.string()),
            "hour": pa.array(at).cast(pa.timestamp("us")),
        })  # fmt: skip


def fault_rows(faults: Sequence[Fault]) -> pa.Table:
    """raw.fleet_faults."""
    schema = CONTRACTS["raw.fleet_faults"].arrow_schema
    rows = [
        {
            "cluster": f.cluster, "date": f.started_at.date(), "fault_id": f.fault_id, "fault": f.kind, "node": f.node,
            "pci_bus_id": f.pci_bus_id, "pod_uid": f.pod_uid, "started_at": f.started_at, "finished_at": f.finished_at,
        }
        for f in faults
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=schema)


def reference_rows(
    rules: Sequence[tuple[str, str]], mapping: Sequence[tuple[str, str, str]]
) -> Iterator[tuple[str, pa.Table]]:
    """raw.team_rules and raw.team_map."""
    yield (
        "raw.team_rules",
        pa.Table.from_pylist(
            [{"rank": i, "source": source, "key": key} for i, (source, key) in enumerate(rules, 1)],
            schema=CONTRACTS["raw.team_rules"].arrow_schema,
        ),
    )
    yield (
        "raw.team_map",
        pa.Table.from_pylist(
            [{"cluster": c, "namespace": n, "team": t} for c, n, t in mapping],
            schema=CONTRACTS["raw.team_map"].arrow_schema,
        ),
    )


def midnights(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The UTC days of `[start, end)`, first and last cut to it."""
    at = start
    while at < end:
        upto = min(end, datetime(at.year, at.month, at.day) + timedelta(days=1))
        yield at, upto
        at = upto


def microseconds(at: datetime) -> int:
    """Microseconds since the epoch."""
    return (at - EPOCH) // timedelta(microseconds=1)
