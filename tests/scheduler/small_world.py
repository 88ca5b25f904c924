"""Small fleets, jobs and replays for the tests of the queue. Times in seconds or hours, GPUs in whole devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.cluster import Cluster
from scheduler.cycle import Decisions, Scheduler
from scheduler.model import GPU, HOUR_US, MILLI, SECOND_US, Job, Node, Queue, Quota, Role, Shape
from scheduler.placement.bestfit import place
from scheduler.policy import POLICIES, Policy
from scheduler.predict import Exact
from scheduler.replay.engine import NodeFault, Outcome, TraceRun, replay
from scheduler.usage import Usage

FLAVOR = "A100"
# run times are known here
OURS = POLICIES["strandline"].without(caution=1)


def nodes(*sizes: int) -> list[Node]:
    """Nodes n0, n1, ... of so many GPUs."""
    return [Node(f"n{i}", FLAVOR, gpus) for i, gpus in enumerate(sizes)]


def queues(cohort: str = "all", **gpus: int | None) -> list[Queue]:
    """A queue by name with so many guaranteed GPUs; None: no quota."""
    return [
        Queue(n, cohort=cohort, quotas={} if g is None else {(GPU, FLAVOR): Quota(g * MILLI)}) for n, g in gpus.items()
    ]


def job(name: str, queue: str = "a", pods: int = 1, gpus: int = 1, *, at_s: int = 0, **more: Any) -> Job:
    """A gang of equal pods; `least`: its min count; `milli`: a share of one GPU instead."""
    least, milli = more.pop("least", None), more.pop("milli", gpus * MILLI)
    host = {k: more.pop(k) for k in ("cpu_milli", "memory_mib") if k in more}
    return Job(name, queue, queue, (Role("worker", Shape(milli, **host), pods, least),), at_s * SECOND_US, **more)


def scheduler(fleet: Sequence[Node], of: Sequence[Queue], policy: Policy = OURS) -> Scheduler:
    """An empty queue over a fleet."""
    gpus = sum(n.gpus for n in fleet) * MILLI
    return Scheduler(Cluster(fleet), Usage({q.name: q for q in of}, {(GPU, FLAVOR): gpus}), policy, place)


def started(queue: Scheduler, *jobs: Job, now_s: int = 0, run_h: int = 100) -> Decisions:
    """Submit jobs and run a cycle; each is predicted to run `run_h`."""
    for j in jobs:
        queue.submit(j, run_h * HOUR_US)
    return queue.cycle(now_s * SECOND_US)


def ids(items: Sequence[Any]) -> list[str]:
    """Job ids of starts, evictions or reservations."""
    return [i.job.job_id for i in items]


def run(
    fleet: Sequence[Node], of: Sequence[Queue], jobs: Sequence[tuple[Job, float]], policy: Policy = OURS,
    faults: Sequence[NodeFault] = (),
) -> tuple[Outcome, Scheduler]:  # fmt: skip
    """Replay jobs with their run times in hours."""
    runs = sorted((TraceRun(j, round(h * HOUR_US)) for j, h in jobs), key=lambda r: (r.job.submit_us, r.job.job_id))
    queue = scheduler(fleet, of, policy)
    return replay(runs, queue, Exact({r.job.job_id: r.duration_us for r in runs}), faults=faults), queue


def steps(out: Outcome, name: str) -> list[tuple[float, str]]:
    """(second, step) of a job's trail."""
    return [(s.at_us / SECOND_US, s.what) for s in out.trail if s.job_id == name]
