"""Books of a simulation from the places of its gangs alone: no device, node, domain or quota is over.

Belongs here: what may never be, summed anew. Not here: worlds and their simulation (`random_worlds.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from random_worlds import Simulation

from scheduler.cycle import Decisions
from scheduler.model import MILLI, Kind, Queue, demand, full, least


def nothing_over(sim: Simulation, _: Decisions) -> None:
    """No device, node, flavor, domain or quota is over, and every gang is whole."""
    devices: dict[tuple[int, int], int] = {}
    hosts: dict[int, list[int]] = {}
    held: dict[tuple[str, Kind], int] = {}
    for job, placement in sim.running.values():
        counts = placement.counts(job)
        assert all(low <= n <= high for low, n, high in zip(least(job), counts, full(job), strict=True)), "partial"
        assert job.is_elastic or counts == full(job), "partial"
        for pod in placement.pods:
            node, shape = sim.world.nodes[pod.node], job.roles[pod.role].shape
            assert node.flavor == placement.flavor, "flavor"
            assert job.accelerators is None or node.flavor in job.accelerators, "flavor"
            assert sum(m for _, m in pod.devices) == shape.gpu_milli, "partial"
            assert all(d < node.gpus for d, _ in pod.devices), "device"
            for d, milli in pod.devices:
                assert milli == MILLI or shape.gpu_milli < MILLI, "share"
                devices[pod.node, d] = devices.get((pod.node, d), 0) + milli
            host = hosts.setdefault(pod.node, [0, 0])
            host[0] += shape.cpu_milli
            host[1] += shape.memory_mib
        if job.topology is not None and job.topology.is_required:
            assert len({sim.world.nodes[p.node].labels[job.topology.key] for p in placement.pods}) == 1, "domain"
        for kind, amount in demand(job, counts, placement.flavor).items():
            held[job.queue, kind] = held.get((job.queue, kind), 0) + amount
    assert all(milli <= MILLI for milli in devices.values()), "device over"
    for i, (cpu, memory) in hosts.items():
        assert cpu <= sim.world.nodes[i].cpu_milli and memory <= sim.world.nodes[i].memory_mib, "node over"
    quotas_kept(sim.world.queues, held)


def quotas_kept(queues: Sequence[Queue], held: dict[tuple[str, Kind], int]) -> None:
    """Every queue is within its quota, or borrows what others of its cohort lend, within both limits."""
    for q in queues:
        for kind, quota in q.quotas.items():
            beyond = held.get((q.name, kind), 0) - quota.nominal
            if beyond > 0:
                assert q.cohort, "quota over"
                assert quota.borrowing_limit is None or beyond <= quota.borrowing_limit, "quota over"
    for cohort in {q.cohort for q in queues if q.cohort}:
        members = [q for q in queues if q.cohort == cohort]
        for kind in {k for q in members for k in q.quotas}:
            quotas = [(q.quotas[kind], held.get((q.name, kind), 0)) for q in members if kind in q.quotas]
            borrowed = sum(max(n - q.nominal, 0) for q, n in quotas)
            lent = sum(
                min(max(q.nominal - n, 0), q.nominal if q.lending_limit is None else q.lending_limit) for q, n in quotas
            )
            assert borrowed <= lent, "cohort over"
