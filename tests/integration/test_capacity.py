"""What could be placed when an hour ended, against placing it by hand: pod by pod over the nodes' free devices."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from simulated_lakes import SimulatedLake

pytestmark = pytest.mark.integration

SNAPSHOTS = 200
JUST_BEFORE = timedelta(microseconds=1)
Pool = tuple[str, str, str]  # cluster, resource, accelerator


def rows(con: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    found = con.execute(sql)
    names = [d[0] for d in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


class State:
    """Free devices of every node at an instant, from units, assignments and outages alone."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        def by_node(table: str, columns: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
            out = defaultdict(list)
            for row in rows(con, f"select cluster, node, interval_start_at, interval_end_at, {columns} from {table}"):
                out[row["cluster"], row["node"]].append(row)
            return out

        self.units = by_node("core.gpu_units", "pci_bus_id, gi_id, resource, accelerator, replicas, is_uncarved")
        self.holds = by_node("core.device_assignments", "pci_bus_id, gi_id, parts, of_parts")
        self.lost = by_node("core.gpu_outages", "pci_bus_id")
        self.out = by_node("core.node_outages", "kind, resource, devices")

    def free(self, at: datetime) -> dict[Pool, dict[str, int]]:
        """By pool and node: whole devices that a pod could get just before `at`."""
        then = at - JUST_BEFORE

        def now(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
            return [row for row in found if row["interval_start_at"] <= then < row["interval_end_at"]]

        pools: dict[Pool, dict[str, int]] = defaultdict(dict)
        for (cluster, node), units in self.units.items():
            outages = now(self.out.get((cluster, node), ()))
            closed = any(o["kind"] in ("not_ready", "cordoned") for o in outages)
            lost = {o["pci_bus_id"] for o in now(self.lost.get((cluster, node), ()))}
            held: dict[tuple[str, int | None], Fraction] = defaultdict(Fraction)
            for hold in now(self.holds.get((cluster, node), ())):
                held[hold["pci_bus_id"], hold["gi_id"]] += Fraction(hold["parts"], hold["of_parts"])
            kinds: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
            for unit in now(units):
                if unit["resource"] is not None and not unit["is_uncarved"]:
                    kinds[unit["resource"], unit["accelerator"]].append(unit)
            for (resource, accelerator), mine in kinds.items():
                short = sum(o["devices"] for o in outages if o["kind"] == "unallocatable" and o["resource"] == resource)
                open_parts = broken_parts = Fraction(0)
                for unit in mine:
                    rest = unit["replicas"] * (1 - held[unit["pci_bus_id"], unit["gi_id"]])
                    if unit["pci_bus_id"] in lost or closed:
                        broken_parts += unit["replicas"]
                    else:
                        open_parts += rest
                # What the node cannot hand out is first what is broken anyway.
                open_parts -= max(0, short - broken_parts)
                pools[cluster, resource, accelerator][node] = max(0, int(open_parts))
        return pools


def place(free: Iterable[int], size: int) -> int:
    """Devices of the largest gang of pods of `size`, bound one after the other to the first node with room."""
    left = list(free)
    pods = 0
    while True:
        node = next((n for n, devices in enumerate(left) if devices >= size), None)
        if node is None:
            return pods * size
        left[node] -= size
        pods += 1


def largest_pod(free: int) -> int:
    """Devices of the largest all-or-nothing pod that one node takes, tried from one device up."""
    size = 0
    while place([free], size + 1):
        size += 1
    return size


def snapshots(con: duckdb.DuckDBPyConnection) -> dict[tuple[datetime, str, str], list[dict[str, Any]]]:
    """Rows of the mart by hour, cluster and resource: 200 drawn, those of hours with an outage first."""
    found = defaultdict(list)
    for row in rows(con, "select * from mart.capacity_hourly order by hour, cluster, resource, node"):
        found[row["hour"], row["cluster"], row["resource"]].append(row)
    broken = {key for key, nodes in found.items() if any(n["unavailable_devices"] > 0 for n in nodes)}
    order = sorted(found)
    random.Random(5).shuffle(order)
    order.sort(key=lambda key: key not in broken)
    chosen = order[: SNAPSHOTS // 2] + random.Random(6).sample(order[SNAPSHOTS // 2 :], SNAPSHOTS // 2)
    return {key: found[key] for key in chosen}


def test_largest_gangs_equal_placing_them(broken_lake: SimulatedLake) -> None:
    with broken_lake.connect() as con:
        state = State(con)
        chosen = snapshots(con)
        last = con.execute("select max(interval_end_at) from core.gpu_units").fetchone()[0]
    assert len(chosen) == SNAPSHOTS
    wrong, seen = [], {"outage": 0, "fragmented": 0, "mig": 0, "full": 0}
    for (hour, cluster, resource), nodes in chosen.items():
        pools = state.free(min(hour + timedelta(hours=1), last))
        for row in nodes:
            pool = pools[cluster, resource, row["accelerator"]]
            free, every = pool[row["node"]], list(pool.values())
            gang = place(every, free) if free else 0
            want = (free, largest_pod(free), gang)
            got = (row["free_at_end"], row["largest_gang_devices"], row["largest_gang_in_pool"])
            if got != want:
                wrong.append((hour, cluster, row["node"], resource, got, want))
            seen["outage"] += row["unavailable_devices"] > 0
            seen["fragmented"] += free > 0 and gang < sum(every)
            seen["mig"] += "mig" in resource and free > 0
            seen["full"] += free == 0
    assert wrong == []
    assert min(seen.values()) > 5, seen


def test_devices_are_bound_free_or_out_of_work(broken_lake: SimulatedLake) -> None:
    """To the rounding of the four figures, six digits each."""
    with broken_lake.connect() as con:
        off = con.execute(
            """
            select
                count(*) filter (
                    abs(capacity_devices - bound_devices - free_devices - unavailable_devices) > 2.1e-6),
                count(*) filter (largest_gang_devices > free_at_end or largest_gang_in_pool < largest_gang_devices),
                count(*)
            from mart.capacity_hourly
            """
        ).fetchone()
    assert off[:2] == (0, 0)
    assert off[2] > 500
