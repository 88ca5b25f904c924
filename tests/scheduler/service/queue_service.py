"""Small queue services for the tests: over a fake world, with a log in a temporary folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scheduler.model import GPU, MILLI, SECOND_US, Job, Node, Queue, Quota, Role, Shape
from scheduler.placement.bestfit import place
from scheduler.policy import POLICIES, Policy
from scheduler.service.codec import Template
from scheduler.service.core import QueueService
from scheduler.service.log import EventLog
from scheduler.service.worlds import FakeWorld

FLAVOR = "H100"


def world(*sizes: int) -> FakeWorld:
    """Nodes n0, n1, ... of so many GPUs."""
    return FakeWorld(tuple(Node(f"n{i}", FLAVOR, gpus) for i, gpus in enumerate(sizes)))


def queues(**guaranteed: int | None) -> dict[str, Queue]:
    """Queues of one cohort with so many guaranteed GPUs; None: no quota."""
    return {
        name: Queue(name, cohort="all", quotas={} if n is None else {(GPU, FLAVOR): Quota(n * MILLI)})
        for name, n in guaranteed.items()
    }


def service(
    folder: Path, fleet: FakeWorld, of: dict[str, Queue] | None = None, policy: Policy = POLICIES["strandline"]
) -> QueueService:
    """A service whose log is in the folder."""
    return QueueService(EventLog(folder / "queue.db"), fleet, policy, of or queues(a=None, b=None), placer=place)


def reopened(queue: QueueService, folder: Path, fleet: FakeWorld) -> QueueService:
    """What a restart after kill -9 finds: the log and the world, nothing else."""
    queue.log.close()
    return service(folder, fleet, queue.queues, queue.policy)


def submit(
    queue: QueueService, name: str, team: str = "a", gpus: int = 1, pods: int = 1, run_s: float | None = 60, **more: Any
) -> str:
    """Submit a gang of equal pods under its name as id; returns the id."""
    least = more.pop("least", None)
    job = Job(
        name,
        team,
        team,
        (Role("worker", Shape(gpus * MILLI), pods, least),),
        queue.now,
        limit_us=3600 * SECOND_US,
        **more,
    )
    annotations = {} if run_s is None else {"strandline.io/run-seconds": str(run_s)}
    queue.submit(job, Template(annotations=annotations), name)
    return name


def states(queue: QueueService, *names: str) -> list[str]:
    """State of each job."""
    return [queue.records.entries[n].life.state for n in names]


def kinds(queue: QueueService, job_id: str | None = None) -> list[str]:
    """Kinds of the events of a job, or of all, as the log has them."""
    return [e.kind for e in queue.log.events(job_id=job_id)]


def pods_of(fleet: FakeWorld, job_id: str) -> Sequence[str]:
    """Names of a job's pods in the world."""
    return sorted(n for n, p in fleet.pods.items() if p.job_id == job_id)
