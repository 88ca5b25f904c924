"""The truth against brute force, and what scrapes make of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from fleet_ledger import measure
from small_fleet import SMALL, collect

from fleet.world import World


def test_truth_is_the_sum_over_seconds(small_world: World) -> None:
    truth = small_world.truth(small_world.start_at, small_world.end_at).to_pylist()
    uid_to_index = {p.uid: i for i, p in enumerate(small_world.pods)}
    by_pod: dict[str, float] = {}
    for row in truth:
        by_pod[row["pod_uid"]] = by_pod.get(row["pod_uid"], 0.0) + float(row["true_utilized_gpu_seconds"])
    whole = [u for u in by_pod if small_world.pods[uid_to_index[u]].resource == "nvidia.com/gpu"]
    for uid in whole[:: max(1, len(whole) // 12)]:
        i = uid_to_index[uid]
        pod = small_world.pods[i]
        lo, hi = max(pod.scheduled_at, small_world.start_at), min(pod.finished_at, small_world.end_at)
        seconds = int((hi - lo).total_seconds())
        middles = [lo + timedelta(seconds=k, microseconds=500_000) for k in range(seconds)]
        each = small_world.activity_at(i, middles).sum()
        scales = small_world.holdings._scales(i)
        assert by_pod[uid] == pytest.approx(each * scales.sum(), rel=1e-6, abs=1e-3)


def test_held_time_is_the_schedule(small_world: World) -> None:
    held = {}
    for row in small_world.truth(small_world.start_at, small_world.end_at).to_pylist():
        held[row["pod_uid"]] = held.get(row["pod_uid"], 0.0) + float(row["held_gpu_seconds"])
    slices = {"nvidia.com/mig-1g.5gb": 1, "nvidia.com/mig-2g.10gb": 2, "nvidia.com/mig-3g.20gb": 3}
    for pod in small_world.pods:
        lo, hi = max(pod.scheduled_at, small_world.start_at), min(pod.finished_at, small_world.end_at)
        want = max((hi - lo).total_seconds(), 0.0) * pod.quantity * slices.get(pod.resource, 7) / 7
        assert held.get(pod.uid, 0.0) == pytest.approx(want if pod.node else 0.0, abs=1e-5)


def test_scrapes_at_60_s_are_near_the_truth(small_world: World, small_tables) -> None:
    con = measure(small_world, small_tables)
    teams = con.execute(
        "select team, sum(t.used), sum(m.used) from truth t join measured m using (pod_uid) group by team"
    ).fetchall()
    assert len(teams) >= 6
    for team, true, used in teams:
        assert abs(used / true - 1) < 0.005, team
    worst = con.execute(
        """select max(abs(m.used / nullif(t.used, 0) - 1)) from truth t join measured m using (pod_uid)
        where held > 6 * 3600 * devices and hidden = 0"""
    ).fetchone()[0]
    assert worst < 0.02
    short = con.execute(
        """select max(abs(m.used - t.used) / devices) from truth t join measured m using (pod_uid)
        where held <= 6 * 3600 * devices and hidden = 0"""
    ).fetchone()[0]
    assert short < 60


def test_coarser_scrapes_are_further_off(small_world: World, small_tables) -> None:
    def error(world: World, tables) -> float:
        rows = measure(world, tables).execute(
            "select t.used, m.used from truth t join measured m using (pod_uid) where hidden = 0"
        ).fetchnumpy()  # fmt: skip
        true, used = rows["used"], rows["used_1"]
        return float(np.abs(used - true).sum() / true.sum())

    fine = error(small_world, small_tables)
    coarse_world = World.build(replace(SMALL, interval_s=300))
    coarse = error(coarse_world, collect(coarse_world))
    assert fine < 0.005
    assert coarse > 2 * fine


def test_shapes_can_be_told_from_metrics(small_world: World, small_tables) -> None:
    """The signatures documented in `fleet.shapes`, as rules."""
    con = measure(small_world, small_tables)
    right, pods = con.execute(
        """
        with seen as (
            select h.pod_uid, sum(sm) as sm, avg(sm) as mean_sm, sum(tensor_ratio) / nullif(sum(sm), 0) as tensor,
                sum(dram_ratio) / nullif(sum(sm), 0) as dram, sum(pcie) / nullif(sum(sm), 0) as pcie, max(sm) as top
            from holds as h
            inner join cover as c on c.cluster = h.cluster and c.node = h.node and c.gpu_index = h.gpu_index
                and c.gi = h.gi and c.sampled_at >= h.from_at and c.sampled_at < h.to_at
            group by h.pod_uid
        ),
        told as (
            select pod_uid, case
                when coalesce(sm, 0) = 0 then 'notebook'
                when tensor < 0.05 then 'batch'
                when dram > 0.9 then 'inference'
                when tensor > 0.27 then case when coalesce(pcie > 3e9, top < 0.6) then 'starved' else 'training' end
                when dram > 0.42 then 'notebook'
                else 'sweep' end as guess
            from seen
        )
        select count(*) filter (guess = shape), count(*) from truth inner join told using (pod_uid)
        """
    ).fetchone()
    assert pods > 100
    assert right / pods > 0.95
