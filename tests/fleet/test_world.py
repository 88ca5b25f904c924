"""The generated world: the same twice, nothing booked twice, plausible metrics, bad specs refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_fleet import SMALL, collect

from fleet.catalogue import ACCELERATORS
from fleet.model import FleetSpec, TraceJob
from fleet.placement import Pool, Room, place
from fleet.topology import SITES, build_nodes, trace_tenants
from fleet.workload import Demand, draw_durations, draw_sizes
from fleet.world import World
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput

HERE = Path(__file__).resolve().parent


def _same(a: pa.Table, b: pa.Table) -> bool:
    """Equal with NaN-free bits: both tables serialised."""

    def body(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as out:
            out.write_table(table.combine_chunks())
        return sink.getvalue().to_pybytes()

    return body(a) == body(b)


def test_same_seed_same_tables(small_tables) -> None:
    """Within one process; that hash randomisation has no say is checked by the digest test below."""
    again = collect(World.build(SMALL))
    assert again.keys() == small_tables.keys()
    for name, table in again.items():
        assert _same(table, small_tables[name]), name


_DIGEST = """
import hashlib
from dataclasses import replace
from fleet.world import World
from small_fleet import SMALL
digest = hashlib.sha256()
for name, table in World.build(replace(SMALL, days=1, history_days=3, faults="all")).raw_tables():
    digest.update(repr((name, table.slice(0, 300).to_pylist(), table.num_rows)).encode())
print(digest.hexdigest())
"""


def test_other_processes_give_the_same_world() -> None:
    found = set()
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent.parent)])}
        run = subprocess.run([sys.executable, "-c", _DIGEST], env=env, capture_output=True, text=True, check=True)
        found.add(run.stdout)
    assert len(found) == 1


def test_other_seed_other_tables(small_tables) -> None:
    other = World.build(replace(SMALL, seed=8))
    assert not _same(other.truth(other.start_at, other.end_at), small_tables["raw.fleet_truth"])


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


def test_default_fleet_is_as_described() -> None:
    nodes = build_nodes(7, SITES, 1.0, datetime(2026, 1, 1))
    assert len(nodes) == 60
    assert sum(len(n.devices) for n in nodes) == 400
    assert len({n.provider for n in nodes}) == len({n.region for n in nodes}) == 3
    names = [n.name for n in nodes]
    assert len(set(names)) < len(names)  # names repeat between clusters
    assert len({(n.cluster, n.name) for n in nodes}) == 60
    assert {n.accelerator for n in nodes} == set(ACCELERATORS)
    uuids = [d.gpu_uuid for n in nodes for d in n.devices if d.gpu_uuid]
    assert len(set(uuids)) == len(uuids)


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


def test_labels_can_be_off() -> None:
    world = World.build(replace(SMALL, kube_labels=False, days=1))
    rows = world.sample_rows([world.start_at + timedelta(hours=5)])
    assert rows.num_rows and rows.column("hint_pod").null_count == rows.num_rows


def test_a_trace_drives_the_fleet() -> None:
    jobs = tuple(
        TraceJob(1000.0 + 300 * i, 200.0 + 37 * (i % 90), 1 + 7 * (i % 11 == 0), f"vc{i % 3}") for i in range(250)
    )
    world = World.build(FleetSpec(days=1, faults="none", jobs=jobs))
    assert {p.team for p in world.pods} == {"vc0", "vc1", "vc2"}
    assert len(world.pods) == sum(1 for j in jobs if j.submit_s < 1000 + 86400)
    assert min(p.created_at for p in world.pods) == world.start_at
    longest = max(p.finished_at - p.scheduled_at for p in world.pods)
    assert longest == timedelta(seconds=max(j.duration_s for j in jobs))


def test_groups_of_a_trace_get_namespaces_of_their_own() -> None:
    tenants = trace_tenants("c", {"Vision Lab", "vision_lab", "a" * 90, "__"})
    assert len({t.namespace for t in tenants}) == 4
    assert all(re.fullmatch("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", t.namespace) for t in tenants)


def test_telemetry_may_begin_at_any_hour() -> None:
    world = World.build(replace(SMALL, days=1, end_at=datetime(2026, 3, 5, 17, 20, 30), faults="all"))
    tables = collect(world)
    assert pc.min(tables["raw.scrapes"].column("scrape_at")).as_py() >= world.start_at
    assert pc.max(tables["raw.kube_snapshots"].column("snapshot_at")).as_py() == world.end_at - timedelta(seconds=1)
    assert set(tables["raw.fleet_truth"].column("date").to_pylist()) == {world.start_at.date(), world.end_at.date()}
    assert _same(world.truth(world.start_at, world.end_at), tables["raw.fleet_truth"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"days": 0}, "days is 0"),
        ({"faults": "meteor"}, "meteor"),
        ({"jobs": ()}, "no jobs"),
        ({"jobs": (TraceJob(0, 5, 1, "a"), TraceJob(1, -5, 1, "a"))}, "job 1 of the trace"),
        ({"scale": -1.0}, "scale"),
        ({"end_at": datetime(2026, 1, 1, 0, 0, 0, 5)}, "whole second"),
    ],
)
def test_bad_specs_are_refused(change, words) -> None:
    with pytest.raises(BadInput, match=words):
        World.build(replace(SMALL, **change))


def test_unknown_node_and_time_are_named(small_world: World) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        small_world.scrape_outcome("nimbus-east", "nowhere", small_world.start_at)
    with pytest.raises(BadInput, match="outside"):
        small_world.sample_rows([small_world.end_at + timedelta(days=1)])
