"""What a cycle costs, in questions to the placer: alike jobs that do not fit cost one, however many they are."""

from __future__ import annotations

import pytest

from scheduler.cluster import Cluster
from scheduler.cycle import Scheduler
from scheduler.model import Ask, Job, Node, Placement, Queue, Role, Shape
from scheduler.placement.bestfit import place
from scheduler.policy import POLICIES
from scheduler.replay.fleets import capacity
from scheduler.room import Room
from scheduler.usage import Usage

HOUR = 3600 * 1_000_000


class Counted:
    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, cluster: Cluster, ask: Ask, room: Room) -> Placement | None:
        self.asked += 1
        return place(cluster, ask, room)


def job(name: str, gpus: int, at: int = 0) -> Job:
    return Job(name, "t", "t", (Role("w", Shape(gpus * 1000), 1),), at)


def asked(policy: str, alike: int) -> tuple[int, int]:
    """Questions of the cycle in which all have come, and of one after another job has ended."""
    nodes = [Node(f"n{i}", "g", 8) for i in range(10)]
    placer = Counted()
    queue = Scheduler(Cluster(nodes), Usage({"t": Queue("t")}, capacity(nodes)), POLICIES[policy], placer)
    for i in range(10):
        queue.submit(job(f"run-{i}", 7), (2 + i) * HOUR)
    assert len(queue.cycle(0).starts) == 10
    for i in range(alike):
        queue.submit(job(f"alike-{i:04}", 8, 1 + i), (1 + i % 5) * HOUR)
    placer.asked = 0
    assert not queue.cycle(alike + 1).starts
    first, placer.asked = placer.asked, 0
    # A node that nobody may use any more: room has come, and none of it for these.
    queue.node_down("n9")
    queue.ended("run-9", alike + 2)
    assert not queue.cycle(alike + 2).starts
    return first, placer.asked


@pytest.mark.parametrize("policy", ["fifo", "easy", "strandline"])
def test_alike_jobs_that_do_not_fit_are_tested_once(policy: str) -> None:
    first, later = asked(policy, 2000)
    assert first <= 2
    # the head, which has a reservation of its own, and the first of those alike
    assert later <= 3
    assert (first, later) == asked(policy, 20)
