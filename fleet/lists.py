"""Kubernetes lists of the history face: rows of the raw.kube_* tables at snapshot instants.

The same states as the API face shows (`states.py`), laid out as `sources/kubernetes` parses them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from fleet.model import Fault, Namespace, Node, Pod
from fleet.samples import DAY_US, EPOCH, HOUR_US
from fleet.states import changes, node_state
from warehouse.contracts import CONTRACTS

_US = timedelta(microseconds=1)


def _us(at: datetime) -> int:
    return (at - EPOCH) // _US


def _labels(maps: Sequence[Any]) -> pa.Array:
    return pa.array([sorted(m.items()) for m in maps], pa.map_(pa.string(), pa.string()))


def _stamped(name: str, at: np.ndarray, columns: dict[str, pa.Array]) -> tuple[str, pa.Table]:
    schema = CONTRACTS[name].arrow_schema
    every = {
        "snapshot_at": pa.array(at).cast(pa.timestamp("us")),
        "hour": pa.array(at - at % HOUR_US).cast(pa.timestamp("us")),
        "date": pa.array((at // DAY_US).astype(np.int32)).cast(pa.date32()),
    } | columns
    arrays = [every.get(f.name, pa.nulls(len(at), f.type)) for f in schema]
    return name, pa.Table.from_arrays(
        [a.combine_chunks() if isinstance(a, pa.ChunkedArray) else a for a in arrays], schema=schema
    )


class Lists:
    """Snapshots of all clusters, taken at the same instants."""

    def __init__(
        self, nodes: Sequence[Node], namespaces: Sequence[Namespace], pods: Sequence[Pod], faults: Sequence[Fault]
    ) -> None:
        self.nodes, self.namespaces, self.pods = nodes, namespaces, pods
        self.by_node: dict[tuple[str, str], list[Fault]] = {}
        for f in faults:
            self.by_node.setdefault((f.cluster, f.node), []).append(f)
        self.clusters = sorted({n.cluster for n in nodes})
        order = sorted(
            range(len(pods)), key=lambda i: (pods[i].cluster, pods[i].namespace, pods[i].name, pods[i].created_at)
        )
        self.order = [pods[i] for i in order]
        p = self.order
        self.created = np.array([_us(x.created_at) for x in p])
        self.scheduled = np.array([_us(x.scheduled_at) for x in p])
        self.started = np.array([_us(x.started_at) for x in p])
        self.finished = np.array([_us(x.finished_at) for x in p])
        self.until = np.array([_us(x.gone_at or x.listed_until) for x in p])
        self.failed = np.array([x.end_phase == "Failed" for x in p])
        self.cluster_of = np.array([self.clusters.index(x.cluster) for x in p], dtype=np.int64)
        most = max([len(x.restarts_at) for x in p], default=0)
        never = np.iinfo(np.int64).max
        self.restarts = np.array(
            [[_us(r) for r in x.restarts_at] + [never] * (most - len(x.restarts_at)) for x in p], dtype=np.int64
        ).reshape(len(p), most)
        self.pod_columns = {
            "cluster": pa.array([x.cluster for x in p], pa.string()),
            "pod_uid": pa.array([x.uid for x in p], pa.string()),
            "namespace": pa.array([x.namespace for x in p], pa.string()),
            "pod": pa.array([x.name for x in p], pa.string()),
            "created_at": pa.array(self.created).cast(pa.timestamp("us")),
            "priority": pa.array([x.priority for x in p], pa.int64()),
            "priority_class": pa.array([x.priority_class for x in p], pa.string()),
            "scheduler_name": pa.array([x.scheduler_name for x in p], pa.string()),
            "owner_kind": pa.array([x.owner_kind for x in p], pa.string()),
            "owner_name": pa.array([x.owner_name for x in p], pa.string()),
            "owner_uid": pa.array([x.owner_uid for x in p], pa.string()),
            "labels": _labels([x.labels for x in p]),
            "annotations": _labels([x.annotations for x in p]),
            "cpu_milli": pa.array([x.cpu_milli for x in p], pa.int64()),
            "memory_bytes": pa.array([x.memory_bytes for x in p], pa.int64()),
        }
        self.pod_nodes = pa.array([x.node or None for x in p], pa.string())
        self.pod_resource = {
            "resource": pa.array([x.resource for x in p], pa.string()),
            "quantity": pa.array([x.quantity for x in p], pa.int64()),
        }

    def tables(self, at: np.ndarray) -> Iterator[tuple[str, pa.Table]]:
        """Rows of all tables for snapshots at `at` (microseconds since the epoch, sorted)."""
        counts = {"Namespace": self._count(self.namespaces), "Node": self._count(self.nodes)}
        yield self._namespaces(at)
        yield from self._nodes(at)
        alive = (self.created[None, :] <= at[:, None]) & (at[:, None] < self.until[None, :])
        snap, pod = np.nonzero(alive)
        when = at[snap]
        yield _stamped("raw.kube_pods", when, self._pod_rows(pod, when))
        index = pa.array(pod)
        yield _stamped(
            "raw.kube_pod_resources",
            when,
            {n: self.pod_columns[n].take(index) for n in ("cluster", "pod_uid")}
            | {n: c.take(index) for n, c in self.pod_resource.items()},
        )
        yield self._snapshots(
            at, counts, np.array([alive[:, self.cluster_of == c].sum(axis=1) for c in range(len(self.clusters))])
        )

    def _count(self, objects: Sequence[Any]) -> list[int]:
        return [sum(1 for o in objects if o.cluster == c) for c in self.clusters]

    def _snapshots(self, at: np.ndarray, fixed: dict[str, list[int]], pods: np.ndarray) -> tuple[str, pa.Table]:
        rows_at, cluster, kind, objects = [], [], [], []
        for c, name in enumerate(self.clusters):
            for k in ("Namespace", "Node", "Pod"):
                rows_at.append(at)
                cluster += [name] * len(at)
                kind += [k] * len(at)
                objects.append(pods[c] if k == "Pod" else np.full(len(at), fixed[k][c]))
        when = np.concatenate(rows_at)
        return _stamped("raw.kube_snapshots", when, {
            "cluster": pa.array(cluster, pa.string()), "kind": pa.array(kind, pa.string()),
            "objects": pa.array(np.concatenate(objects).astype(np.int64)),
            "is_complete": pa.array(np.ones(len(when), dtype=bool)),
        })  # fmt: skip

    def _namespaces(self, at: np.ndarray) -> tuple[str, pa.Table]:
        spaces = self.namespaces
        index = pa.array(np.tile(np.arange(len(spaces)), len(at)))
        columns = {
            "cluster": pa.array([s.cluster for s in spaces], pa.string()),
            "namespace": pa.array([s.name for s in spaces], pa.string()),
            "labels": _labels([s.labels for s in spaces]),
            "annotations": _labels([s.annotations for s in spaces]),
        }
        return _stamped(
            "raw.kube_namespaces", np.repeat(at, len(spaces)), {n: c.take(index) for n, c in columns.items()}
        )

    def _nodes(self, at: np.ndarray) -> Iterator[tuple[str, pa.Table]]:
        """Node rows: a node has few states, so each state is laid out once and taken as often as it was listed."""
        rows: list[dict[str, Any]] = []
        resources: list[dict[str, Any]] = []
        state_of = np.zeros((len(at), len(self.nodes)), dtype=np.int64)
        resource_rows: list[list[int]] = []
        for n, node in enumerate(self.nodes):
            faults = self.by_node.get((node.cluster, node.name), [])
            turns = changes(faults)
            which = np.searchsorted(np.array([_us(x) for x in turns], dtype=np.int64), at, side="right")
            for k in np.unique(which):
                s = node_state(node, faults, turns[k - 1] if k else datetime.min)
                taints = [dict(t) for t in s.taints]
                state_of[which == k, n] = len(rows)
                rows.append({
                    "cluster": node.cluster, "node": node.name, "node_uid": node.uid, "created_at": node.created_at,
                    "provider_id": node.provider_id, "labels": sorted(node.labels.items()),
                    "annotations": sorted(node.annotations.items()),
                    "taints": json.dumps(taints, sort_keys=True, separators=(",", ":")) if taints else None,
                    "is_unschedulable": s.is_unschedulable, "ready_status": s.ready_status,
                    "ready_changed_at": s.ready_changed_at, "cpu_milli": node.cpu_milli,
                    "memory_bytes": node.memory_bytes,
                })  # fmt: skip
                mine = []
                for resource in sorted(node.capacity):
                    mine.append(len(resources))
                    resources.append({
                        "cluster": node.cluster, "node": node.name, "resource": resource,
                        "capacity": node.capacity[resource], "allocatable": s.allocatable[resource],
                    })  # fmt: skip
                resource_rows.append(mine)
        flat = state_of.reshape(-1)
        for name, found, index, when in (
            ("raw.kube_nodes", rows, flat, np.repeat(at, len(self.nodes))),
            (
                "raw.kube_node_resources", resources,
                np.array([r for s in flat for r in resource_rows[s]], dtype=np.int64),
                np.repeat(np.repeat(at, len(self.nodes)), [len(resource_rows[s]) for s in flat]),
            ),
        ):  # fmt: skip
            schema = CONTRACTS[name].arrow_schema
            own = pa.Table.from_pylist(found, schema=pa.schema([f for f in schema if f.name in found[0]])).take(
                pa.array(index)
            )
            yield _stamped(name, when, {c: own.column(c) for c in own.column_names})

    def _pod_rows(self, pod: np.ndarray, when: np.ndarray) -> dict[str, pa.Array]:
        index = pa.array(pod)
        scheduled, started, finished = self.scheduled[pod], self.started[pod], self.finished[pod]
        is_scheduled, is_started, is_finished = scheduled <= when, started <= when, finished <= when
        phase = np.where(is_finished, np.where(self.failed[pod], 3, 2), np.where(is_started, 1, 0))
        phases = pa.array(["Pending", "Running", "Succeeded", "Failed"])
        where = pa.array(pod, mask=~is_scheduled)

        def instant(us: np.ndarray, known: np.ndarray) -> pa.Array:
            return pa.array(us, mask=~known).cast(pa.timestamp("us"))

        return {n: c.take(index) for n, c in self.pod_columns.items()} | {
            "node": self.pod_nodes.take(where),
            "phase": phases.take(pa.array(phase)),
            "scheduled_at": instant(scheduled, is_scheduled),
            "pod_started_at": instant(started, is_started),
            "pod_finished_at": instant(finished, is_finished),
            "restarts": pa.array((self.restarts[pod] <= when[:, None]).sum(axis=1).astype(np.int64)),
        }
