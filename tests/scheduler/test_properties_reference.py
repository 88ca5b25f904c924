"""Buckets, arrays and early exits decide what looking at every job in order decides; on one node, the scalar pool too.

Conservative backfill is not the scalar pool's: a plan keeps what others have reserved for a part of its run from all of
its run, which costs the same beside many reservations, and now and then comes out later.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import replace

import mutants
import pytest
from hypothesis import given
from naive_queue import NaiveQueue, Need
from random_worlds import OURS, Coming, Make, Simulation, World, examples, ours, worlds

from scheduler.model import MILLI, SECOND_US, Job, Node, Queue, Role, Shape
from scheduler.policy import POLICIES, Policy
from scheduler.replay.scalar import ScalarJob, run_scalar
from scheduler.reservations import devices_by_node

POLICY: dict[str, Policy] = {
    "strandline": OURS,
    "no ageing": OURS.without(age_limit_us=None),
    "fine shares": OURS.without(share_step_ppm=1),
    "shares by half": OURS.without(share_step_ppm=500_000),
    "no priority": OURS.without(by_priority=False),
    "no duration": OURS.without(by_duration=False),
    "by submission": OURS.without(by_duration=False, by_share=False),
    "fifo": POLICIES["fifo"],
    "easy": POLICIES["easy"],
    "conservative": POLICIES["conservative"],
}


def naive(world: World, policy: Policy) -> list[tuple[int, list[tuple[str, Need]]]]:
    """What the plain queue starts, by second."""
    queue = NaiveQueue(world.nodes, world.queues, policy)
    total = [n.gpus for n in world.nodes]
    coming, log = list(world.coming), []
    ends: list[tuple[int, str]] = []
    while coming or ends:
        now = min([c.at_s for c in coming[:1]] + [e[0] for e in ends[:1]])
        while ends and ends[0][0] == now:
            queue.ended(heapq.heappop(ends)[1])
        while coming and coming[0].at_s == now:
            c = coming.pop(0)
            if sum(n // r.shape.gpus for n in total for r in c.job.roles) >= sum(r.count for r in c.job.roles):
                queue.submit(c.job, c.run_s * SECOND_US)
        started = queue.cycle(now * SECOND_US)
        for name, _ in started:
            run = next(c.run_s for c in world.coming if c.job.job_id == name)
            heapq.heappush(ends, (now + run, name))
        if started:
            log.append((now, started))
    return log


def decides_alike(world: World, make: Make = ours, policy: Policy = OURS) -> None:
    """The same jobs start at the same time, in the same order, on the same nodes."""
    past = Simulation(world, policy, make).run()
    found = [(at, [(j, devices_by_node(p)) for j, p in starts]) for at, starts, _ in past.log if starts]
    assert found == naive(world, policy)


@pytest.mark.parametrize("name", POLICY)
def test_every_shortcut_decides_as_the_plain_queue(name: str) -> None:
    @examples(60)
    @given(worlds(is_plain=True, most_jobs=20))
    def holds(world: World) -> None:
        decides_alike(world, ours, POLICY[name])

    holds()


def one(name: str, queue: str, at_s: int, run_s: int, *, is_critical: bool = False) -> Coming:
    """A job of one GPU."""
    role = Role("r", Shape(MILLI), 1)
    return Coming(Job(name, "t", queue, (role,), at_s * SECOND_US, is_critical=is_critical), run_s, run_s)


SMALLEST: dict[str, tuple[int, dict[str, int], list[Coming]]] = {
    "queues of weight 0 are compared in steps of their own": (
        2, {"a": 0, "b": 0}, [one("0", "a", 0, 1), one("1", "a", 0, 1, is_critical=True), one("2", "b", 0, 1)]
    ),
    "who comes at one instant is asked in an order that moves with each start": (
        1, {"a": 0, "b": 0},
        [one("0", "a", 0, 1), one("1", "a", 2, 1, is_critical=True), one("2", "a", 2, 1), one("3", "b", 2, 1)],
    ),
    "a critical job that has aged comes before one that has not": (
        1, {"a": 1}, [one(f"{at}{k}", "a", at, run, is_critical=True)
                      for at, runs in ((0, (9, 28, 1, 28, 22)), (11, (1, 1))) for k, run in enumerate(runs)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SMALLEST)
def test_the_smallest_worlds_that_once_differed(name: str) -> None:
    nodes, weights, coming = SMALLEST[name]
    fleet = tuple(Node(f"n{i}", "A", 1) for i in range(nodes))
    decides_alike(World(fleet, tuple(Queue(n, w) for n, w in weights.items()), ()).with_jobs(coming))


@pytest.mark.parametrize("make", [mutants.one_bucket, mutants.forgetful, mutants.unreserved])
def test_a_wrong_shortcut_shows(make: Make) -> None:
    mutants.fails_on(worlds(is_plain=True, most_jobs=20), lambda world: decides_alike(world, make))


def starts(world: World, policy: str) -> Mapping[str, int]:
    """Starts (s) on the scalar pool."""
    jobs = [ScalarJob(c.job.submit_us, c.run_s * SECOND_US, c.job.gpu_milli, c.run_s * SECOND_US) for c in world.coming]
    found = run_scalar(jobs, world.nodes[0].gpus * MILLI, policy)  # type: ignore[arg-type]
    return {c.job.job_id: int(at) // SECOND_US for c, at in zip(world.coming, found, strict=True) if at >= 0}


@pytest.mark.parametrize("policy", ["fifo", "easy"])
def test_on_one_node_it_is_the_scalar_pool(policy: str) -> None:
    @examples(60)
    @given(worlds(is_plain=True, most_jobs=20))
    def holds(world: World) -> None:
        one = replace(world, nodes=(Node("n0", "A", sum(n.gpus for n in world.nodes)),))
        assert Simulation(one, POLICIES[policy]).run().started == starts(one, policy)

    holds()
