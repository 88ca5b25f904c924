"""From placed demands to pods: names, owners, labels, times, ends.

When and where work runs was decided in `placement.py`; what faults do to pods is `faults.py`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from fleet.model import Node, Pod
from fleet.placement import Placed, Pool
from fleet.shapes import SHAPES
from fleet.substreams import stream, uid
from fleet.topology import TEAM_KEY, Tenant
from fleet.workload import Demand

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True)
class MadePods:
    """Pods with, in step, the job each belongs to (gangs share one) and the job's shape index."""

    pods: list[Pod]
    job: np.ndarray
    job_shape: np.ndarray


def _suffix(text: str, n: int = 5) -> str:
    value = int(text.replace("-", "")[:12], 16)
    out = ""
    for _ in range(n):
        value, digit = divmod(value, len(_LETTERS))
        out += _LETTERS[digit]
    return out


def _label_set(tenant: Tenant, demand: Demand, app: str) -> dict[str, str]:
    labels = {"app.kubernetes.io/name": app, "strandline.io/simulated": "true"}
    if tenant.via == "pod_label":
        labels[TEAM_KEY] = demand.team
    return labels


def make_pods(
    seed: int, origin: datetime, nodes: Sequence[Node], tenants: Sequence[Tenant], pools: Sequence[Pool],
    placed: Sequence[Sequence[Placed]], waiting: Sequence[Sequence[Demand]], from_s: int, horizon_s: int, ttl_s: int,
) -> MadePods:  # fmt: skip
    """Pods that are listed or hold anything after `from_s` (seconds from `origin`), and those that wait to the end.

    The order is by pool, start and position in the gang, so it depends on nothing but the world.
    """
    pods: list[Pod] = []
    job: list[int] = []
    shapes: list[int] = []
    for p, pool in enumerate(pools):
        rng = stream(seed, f"pods/{pool.cluster}/{pool.accelerator}/{pool.resource}")
        luck = rng.random((len(placed[p]) + len(waiting[p]), 3))
        for k, item in enumerate(placed[p]):
            d = item.demand
            finish = item.start + d.duration
            if finish + ttl_s <= from_s:
                continue
            latency = min(int(5 + 40 * luck[k, 0]), max(1, d.duration // 8))
            failed = d.owner_kind == "Job" and luck[k, 1] < 0.12
            restart = luck[k, 2] < 0.03 and d.duration > 3600
            for i, (node, units) in enumerate(item.where):
                pods.append(
                    _pod(
                        seed, origin, tenants[d.tenant], pool, d, k, i, nodes[node].name, units, item.start, latency,
                        finish, ttl_s, failed, restart,
                    )
                )  # fmt: skip
                job.append(len(shapes))
            shapes.append(d.shape)
        for k, d in enumerate(waiting[p]):
            # bound long after the end of the world: listed as Pending throughout
            never = horizon_s + 365 * 86400
            for i in range(len(d.pods)):
                pods.append(
                    _pod(
                        seed, origin, tenants[d.tenant], pool, d, len(placed[p]) + k, i, "", (), never, 1,
                        never + d.duration, ttl_s, False, False,
                    )
                )  # fmt: skip
                job.append(len(shapes))
            shapes.append(d.shape)
    return MadePods(pods, np.array(job, dtype=np.int64), np.array(shapes, dtype=np.int64))


def _pod(
    seed: int, origin: datetime, tenant: Tenant, pool: Pool, d: Demand, k: int, i: int, node: str,
    units: tuple[tuple[int, int | None], ...], start: int, latency: int, finish: int, ttl_s: int, failed: bool,
    restart: bool,
) -> Pod:  # fmt: skip
    key = f"{pool.cluster}/{pool.accelerator}/{pool.resource}/{k}/{i}"
    pod_uid = uid(seed, f"pod/{key}")
    owner = d.owner
    if d.owner_kind == "StatefulSet":
        name = f"{owner}-0"
    elif d.owner_kind == "ReplicaSet":
        owner = f"{d.owner}-{_suffix(uid(seed, f'rs/{pool.cluster}/{d.owner}'), 8)}"
        name = f"{owner}-{_suffix(pod_uid)}"
    else:
        name = f"{owner}-{i}-{_suffix(pod_uid)}"
    devices = d.pods[i]

    def at(s: int) -> datetime:
        return origin + timedelta(seconds=s)

    return Pod(
        uid=pod_uid, cluster=pool.cluster, namespace=tenant.namespace, name=name, container="main", node=node,
        resource=pool.resource, quantity=devices, units=units, cpu_milli=d.cpu_milli * devices,
        memory_bytes=d.memory_bytes * devices, team=d.team, shape=SHAPES[d.shape],  # type: ignore[arg-type]
        owner_kind=d.owner_kind, owner_name=owner,
        owner_uid=uid(seed, f"owner/{pool.cluster}/{tenant.namespace}/{owner}"),
        labels=_label_set(tenant, d, d.owner), annotations={}, priority=1000 if d.owner_kind == "ReplicaSet" else 0,
        priority_class="serving" if d.owner_kind == "ReplicaSet" else "batch",
        created_at=at(d.arrive), scheduled_at=at(start), started_at=at(start + latency), finished_at=at(finish),
        listed_until=at(finish + ttl_s), end_phase="Failed" if failed else "Succeeded",
        end_reason="Error" if failed else "Completed",
        restarts_at=(at(start + (finish - start) // 2),) if restart else (),
    )  # fmt: skip
