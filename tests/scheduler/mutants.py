"""Schedulers with one mechanism taken out, to show that each property sees it missing, and how that is shown."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from random_worlds import ours

from scheduler.cluster import Cluster, Undo
from scheduler.cycle import Decisions, Scheduler
from scheduler.model import Ask, Job, Kind, Placement
from scheduler.pending import Bucket, Waiting
from scheduler.placement.bestfit import place
from scheduler.policy import Policy
from scheduler.reservations import Reservation
from scheduler.room import Room
from scheduler.usage import Usage

# How many worlds may pass before the missing mechanism must have shown.
_MOST_WORLDS = 1500


def fails_on(worlds: st.SearchStrategy[Any], holds: Callable[[Any], None]) -> None:
    """The property fails on some world."""

    @settings(
        max_examples=_MOST_WORLDS, deadline=None, phases=[Phase.generate], derandomize=True, database=None,
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    @given(worlds)
    def tried(world: Any) -> None:
        holds(world)

    with pytest.raises((AssertionError, ValueError, KeyError, IndexError, Flaky)):
        tried()


class _Trusting(Cluster):
    """Charges whatever it is told to."""

    def _check(self, job: Job, placement: Placement) -> None:
        return


def overlapping(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """Gangs are placed as on an empty fleet, whatever runs."""
    trusting = _Trusting(cluster.nodes)

    def blind(cluster: Cluster, ask: Ask, room: Room) -> Placement | None:
        empty = cluster.emptied()
        return place(empty, ask, empty.room())

    return Scheduler(trusting, usage, policy, blind)


def hostless(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """CPU and memory of the nodes are taken for endless."""
    trusting = _Trusting(cluster.nodes)
    trusting.cpu[:] = trusting.memory[:] = 1 << 40
    return Scheduler(trusting, usage, policy, place)


def partial(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """A gang starts with the pods that found room."""

    def some(cluster: Cluster, ask: Ask, room: Room) -> Placement | None:
        for fewer in range(max(ask.counts) + 1):
            counts = tuple(max(n - fewer, 1) for n in ask.counts)
            if (found := place(cluster, replace(ask, counts=counts), room)) is not None:
                return found
        return None

    return Scheduler(cluster, usage, policy, some)


class _Generous(Scheduler):
    def may_hold(self, job: Job, amounts: Mapping[Kind, int]) -> bool:
        return True


def quotaless(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """Quota is never asked."""
    return _Generous(cluster, usage, policy, place)


def leaking(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """What a gang of several pods held is given back for all but one of them."""
    forget = cluster.forget

    def leaky(job_id: str) -> Undo:
        job, placement = cluster.placements[job_id]
        undo = forget(job_id)
        if len(placement.pods) > 1:
            cluster._charge(job, replace(placement, pods=placement.pods[:1]), -1)
        return undo

    cluster.forget = leaky  # type: ignore[method-assign]
    return ours(cluster, usage, policy)


def unreserved(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """Backfill does not look at reservations."""
    queue = ours(cluster, usage, policy)
    queue.book.allowed = lambda *_, **__: cluster.room()  # type: ignore[method-assign]
    return queue


def random_ties(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """Nodes are looked at in a random order."""
    draw = random.SystemRandom()

    def tossed(cluster: Cluster, ask: Ask, room: Room) -> Placement | None:
        closed = [n for n in range(len(cluster.nodes)) if draw.random() < 0.5]
        before = cluster.is_schedulable.copy()
        cluster.is_schedulable[closed] = False
        found = place(cluster, ask, room)
        cluster.is_schedulable[:] = before
        return found or place(cluster, ask, room)

    return Scheduler(cluster, usage, policy, tossed)


class _Forgetful(Scheduler):
    def _queue(self, now: int, done: Decisions, buckets: Iterable[Bucket], again: Iterable[Waiting] = ()) -> None:
        self._arrived(now, done)

    def _reserved(self, now: int, done: Decisions) -> list[Waiting]:
        return []


def forgetful(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """Who did not start on arrival is never looked at again."""
    return _Forgetful(cluster, usage, policy, place)


def one_bucket(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """Jobs of all shapes of a queue share a bucket."""
    queue = ours(cluster, usage, policy)
    add = queue.pending.add

    def careless(waiting: Waiting) -> Bucket:
        waiting.job.__dict__["shape_key"] = ()
        return add(waiting)

    queue.pending.add = careless  # type: ignore[method-assign]
    return queue


def by_name(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """A gang of one pod may only go on the node whose name is the lowest."""
    lowest = min(range(len(cluster.nodes)), key=lambda i: cluster.nodes[i].name)

    def favouring(cluster: Cluster, ask: Ask, room: Room) -> Placement | None:
        found = place(cluster, ask, room)
        is_wrong = found is not None and len(found.pods) == 1 and found.pods[0].node != 0 and lowest == 0
        return None if is_wrong else found

    return Scheduler(cluster, usage, policy, favouring)


class _PlanningAnew(Scheduler):
    def _late(self, known: Reservation, barred: np.ndarray, now: int) -> Reservation | None:
        return None


def planning_anew(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """A reservation whose start has passed is planned anew, and backfill goes on until then."""
    return _PlanningAnew(cluster, usage, policy, place)


def misplaced(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """A job of which another run time is believed keeps its old place in its bucket."""
    queue = ours(cluster, usage, policy)

    def careless(job_id: str, predicted_us: int) -> Waiting:
        waiting = replace(queue.pending.waiting[job_id], predicted_us=max(predicted_us, 1))
        queue.pending.waiting[job_id] = waiting
        return waiting

    queue.pending.repredict = careless  # type: ignore[method-assign]
    return queue


class _Deaf(Scheduler):
    def repredict(self, predicted_us: Mapping[str, int]) -> None:
        return


def deaf(cluster: Cluster, usage: Usage, policy: Policy) -> Scheduler:
    """What is believed later of a job is not heard."""
    return _Deaf(cluster, usage, policy, place)
