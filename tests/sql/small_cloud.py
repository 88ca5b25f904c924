"""A lake with a few hand-made nodes and node lists, for the models of money.

Belongs here: how nodes, lists and tables of one test come into a lake, and how models run over it. Not here: what is
to be true of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any

import pyarrow as pa

from warehouse.contracts import CONTRACTS
from warehouse.lake import Lake
from warehouse.models import SQL_DIRECTORY, Model, read_model
from warehouse.runner import run_models
from warehouse.windows import DAY

START = datetime(2026, 3, 1)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def at(day: int, hour: int = 0, minute: int = 0) -> datetime:
    """An instant of March 2026."""
    return datetime(2026, 3, day, hour, minute)


@dataclass(frozen=True)
class Node:
    """A node object as the API server would show it from `created_at` until `gone_at`."""

    node: str
    created_at: datetime | None = START - 9 * DAY
    gone_at: datetime = datetime.max
    uid: str | None = ""
    cluster: str = "c"
    labels: dict[str, str] = field(default_factory=dict)
    provider_id: str | None = ""
    resources: dict[str, int] = field(default_factory=dict)

    @property
    def node_uid(self) -> str | None:
        return f"uid-{self.node}" if self.uid == "" else self.uid

    @property
    def resource_id(self) -> str | None:
        return f"aws:///eu-1a/i-{self.node}" if self.provider_id == "" else self.provider_id

    def is_there(self, instant: datetime) -> bool:
        """Whether a list at that instant shows it."""
        return (self.created_at is None or self.created_at <= instant) and instant < self.gone_at


def times(start: datetime, end: datetime, minutes: int = 5) -> list[datetime]:
    """Instants from `start` on, before `end`."""
    found = []
    while start < end:
        found.append(start)
        start += minutes * MINUTE
    return found


def table(name: str, rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Rows of a contract's table; columns not given are null."""
    schema = CONTRACTS[name].arrow_schema
    rows = list(rows)
    if unknown := {key for row in rows for key in row} - set(schema.names):
        raise KeyError(f"{name} has no {sorted(unknown)}")
    return pa.Table.from_pylist(rows, schema=schema)


def put(lake: Lake, name: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as the whole content of the dates, hours or table that they span."""
    data = table(name, rows)
    window = CONTRACTS[name].window
    if window == "whole":
        lake.replace(name, data)
        return
    dates = data["date"].to_pylist()
    start, end = min(dates), max(dates) + DAY
    if window == "hour":
        start, end = datetime.combine(start, datetime.min.time()), datetime.combine(end, datetime.min.time())
    lake.replace(name, data, start, end)


def put_lists(
    lake: Lake, nodes: Sequence[Node], instants: Iterable[datetime], incomplete: Iterable[datetime] = ()
) -> None:
    """Node lists of every cluster of `nodes` at these instants; `incomplete` ones show nothing and prove nothing."""
    snapshots, listed, resources = [], [], []
    partial = set(incomplete)
    for cluster, instant in product(sorted({n.cluster for n in nodes}), sorted({*instants, *partial})):
        when = {"cluster": cluster, "snapshot_at": instant, "hour": instant.replace(minute=0), "date": instant.date()}
        there = [] if instant in partial else [n for n in nodes if n.cluster == cluster and n.is_there(instant)]
        snapshots.append({**when, "kind": "Node", "objects": len(there), "is_complete": instant not in partial})
        for n in there:
            listed.append({
                **when, "node": n.node, "node_uid": n.node_uid, "created_at": n.created_at,
                "provider_id": n.resource_id, "labels": sorted(n.labels.items()), "annotations": [],
                "is_unschedulable": False, "ready_status": "True", "cpu_milli": 96000, "memory_bytes": 2**40,
            })  # fmt: skip
            resources += [
                {**when, "node": n.node, "resource": r, "capacity": c, "allocatable": c} for r, c in n.resources.items()
            ]
    put(lake, "raw.kube_snapshots", snapshots)
    put(lake, "raw.kube_nodes", listed)
    if resources:
        put(lake, "raw.kube_node_resources", resources)


def models(names: Sequence[str]) -> dict[str, Model]:
    """The project's models of these names, in this order."""
    return {name: read_model(SQL_DIRECTORY / f"{name.replace('.', '/')}.sql", name) for name in names}


def run(lake: Lake, names: Sequence[str], first: int = 1, last: int = 1, chunk_days: int = 7) -> None:
    """Build the named models, inputs first, over March `first` to `last`, inclusive."""
    start, end = date(2026, 3, first), date(2026, 3, last) + DAY
    run_models(lake, list(names), start, end, models=models(names), chunk_days=chunk_days)


def rows(lake: Lake, name: str, **wanted: Any) -> list[dict[str, Any]]:
    """Rows of a table in key order, those with the wanted values."""
    contract = CONTRACTS[name]
    found = [r for r in lake.read(name).to_pylist() if all(r[k] == v for k, v in wanted.items())]
    return sorted(found, key=lambda r: tuple(str(r[k]) for k in contract.key))
