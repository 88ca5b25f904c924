"""A reservation is a promise: with exact durations no job starts later than it was first told, and nobody starves."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import mutants
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_worlds import OURS, Coming, Make, World, examples, ours, simulate, worlds

from scheduler.model import MILLI, SECOND_US, Job, Node, Queue, Role, Shape
from scheduler.policy import POLICIES, Policy

POLICY: dict[str, Policy] = {
    "strandline": OURS,
    "no ageing": OURS.without(age_limit_us=None),
    "unsorted": OURS.without(by_share=False, by_duration=False),
    "conservative": POLICIES["conservative"],
    "easy": POLICIES["easy"],
}
# The load of smaller jobs, and how long it lasts: endless for whoever waits for less.
_LOAD, _LONG_S, _UNTIL_S = 0.95, 60, 1000
# At this load a backlog is there for twenty times as long as it took to come.
_BACKLOG_S = 200


def promises_kept(world: World, make: Make = ours, policy: Policy = OURS) -> None:
    """Whoever was promised a start has started by then."""
    past = simulate(world, policy, make)
    late = {j: (past.started.get(j), at) for j, at in past.promised.items() if past.started.get(j, 1 << 60) > at}
    assert not late


@pytest.mark.parametrize("name", POLICY)
def test_no_reserved_job_starts_later_than_promised(name: str) -> None:
    @examples(80)
    @given(worlds())
    def holds(world: World) -> None:
        promises_kept(world, ours, POLICY[name])

    holds()


def test_a_late_start_shows_where_backfill_ignores_reservations() -> None:
    mutants.fails_on(worlds(), lambda world: promises_kept(world, mutants.unreserved))


# GPUs of the nodes, seed of the load, weight of the big job's queue, when it comes (s).
Crowd = tuple[list[int], int, int, int]
crowds: st.SearchStrategy[Crowd] = st.tuples(
    st.lists(st.sampled_from([2, 4]), min_size=1, max_size=3), st.integers(0, 1 << 30), st.integers(0, 2),
    st.integers(50, 300),
)  # fmt: skip


def crowd_of(crowd: Crowd, backlog_s: int = 0) -> World:
    """An endless load of smaller jobs, and among them one that needs the whole fleet.

    What would have come in the `backlog_s` before the beginning comes at it, so that some always wait.
    """
    sizes, seed, weight, at_s = crowd
    nodes = tuple(Node(f"n{i}", "A", gpus) for i, gpus in enumerate(sizes))
    draw = random.Random(seed)
    coming, at, k = [], -float(backlog_s), 0
    while at < _UNTIL_S:
        gpus, run = draw.randint(1, max(sum(sizes) // 4, 1)), draw.randint(1, _LONG_S)
        job = Job(f"s{k:05d}", "t", "small", (Role("w", Shape(MILLI), gpus),), max(int(at), 0) * SECOND_US)
        coming.append(Coming(job, run, run))
        at += gpus * run / (_LOAD * sum(sizes))
        k += 1
    whole = tuple(Role(n.name, Shape(n.gpus * MILLI), 1) for n in nodes)
    big = Coming(Job("big", "t", "big", whole, at_s * SECOND_US), 30, 30)
    return World(nodes, (Queue("small"), Queue("big", weight)), ()).with_jobs([*coming, big])


def nobody_starves(
    crowd: Crowd, policy: Policy = OURS, make: Make = ours, guess: Callable[[int], int] | None = None,
    backlog_s: int = 0,
) -> None:  # fmt: skip
    """The big job starts within its age limit + longest remaining run + aged work ahead / capacity.

    The limit is that of our policy, whatever the one tried has: for a fleet of 8 GPUs and more that of a wide job.
    Where run times are guessed, the wait for what is believed to remain comes first; it counts from the promise.
    """
    world = crowd_of(crowd, backlog_s)
    if guess is not None:
        world = world.with_jobs([replace(c, predicted_s=guess(c.run_s)) for c in world.coming])
    total = sum(n.gpus for n in world.nodes)
    past = simulate(world, policy, make)
    big = next(c for c in world.coming if c.job.job_id == "big")
    limit_us = OURS.age_us(big.job)
    assert limit_us is not None
    aged_at = big.at_s + limit_us // SECOND_US
    ahead = sum(
        c.run_s * c.job.gpu_milli // MILLI
        for c in world.coming
        if c.at_s <= big.at_s and c is not big and past.started.get(c.job.job_id, 1 << 60) >= aged_at
    )
    begin = aged_at if guess is None else max(aged_at, past.promised.get("big", 0))
    assert past.started.get("big", 1 << 60) <= begin + _LONG_S + -(-ahead // total)


def test_a_big_job_starts_among_endless_smaller_ones() -> None:
    @examples(8)
    @given(crowds)
    def holds(crowd: Crowd) -> None:
        nobody_starves(crowd)

    holds()


GUESSES: dict[str, Callable[[int], int]] = {
    "always short": lambda _: 1,
    "a quarter": lambda run: max(run // 4, 1),
    "wrong way": lambda run: _LONG_S + 1 - run,
    "five times": lambda run: 5 * run,
}


@pytest.mark.parametrize("name", GUESSES)
def test_a_big_job_starts_though_run_times_are_guessed_wrong(name: str) -> None:
    @examples(4)
    @given(crowds)
    def holds(crowd: Crowd) -> None:
        nobody_starves(crowd, guess=GUESSES[name])

    holds()


def test_it_starves_where_a_late_reservation_is_planned_anew() -> None:
    mutants.fails_on(crowds, lambda crowd: nobody_starves(crowd, make=mutants.planning_anew, guess=lambda _: 1))


def test_it_starves_without_reservations() -> None:
    mutants.fails_on(crowds, lambda crowd: nobody_starves(crowd, make=mutants.unreserved))


WIDE: st.SearchStrategy[Crowd] = st.tuples(
    st.just([4, 4]), st.integers(0, 1 << 30), st.integers(0, 2), st.integers(50, 300)
)


def test_a_wide_job_starts_by_the_age_limit_of_wide_jobs() -> None:
    @examples(4)
    @given(WIDE)
    def holds(crowd: Crowd) -> None:
        big = next(c.job for c in crowd_of(crowd).coming if c.job.job_id == "big")
        assert OURS.age_us(big) == OURS.wide_age_limit_us
        nobody_starves(crowd)
        nobody_starves(crowd, backlog_s=_BACKLOG_S)

    holds()


@pytest.mark.parametrize("out", [{"wide_age_limit_us": None}, {"age_limit_us": None}])
def test_it_starves_without_ageing(out: dict[str, object]) -> None:
    mutants.fails_on(WIDE, lambda crowd: nobody_starves(crowd, OURS.without(**out), backlog_s=_BACKLOG_S))


def test_it_starves_in_a_plain_order() -> None:
    shortest_first = OURS.without(backfill="none", age_limit_us=None, by_share=False)
    mutants.fails_on(crowds, lambda crowd: nobody_starves(crowd, shortest_first))
