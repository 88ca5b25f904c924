"""The default fleet's work: which tenant asks which pool for what, over history and telemetry.

The distributions are in `workload.py`; here they are dealt out over pools and tenants, or a trace's
jobs over the one pool that serves them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fleet.model import Node, TraceJob
from fleet.placement import Pool
from fleet.shapes import SHAPE_INDEX
from fleet.substreams import stream, uid
from fleet.topology import UNMAPPED, Tenant
from fleet.workload import (
    DAY,
    Demand,
    draw_arrivals,
    draw_durations,
    draw_shapes,
    draw_sizes,
    gang,
    notebook_chain,
    service_chain,
    trace_shapes,
)


@dataclass(frozen=True)
class Mix:
    """Shares of a pool held by services and by notebooks, and its weight for batch jobs (per device)."""

    services: float
    notebooks: float
    batch: float
    largest: int


_MIX: dict[str, Mix] = {
    "h100": Mix(0.22, 0.02, 1.2, 32),
    "a100-80": Mix(0.20, 0.05, 1.0, 16),
    "a100-40": Mix(0.20, 0.06, 1.0, 16),
    "l40s": Mix(0.40, 0.08, 0.7, 8),
    "l4": Mix(0.50, 0.20, 0.5, 4),
    "v100": Mix(0.10, 0.15, 0.8, 16),
    "tpu-v5e": Mix(0.45, 0.0, 0.45, 8),
}
_MIG_MIX = Mix(0.38, 0.30, 0.25, 1)


def full_share(growth_days: int, weekday0: int) -> Callable[[int], float]:
    """The share of a pool above which people submit no more: grows over `growth_days`, lower at weekends."""

    def cap(t: int) -> float:
        day = t // DAY
        grown = 0.66 + 0.22 * min(1.0, day / max(1, growth_days))
        return grown * (0.93 if (weekday0 + day) % 7 >= 5 else 1.0)

    return cap


def seeded_demand(
    seed: int, nodes: Sequence[Node], pools: Sequence[Pool], tenants: Sequence[Tenant], weekday0: int, days: int
) -> list[list[Demand]]:
    """Demands for each pool over `days` days from the origin, whose weekday is `weekday0`."""
    horizon = days * DAY
    out: list[list[Demand]] = [[] for _ in pools]
    mixes = [_MIG_MIX if "mig-" in p.resource else _MIX[p.accelerator] for p in pools]
    for pool, mix, demands in zip(pools, mixes, out, strict=True):
        key = f"{pool.cluster}/{pool.accelerator}/{pool.resource}"
        own = [i for i, t in enumerate(tenants) if t.cluster == pool.cluster]
        host = nodes[pool.nodes[0]]
        cpu, memory = host.cpu_milli // _slots(host), host.memory_bytes // _slots(host)
        demands.extend(
            _services(stream(seed, f"services/{key}"), key, seed, pool, mix, tenants, own, cpu, memory, horizon)
        )
        demands.extend(
            _notebooks(
                stream(seed, f"notebooks/{key}"), key, seed, pool, mix, tenants, own, cpu, memory, weekday0, horizon
            )
        )
    _batch(seed, nodes, pools, mixes, tenants, weekday0, days, out)
    return out


def _slots(node: Node) -> int:
    return sum(max(1, len(d.instances)) for d in node.devices)


def _team(rng: np.random.Generator, tenant: Tenant) -> str:
    return tenant.teams[int(rng.integers(len(tenant.teams)))] if tenant.teams else UNMAPPED


def _tenant(rng: np.random.Generator, tenants: Sequence[Tenant], own: list[int]) -> int:
    weights = np.array([tenants[i].weight for i in own])
    return own[int(rng.choice(len(own), p=weights / weights.sum()))]


def _services(
    rng: np.random.Generator, key: str, seed: int, pool: Pool, mix: Mix, tenants: Sequence[Tenant], own: list[int],
    cpu: int, memory: int, horizon: int,
) -> list[Demand]:  # fmt: skip
    demands: list[Demand] = []
    wanted = round(mix.services * pool.capacity)
    n = 0
    while wanted > 0:
        n += 1
        tenant = _tenant(rng, tenants, own)
        team = _team(rng, tenants[tenant])
        devices = int(min(rng.choice([1, 1, 1, 2, 4]), mix.largest, wanted, pool.per_node))
        name = f"svc-{uid(seed, f'svc/{key}/{n}')[:6]}"
        for _ in range(int(rng.integers(1, 5))):
            if wanted < devices:
                break
            wanted -= devices
            # services come one after the other, half of them before the history begins
            first = max(0, int(rng.uniform(-1.0, 1.0) * horizon * 0.75))
            template = Demand(
                first, 0, (devices,), tenant, team, SHAPE_INDEX["inference"], "ReplicaSet", name,
                int(cpu * rng.uniform(0.3, 0.9)), int(memory * rng.uniform(0.3, 0.8)),
            )  # fmt: skip
            demands.append(service_chain(rng, template, horizon, 6 * DAY, (60, 400)))
    return demands


def _notebooks(
    rng: np.random.Generator, key: str, seed: int, pool: Pool, mix: Mix, tenants: Sequence[Tenant], own: list[int],
    cpu: int, memory: int, weekday0: int, horizon: int,
) -> list[Demand]:  # fmt: skip
    demands = []
    people = math.ceil(mix.notebooks * pool.capacity * 1.6) if mix.notebooks else 0
    for n in range(people):
        tenant = _tenant(rng, tenants, own)
        template = Demand(
            0, 0, (1,), tenant, _team(rng, tenants[tenant]), SHAPE_INDEX["notebook"], "StatefulSet",
            f"ws-{uid(seed, f'ws/{key}/{n}')[:6]}", int(cpu * rng.uniform(0.2, 0.6)),
            int(memory * rng.uniform(0.2, 0.6)),
        )  # fmt: skip
        first = notebook_chain(rng, template, weekday0, horizon)
        if first is not None:
            demands.append(first)
    return demands


def _batch(
    seed: int, nodes: Sequence[Node], pools: Sequence[Pool], mixes: Sequence[Mix], tenants: Sequence[Tenant],
    weekday0: int, days: int, out: list[list[Demand]],
) -> None:  # fmt: skip
    rng = stream(seed, "batch")
    devices = sum(p.capacity for p in pools)
    # twice what the fleet can run (44,000 GPU-seconds a job): people stop submitting when it is full
    arrivals = draw_arrivals(rng, weekday0, days, 2.0 * devices)
    n = len(arrivals)
    sizes = draw_sizes(rng, n)
    durations = draw_durations(rng, sizes)
    shapes = draw_shapes(rng, sizes, durations)
    weights = np.array([m.batch * p.capacity for p, m in zip(pools, mixes, strict=True)])
    largest = np.array([min(m.largest, p.capacity) for p, m in zip(pools, mixes, strict=True)])
    sizes = np.minimum(sizes, largest.max())
    pick = rng.random(n)
    chosen = np.zeros(n, dtype=np.int64)
    for size in np.unique(sizes):
        w = np.where(largest >= size, weights, 0.0)
        rows = sizes == size
        chosen[rows] = np.searchsorted(np.cumsum(w / w.sum()), pick[rows], side="right").clip(max=len(pools) - 1)
    # small jobs on whole cards may ask for more than a card's share of the host, and so leave cards without CPU
    small = (sizes < 4) & np.array(["mig-" not in p.resource for p in pools])[chosen]
    cpu_share = rng.uniform(0.3, 1.0, n) * np.where(small, 1.3, 1.0)
    memory_share = rng.uniform(0.25, 0.95, n)
    own = [[i for i, t in enumerate(tenants) if t.cluster == p.cluster] for p in pools]
    odds = [np.cumsum([tenants[i].weight for i in o]) / sum(tenants[i].weight for i in o) for o in own]
    tenant_pick, team_pick = rng.random(n), rng.random(n)
    hosts = [nodes[p.nodes[0]] for p in pools]
    for i in range(n):
        p = int(chosen[i])
        tenant = own[p][int(np.searchsorted(odds[p], tenant_pick[i], side="right"))]
        teams = tenants[tenant].teams
        slots = _slots(hosts[p])
        out[p].append(
            Demand(
                int(arrivals[i]), int(durations[i]), gang(int(sizes[i]), pools[p].per_node), tenant,
                teams[int(team_pick[i] * len(teams))] if teams else UNMAPPED, int(shapes[i]), "Job",
                f"run-{i:06x}", int(hosts[p].cpu_milli // slots * cpu_share[i]),
                int(hosts[p].memory_bytes // slots * memory_share[i]), elastic=True,
            )
        )  # fmt: skip


def trace_demand(
    seed: int, jobs: Sequence[TraceJob], pool: Pool, host: Node, tenants: Sequence[Tenant]
) -> list[Demand]:
    """Demands of trace jobs (times relative to the origin) on the one pool; the tenant is the job's group."""
    index = {t.teams[0]: i for i, t in enumerate(tenants)}
    shapes = trace_shapes(seed, list(jobs))
    rng = stream(seed, "trace/requests")
    cpu = host.cpu_milli // len(host.devices) * rng.uniform(0.3, 1.0, len(jobs))
    memory = host.memory_bytes // len(host.devices) * rng.uniform(0.25, 0.95, len(jobs))
    return [
        Demand(
            int(j.submit_s), max(1, round(j.duration_s)), gang(j.num_gpus, pool.per_node), index[j.group], j.group,
            int(shapes[i]), "Job", f"run-{i:06x}", int(cpu[i]), int(memory[i]),
        )
        for i, j in enumerate(jobs)
    ]  # fmt: skip
