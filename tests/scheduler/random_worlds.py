"""Random fleets, queues and job streams for the properties of the queue, and a simulation that checks every step.

The simulation keeps books of its own, from the places of the gangs alone: what a device, a node or a queue holds is
summed anew after every cycle (`books.py`) and never read from the scheduler. Times are whole seconds from 0.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from scheduler.cluster import Cluster
from scheduler.cycle import Decisions, Scheduler
from scheduler.elastic import stretched_us
from scheduler.model import (
    CPU,
    GPU,
    MEMORY,
    MILLI,
    SECOND_US,
    Job,
    Kind,
    Node,
    Placement,
    Queue,
    Quota,
    Role,
    Shape,
    Topology,
)  # fmt: skip
from scheduler.placement.bestfit import place
from scheduler.policy import POLICIES, Policy
from scheduler.predict import Exact, History, Predictor
from scheduler.usage import Usage

OURS = POLICIES["strandline"].without(
    with_preemption=False, age_limit_us=60 * SECOND_US, wide_age_limit_us=30 * SECOND_US, caution=1
)
# Examples of every property: a few by default, thousands where somebody has the time.
EXAMPLES = int(os.environ.get("STRANDLINE_EXAMPLES", "0"))
UNBOUNDED = 1 << 40


def examples(by_default: int) -> settings:
    """Settings of a property: its own number of examples, or that of the environment."""
    return settings(
        max_examples=EXAMPLES or by_default, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True
    )


@dataclass(frozen=True)
class Coming:
    """A job of a stream: how long it runs, and what is predicted of it (seconds)."""

    job: Job
    run_s: int
    predicted_s: int

    @property
    def at_s(self) -> int:
        """When it is submitted."""
        return self.job.submit_us // SECOND_US


@dataclass(frozen=True)
class World:
    """A fleet, its queues, and the jobs that come, in order of submission and id."""

    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    coming: tuple[Coming, ...]

    def with_jobs(self, coming: Sequence[Coming]) -> World:
        """The same fleet with other jobs."""
        return replace(self, coming=tuple(sorted(coming, key=lambda c: (c.job.submit_us, c.job.job_id))))


@st.composite
def worlds(
    draw: st.DrawFn,
    *,
    is_plain: bool = False,
    has_quotas: bool = True,
    has_topology: bool = True,
    is_exact: bool = True,
    has_elastic: bool = False,
    most_jobs: int = 14,
) -> World:
    """Worlds of up to 4 nodes and 3 queues. `is_plain`: one flavor, whole devices, no CPU or memory, no quota."""
    flavors = ("A",) if is_plain else ("A", "B")[: draw(st.integers(1, 2))]
    is_bounded = not is_plain and draw(st.booleans())
    nodes = []
    for i in range(draw(st.integers(1, 4))):
        labels = {"rack": f"r{draw(st.integers(0, 1))}"} if has_topology and not is_plain else {}
        cpu, memory = (draw(st.integers(2, 12)), draw(st.integers(2, 12))) if is_bounded else (UNBOUNDED, UNBOUNDED)
        nodes.append(Node(f"n{i}", draw(st.sampled_from(flavors)), draw(st.integers(1, 4)), cpu, memory, labels))
    fleet = {f: sum(n.gpus for n in nodes if n.flavor == f) for f in flavors}
    queues = []
    for i in range(draw(st.integers(1, 3))):
        quotas: dict[Kind, Quota] = {}
        if has_quotas and not is_plain:
            for flavor in flavors:
                if draw(st.booleans()):
                    limits = st.one_of(st.none(), st.integers(0, 4).map(lambda n: n * MILLI))
                    quotas[GPU, flavor] = Quota(draw(st.integers(0, fleet[flavor])) * MILLI, draw(limits), draw(limits))
        cohort = draw(st.sampled_from(("", "c"))) if quotas else ""
        queues.append(Queue(f"q{i}", draw(st.integers(0, 3)), cohort, quotas))
    coming = []
    for i in range(draw(st.integers(1, most_jobs))):
        coming.append(
            _job(draw, f"j{i:02d}", queues, flavors, is_plain, is_bounded, has_topology, is_exact, has_elastic)
        )
    return World(tuple(nodes), tuple(queues), ()).with_jobs(coming)


def _job(
    draw: st.DrawFn, name: str, queues: Sequence[Queue], flavors: Sequence[str], is_plain: bool, is_bounded: bool,
    has_topology: bool, is_exact: bool, has_elastic: bool,
) -> Coming:  # fmt: skip
    roles = []
    liked = () if is_plain else draw(st.sampled_from([(), ("A",), ("B", "A")]))
    for r in range(1 if is_plain else draw(st.integers(1, 2))):
        milli = draw(st.integers(1, 4)) * MILLI
        if not is_plain:
            milli = draw(st.sampled_from([milli, milli, milli, 300, 500, 700, 0 if is_bounded else 500]))
        cpu, memory = (draw(st.integers(0, 4)), draw(st.integers(0, 4))) if is_bounded else (0, 0)
        count = draw(st.integers(1, 3))
        least = draw(st.integers(1, count)) if has_elastic and draw(st.booleans()) else None
        roles.append(Role(f"r{r}", Shape(milli, cpu, memory, liked), count, least))
    topology = None
    if has_topology and not is_plain and draw(st.integers(0, 3)) == 0:
        topology = Topology("rack", is_required=draw(st.booleans()))
    run = draw(st.integers(1, 40))
    predicted = run if is_exact else draw(st.integers(1, 60))
    job = Job(
        name, "t", draw(st.sampled_from(list(queues))).name, tuple(roles), draw(st.integers(0, 40)) * SECOND_US,
        priority=draw(st.sampled_from([0, 0, 5])),
        is_critical=draw(st.integers(0, 9)) == 0, topology=topology,
    )  # fmt: skip
    return Coming(job, run, predicted)


Make = Callable[[Cluster, Usage, Policy], Scheduler]


def ours(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """The scheduler as it is."""
    return Scheduler(cluster, usage, policy, place)


def capacity(nodes: Sequence[Node]) -> dict[Kind, int]:
    """What the fleet has of every kind."""
    totals: dict[Kind, int] = {}
    for n in nodes:
        for resource, amount in ((GPU, n.gpus * MILLI), (CPU, n.cpu_milli), (MEMORY, n.memory_mib)):
            totals[resource, n.flavor] = totals.get((resource, n.flavor), 0) + amount
    return totals


@dataclass
class Past:
    """What happened: starts and first promises by job id (seconds), decisions by instant, what can never run."""

    started: dict[str, int] = field(default_factory=dict)
    promised: dict[str, int] = field(default_factory=dict)
    log: list[tuple[int, tuple[tuple[str, Placement], ...], tuple[tuple[str, int], ...]]] = field(default_factory=list)
    impossible: set[str] = field(default_factory=set)

    def before(self, at_s: int) -> list[object]:
        """Everything decided before an instant."""
        return [entry for entry in self.log if entry[0] < at_s]


class Simulation:
    """One world under one policy, second by second; `check` sees the simulation after every cycle."""

    def __init__(
        self, world: World, policy: Policy, make: Make = ours, predictor: Predictor | None = None,
        check: Callable[[Simulation, Decisions], None] | None = None,
    ) -> None:  # fmt: skip
        self.world, self.policy = world, policy
        self.cluster = Cluster(world.nodes)
        self.usage = Usage({q.name: q for q in world.queues}, capacity(world.nodes), policy.half_life_us)
        self.queue = make(self.cluster, self.usage, policy)
        self.predictor, self.check = predictor, check
        self.running: dict[str, tuple[Job, Placement]] = {}
        self.now = 0
        self.past = Past()

    def run(self) -> Past:
        """To the end of all jobs that start; nothing comes from outside, so whoever waits then waits for ever."""
        coming, ends, past = list(self.world.coming), [], self.past
        runs = {c.job.job_id: c for c in coming}
        while coming or ends:
            self.now = min([c.at_s for c in coming[:1]] + [e[0] for e in ends[:1]])
            while ends and ends[0][0] == self.now:
                job_id = heapq.heappop(ends)[1]
                del self.running[job_id]
                self.queue.ended(job_id, self.now * SECOND_US)
                if self.predictor is not None:
                    self.predictor.ended(runs[job_id].job, runs[job_id].run_s * SECOND_US)
            while coming and coming[0].at_s == self.now:
                self._submit(coming.pop(0))
            if self.predictor is not None:
                self.queue.repredict(self.predictor.revised(self.now * SECOND_US))
            done = self.queue.cycle(self.now * SECOND_US)
            for start in done.starts:
                job_id = start.job.job_id
                assert job_id not in past.started
                self.running[job_id] = (start.job, start.placement)
                past.started[job_id] = self.now
                if self.predictor is not None:
                    self.predictor.started(start.job, self.now * SECOND_US)
                run_us = stretched_us(start.job, runs[job_id].run_s * SECOND_US, start.placement.gpu_milli)
                heapq.heappush(ends, (self.now + -(-run_us // SECOND_US), job_id))
            for r in done.reserved:
                past.promised.setdefault(r.job.job_id, -(-r.start_us // SECOND_US))
            if done.starts or done.reserved:
                starts = tuple((s.job.job_id, s.placement) for s in done.starts)
                past.log.append((self.now, starts, tuple((r.job.job_id, r.start_us) for r in done.reserved)))
            if self.check is not None:
                self.check(self, done)
        return past

    def _submit(self, c: Coming) -> None:
        if self.queue.impossible(c.job) is not None:
            self.past.impossible.add(c.job.job_id)
            return
        if self.predictor is not None:
            self.predictor.submitted(c.job)
        predicted = c.predicted_s * SECOND_US if self.predictor is None else self.predictor.predict(c.job)
        self.queue.submit(c.job, predicted)


def simulate(world: World, policy: Policy = OURS, make: Make = ours, **more: object) -> Past:
    """What happens in a world."""
    return Simulation(world, policy, make, **more).run()  # type: ignore[arg-type]


def exact(world: World) -> Exact:
    """A predictor that knows."""
    return Exact({c.job.job_id: c.run_s * SECOND_US for c in world.coming})


def history() -> History:
    """A predictor that learns."""
    return History()
