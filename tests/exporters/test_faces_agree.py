"""The live faces against the history face: read over HTTP by the product's own readers, equal for the same instants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import httpx
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from exporters.serve import build_app
from exporters.server import serving
from fleet.clock import Clock
from fleet.kubeapi.app import SIMULATED_AT
from fleet.model import FleetSpec
from fleet.world import World
from sources.dcgm import Scrape, parse_scrapes
from sources.dcgm.collect import Client, scrape_once
from sources.dcgm.targets import targets_of_discovery
from sources.kubernetes import parse_lists
from sources.kubernetes.parse import KUBE_TABLES
from sources.kubernetes.read import connect, read_cluster
from warehouse.contracts import CONTRACTS

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def world() -> World:
    return World.build(FleetSpec(days=1, history_days=0, scale=0.2, faults="all"))


@pytest.fixture(scope="module")
def history(world: World) -> dict[str, pa.Table]:
    parts: dict[str, list[pa.Table]] = {}
    for name, table in world.raw_tables():
        parts.setdefault(name, []).append(table)
    return {name: pa.concat_tables(tables) for name, tables in parts.items()}


@pytest.fixture(scope="module")
def live(world: World) -> Iterator[tuple[str, Clock]]:
    clock = Clock(world.start_at, speed=0)
    with serving(build_app(world, clock, slow_s=0.5)) as url:
        yield url, clock


def assert_equal(live: pa.Table, history: pa.Table, name: str, *, skip: tuple[str, ...] = ()) -> None:
    """Same rows in the order of the key; names the first column that differs."""
    keys = [(key, "ascending") for key in CONTRACTS[name].key]
    assert live.num_rows == history.num_rows, name
    live, history = live.sort_by(keys), history.sort_by(keys)
    for column in history.column_names:
        if column not in skip:
            assert live.column(column).to_pylist() == history.column(column).to_pylist(), f"{name}.{column}"


def at(table: pa.Table, column: str, when: datetime) -> pa.Table:
    return table.filter(pc.equal(table.column(column), pa.scalar(when, table.schema.field(column).type)))


def instants(world: World, interval_s: int) -> list[datetime]:
    """Instants of a grid: some spread over the day, and one inside each fault, where it shows."""
    span = world.end_at - world.start_at
    wanted = [world.start_at + span * share for share in (0.02, 0.4, 0.7, 0.99)]
    wanted += [fault.started_at + (fault.finished_at - fault.started_at) / 2 for fault in world.faults]
    step = timedelta(seconds=interval_s)
    found = {world.start_at + (when - world.start_at) // step * step for when in wanted}
    return sorted(when for when in found if world.start_at <= when < world.end_at)


def test_kubernetes_lists_equal_history(world: World, history: dict[str, pa.Table], live: tuple[str, Clock]) -> None:
    url, clock = live
    clusters = sorted({node.cluster for node in world.nodes})
    for when in instants(world, world.spec.snapshot_s):
        clock.set(when)
        lists = [
            listed
            for name in clusters
            for listed in read_cluster(connect(host=f"{url}/clusters/{name}", name=name), at=when, page=7)
        ]
        parsed = parse_lists(lists)
        for name in KUBE_TABLES:
            if name in history:
                # A body's size and hash are not known to a face that never wrote one.
                assert_equal(
                    parsed[name], at(history[name], "snapshot_at", when), name, skip=("body_bytes", "body_sha256")
                )


def test_scrapes_equal_history(world: World, history: dict[str, pa.Table], live: tuple[str, Clock]) -> None:
    url, clock = live
    targets = {(target.cluster, target.node): target for target in targets_of_discovery(f"{url}/sd/targets")}
    client = Client(timeout_s=0.3)
    attempts = history["raw.scrapes"]
    seen: set[str | None] = set()
    chosen = sorted({(f.cluster, f.node) for f in world.faults} | {(n.cluster, n.name) for n in world.nodes[:4]})
    for cluster, node in chosen:
        mine = attempts.filter(pc.and_(pc.equal(attempts["cluster"], cluster), pc.equal(attempts["node"], node)))
        if not mine.num_rows or (cluster, node) not in targets:
            continue
        stamps = mine.column("scrape_at").to_pylist()
        # Two regular ones, and for each kind of failure the first.
        wanted = {stamps[len(stamps) // 3], stamps[-1]}
        errors = mine.column("error").to_pylist()
        wanted |= {stamps[errors.index(error)] for error in set(errors)}
        skews = [f for f in world.faults if f.kind == "clock_skew" and (f.cluster, f.node) == (cluster, node)]
        for when in sorted(wanted):
            if any(f.started_at - timedelta(minutes=5) <= when <= f.finished_at + timedelta(minutes=5) for f in skews):
                continue  # the recorded time is not the true one there
            clock.set(when)
            (scrape,) = scrape_once([targets[cluster, node]], client)
            scrape = replace(scrape, at=when)
            parsed = parse_scrapes([scrape])
            past = at(mine, "scrape_at", when)
            assert_equal(
                parsed["raw.scrapes"], past, "raw.scrapes", skip=("duration_s", "body_bytes", "body_sha256", "error")
            )
            samples = at(history["raw.dcgm_samples"], "sampled_at", when)
            samples = samples.filter(pc.and_(pc.equal(samples["cluster"], cluster), pc.equal(samples["node"], node)))
            assert_equal(parsed["raw.dcgm_samples"], samples, "raw.dcgm_samples")
            if samples.num_rows:
                hour = when.replace(minute=0, second=0, microsecond=0)
                maps = at(history["raw.field_maps"], "hour", hour)
                maps = maps.filter(pc.and_(pc.equal(maps["cluster"], cluster), pc.equal(maps["target"], scrape.target)))
                assert_equal(parsed["raw.field_maps"], maps, "raw.field_maps")
            seen.add(past.column("error")[0].as_py())
    assert {None, "timed out", "connection refused"} <= seen


def test_the_header_tells_a_skewed_nodes_own_time(world: World, live: tuple[str, Clock]) -> None:
    url, clock = live
    fault = next(f for f in world.faults if f.kind == "clock_skew")
    now = clock.set(fault.started_at + (fault.finished_at - fault.started_at) / 2)
    answer = httpx.get(f"{url}/clusters/{fault.cluster}/nodes/{fault.node}/metrics")
    told = datetime.fromisoformat(answer.headers[SIMULATED_AT].removesuffix("Z"))
    assert told - now == timedelta(seconds=fault.amount)
    node = next(n for n in world.nodes if (n.cluster, n.name) == (fault.cluster, fault.node))
    body = Scrape(fault.cluster, node.target or "", node.name, told, answer.content, 200)
    rows = world.sample_rows([now], [(fault.cluster, fault.node)])
    assert_equal(parse_scrapes([body])["raw.dcgm_samples"], rows, "raw.dcgm_samples")


def test_outside_of_the_telemetry_says_so(world: World, live: tuple[str, Clock]) -> None:
    url, clock = live
    clock.set(world.end_at + timedelta(days=1))
    node = next(n for n in world.nodes if n.target)
    answer = httpx.get(f"{url}/clusters/{node.cluster}/nodes/{node.name}/metrics")
    assert answer.status_code == 503
    assert "outside" in answer.text
