"""Predictions change while jobs wait and run: the books stay right, nobody is forgotten, nothing comes from later.

Beside the true predictor there is one that says anything at any time; reservations that come out late by it move to
other nodes after seconds here, where a fleet takes hours.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import mutants
import pytest
from books import nothing_over
from hypothesis import given
from hypothesis import strategies as st
from plain_cycle import plain
from random_worlds import OURS, Make, Simulation, World, examples, ours, worlds

from scheduler import cycle
from scheduler.model import SECOND_US, Job
from scheduler.policy import POLICIES, Policy
from scheduler.predict import Exact

_YOUNG = OURS.without(age_limit_us=5 * SECOND_US, wide_age_limit_us=3 * SECOND_US, wide_milli=4000)
POLICY: dict[str, Policy] = {
    "strandline": OURS,
    "young": _YOUNG,
    "cautious": _YOUNG.without(caution=4),
    "few reservations": _YOUNG.without(depth=3),
    "unsorted": OURS.without(by_share=False, by_duration=False),
    "not sticky": _YOUNG.without(is_sticky=False),
    "easy": POLICIES["easy"],
    "conservative": POLICIES["conservative"],
}
# A world, and the seed of what is said of its jobs.
Case = tuple[World, int]
cases: st.SearchStrategy[Case] = st.tuples(
    worlds(is_exact=False, has_elastic=True, most_jobs=12), st.integers(0, 1 << 30)
)


class Moody(Exact):
    """Says another run time of some job now and then, whatever the job does."""

    def __init__(self, world: World, seed: int) -> None:
        super().__init__({c.job.job_id: c.predicted_s * SECOND_US for c in world.coming})
        self._draw, self._known = random.Random(seed), dict[str, None]()

    def submitted(self, job: Job) -> None:
        """It will be talked about."""
        self._known[job.job_id] = None

    def ended(self, job: Job, duration_us: int) -> None:
        """It is over."""
        del self._known[job.job_id]

    def revised(self, now: int) -> Mapping[str, int]:
        """Any run time for about a quarter of all."""
        return {j: self._draw.randint(0, 60) * SECOND_US for j in self._known if self._draw.random() < 0.25}


@pytest.fixture(autouse=True)
def _moves_within_seconds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(cycle, "LEAST_MOVE_US", 2 * SECOND_US)
    yield


def books_are_right(case: Case, make: Make = ours, policy: Policy = OURS) -> None:
    """Nothing is ever over, every job starts and ends, and in the end nobody holds or waits for anything."""
    world, seed = case
    sim = Simulation(world, policy, make, Moody(world, seed), check=nothing_over)
    past = sim.run()
    assert set(past.started) | past.impossible == {c.job.job_id for c in world.coming}
    assert not len(sim.queue.pending) and not sim.queue.book.reservations and not sim.queue.running.believed(0)[0].size
    assert sim.usage.is_empty()
    empty = sim.cluster.emptied()
    for name in ("device_free", "whole", "cpu", "memory"):
        assert (getattr(sim.cluster, name) == getattr(empty, name)).all()


@pytest.mark.parametrize("name", POLICY)
def test_the_books_stay_right_whatever_is_predicted(name: str) -> None:
    @examples(60)
    @given(cases)
    def holds(case: Case) -> None:
        books_are_right(case, ours, POLICY[name])

    holds()


@pytest.mark.parametrize("make", [mutants.misplaced, mutants.overlapping, mutants.leaking])
def test_books_that_are_wrong_show(make: Make) -> None:
    mutants.fails_on(cases, lambda case: books_are_right(case, make))


def decides_as_plain(case: Case, make: Make = ours, policy: Policy = OURS) -> None:
    """The same decisions at the same time as without any shortcut."""
    world, seed = case
    found = Simulation(world, policy, make, Moody(world, seed)).run().log
    assert found == Simulation(world, policy, plain, Moody(world, seed)).run().log


@pytest.mark.parametrize("name", POLICY)
def test_every_shortcut_decides_as_without(name: str) -> None:
    @examples(60)
    @given(cases)
    def holds(case: Case) -> None:
        decides_as_plain(case, ours, POLICY[name])

    holds()


@pytest.mark.parametrize("make", [mutants.one_bucket, mutants.forgetful, mutants.deaf])
def test_a_wrong_shortcut_shows(make: Make) -> None:
    mutants.fails_on(cases, lambda case: decides_as_plain(case, make))
