"""Fleets and queues that a replay runs on: from files, or made for a pool of equal GPUs.

A fleet file is CSV or YAML (a list, or `nodes:` with one). A row is a node with a `name`, or `count` alike ones whose
names are the given one with a number. Fields: `gpus`, `flavor` (accelerator model), `cpu_milli`, `memory_mib` (not
given: without bound), `labels` (YAML mapping, or `key=value` joined by semicolons), `schedulable`. The node list of the
Alibaba GPU trace (`sn, cpu_milli, memory_mib, gpu, model`) is read as it is.

A queues file is YAML (a list, or `queues:` with one): `name`, `weight`, `cohort` and `quotas`, a list of `resource`
(gpu, cpu, memory; not given: gpu), `flavor`, `nominal`, `borrowing_limit`, `lending_limit`, in GPUs, milli-CPU and MiB.
Or CSV with a name and a weight (`vc, nodes` in the Philly list). A queue that it does not name has weight 0, or what
the row named `*` says. Belongs here: files and defaults. Not here: jobs (`jobs.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from scheduler.model import CPU, GPU, MEMORY, MILLI, Kind, Node, Queue, Quota
from scheduler.replay.files import Row, plain, read_rows
from warehouse.errors import BadInput

POOL_FLAVOR = "gpu"
POOL_NODE_GPUS = 8
UNBOUNDED = 1 << 40
_NODE_FIELDS = ("name", "count", "gpus", "flavor", "cpu_milli", "memory_mib", "labels", "schedulable")
_SAME = {"sn": "name", "gpu": "gpus", "model": "flavor"}
_QUEUE_FIELDS = ("name", "weight", "cohort", "quotas")
_QUOTA_FIELDS = ("resource", "flavor", "nominal", "borrowing_limit", "lending_limit")
_QUEUE_SAME = {"queue": "name", "vc": "name", "team": "name", "nodes": "weight"}
_MOST_GPUS = 1024
_MOST_NODES = 100_000


def pool_nodes(gpus: int) -> list[Node]:
    """A pool as nodes of 8 GPUs and one with the rest."""
    sizes = [POOL_NODE_GPUS] * (gpus // POOL_NODE_GPUS)
    sizes += [gpus % POOL_NODE_GPUS] if gpus % POOL_NODE_GPUS else []
    width = len(str(len(sizes)))
    return [Node(f"node-{i:0{width}}", POOL_FLAVOR, size) for i, size in enumerate(sizes)]


def read_fleet(path: Path) -> list[Node]:
    """The nodes of a fleet file in its order. `BadInput` names file, line and field."""
    nodes: list[Node] = []
    lines: dict[str, str] = {}
    for given in read_rows(path, "nodes"):
        row = Row(given.where, {_SAME.get(k, k): v for k, v in given.fields.items()})
        row.only(_NODE_FIELDS)
        for node in _nodes(row):
            if node.name in lines:
                raise row.wrong("name", f"{node.name} stands already in {lines[node.name]}")
            lines[node.name] = row.where
            nodes.append(node)
        if len(nodes) > _MOST_NODES:
            raise row.wrong("count", f"more than {_MOST_NODES:,} nodes")
    if not any(n.gpus for n in nodes):
        raise BadInput(f"{path}: no node has a GPU")
    return nodes


def _nodes(row: Row) -> Iterable[Node]:
    count = row.whole("count", 1)
    if not 1 <= count <= _MOST_NODES:
        raise row.wrong("count", f"{count} is not within 1 and {_MOST_NODES:,}")
    gpus = row.whole("gpus")
    if gpus > _MOST_GPUS:
        raise row.wrong("gpus", f"{gpus} is more than {_MOST_GPUS}")
    flavor = row.text("flavor", POOL_FLAVOR if gpus else "none")
    name = row.text("name", flavor if row.has("count") else None)
    node = Node(
        name, flavor, gpus, row.whole("cpu_milli", UNBOUNDED), row.whole("memory_mib", UNBOUNDED), _labels(row),
        _flag(row, "schedulable"),
    )  # fmt: skip
    if not row.has("count"):
        return [node]
    width = max(len(str(count - 1)), 3)
    return [replace(node, name=f"{name}-{i:0{width}}") for i in range(count)]


def _flag(row: Row, name: str) -> bool:
    value = str(row.fields.get(name, "")).strip().lower()
    if value not in ("", "true", "false", "yes", "no", "1", "0"):
        raise row.wrong(name, f"{value!r} is neither true nor false")
    return value in ("", "true", "yes", "1")


def _labels(row: Row) -> Mapping[str, str]:
    value = row.fields.get("labels")
    if isinstance(value, dict):
        return {k: str(v) for k, v in sorted(plain(value).items())}
    if value in (None, ""):
        return {}
    pairs = [p.partition("=") for p in str(value).split(";") if p.strip()]
    if not all(mark and key.strip() for key, mark, _ in pairs):
        raise row.wrong("labels", f"{value!r} is no list of key=value joined by semicolons")
    return {key.strip(): text.strip() for key, _, text in sorted(pairs)}


def read_queues(path: Path) -> dict[str, Queue]:
    """Queues by name, the default under `*`. `BadInput` names file, line and field."""
    queues: dict[str, Queue] = {}
    for given in read_rows(path, "queues"):
        row = Row(given.where, {_QUEUE_SAME.get(k, k): v for k, v in given.fields.items()})
        row.only(_QUEUE_FIELDS)
        name = row.text("name")
        if name in queues:
            raise row.wrong("name", f"{name} stands twice")
        quotas: dict[Kind, Quota] = {}
        for quota in row.rows("quotas"):
            kind, found = _quota(quota)
            if kind in quotas:
                raise quota.wrong("flavor", f"a quota of {kind[0]} {kind[1]} stands twice")
            quotas[kind] = found
        queues[name] = Queue(name, row.whole("weight", 1), row.text("cohort", ""), quotas)
    return queues


def _quota(row: Row) -> tuple[Kind, Quota]:
    row.only(_QUOTA_FIELDS)
    resource = row.text("resource", GPU)
    if resource not in (GPU, CPU, MEMORY):
        raise row.wrong("resource", f"{resource!r} is none of {GPU}, {CPU}, {MEMORY}")
    scale = MILLI if resource == GPU else 1
    borrowing, lending = (
        row.scaled(name, scale) if row.has(name) else None for name in ("borrowing_limit", "lending_limit")
    )
    return (resource, row.text("flavor")), Quota(row.scaled("nominal", scale), borrowing, lending)


def queues_for(names: Iterable[str], given: Mapping[str, Queue] | None = None) -> dict[str, Queue]:
    """A queue for every name: as given, else as `*` says, else weight 0; without any given, all have weight 1."""
    if given is None:
        return {name: Queue(name) for name in sorted(set(names))}
    default = given.get("*", Queue("*", weight=0))
    found = {name: queue for name, queue in given.items() if name != "*"}
    return found | {name: replace(default, name=name) for name in sorted(set(names) - set(found))}


def capacity(nodes: Sequence[Node]) -> dict[Kind, int]:
    """What the schedulable nodes have of every kind; CPU and memory only where they are bounded."""
    totals: dict[Kind, int] = {}
    for node in nodes:
        for resource, amount in ((GPU, node.gpus * MILLI), (CPU, node.cpu_milli), (MEMORY, node.memory_mib)):
            if node.is_schedulable and 0 < amount < UNBOUNDED:
                kind = (resource, node.flavor)
                totals[kind] = totals.get(kind, 0) + amount
    return totals
