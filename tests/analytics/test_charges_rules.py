"""What the rules say of commitments where providers differ or say nothing; credits, ids, bad input."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from small_card import (
    DAY,
    HOUR,
    START,
    Row,
    charges,
    columns,
    commitment,
    dec,
    one_hour,
    only,
    pick,
    price,
    rates,
    run,
    total,
)

from warehouse.errors import BadInput

# commitments


def test_usage_commitments_narrower_first_and_nothing_twice() -> None:
    """Two overlap: the one for the type alone takes its half first, the other what is left, then none is left."""
    wide = commitment(commitment_id="wide", committed_quantity=dec("0.75"), recurring_cost=dec(3))
    narrow = commitment(
        commitment_id="z-narrow", committed_quantity=dec("0.5"), eligible_instance_types="p5.48xlarge,p4d"
    )
    rows = pick(one_hour([price(10)], [wide, narrow]), charge_category="Usage")
    got = sorted((r["commitment_id"], r["commitment_discount_status"], r["pricing_quantity"]) for r in rows)
    assert got == [
        ("wide", "Unused", dec("0.25")), ("wide", "Used", dec("0.5")), ("z-narrow", "Used", dec("0.5"))
    ]  # fmt: skip
    assert total(rows, "effective_cost", commitment_id="wide", commitment_discount_status="Used") == 2


@pytest.mark.parametrize(
    "scope",
    [
        {"provider": "gcp"}, {"region": "eu-west-1"}, {"eligible_instance_types": "p4d"}, {"billing_account_id": "x"},
        {"commitment_unit": "vCPU-Hours"}, {"starts_at": START + HOUR}, {"ends_at": START, "starts_at": START - HOUR},
    ],
)  # fmt: skip
def test_out_of_scope_or_term_covers_nothing(scope: Row) -> None:
    rows = one_hour([price(10, billing_account_id="y")], [commitment(**scope)])
    assert only(rows, resource_id="i-a")["billed_cost"] == 10


def test_gpu_hours_cover_nodes_by_their_accelerators() -> None:
    rows = one_hour([price(16)], [commitment(commitment_unit="GPU-Hours", committed_quantity=dec(6))])
    used, rest = only(rows, commitment_discount_status="Used"), only(rows, commitment_id=None)
    assert columns(used, ("pricing_quantity", "commitment_quantity", "list_cost")) == (dec("0.75"), 6, 12)
    assert columns(rest, ("pricing_quantity", "billed_cost")) == (dec("0.25"), 4)


def test_the_cost_of_an_hour_is_dealt_among_its_nodes() -> None:
    """100 for three alike: what does not divide goes to the first."""
    nodes = [r for name in "abc" for r in run(name, START, START + HOUR)]
    ri = commitment(committed_quantity=dec(3), upfront_cost=dec(100), ends_at=START + HOUR)
    rows = charges({"core.node_hours": nodes, "raw.commitments": [ri], "raw.prices": [price(50)]})
    assert [r["effective_cost"] for r in pick(rows, commitment_discount_status="Used")] == [
        dec("33.3333333334"), dec("33.3333333333"), dec("33.3333333333")
    ]  # fmt: skip


def test_committed_hours_are_rounded_up() -> None:
    """Half a GPU-hour of a node with three: a sixth of a node-hour, and no more is covered than committed."""
    node = run("a", START, START + timedelta(minutes=10), gpu_count=3)
    tables = {"core.node_hours": node, "raw.prices": [price(2, pricing_unit="GPU-Hours")]}
    used = only(charges({**tables, "raw.commitments": [commitment()]}), commitment_discount_status="Used")
    assert columns(used, ("pricing_quantity", "commitment_quantity")) == (dec("0.5"), dec("0.166666667"))
    little = commitment(committed_quantity=dec("0.166666666"))
    used = only(charges({**tables, "raw.commitments": [little]}), commitment_discount_status="Used")
    assert columns(used, ("pricing_quantity", "commitment_quantity")) == (dec("0.499999998"), dec("0.166666666"))


def test_node_hours_cover_gpu_priced_nodes() -> None:
    rows = one_hour([price(2, pricing_unit="GPU-Hours")], [commitment(committed_quantity=dec("0.5"))])
    used = only(rows, commitment_discount_status="Used")
    assert columns(used, ("pricing_quantity", "commitment_quantity", "commitment_unit")) == (4, dec("0.5"), "Hours")


def test_capacity_reservations_go_to_their_own_nodes_first() -> None:
    block = commitment(
        commitment_id="cr", commitment_type="Capacity Block", is_capacity_reservation=True, upfront_cost=dec(48),
        payment_model="All Upfront",
    )  # fmt: skip
    nodes = run("a", START, START + HOUR) + run("b", START, START + HOUR, capacity_type="reserved")
    rows = charges({"core.node_hours": nodes, "raw.prices": [price(10)], "raw.commitments": [block]})
    used = only(rows, commitment_discount_status="Used")
    names = ("resource_id", "capacity_reservation_id", "capacity_reservation_status", "effective_cost")
    assert columns(used, names) == ("i-b", "cr", "Used", 2)
    buy = only(rows, charge_category="Purchase")
    assert columns(buy, names) == ("cr", "cr", None, 0)
    assert buy["billed_cost"] == 48


def test_zero_eligible_usage_is_all_unused_in_known_hours() -> None:
    """No node at all: the whole date is settled. With nodes, only the hours that their lists know."""
    ri = commitment(recurring_cost=dec(2), owner_team="ml", eligible_instance_types="p4d")
    alone = charges({"raw.commitments": [ri], "raw.prices": [price(3)]})
    assert len(pick(alone, commitment_discount_status="Unused")) == 24
    assert total(alone, "effective_cost") == total(alone, "billed_cost") == 48
    some = charges({"raw.commitments": [ri], "core.node_hours": run("a", START + HOUR, START + 4 * HOUR)})
    unused = pick(some, commitment_discount_status="Unused")
    assert [r["hour"] for r in unused] == [START + i * HOUR for i in (1, 2, 3)]
    assert {columns(r, ("resource_id", "charge_scope", "owner_team", "billed_cost")) for r in unused} == {
        ("ri-1", "commitment", "ml", 0)
    }
    # its month is invoiced all the same
    assert total(some, "billed_cost", charge_category="Purchase") == 48


def test_unused_of_any_type_has_the_fee_for_its_price() -> None:
    ri = commitment(upfront_cost=dec(48), recurring_cost=dec(1), committed_quantity=dec(2))
    row = pick(charges({"raw.commitments": [ri]}), commitment_discount_status="Unused")[0]
    assert columns(row, ("list_unit_price", "pricing_quantity", "list_cost", "effective_cost")) == (
        dec("1.5"), 2, 3, 3
    )  # fmt: skip


# terms and payment


def fees(days: int = 70, start: date = date(2026, 1, 10), **terms: Any) -> list[Row]:
    return pick(charges({"raw.commitments": [commitment(**terms)]}, start, days), charge_category="Purchase")


def test_months_are_invoiced_in_advance_and_cut_to_the_term() -> None:
    """12 January 06:00 to 3 March 12:00: 474 + 672 + 60 hours."""
    rows = fees(starts_at=datetime(2026, 1, 12, 6), ends_at=datetime(2026, 3, 3, 12), recurring_cost=dec("1.5"))
    assert [(r["hour"], r["pricing_quantity"], r["billed_cost"]) for r in rows] == [
        (datetime(2026, 1, 12, 6), 474, 711), (datetime(2026, 2, 1), 672, 1008), (datetime(2026, 3, 1), 60, 90)
    ]  # fmt: skip
    assert [r["charge_period_end_at"] for r in rows] == [
        datetime(2026, 2, 1), datetime(2026, 3, 1), datetime(2026, 3, 3, 12)
    ]  # fmt: skip
    assert total(rows, "commitment_quantity") == 474 + 672 + 60
    assert {columns(r, ("list_cost", "contracted_cost")) for r in rows} == {(711, 711), (1008, 1008), (90, 90)}


def test_a_month_that_began_before_the_dates_computed_makes_no_row() -> None:
    term = {"starts_at": datetime(2026, 1, 12), "ends_at": datetime(2026, 3, 3), "recurring_cost": dec(1)}
    assert [r["date"] for r in fees(15, date(2026, 1, 20), **term)] == [date(2026, 2, 1)]


@pytest.mark.parametrize(
    ("starts", "ends", "hours"),
    [
        # AWS Capacity Blocks end at 11:30 UTC: hours that begin within the term
        (datetime(2026, 3, 2, 11, 30), datetime(2026, 3, 3, 11, 30), range(12, 36)),
        (datetime(2026, 3, 2, 11, 30), datetime(2026, 3, 2, 12, 30), range(12, 13)),
        # within an hour: the hour it starts in
        (datetime(2026, 3, 2, 11, 10), datetime(2026, 3, 2, 11, 50), range(11, 12)),
        (datetime(2026, 3, 2, 11), datetime(2026, 3, 2, 12), range(11, 12)),
    ],
)
def test_terms_count_the_hours_that_begin_in_them(starts: datetime, ends: datetime, hours: range) -> None:
    block = commitment(starts_at=starts, ends_at=ends, upfront_cost=dec(100), payment_model="All Upfront")
    rows = charges({"raw.commitments": [block]}, DAY, 2)
    unused = pick(rows, commitment_discount_status="Unused")
    assert [r["hour"] for r in unused] == [START + h * HOUR for h in hours]
    assert total(rows, "effective_cost") == total(rows, "billed_cost") == 100


def test_as_of_chooses_the_version_and_not_the_hours() -> None:
    """Told only on 5 March, for a term from 2 March: the whole term is settled by the newest version."""
    told_late = commitment(recurring_cost=dec(3), as_of=date(2026, 3, 5))
    rows = charges({"raw.commitments": [told_late, commitment(recurring_cost=dec(9))]})
    assert total(rows, "billed_cost") == total(rows, "effective_cost") == 72


def test_upfront_that_does_not_divide_evenly_adds_up() -> None:
    third = commitment(upfront_cost=dec("100.000000001"), ends_at=START + 7 * HOUR)
    rows = charges({"raw.commitments": [third]})
    costs = [r["effective_cost"] for r in rows if r["charge_category"] == "Usage"]
    assert sum(costs) == dec("100.000000001")
    assert max(costs) - min(costs) == dec("0.0000000001")


def test_fees_in_another_currency_add_up_over_changing_rates() -> None:
    """Upfront at the rate of the first date, recurring at the rate of its invoice's date: 2 February is still 1.1."""
    term = commitment(
        currency="EUR", upfront_cost=dec("500.03"), recurring_cost=dec("1.07"), starts_at=datetime(2026, 1, 31),
        ends_at=datetime(2026, 2, 3),
    )  # fmt: skip
    given = rates(("EUR", "USD", "2026-01-01", "1.1"), ("EUR", "USD", "2026-02-02", "1.3"))
    rows = charges({"raw.commitments": [term], "raw.exchange_rates": given}, date(2026, 1, 31), 3)
    assert (
        total(rows, "billed_cost")
        == total(rows, "effective_cost")
        == Decimal("1.1") * (500 + dec("0.03") + dec("77.04"))
    )


# credits, ids, bad input


def test_credits_are_negative_rows_of_their_own() -> None:
    credit = {
        "provider": "aws", "billing_account_id": "1", "credit_id": "promo", "credit_description": "Launch",
        "amount": dec("12.5"), "currency": "EUR", "charge_period_start_at": START + timedelta(hours=5, minutes=1),
        "charge_period_end_at": START + timedelta(days=9),
    }  # fmt: skip
    given = {"raw.credits": [credit], "raw.exchange_rates": rates(("EUR", "USD", "2026-01-01", "1.1"))}
    row = only(charges(given))
    assert columns(row, ("list_cost", "contracted_cost", "billed_cost", "effective_cost")) == (dec("-13.75"),) * 4
    assert columns(row, ("charge_category", "charge_scope", "resource_id", "sku_id", "pricing_quantity", "hour")) == (
        "Credit", "credit", None, None, None, START + 5 * HOUR
    )  # fmt: skip
    assert charges(given, DAY + timedelta(days=1)) == []


def test_ids_of_one_machine_listed_twice_differ() -> None:
    nodes = (
        run("a", START, START + timedelta(minutes=20), resource_id="i-1")
        + run("b", START + timedelta(minutes=20), START + 2 * HOUR, resource_id="i-1")
        + run("a", START, START + HOUR, resource_id="i-1", cluster="d")
    )
    ids = [r["charge_id"] for r in charges({"core.node_hours": nodes, "raw.prices": [price(1)]})]
    assert ids == sorted([
        "computed/i-1/20260302T00/0/c/a/uid-a", "computed/i-1/20260302T00/0/c/b/uid-b",
        "computed/i-1/20260302T00/0/d/a/uid-a", "computed/i-1/20260302T01/0",
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("table", "row", "words"),
    [
        ("raw.prices", price(1, pricing_unit="Days"), "pricing_unit is Days"),
        ("raw.prices", price(1, rounding="down"), "rounding is down"),
        ("raw.prices", price(1, metering_s=0), "metering_s is 0"),
        ("raw.prices", price(1, list_unit_price=None), "list_unit_price"),
        ("raw.commitments", commitment(ends_at=None), "the term is"),
        ("raw.commitments", commitment(ends_at=START), "the term is"),
        ("raw.commitments", commitment(committed_quantity=None), "committed_quantity is None"),
        ("raw.commitments", commitment(commitment_category="Other"), "commitment_category is Other"),
        ("raw.commitments", commitment(commitment_unit="Days"), "commitment_unit is Days"),
        ("raw.commitments", commitment(payment_interval="Yearly"), "payment_interval is Yearly"),
        ("raw.commitments", commitment(committed_quantity=dec(10**8)), "more than DECIMAL(18,9) holds"),
        ("raw.credits", {"provider": "aws", "credit_id": "x", "amount": dec(-1)}, "amount must be positive"),
    ],
)
def test_what_makes_no_sense_is_named(table: str, row: Row, words: str) -> None:
    with pytest.raises(BadInput) as caught:
        charges({table: [row]})
    assert words in str(caught.value) and str(caught.value).startswith(table)
