"""Whatever comes: no device, node or quota is over, no gang runs in part, everything ends, and nothing is left held."""

from __future__ import annotations

import mutants
import pytest
from books import nothing_over
from hypothesis import given
from random_worlds import OURS, Make, Simulation, World, examples, ours, worlds

from scheduler.policy import POLICIES

EVERY = {**POLICIES, "strandline": OURS, "decayed": OURS.without(half_life_us=30_000_000)}
EVERY = {name: policy.without(with_preemption=False) for name, policy in EVERY.items()}


def never_over(world: World, make: Make = ours, policy: str = "strandline") -> None:
    """After every cycle, by books of its own."""
    Simulation(world, EVERY[policy], make, check=nothing_over).run()


def all_end_free(world: World, make: Make = ours, policy: str = "strandline") -> None:
    """Every job that is not impossible starts, and in the end nobody holds anything."""
    sim = Simulation(world, EVERY[policy], make)
    past = sim.run()
    assert set(past.started) | past.impossible == {c.job.job_id for c in world.coming}
    assert not len(sim.queue.pending) and not sim.queue.book.reservations and not sim.queue.running.believed(0)[0].size
    assert sim.usage.is_empty() and all(sim.usage.share_ppm(q, 0) >= 0 for q in sim.usage.queues)
    empty = sim.cluster.emptied()
    for name in ("device_free", "whole", "cpu", "memory"):
        assert (getattr(sim.cluster, name) == getattr(empty, name)).all()
    assert sim.cluster.free_milli == empty.free_milli


@pytest.mark.parametrize("policy", EVERY)
def test_nothing_is_ever_over_and_no_gang_runs_in_part(policy: str) -> None:
    @examples(60)
    @given(worlds(is_exact=False, has_elastic=True))
    def holds(world: World) -> None:
        never_over(world, ours, policy)

    holds()


@pytest.mark.parametrize("make", [mutants.overlapping, mutants.hostless, mutants.partial, mutants.quotaless])
def test_it_shows_without_the_mechanism(make: Make) -> None:
    mutants.fails_on(worlds(), lambda world: never_over(world, make))


@pytest.mark.parametrize("policy", EVERY)
def test_every_job_starts_and_all_is_given_back(policy: str) -> None:
    @examples(60)
    @given(worlds(is_exact=False, has_elastic=True))
    def holds(world: World) -> None:
        all_end_free(world, ours, policy)

    holds()


@pytest.mark.parametrize("make", [mutants.leaking, mutants.forgetful])
def test_a_leak_and_a_forgotten_queue_show(make: Make) -> None:
    mutants.fails_on(worlds(), lambda world: all_end_free(world, make))
