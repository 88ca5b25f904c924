"""What a commitment covered of nodes that a bill charges comes back to it, where no bill names the commitment."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from small_bills import APRIL, CHARGES, MARCH, computed, line, put_bills, total
from small_cloud import HOUR, Node, at, put, put_lists, rows, run, times

from assets.sql_checks import load_checks, run_check
from warehouse.engine import open_database
from warehouse.lake import Lake

BALANCE = "mart.commitment_balance_daily"
CHECKS = load_checks(Path(__file__).resolve().parents[2] / "sql" / "check")
N, X = "aws:///eu-1a/i-n", "aws:///eu-1a/i-x"
OF_NODE = {"instance_type": "p5", "region": "eu-1", "zone": "eu-1a", "accelerator": "H100", "owner_team": "nodes"}
RESERVED = {
    "commitment_id": "ri", "commitment_name": "two days", "commitment_type": "Reservation",
    "commitment_category": "Usage", "commitment_unit": "Hours", "commitment_quantity": Decimal(1),
    "capacity_reservation_id": "ri", "pricing_category": "Committed", "billed_cost": Decimal(0),
}  # fmt: skip
COSTS = ("pricing_quantity", "list_unit_price", "contracted_unit_price", "list_cost", "contracted_cost", "billed_cost",
         "effective_cost", "commitment_quantity")  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Two nodes for two days; a reservation paid in advance covers all of n at 2 an hour, x pays 5."""
    lake = Lake(tmp_path)
    put_lists(lake, [Node("n"), Node("x")], times(at(1), at(3)))
    covered = {**RESERVED, **OF_NODE, "commitment_discount_status": "Used", "capacity_reservation_status": "Used",
               "effective_cost": Decimal(2), "node": "n", "resource_name": "n", "consumed_quantity": Decimal(1),
               "consumed_unit": "Hours"}  # fmt: skip
    fee = {**RESERVED, "charge_scope": "commitment", "charge_category": "Purchase", "charge_period_end_at": at(3),
           "charge_id": "computed/ri/upfront", "billed_cost": Decimal(96), "effective_cost": Decimal(0)}  # fmt: skip
    put(lake, "core.computed_charges", [
        *(computed(N, at(1) + i * HOUR, "5", **covered) for i in range(48)),
        *(computed(X, at(1) + i * HOUR, "5", node="x") for i in range(48)),
        computed("ri", at(1), "96", **fee),
    ])  # fmt: skip
    put(lake, "core.commitment_terms_daily", [
        {"date": date(2026, 3, day), "provider": "aws", "commitment_id": "ri", "owner_team": "platform",
         "committed_quantity": 24, "commitment_category": "Usage", "commitment_unit": "Hours", "starts_at": at(1),
         "ends_at": at(3), "scheduled_opening_balance": opening, "scheduled_balance": 48 - opening}
        for day, opening in ((1, 0), (2, 48))
    ])  # fmt: skip
    return lake


def charged(lake: Lake, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is given back when these lines are billed, after the checks of charges and balances have passed."""
    put_bills(lake, lines)
    run(lake, (*CHARGES, BALANCE), 1, 2)
    with open_database(lake.root) as con:
        for layer in ("raw", "core", "mart"):
            con.execute(f"create schema {layer}")
        chosen = [CHECKS[name] for name in ("charges_in_full", "commitment_balance")]
        for name in sorted({t for c in chosen for t in c.inputs}):
            con.execute(f"create table {name} as {lake.relation(name)}")
        for check in chosen:
            assert run_check(con, check, date(2026, 3, 1), date(2026, 3, 3)).rows == 0, check.name
    return [r for r in rows(lake, "core.charges") if r["charge_id"].endswith("/given-back")]


def test_a_covered_node_in_a_bill_that_does_not_know_the_commitment(lake: Lake) -> None:
    found = charged(lake, [line(N, at(1, h), None, "5") for h in range(24)])
    assert [r["hour"] for r in found] == [at(1, h) for h in range(24)]
    before = {r["charge_id"]: r for r in rows(lake, "core.computed_charges")}
    for row in found:
        original = before[row["charge_id"].removesuffix("/given-back")]
        assert [row[c] for c in COSTS] == [original[c] for c in COSTS]
    row = found[0]
    assert (row["charge_scope"], row["charge_origin"], row["commitment_discount_status"]) == (
        "commitment", "computed", "Unused",
    )  # fmt: skip
    assert (row["resource_id"], row["resource_name"], row["resource_type"]) == ("ri", "two days", "Commitment")
    assert (row["capacity_reservation_status"], row["owner_team"], row["billed_cost"]) == ("Unused", "platform", 0)
    nothing = ("cluster", "node", "region", "zone", "instance_type", "accelerator", "gpu_count", "consumed_quantity",
               "consumed_unit")  # fmt: skip
    assert {row[c] for c in nothing} == {None}
    assert (
        row["charge_description"] == "Unused part of two days: a bill charges n, which it covered, and does not name it"
    )
    # the fee and all of it amortized, beside what the bill charges
    assert total(lake, "effective_cost", "core.charges", commitment_id="ri") == 96
    assert total(lake, "billed_cost", "core.charges", commitment_id="ri") == 96
    assert total(lake, "effective_cost", "core.charges", charge_origin="bill") == 120
    (day, _) = rows(lake, BALANCE)
    assert (day["used_quantity"], day["unused_quantity"], day["closing_balance"]) == (0, 24, 48)
    whole = rows(lake, "core.charges")
    run(lake, CHARGES, 1, 2, chunk_days=1)
    assert rows(lake, "core.charges") == whole


@pytest.mark.parametrize(
    "more",
    [
        {"commitment_id": "ri", "commitment_discount_status": "Used", "billed_cost": Decimal(0)},
        {"commitment_id": "ri", "commitment_discount_status": "Unused", "resource_id": "ri", "billed_cost": Decimal(0)},
    ],
)
def test_a_bill_that_names_the_commitment_tells_all_of_it(lake: Lake, more: dict[str, Any]) -> None:
    named = line(N, at(1), None, "2", **more)
    assert charged(lake, [named, *(line(N, at(1, h), None, "5") for h in range(1, 12))]) == []
    assert total(lake, "effective_cost", "core.charges", commitment_id="ri", charge_origin="computed") == 72


def test_another_account_that_names_the_commitment_tells_its_own_hours(lake: Lake) -> None:
    other = line(X, at(1), None, "2", commitment_id="ri", commitment_discount_status="Used", billing_account_id="other")
    found = charged(lake, [*(line(N, at(1, h), None, "5") for h in range(3)), other])
    assert [r["hour"].hour for r in found] == [1, 2]


def test_a_month_of_the_node(lake: Lake) -> None:
    found = charged(lake, [line(N, MARCH, APRIL, "5")])
    assert len(found) == 48
    assert not rows(lake, "core.charges", node="n", charge_origin="computed")


def test_what_no_bill_names_and_corrections_give_nothing_back(lake: Lake) -> None:
    lines = [line(X, at(1, h), None, "5") for h in range(24)]
    correction = line(N, at(1, 3), None, "-1", charge_class="Correction")
    storage = line(N, at(1, 4), None, "1", service_category="Storage")
    assert charged(lake, [*lines, correction, storage]) == []
    assert len(rows(lake, "core.charges", node="n", charge_origin="computed")) == 48
