"""The same input gives the same output; names and equal nodes do not matter, nor does what comes later."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import mutants
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_worlds import OURS, Coming, Make, Past, World, exact, examples, history, ours, simulate, worlds

from scheduler.model import SECOND_US, Job
from scheduler.policy import POLICIES, Policy
from scheduler.predict import Exact, History, Predictor

POLICY: dict[str, Policy] = {
    "strandline": OURS,
    "decayed": OURS.without(half_life_us=30 * SECOND_US),
    "easy": POLICIES["easy"],
    "conservative": POLICIES["conservative"],
}
Shuffled = tuple[World, int]
shuffled: st.SearchStrategy[Shuffled] = st.tuples(worlds(), st.integers(0, 1 << 30))


def renamed(world: World) -> World:
    """Other names in the same order."""

    def new(job: Job) -> Job:
        return replace(job, job_id=f"x{job.job_id}y")

    return world.with_jobs([replace(c, job=new(c.job)) for c in world.coming])


def ends_alike(case: Shuffled, make: Make = ours, policy: Policy = OURS) -> None:
    """Twice the same; under other names of the same order; with the jobs and queues handed over in another order."""
    world, seed = case
    past = simulate(world, policy, make)
    assert simulate(world, policy, make).log == past.log
    other = simulate(renamed(world), policy, make)
    assert {f"x{j}y": at for j, at in past.started.items()} == other.started
    draw = random.Random(seed)
    queues = draw.sample(world.queues, len(world.queues))
    coming = draw.sample(world.coming, len(world.coming))
    assert simulate(replace(world, queues=tuple(queues)).with_jobs(coming), policy, make).log == past.log


@pytest.mark.parametrize("name", POLICY)
def test_identical_input_gives_identical_output(name: str) -> None:
    @examples(40)
    @given(shuffled)
    def holds(case: Shuffled) -> None:
        ends_alike(case, ours, POLICY[name])

    holds()


def test_random_ties_show() -> None:
    mutants.fails_on(shuffled, lambda case: ends_alike(case, mutants.random_ties))


def nodes_are_equal(case: Shuffled, make: Make = ours) -> None:
    """Equal nodes in another order: as many starts of the same shape at the same time."""
    world, seed = case
    draw = random.Random(seed)
    kinds: dict[object, list[int]] = {}
    for i, n in enumerate(world.nodes):
        kinds.setdefault((n.flavor, n.gpus, n.cpu_milli, n.memory_mib, tuple(n.labels.items())), []).append(i)
    nodes = list(world.nodes)
    for places in kinds.values():
        for i, k in zip(places, draw.sample(places, len(places)), strict=True):
            nodes[i] = world.nodes[k]
    roles = {c.job.job_id: c.job.roles for c in world.coming}

    def told(past: Past) -> Counter[object]:
        return Counter((roles[j], at) for j, at in past.started.items())

    assert told(simulate(replace(world, nodes=tuple(nodes)), OURS, make)) == told(simulate(world, OURS, make))


@examples(60)
@given(shuffled)
def test_equal_nodes_may_be_swapped(case: Shuffled) -> None:
    nodes_are_equal(case)


def test_a_placement_by_name_shows() -> None:
    mutants.fails_on(shuffled, lambda case: nodes_are_equal(case, mutants.by_name))


def nothing_from_later(case: Shuffled, make_predictor: Callable[[World], Predictor]) -> None:
    """With other durations of what has not ended by T, all that is decided before T is the same."""
    world, seed = case
    draw = random.Random(seed)
    known = simulate(world, OURS, predictor=make_predictor(world))
    at = draw.randint(1, 60)

    def changed(c: Coming) -> Coming:
        started = known.started.get(c.job.job_id)
        if started is not None and started + c.run_s <= at:
            return c
        least = 1 if started is None or started >= at else at - started + 1
        return replace(c, run_s=least + draw.randint(0, 50))

    other = world.with_jobs([changed(c) for c in world.coming])
    assert simulate(other, OURS, predictor=make_predictor(other)).before(at) == known.before(at)


@examples(100)
@given(shuffled)
def test_nothing_that_ends_later_influences_a_decision(case: Shuffled) -> None:
    nothing_from_later(case, lambda _: history())


def _exact(world: World) -> Exact:
    return exact(world)


def test_a_predictor_that_knows_the_future_shows() -> None:
    mutants.fails_on(shuffled, lambda case: nothing_from_later(case, _exact))


class _Foreseeing(History):
    """Tells the true run time of whatever has come, as if its batch had shown it."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._true = {c.job.job_id: c.run_s * SECOND_US for c in world.coming}
        self._new: dict[str, int] = {}

    def submitted(self, job: Job) -> None:
        super().submitted(job)
        self._new[job.job_id] = self._true[job.job_id]

    def revised(self, now: int) -> Mapping[str, int]:
        found, self._new = {**super().revised(now), **self._new}, {}
        return found


def test_a_revision_that_knows_the_future_shows() -> None:
    mutants.fails_on(shuffled, lambda case: nothing_from_later(case, _Foreseeing))
