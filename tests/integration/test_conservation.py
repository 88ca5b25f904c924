"""Conservation: every second of every slot is in the ledger once, with every fault, MIG and names used again.

The queries are the ones that a reader of the lake would write; what they find in a ledger with one part moved by a
microsecond shows that they would see it.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from simulated_lakes import SimulatedLake

from assets.sql_checks import load_checks, run_check
from fleet.faults import ALL

pytestmark = pytest.mark.integration

LEDGER = "mart.gpu_ledger_hourly"
MICROSECOND = Decimal("0.000001")


@pytest.fixture(scope="module")
def con(broken_lake: SimulatedLake) -> duckdb.DuckDBPyConnection:
    return broken_lake.connect()


def unbalanced(con: duckdb.DuckDBPyConnection, ledger: str) -> list[tuple]:
    """Slot-hours whose parts do not add up to their capacity, and rows with a negative part."""
    return con.execute(
        f"""
        select cluster, node, pci_bus_id, hour
        from {ledger}
        group by cluster, node, pci_bus_id, hour
        having
            sum(capacity_gpu_seconds)
            <> sum(allocated_gpu_seconds) + sum(unallocated_gpu_seconds) + sum(unavailable_gpu_seconds)
            or sum(allocated_gpu_seconds)
            <> sum(utilized_gpu_seconds) + sum(stranded_gpu_seconds) + sum(unobserved_gpu_seconds)
            or bool_or(
                capacity_gpu_seconds <> allocated_gpu_seconds + unallocated_gpu_seconds + unavailable_gpu_seconds
                or allocated_gpu_seconds <> utilized_gpu_seconds + stranded_gpu_seconds + unobserved_gpu_seconds)
            or min(least(capacity_gpu_seconds, allocated_gpu_seconds, unallocated_gpu_seconds, unavailable_gpu_seconds,
                utilized_gpu_seconds, stranded_gpu_seconds, unobserved_gpu_seconds, resident_gpu_seconds,
                rogue_gpu_seconds)) < 0
        """
    ).fetchall()


def wrong_capacity(con: duckdb.DuckDBPyConnection, ledger: str, start: datetime, end: datetime) -> list[tuple]:
    """Slot-hours of the telemetry whose units and holders do not sum to the time that the slot was there.

    No node of the simulated fleet joins or leaves, so each slot is there from the first list to the last (taken when
    telemetry ends), every hour whole but the last.
    """
    return con.execute(
        f"""
        with slots as (
            select distinct cluster, node, pci_bus_id from core.gpu_inventory
        ),
        hours as (
            select unnest(generate_series($start, $end - interval 1 hour, interval 1 hour)) as hour
        ),
        wanted as (
            select s.*, h.hour, (epoch_us(least(h.hour + interval 1 hour, $last)) - epoch_us(h.hour)) as us
            from slots as s, hours as h
        ),
        found as (
            select cluster, node, pci_bus_id, hour, sum(capacity_gpu_seconds) * 1000000 as us
            from {ledger} group by cluster, node, pci_bus_id, hour
        )
        select cluster, node, pci_bus_id, hour, f.us, w.us
        from wanted as w full join found as f using (cluster, node, pci_bus_id, hour)
        where f.us is distinct from w.us
        """,
        {"start": start, "end": end, "last": end - timedelta(seconds=1)},
    ).fetchall()


def span(lake: SimulatedLake) -> tuple[datetime, datetime]:
    return datetime.combine(lake.start, time()), datetime.combine(lake.end, time())


def test_the_world_has_what_could_break_it(con: duckdb.DuckDBPyConnection, broken_lake: SimulatedLake) -> None:
    """Every kind of fault, held MIG instances, uncarved slices, names used again and each way to be unavailable."""
    assert {r[0] for r in con.execute("select fault from raw.fleet_faults").fetchall()} == set(ALL)
    again, mig, uncarved, flags = con.execute(
        f"""
        select
            (select count(*) from (
                select cluster, namespace, pod from {LEDGER} where holder is not null
                group by cluster, namespace, pod having count(distinct holder) > 1)),
            count(distinct holder) filter (gi_id is not null), count(*) filter (flags like '%uncarved%'),
            list(distinct flags)
        from {LEDGER}
        """
    ).fetchone()
    assert again > 0
    assert mig > 5
    assert uncarved > 0
    told = ",".join(f for f in flags if f)
    assert all(word in told for word in ("node_not_ready", "gpu_lost", "cordoned"))
    restarts = con.execute("select max(restarts) from raw.kube_pods").fetchone()[0]
    assert restarts > 0


def test_parts_add_up_in_every_hour_and_slot(con: duckdb.DuckDBPyConnection) -> None:
    assert con.execute(f"select count(*) from {LEDGER}").fetchone()[0] > 1000
    assert unbalanced(con, LEDGER) == []


@pytest.mark.parametrize("part", ["unallocated", "unavailable", "utilized", "stranded", "unobserved"])
def test_a_microsecond_too_much_is_seen(con: duckdb.DuckDBPyConnection, part: str) -> None:
    con.execute(
        f"""
        create or replace temp table moved as
        select * replace (
            {part}_gpu_seconds + case when row_number() over (order by hash(holder), hour, node, pci_bus_id, gi_id) = 1
                then {MICROSECOND} else 0 end as {part}_gpu_seconds
        )
        from {LEDGER}
        """
    )
    assert len(unbalanced(con, "moved")) == 1


def test_slots_add_up_to_the_time_they_were_there(con: duckdb.DuckDBPyConnection, broken_lake: SimulatedLake) -> None:
    start, end = span(broken_lake)
    assert wrong_capacity(con, LEDGER, start, end) == []
    con.execute(f"create or replace temp table fewer as select * from {LEDGER} where not (flags ilike '%uncarved%')")
    assert wrong_capacity(con, "fewer", start, end) != []


def test_teams_sum_to_the_ledger(con: duckdb.DuckDBPyConnection) -> None:
    parts = ("capacity", "allocated", "unallocated", "unavailable", "utilized", "stranded", "unobserved", "resident")
    sums = ", ".join(f"sum({p}_gpu_seconds)" for p in parts)
    ledger = con.execute(f"select hour, {sums} from {LEDGER} group by hour order by hour").fetchall()
    assert (
        ledger == con.execute(f"select hour, {sums} from mart.stranding_hourly group by hour order by hour").fetchall()
    )


def test_checks_find_nothing(con: duckdb.DuckDBPyConnection, broken_lake: SimulatedLake, project_root: Path) -> None:
    checks = load_checks(project_root / "sql" / "check")
    assert "ledger_proof" in checks
    found = {name: run_check(con, check, broken_lake.start, broken_lake.end) for name, check in checks.items()}
    assert {name: f.shown for name, f in found.items() if f.rows} == {}
