"""Every fault shows in scrapes or lists exactly while it lasts, and truth says what it hides."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from fleet_ledger import measure
from small_fleet import SMALL

from fleet.faults import ALL
from fleet.model import Fault
from fleet.world import World


def _of(world: World, kind: str) -> list[Fault]:
    return [f for f in world.faults if f.kind == kind]


def _rows(table: pa.Table, at: str, f: Fault, pad: int = 0) -> pa.Table:
    lo = pa.scalar(f.started_at + timedelta(seconds=pad), pa.timestamp("us"))
    hi = pa.scalar(f.finished_at - timedelta(seconds=pad), pa.timestamp("us"))
    when = table.column(at)
    mask = pc.and_(pc.and_(pc.equal(table.column("cluster"), f.cluster), pc.equal(table.column("node"), f.node)),
                   pc.and_(pc.greater_equal(when, lo), pc.less(when, hi)))  # fmt: skip
    return table.filter(mask)


def test_all_kinds_are_injected(broken_world: World, broken_tables) -> None:
    assert {f.kind for f in broken_world.faults} == set(ALL)
    assert broken_tables["raw.fleet_faults"].num_rows == len(broken_world.faults)
    for f in broken_world.faults:
        assert broken_world.start_at <= f.started_at < f.finished_at <= broken_world.end_at


@pytest.mark.parametrize(
    ("kind", "up", "status"), [("exporter_down", False, None), ("slow_scrape", False, None), ("empty_body", True, 200)]
)
def test_scrapes_fail(broken_world: World, broken_tables, kind: str, up: bool, status: int | None) -> None:
    for f in _of(broken_world, kind):
        scrapes = _rows(broken_tables["raw.scrapes"], "scrape_at", f)
        assert scrapes.num_rows >= 1
        assert set(scrapes.column("is_up").to_pylist()) == {up}
        assert set(scrapes.column("http_status").to_pylist()) == {status}
        assert pc.sum(scrapes.column("samples")).as_py() == 0
        assert _rows(broken_tables["raw.dcgm_samples"], "sampled_at", f).num_rows == 0
        if kind == "slow_scrape":
            assert pc.min(scrapes.column("duration_s")).as_py() >= 10


def test_a_reboot_unreadies_the_node_and_resets_counters(broken_world: World, broken_tables) -> None:
    for f in _of(broken_world, "node_reboot"):
        nodes = _rows(broken_tables["raw.kube_nodes"], "snapshot_at", f)
        assert set(nodes.column("ready_status").to_pylist()) == {"Unknown"}
        assert set(nodes.column("ready_changed_at").to_pylist()) == {f.started_at}
        assert _rows(broken_tables["raw.dcgm_samples"], "sampled_at", f).num_rows == 0
        near = Fault(
            "x",
            "node_reboot",
            f.cluster,
            f.node,
            f.started_at - timedelta(minutes=5),
            f.finished_at + timedelta(minutes=5),
        )
        energy = _rows(broken_tables["raw.dcgm_samples"], "sampled_at", near)
        before = energy.filter(pc.less(energy.column("sampled_at"), pa.scalar(f.started_at, pa.timestamp("us"))))
        after = energy.filter(
            pc.greater_equal(energy.column("sampled_at"), pa.scalar(f.finished_at, pa.timestamp("us")))
        )
        assert pc.max(after.column("energy_j")).as_py() < pc.min(before.column("energy_j")).as_py()
        for pod in broken_world.pods:
            if (pod.cluster, pod.node) == (f.cluster, f.node) and pod.scheduled_at <= f.started_at < pod.finished_at:
                if pod.owner_kind == "Job":
                    assert (pod.end_phase, pod.finished_at) == ("Failed", f.finished_at)
                else:
                    assert f.finished_at in pod.restarts_at


def test_a_deleted_pod_vanishes_without_an_end(broken_world: World, broken_tables) -> None:
    for f in _of(broken_world, "pod_deleted"):
        pods = broken_tables["raw.kube_pods"]
        mine = pods.filter(pc.equal(pods.column("pod_uid"), f.pod_uid))
        assert mine.num_rows and mine.column("pod_finished_at").null_count == mine.num_rows
        assert pc.max(mine.column("snapshot_at")).as_py() < f.started_at
        assert set(mine.column("phase").to_pylist()) <= {"Pending", "Running"}


def test_a_lost_gpu_leaves_the_scrapes_and_allocatable(broken_world: World, broken_tables) -> None:
    for f in _of(broken_world, "gpu_lost"):
        assert f.finished_at - f.started_at > timedelta(minutes=5)
        rows = _rows(broken_tables["raw.dcgm_samples"], "sampled_at", f)
        assert rows.num_rows and f.pci_bus_id not in rows.column("pci_bus_id").to_pylist()
        listed = _rows(broken_tables["raw.kube_node_resources"], "snapshot_at", f)
        listed = listed.filter(pc.equal(listed.column("resource"), "nvidia.com/gpu"))
        assert set(pc.subtract(listed.column("capacity"), listed.column("allocatable")).to_pylist()) == {1}


def test_a_wrong_clock_moves_the_stamps(broken_world: World, broken_tables) -> None:
    for f in _of(broken_world, "clock_skew"):
        n = broken_world.node_index(f.cluster, f.node)
        scrapes = broken_tables["raw.scrapes"]
        mine = scrapes.filter(
            pc.and_(pc.equal(scrapes.column("cluster"), f.cluster), pc.equal(scrapes.column("node"), f.node))
        )
        at = np.sort(np.asarray(mine.column("scrape_at").cast(pa.int64())))
        odd = np.diff(at)[np.diff(at) != 60_000_000]
        assert sorted(odd.tolist()) in ([23_000_000, 97_000_000], [23_000_000, 37_000_000, 97_000_000])
        assert broken_world.nodes[n].target is not None


def test_sentinels_reach_the_rows(broken_world: World, broken_tables) -> None:
    for f in _of(broken_world, "sentinels"):
        rows = _rows(broken_tables["raw.dcgm_samples"], "sampled_at", f)
        assert pc.min(rows.column("sm_active_ratio")).as_py() == 140737488355328.0
        assert pc.min(rows.column("gr_engine_ratio")).as_py() == 140737488355328.0
        assert pc.max(rows.column("mem_temp_c")).as_py() > 9.2e18


def test_labels_flap(broken_world: World, broken_tables) -> None:
    for f in _of(broken_world, "label_flap"):
        rows = _rows(broken_tables["raw.dcgm_samples"], "sampled_at", f)
        per = rows.group_by("sampled_at").aggregate([("hint_pod", "count")]).column("hint_pod_count").to_pylist()
        assert 0 in per and max(per) > 0


def test_a_cordon_shows_and_nothing_starts(broken_world: World, broken_tables) -> None:
    for f in _of(broken_world, "cordon"):
        nodes = _rows(broken_tables["raw.kube_nodes"], "snapshot_at", f)
        assert set(nodes.column("is_unschedulable").to_pylist()) == {True}
        assert not any(
            (p.cluster, p.node) == (f.cluster, f.node) and f.started_at <= p.scheduled_at < f.finished_at
            for p in broken_world.pods
        )


def test_failing_cards_throttle_and_report_xids(broken_world: World, broken_tables) -> None:
    for f in _of(broken_world, "failing_gpu"):
        rows = _rows(broken_tables["raw.dcgm_samples"], "sampled_at", f)
        card = rows.filter(pc.equal(rows.column("pci_bus_id"), f.pci_bus_id)).sort_by("sampled_at")
        assert 48.0 in card.column("xid_last").to_pylist()
        slowed = card.column("thermal_violation_ns_total").to_pylist()
        assert slowed[-1] > slowed[0]


def test_hidden_time_is_what_scrapes_cannot_see(broken_world: World, broken_tables) -> None:
    con = measure(broken_world, broken_tables)
    rows = con.execute(
        """select t.pod_uid, t.held, t.hidden, t.used, coalesce(m.used, 0), coalesce(m.seen, 0), devices
        from truth t left join measured m using (pod_uid)"""
    ).fetchall()
    slack = 0.0
    for uid, held, hidden, used, measured, seen, devices in rows:
        # one scrape interval per fault and end, for every device
        tolerance = 130.0 * devices
        assert abs((held - seen) - hidden) <= tolerance, uid
        assert abs(measured - used) <= hidden + max(tolerance, 0.02 * used), uid
        slack += hidden
    assert slack > 0


def test_faults_move_no_work() -> None:
    calm, broken = World.build(SMALL), World.build(replace(SMALL, faults="all"))
    assert [(p.uid, p.node, p.units, p.scheduled_at) for p in calm.pods] == [
        (p.uid, p.node, p.units, p.scheduled_at) for p in broken.pods
    ]
