"""Who holds what in the generated world: nothing is booked twice, and the demand is as published."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.model import FleetSpec
from fleet.placement import Pool, Room, place
from fleet.topology import SITES, build_nodes
from fleet.workload import Demand, draw_durations, draw_sizes
from fleet.world import World


def test_no_unit_is_held_twice(broken_world: World) -> None:
    holds: dict[tuple[str, str, object], list[tuple[datetime, datetime]]] = {}
    cpu: dict[tuple[str, str], list[tuple[datetime, int, int]]] = {}
    for pod in broken_world.pods:
        assert len(pod.units) == (pod.quantity if pod.node else 0)
        for unit in pod.units:
            holds.setdefault((pod.cluster, pod.node, unit), []).append((pod.scheduled_at, pod.finished_at))
        asked = cpu.setdefault((pod.cluster, pod.node), [])
        asked += [(pod.scheduled_at, 1, pod.cpu_milli), (pod.finished_at, 0, -pod.cpu_milli)]
    for spans in holds.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
    for node in broken_world.nodes:
        used = np.cumsum([x[2] for x in sorted(cpu.get((node.cluster, node.name), []))] or [0])
        assert used.max() <= node.cpu_milli


def test_a_pod_name_lives_once_at_a_time(small_world: World) -> None:
    lives: dict[tuple[str, str, str], list[tuple[datetime, datetime]]] = {}
    for pod in small_world.pods:
        if pod.owner_kind == "StatefulSet":
            lives.setdefault((pod.cluster, pod.namespace, pod.name), []).append((pod.scheduled_at, pod.finished_at))
    for spans in lives.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))


_DEMANDS = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(1, 3000), st.lists(st.integers(1, 4), min_size=1, max_size=3),
              st.integers(500, 3000)),
    max_size=40,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(_DEMANDS)
def test_placement_books_nothing_twice(rows) -> None:
    nodes = build_nodes(1, SITES[:1], 0.3, datetime(2026, 1, 1))[:3]
    pool = Pool("c", "h100", "nvidia.com/gpu", (0, 1, 2), tuple(tuple((d, None) for d in range(4)) for _ in range(3)))
    demands = [
        Demand(arrive, duration, tuple(pods), 0, "t", 0, "Job", f"j{i}", cpu, 1 << 20)
        for i, (arrive, duration, pods, cpu) in enumerate(rows)
    ]
    placed, waiting = place(pool, demands, Room(nodes), 10_000)
    assert len(placed) + len(waiting) <= len(demands)
    holds: dict[tuple[int, object], list[tuple[int, int]]] = {}
    for item in placed:
        assert item.start >= item.demand.arrive
        assert [len(units) for _, units in item.where] == list(item.demand.pods)
        for node, units in item.where:
            for unit in units:
                holds.setdefault((node, unit), []).append((item.start, item.start + item.demand.duration))
    for spans in holds.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))


def test_sizes_and_durations_fit_the_published_log() -> None:
    rng = np.random.default_rng(3)
    sizes = draw_sizes(rng, 300_000)
    durations = draw_durations(rng, sizes)
    assert (sizes == 1).mean() == pytest.approx(50188 / 52849, abs=0.002)
    assert (sizes == 8).mean() == pytest.approx(713 / 52849, abs=0.001)
    assert np.median(durations) == pytest.approx(1486, rel=0.03)
    assert durations.mean() == pytest.approx(13669, rel=0.05)
    assert np.percentile(durations, 90) == pytest.approx(10536, rel=0.1)
    assert np.percentile(durations, 99) == pytest.approx(268916, rel=0.1)
    assert (durations < 120).mean() < 0.01


def test_most_of_the_fleet_is_allocated() -> None:
    world = World.build(FleetSpec(days=3, history_days=60, faults="none"))
    held = float(pc.sum(world.truth(world.start_at, world.end_at).column("held_gpu_seconds")).as_py())
    assert 0.65 < held / (400 * 3 * 86400) < 0.92
