"""Checks of node-hours, bills and charges hold on a sound lake and fail on one that is wrong in one place."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import duckdb
import pytest
from small_bills import APRIL, CHARGES, MARCH, computed, flat, line, put_bills, put_rates
from small_cloud import HOUR, Node, at, put, put_lists, run, times

from assets.sql_checks import load_checks, run_check
from warehouse.engine import open_database
from warehouse.lake import Lake

CHECKS = load_checks(Path(__file__).resolve().parents[2] / "sql" / "check")
NAMES = ("node_hours_in_bounds", "node_hours_of_ledger", "bill_lines_in_full", "charges_in_full")
N, X = "aws:///eu-1a/i-n", "aws:///eu-1a/i-x"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two days: n is billed for the first, x is not billed; the bill has a bit of everything."""
    lake = Lake(tmp_path_factory.mktemp("checked"))
    put_rates(lake, ("EUR", "USD", 1, "1.07"))
    put_lists(lake, [Node("n"), Node("x", gone_at=at(2, 3, 20))], times(at(1), at(3)))
    unused = {"charge_scope": "commitment", "commitment_id": "ri-1", "commitment_discount_status": "Unused"}
    credit = {
        "charge_scope": "credit",
        "charge_category": "Credit",
        "charge_id": "credit/1",
        "charge_period_end_at": APRIL,
    }
    put(lake, "core.computed_charges", [
        *(computed(r, at(1) + i * HOUR, "2.5", node=r[-1]) for r in (N, X) for i in range(48)),
        computed("ri-1", at(1, 5), "1", **unused), computed(None, at(1), "-5", **credit),
    ])  # fmt: skip
    put_bills(lake, [
        line(N, at(1), at(2), "2.333333333"), line(N, at(1, 3), None, "0.1", billing_currency="EUR"),
        line(N, MARCH, APRIL, "0.001", sku_id="licence"), line("vol", at(1), at(3), service_category="Storage"),
        line(N, at(2, 5), None, "-0.1", charge_class="Correction"), flat("Tax", MARCH, APRIL, "3"),
        flat("Credit", MARCH, APRIL, "-3"), line("ri-1", at(1, 5), None, "1", commitment_id="ri-1",
             commitment_discount_status="Unused", consumed_quantity=None),
    ])  # fmt: skip
    run(lake, CHARGES, 1, 2)
    return lake


@pytest.fixture
def tables(lake: Lake) -> Iterator[duckdb.DuckDBPyConnection]:
    """The lake's tables as tables that a test may change."""
    with open_database(lake.root) as con:
        for layer in ("raw", "core", "mart"):
            con.execute(f"create schema {layer}")
        for name in sorted({t for c in NAMES for t in CHECKS[c].inputs}):
            con.execute(f"create table {name} as {lake.relation(name)}")
        con.execute("""
            insert into mart.gpu_ledger_hourly (date, hour, cluster, node)
            select date, hour, cluster, node from core.node_hours
            union all select date, hour, 'c', 'scraped' from core.node_hours where node = 'n'""")
        con.execute("""
            insert into core.node_listings (date, cluster, node, first_seen_at, last_seen_at)
            select date, 'c', node, min(hour), max(hour + to_microseconds(running_us - 1)) from core.node_hours
            group by all
        """)
        yield con


def failing(con: duckdb.DuckDBPyConnection) -> set[str]:
    window = date(2026, 3, 1), date(2026, 3, 3)
    return {name for name in NAMES if run_check(con, CHECKS[name], *window).rows}


def test_a_sound_lake_holds(tables: duckdb.DuckDBPyConnection) -> None:
    assert failing(tables) == set()
    assert tables.execute("select count(*) from core.charges").fetchall()[0][0] > 100


BILLED = "charge_id like 'bill/%/2/20260301T04'"
KEPT = f"resource_id = '{X}' and hour = timestamp '2026-03-01 04:00:00'"
MUTATIONS = [
    (f"update core.node_hours set running_us = 0 where {KEPT}", {"node_hours_in_bounds"}),
    (f"update core.node_hours set running_us = 3600000001 where {KEPT}", {"node_hours_in_bounds"}),
    ("update core.node_hours set node_finished_at = hour where node = 'x'", {"node_hours_in_bounds"}),
    (f"insert into core.node_hours select * replace ('u' as node_uid) from core.node_hours where {KEPT}",
     {"node_hours_in_bounds"}),
    (f"delete from core.node_hours where {KEPT}", {"node_hours_of_ledger"}),
    (f"update core.billed_charges set billed_cost = billed_cost + 0.0000000001 where {BILLED}",
     {"bill_lines_in_full", "charges_in_full"}),
    (f"update core.billed_charges set pricing_quantity = 0 where {BILLED}", {"bill_lines_in_full", "charges_in_full"}),
    ("delete from core.billed_charges where charge_scope = 'tax'", {"bill_lines_in_full", "charges_in_full"}),
    ("delete from core.charges where charge_scope = 'tax'", {"charges_in_full"}),
    (f"delete from core.charges where {KEPT}", {"charges_in_full"}),
    (f"update core.charges set effective_cost = effective_cost - 0.0000000001 where {KEPT}", {"charges_in_full"}),
    (f"""insert into core.charges by name select *, 'computed' as charge_origin from core.computed_charges
     where resource_id = '{N}' and hour = timestamp '2026-03-01 04:00:00'""", {"charges_in_full"}),
    ("update core.charges set charge_origin = 'computed' where charge_scope = 'tax'", {"charges_in_full"}),
    ("update raw.bills set resource_id = 'other', commitment_id = null where commitment_id = 'ri-1'",
     {"charges_in_full"}),
]  # fmt: skip


@pytest.mark.parametrize(("change", "found"), MUTATIONS)
def test_a_change_is_found(tables: duckdb.DuckDBPyConnection, change: str, found: set[str]) -> None:
    tables.execute(change)
    assert failing(tables) == found
