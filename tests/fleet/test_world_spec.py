"""The world is as its spec says: fleet, labels, trace and time; bad specs and questions are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

import pyarrow.compute as pc
import pytest
from small_fleet import SMALL, collect, same

from fleet.catalogue import ACCELERATORS
from fleet.model import FleetSpec, TraceJob
from fleet.topology import SITES, build_nodes, trace_tenants
from fleet.world import World
from warehouse.errors import BadInput


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
    assert same(world.truth(world.start_at, world.end_at), tables["raw.fleet_truth"])


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
