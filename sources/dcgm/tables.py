"""Rows read from scrapes as Arrow tables in the contracts' schemas.

What a row is was decided before, in `rows.py` and `parse.py`; here values only find their columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sources.dcgm.labels import Attributes, RowKey
from sources.dcgm.lines import Lines
from sources.dcgm.rows import Rows
from sources.dcgm.scrape import Scrape, naive_utc
from warehouse.contracts import CONTRACTS
from warehouse.contracts.raw import DCGM_METRICS

METRICS: tuple[str, ...] = tuple(DCGM_METRICS.split())
_REJECTED_KEPT = 1000  # per scrape: a body of garbage must not become a table of it


def hour_of(at: datetime) -> datetime:
    """Start of the UTC hour."""
    return naive_utc(at).replace(minute=0, second=0, microsecond=0)


def sample_table(rows: Rows, scrapes: list[Scrape]) -> pa.Table:
    """raw.dcgm_samples of rows whose values are in the unit of their column."""
    schema = CONTRACTS["raw.dcgm_samples"].arrow_schema
    keys, devices = [tuple(zip(*part, strict=True)) or ((),) * 7 for part in (rows.keys, [k.device for k in rows.keys])]
    attributes = dict(zip(Attributes._fields, zip(*rows.attributes, strict=True), strict=False))

    body_code, key_code, attribute_code = (pa.array(c) for c in (rows.body, rows.key, rows.attribute))

    def of_scrape(values: list[str | None]) -> pa.Array:
        return pa.array(values, pa.string()).take(body_code)

    def of_key(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
        return pa.array(values, type_).take(key_code)

    def of_attribute(name: str, type_: pa.DataType) -> pa.Array:
        return pa.array(attributes.get(name, ()), type_).take(attribute_code)

    at = pa.array(rows.at_us, pa.timestamp("us"))
    host = of_attribute("host", pa.string())
    node = pc.coalesce(of_scrape([s.node for s in scrapes]), host,
                               of_scrape([host_of_target(s.target) for s in scrapes]))  # fmt: skip
    columns: dict[str, pa.Array] = {
        "cluster": of_scrape([s.cluster for s in scrapes]),
        "sampled_at": at,
        "target": of_scrape([s.target for s in scrapes]),
        "node": node,
        "gpu_uuid": of_key(devices[0], pa.string()),
        "gi_id": of_key(devices[1], pa.int64()),
        "copy": pa.array(rows.copy, pa.int64()),
        "hour": pc.floor_temporal(at, unit="hour"),
        "date": at.cast(pa.date32()) if len(at) else pa.array([], pa.date32()),
    }
    for name in ("hint_namespace", "hint_pod", "hint_container", "hint_pod_uid", "vgpu"):
        columns[name] = of_key(keys[RowKey._fields.index(name)], pa.string())
    for name, type_ in (("gpu_index", pa.int64()), ("pci_bus_id", pa.string()), ("device", pa.string()),
                        ("mig_profile", pa.string()), ("model", pa.string()), ("driver", pa.string())):  # fmt: skip
        columns[name] = of_attribute(name, type_)
    for i, name in enumerate(METRICS):
        columns[name] = pa.array(rows.values[i], pa.float64(), from_pandas=True)
    return pa.table([columns[f.name] for f in schema], schema=schema)


def host_of_target(target: str) -> str | None:
    """The host a target names, or None where it names none (an address, localhost)."""
    host = target.split("://", 1)[-1].split("/", 1)[0]
    host = host.rsplit(":", 1)[0] if host.count(":") == 1 else host
    if not host or host.startswith(("localhost", "[")) or host.replace(".", "").isdigit() or ":" in host:
        return None
    return host


def scrape_table(  # noqa: PLR0917
    scrapes: list[Scrape], wins: list[bool], lines: Lines, rows: Rows, accepted: np.ndarray, duplicates: np.ndarray
) -> pa.Table:
    """raw.scrapes of the attempts that count; accepted and repeated lines are counted by scrape."""
    rejected = Counter(r.body for r in lines.rejected)
    nodes: dict[int, str | None] = {}
    for body, attribute in zip(rows.body.tolist(), rows.attribute.tolist(), strict=True):
        nodes[body] = nodes.get(body) or rows.attributes[attribute].host
    counted = [(i, s, naive_utc(s.at)) for i, s in enumerate(scrapes) if wins[i]]
    at = pa.array([t for _, _, t in counted], pa.timestamp("us"))
    columns: dict[str, Any] = {
        "cluster": [s.cluster for _, s, _ in counted], "scrape_at": at, "target": [s.target for _, s, _ in counted],
        "node": [s.node or nodes.get(i) or host_of_target(s.target) for i, s, _ in counted],
        "is_up": [s.is_up for _, s, _ in counted], "http_status": [s.http_status for _, s, _ in counted],
        "duration_s": [s.duration_s for _, s, _ in counted],
        "samples": accepted[[i for i, _, _ in counted]], "rejected_lines": [rejected[i] for i, _, _ in counted],
        "duplicate_lines": duplicates[[i for i, _, _ in counted]],
        "body_bytes": [None if s.body is None else len(s.body) for _, s, _ in counted],
        "body_sha256": [s.sha256 for _, s, _ in counted], "error": [s.error for _, s, _ in counted],
        "hour": pc.floor_temporal(at, unit="hour"), "date": at.cast(pa.date32()),
    }  # fmt: skip
    schema = CONTRACTS["raw.scrapes"].arrow_schema
    return pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)


def rejected_table(scrapes: list[Scrape], wins: list[bool], lines: Lines) -> pa.Table:
    """raw.rejected_lines of the attempts that count; of each the first thousand lines."""
    kept: Counter[int] = Counter()
    found = []
    for line in sorted(lines.rejected):
        kept[line.body] += 1
        if not wins[line.body] or kept[line.body] > _REJECTED_KEPT:
            continue
        scrape = scrapes[line.body]
        at = naive_utc(scrape.at)
        found.append({
            "cluster": scrape.cluster, "scrape_at": at, "target": scrape.target, "line_number": line.line_number,
            "reason": line.reason, "line": line.line, "hour": hour_of(at),
            "date": at.date(),
        })  # fmt: skip
    return pa.Table.from_pylist(found, schema=CONTRACTS["raw.rejected_lines"].arrow_schema)
