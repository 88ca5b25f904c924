"""The world's tables: their contracts, plausible metrics, and history that equals what a scrape or a list shows."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fleet.catalogue import ACCELERATORS
from fleet.world import World
from warehouse.contracts import CONTRACTS


def test_tables_meet_their_contracts(broken_tables) -> None:
    for name, table in broken_tables.items():
        contract = CONTRACTS[name]
        assert table.schema.equals(contract.arrow_schema), name
        for column in contract.required:
            assert table.column(column).null_count == 0, (name, column)
        keys = table.select(list(contract.key))
        assert keys.group_by(list(contract.key)).aggregate([([], "count_all")]).num_rows == table.num_rows, name
        if "hour" in contract.columns:
            hours = pc.equal(pc.cast(table.column("hour"), pa.date32()), table.column("date"))
            assert pc.all(hours).as_py() in (True, None), name


def test_metrics_hang_together(small_tables) -> None:
    rows = small_tables["raw.dcgm_samples"]
    whole = rows.filter(pc.is_null(rows.column("mig_profile")))
    sm, gr = (np.asarray(whole.column(c)) for c in ("sm_active_ratio", "gr_engine_ratio"))
    assert sm.min() == 0.0 and 0.8 < sm.max() <= 1.0
    assert (gr >= sm - 1e-9).all()
    assert (np.asarray(whole.column("tensor_ratio")) <= sm).all()
    util = np.nan_to_num(np.asarray(whole.column("gpu_util_ratio").fill_null(1.0)))
    assert (util >= sm - 0.0051).all() and util.max() <= 1.0
    for model in ACCELERATORS.values():
        mine = whole.filter(pc.equal(whole.column("model"), model.model))
        if not mine.num_rows:
            continue
        power = np.asarray(mine.column("power_w"))
        idle = np.asarray(pc.is_null(mine.column("hint_pod"))) & (np.asarray(mine.column("sm_active_ratio")) == 0)
        assert np.median(power[idle]) == pytest.approx(model.idle_w, rel=0.35)
        assert power.max() <= model.tdp_w * 1.03
        # above idle, power follows activity
        assert np.corrcoef(power, np.asarray(mine.column("sm_active_ratio")))[0, 1] > 0.8
        used = np.asarray(mine.column("fb_used_bytes")) + np.asarray(mine.column("fb_reserved_bytes"))
        assert used.max() <= model.memory_mib * 1048576


def test_energy_integrates_power(small_tables) -> None:
    rows = small_tables["raw.dcgm_samples"].filter(pc.is_null(small_tables["raw.dcgm_samples"].column("mig_profile")))
    for uuid in rows.column("gpu_uuid").unique().to_pylist()[::7]:
        card = rows.filter(pc.equal(rows.column("gpu_uuid"), uuid)).sort_by("sampled_at")
        at = np.asarray(card.column("sampled_at").cast(pa.int64())) / 1e6
        energy, power = np.asarray(card.column("energy_j")), np.asarray(card.column("power_w"))
        assert (np.diff(energy) > 0).all()
        assert (energy[-1] - energy[0]) / (at[-1] - at[0]) == pytest.approx(power.mean(), rel=0.01)


def test_mig_rows_are_as_the_exporter_prints_them(small_world: World, small_tables) -> None:
    rows = small_tables["raw.dcgm_samples"]
    inner = rows.filter(pc.is_valid(rows.column("mig_profile")))
    assert inner.num_rows and inner.column("power_w").null_count == inner.num_rows
    assert inner.column("sm_active_ratio").null_count == inner.column("fb_used_bytes").null_count == 0
    cut = {d.gpu_uuid for n in small_world.nodes for d in n.devices if d.instances}
    boards = rows.filter(
        pc.and_(pc.is_in(rows.column("gpu_uuid"), pa.array(sorted(cut))), pc.is_null(rows.column("mig_profile")))
    )
    assert boards.column("gpu_util_ratio").null_count == boards.num_rows
    assert boards.column("power_w").null_count == boards.column("energy_j").null_count == 0
    assert boards.column("hint_pod").null_count == boards.num_rows


def test_a_scrape_equals_its_row_of_history(broken_world: World, broken_tables) -> None:
    rows = broken_tables["raw.dcgm_samples"]
    stamps = rows.column("sampled_at").unique().to_pylist()
    skewed = {(f.cluster, f.node) for f in broken_world.faults if f.kind == "clock_skew"}
    for at in stamps[:: len(stamps) // 25]:
        history = rows.filter(pc.equal(rows.column("sampled_at"), pa.scalar(at, pa.timestamp("us"))))
        nodes = list(zip(history.column("cluster").to_pylist(), history.column("node").to_pylist(), strict=True))
        names = [n for n in sorted(set(nodes)) if n not in skewed]
        live = broken_world.sample_rows([at], names)
        history = history.filter(pa.array([n in names for n in nodes]))
        order = [(c, "ascending") for c in ("cluster", "node", "gpu_index", "gi_id")]
        assert live.sort_by(order).to_pylist() == history.sort_by(order).to_pylist()


def test_lists_equal_the_states_at_an_instant(broken_world: World, broken_tables) -> None:
    pods, nodes = broken_tables["raw.kube_pods"], broken_tables["raw.kube_nodes"]
    stamps = pods.column("snapshot_at").unique().to_pylist()
    for at in stamps[:: len(stamps) // 20]:
        when = pa.scalar(at, pa.timestamp("us"))
        listed = pods.filter(pc.equal(pods.column("snapshot_at"), when)).to_pylist()
        shown = {s.pod.uid: s for s in broken_world.pods_at(at)}
        assert {r["pod_uid"] for r in listed} == set(shown)
        for row in listed:
            s = shown[row["pod_uid"]]
            assert (row["phase"], row["node"], row["scheduled_at"], row["pod_started_at"], row["pod_finished_at"]) == (
                s.phase, s.node, s.scheduled_at, s.started_at, s.finished_at)  # fmt: skip
            assert row["restarts"] == s.restarts and dict(row["labels"]) == dict(s.pod.labels)
        states = {(s.node.cluster, s.node.name): s for s in broken_world.nodes_at(at)}
        for row in nodes.filter(pc.equal(nodes.column("snapshot_at"), when)).to_pylist():
            n = states[(row["cluster"], row["node"])]
            assert (row["ready_status"], row["ready_changed_at"], row["is_unschedulable"]) == (
                n.ready_status, n.ready_changed_at, n.is_unschedulable)  # fmt: skip


def test_history_ends_where_telemetry_begins(small_world: World, small_tables) -> None:
    past = small_tables["raw.allocation_history"]
    assert pc.max(past.column("finished_at")).as_py() <= small_world.start_at
    assert pc.min(past.column("started_at")).as_py() < small_world.start_at - timedelta(days=5)
    running_on = {p.uid for p in small_world.pods if p.scheduled_at < small_world.start_at < p.finished_at}
    assert running_on <= set(past.column("pod_uid").to_pylist())
