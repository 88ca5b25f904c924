"""Gangs that together ask for more than there is: pod by pod they can block each other for ever, whole they cannot.

All cases of up to three gangs of up to three pods on up to four GPUs, and all orders in which gangs come and end, are
gone through.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations_with_replacement

import mutants
import small_world as w
from random_worlds import Make, ours

from scheduler.cluster import Cluster
from scheduler.model import GPU, MILLI, SECOND_US, Queue
from scheduler.policy import POLICIES
from scheduler.replay.outcome import TraceRun
from scheduler.replay.podwise import replay_podwise
from scheduler.usage import Usage

# (pods, GPUs of each)
Gang = tuple[int, int]
GANGS: tuple[Gang, ...] = ((1, 1), (2, 1), (3, 1), (1, 2), (2, 2))
FLEETS = ((1,), (2,), (1, 1), (3,), (2, 1), (1, 1, 1), (4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1))
OURS = POLICIES["strandline"].without(with_preemption=False)


def cases() -> Iterator[tuple[tuple[int, ...], tuple[Gang, ...]]]:
    """Fleets with two or three gangs, each of which would fit the empty fleet."""
    for fleet in FLEETS:
        fitting = [g for g in GANGS if sum(n // g[1] for n in fleet) >= g[0]]
        for count in (2, 3):
            for gangs in combinations_with_replacement(fitting, count):
                yield fleet, gangs


def podwise_deadlocks(fleet: tuple[int, ...], gangs: tuple[Gang, ...]) -> bool:
    """Whether pods that are placed one by one, in some order and on some node with room, can end in a deadlock.

    A pod stays where it is until all of its gang have a place and the gang has run.
    """

    @cache
    def visit(free: tuple[int, ...], placed: tuple[tuple[int, ...], ...], ended: frozenset[int]) -> bool:
        is_stuck = True
        for g, (pods, gpus) in enumerate(gangs):
            if g in ended:
                continue
            if sum(placed[g]) == pods:
                back = tuple(f + n * gpus for f, n in zip(free, placed[g], strict=True))
                none = tuple(0 for _ in fleet)
                is_stuck = False
                if visit(back, (*placed[:g], none, *placed[g + 1 :]), ended | {g}):
                    return True
                continue
            for node, f in enumerate(free):
                if f >= gpus:
                    is_stuck = False
                    left = (*free[:node], f - gpus, *free[node + 1 :])
                    more = tuple(n + (i == node) for i, n in enumerate(placed[g]))
                    if visit(left, (*placed[:g], more, *placed[g + 1 :]), ended):
                        return True
        return is_stuck and len(ended) < len(gangs)

    return visit(fleet, tuple(tuple(0 for _ in fleet) for _ in gangs), frozenset())


def whole_deadlocks(fleet: tuple[int, ...], gangs: tuple[Gang, ...], make: Make = ours) -> list[tuple[str, ...]]:
    """Orders of coming and ending after which something waits though nothing runs: only a new arrival could help."""
    stuck: list[tuple[str, ...]] = []

    def visit(steps: tuple[str, ...]) -> None:
        running, waiting = _after(fleet, gangs, make, steps)
        coming = [f"+{g}" for g in range(len(gangs)) if f"+{g}" not in steps]
        ending = [f"-{job}" for job in running]
        if waiting and not running:
            stuck.append(steps)
        for step in (*coming, *ending):
            visit((*steps, step))

    visit(())
    return stuck


def _after(
    fleet: Sequence[int], gangs: Sequence[Gang], make: Make, steps: Sequence[str]
) -> tuple[list[str], list[str]]:
    """What runs and what waits after some steps, one a second; predictions are wrong on purpose."""
    queue = make(Cluster(w.nodes(*fleet)), Usage({"a": Queue("a")}, {(GPU, w.FLAVOR): sum(fleet) * MILLI}), OURS)
    for second, step in enumerate(steps):
        name = step[1:]
        if step[0] == "+":
            pods, gpus = gangs[int(name)]
            queue.submit(w.job(name, pods=pods, gpus=gpus, at_s=second), (1 + int(name)) * SECOND_US)
        else:
            queue.ended(name, second * SECOND_US)
        queue.cycle(second * SECOND_US)
    return sorted(g.job.job_id for g in queue.gangs), sorted(queue.pending.waiting)


def test_two_gangs_that_each_need_all_run_one_after_the_other() -> None:
    jobs = [(w.job("x", pods=2, gpus=8), 1.0), (w.job("y", pods=2, gpus=8), 1.0)]
    out, _ = w.run(w.nodes(8, 8), w.queues(a=None), jobs, OURS)
    assert [out.started_us[j] // w.HOUR_US for j in ("x", "y")] == [0, 1]
    assert not out.stuck and all(s.is_whole for s in out.spans)


def test_the_search_finds_what_placing_pod_by_pod_does() -> None:
    found = [case for case in cases() if podwise_deadlocks(*case)]
    assert ((2, 2), ((2, 2), (2, 2))) in found and ((1, 1), ((2, 1), (2, 1))) in found
    assert all(sum(p * n for p, n in gangs) > sum(fleet) for fleet, gangs in found)
    # the baseline itself gets there
    fleet, gangs = (1, 1, 1, 1), ((3, 1), (3, 1), (3, 1))
    assert (fleet, gangs) in found
    runs = [TraceRun(w.job(str(g), pods=p, gpus=n), w.HOUR_US) for g, (p, n) in enumerate(gangs)]
    outcomes = [replay_podwise(runs, w.nodes(*fleet), seed, {}) for seed in range(20)]
    assert any(out.stuck for out in outcomes)


def test_no_order_of_whole_gangs_ends_in_a_deadlock() -> None:
    for fleet, gangs in cases():
        if len(gangs) == 3:  # on the way, all orders of two of them
            assert not whole_deadlocks(fleet, gangs), (fleet, gangs)


def test_the_search_sees_a_queue_that_forgets() -> None:
    assert whole_deadlocks((1, 1), ((2, 1), (2, 1)), mutants.forgetful)
