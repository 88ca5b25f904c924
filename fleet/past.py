"""Allocation history before telemetry begins: interval rows only, for forecasts.

What ran in the telemetry window is not repeated; an interval that runs into it is cut at its start,
so that the two together count every second once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

from fleet.catalogue import ACCELERATORS
from fleet.history import microseconds
from fleet.model import Node
from fleet.placement import Placed, Pool
from fleet.samples import DAY_US, HOUR_US
from fleet.substreams import uid
from fleet.topology import Tenant
from warehouse.contracts import CONTRACTS


def history_rows(
    seed: int, origin: datetime, start_at: datetime, nodes: Sequence[Node], tenants: Sequence[Tenant],
    pools: Sequence[Pool], placed: Sequence[Sequence[Placed]],
) -> pa.Table:  # fmt: skip
    """raw.allocation_history: one row per pod that held devices before `start_at`."""
    limit = int((start_at - origin) / timedelta(seconds=1))
    base = microseconds(origin)
    columns: dict[str, list[object]] = {f.name: [] for f in CONTRACTS["raw.allocation_history"].fields}
    created, started, finished = [], [], []
    for p, pool in enumerate(pools):
        product = ACCELERATORS[pool.accelerator].product.removeprefix("NVIDIA-")
        for k, item in enumerate(placed[p]):
            if item.start >= limit:
                break
            d = item.demand
            end = min(item.start + d.duration, limit)
            for i, (node, units) in enumerate(item.where):
                n = nodes[node]
                columns["cluster"].append(pool.cluster)
                # the same names as podmaker gives, so that a pod that runs on keeps its uid
                columns["pod_uid"].append(uid(seed, f"pod/{pool.cluster}/{pool.accelerator}/{pool.resource}/{k}/{i}"))
                columns["resource"].append(pool.resource)
                columns["quantity"].append(len(units))
                columns["namespace"].append(tenants[d.tenant].namespace)
                columns["pod"].append(f"{d.owner}-{i}")
                columns["node"].append(n.name)
                columns["team"].append(d.team)
                columns["workload_kind"].append(d.owner_kind)
                columns["accelerator"].append(product)
                columns["provider"].append(n.provider)
                columns["region"].append(n.region)
                created.append(base + d.arrive * 1_000_000)
                started.append(base + item.start * 1_000_000)
                finished.append(base + end * 1_000_000)
    at = np.array(started, dtype=np.int64)
    stamps = {
        "created_at": np.array(created, dtype=np.int64), "started_at": at,
        "finished_at": np.array(finished, dtype=np.int64), "hour": at - at % HOUR_US,
    }  # fmt: skip
    schema = CONTRACTS["raw.allocation_history"].arrow_schema
    arrays = []
    for f in schema:
        if f.name in stamps:
            arrays.append(pa.array(stamps[f.name]).cast(pa.timestamp("us")))
        elif f.name == "date":
            arrays.append(pa.array((at // DAY_US).astype(np.int32)).cast(pa.date32()))
        elif f.name == "source":
            arrays.append(pa.array(["simulated"] * len(at), pa.string()))
        else:
            arrays.append(pa.array(columns[f.name], f.type))
    return pa.Table.from_arrays(arrays, schema=schema)
