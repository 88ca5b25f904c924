"""What the rules say where providers differ or say nothing: prices, currency, terms, overlaps, unknowns."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from small_card import DAY, HOUR, START, Row, charges, columns, commitment, dec, only, pick, price, run, total

from warehouse.errors import BadInput


def one_hour(prices: list[Row], commitments: list[Row] | None = None, **node: Any) -> list[Row]:
    tables = {
        "core.node_hours": run("a", START, START + HOUR, is_open=True, **node),
        "raw.prices": prices,
        "raw.commitments": commitments or [],
    }
    return charges(tables)


# prices


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        ([price(1, sku_price_id="a"), price(2, sku_price_id="b", region="us-east-1")], 2),
        ([price(1, sku_price_id="a", region="eu-west-1"), price(2, sku_price_id="b")], 2),
        ([price(1, sku_price_id="a", instance_type=None, accelerator="H100", as_of=date(2026, 2, 1)),
          price(2, sku_price_id="b")], 2),
        ([price(1, sku_price_id="a", instance_type=None, accelerator="H100")], 1),
        ([price(1, sku_price_id="a"), price(2, sku_price_id="a", as_of=date(2026, 2, 1))], 2),
        ([price(1, sku_price_id="a"), price(2, sku_price_id="a", valid_from_at=START + HOUR,
                                            as_of=date(2026, 2, 1))], 1),
        ([price(1, sku_price_id="a"), price(2, sku_price_id="b", provider="gcp")], 1),
        ([price(1, sku_price_id="b"), price(2, sku_price_id="a")], 2),
    ],
)  # fmt: skip
def test_the_price_that_holds(prices: list[Row], expected: int) -> None:
    assert only(one_hour(prices))["list_unit_price"] == expected
    assert only(one_hour(prices[::-1]))["list_unit_price"] == expected


def test_a_price_that_changes_inside_an_hour_counts_from_the_next() -> None:
    change = START + timedelta(minutes=30)
    prices = [
        price(1, sku_price_id="a", valid_to_at=change, as_of=date(2026, 2, 1)),
        price(2, sku_price_id="b", valid_from_at=change),
    ]
    tables = {"core.node_hours": run("a", START, START + 2 * HOUR, is_open=True), "raw.prices": prices}
    assert [r["list_unit_price"] for r in charges(tables)] == [1, 2]


def test_negotiated_prices_are_billed_and_list_prices_stated() -> None:
    row = only(one_hour([price(10, contracted_unit_price=dec("8.5"))]))
    assert columns(row, ("list_cost", "contracted_cost", "billed_cost", "effective_cost")) == (
        10, dec("8.5"), dec("8.5"), dec("8.5")
    )  # fmt: skip


def test_a_node_by_its_components_or_whole() -> None:
    parts = [
        price(3, sku_price_id="g", pricing_unit="GPU-Hours"),
        price("0.03", sku_price_id="c", pricing_unit="vCPU-Hours"),
        price("0.004", sku_price_id="m", pricing_unit="GiB-Hours"),
    ]
    rows = one_hour(parts)
    assert [(r["pricing_unit"], r["billed_cost"]) for r in rows] == [
        ("GPU-Hours", 24), ("vCPU-Hours", dec("5.76")), ("GiB-Hours", dec("8.192"))
    ]  # fmt: skip
    assert len({r["charge_id"] for r in rows}) == 3
    newer = price(50, sku_price_id="w", as_of=date(2026, 2, 1))
    assert only(one_hour([*parts, newer]))["billed_cost"] == 50
    older = price(50, sku_price_id="w", as_of=date(2025, 2, 1))
    assert len(one_hour([*parts, older])) == 3


def test_spot_nodes_pay_the_spot_price_and_are_never_covered() -> None:
    prices = [
        price(10), price("3.2", sku_price_id="s", billing_model="spot"),
        price(4, sku_price_id="c", billing_model="committed", commitment_type="plan"),
    ]  # fmt: skip
    plan = commitment(
        commitment_id="p", commitment_category="Spend", commitment_type="plan", committed_spend=dec(9),
        committed_quantity=None, commitment_unit="USD",
    )  # fmt: skip
    rows = one_hour(prices, [commitment(), plan], capacity_type="spot")
    assert columns(only(rows, resource_id="i-a"), ("pricing_category", "billed_cost", "commitment_id")) == (
        "Dynamic", dec("3.2"), None
    )  # fmt: skip
    assert only(one_hour(prices[:1], capacity_type="spot"))["flags"] == "no_price"


def test_no_price_is_told_and_not_zero() -> None:
    row = only(one_hour([price(1, provider="gcp")]))
    assert columns(row, ("pricing_quantity", "list_unit_price", "contracted_unit_price", "billed_cost", "flags")) == (
        1, None, None, 0, "no_price"
    )  # fmt: skip
    covered = only(one_hour([], [commitment(recurring_cost=dec(7))]), resource_id="i-a")
    assert columns(covered, ("effective_cost", "flags", "commitment_id")) == (7, "no_price", "ri-1")
    # FOCUS: no commitment quantity without a SKU price
    assert covered["sku_price_id"] is not None


def test_owned_hardware() -> None:
    """((320,000 - 20,000) / 4 + 25,000) / 8760 + 10.2 kW x 1.2 x 0.10 = 12.639525114 an hour, not rounded twice."""
    owned = {
        "provider": "onprem", "billing_account_id": "dc", "region": "hq", "instance_type": "dgx", "capex": dec(320_000),
        "residual": dec(20_000), "years": dec(4), "opex_per_year": dec(25_000), "power_kw": dec("10.2"),
        "pue": dec("1.2"), "tariff_per_kwh": dec("0.1"), "currency": "USD", "as_of": date(2026, 1, 1),
    }  # fmt: skip
    node = run("a", START, START + timedelta(minutes=45), provider="onprem", region="hq", instance_type="dgx")
    row = only(charges({"core.node_hours": node, "raw.owned_hardware": [owned], "raw.prices": [price(99)]}))
    assert row["list_unit_price"] == dec("12.639525114")
    costs = ("pricing_quantity", "list_cost", "contracted_cost", "billed_cost", "effective_cost")
    assert columns(row, costs) == (dec("0.75"), *[dec("9.4796438355")] * 4)
    assert columns(row, ("pricing_category", "invoice_issuer", "billing_account_id")) == ("Standard", "onprem", "dc")


# currency


def rates(*given: tuple[str, str, str, str]) -> list[Row]:
    return [
        {"from_currency": a, "to_currency": b, "rate_date": date.fromisoformat(d), "exchange_rate": dec(r)}
        for a, b, d, r in given
    ]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([("EUR", "USD", "2026-03-01", "1.1")], "11"),
        ([("EUR", "USD", "2026-02-01", "1.2"), ("EUR", "USD", "2026-03-01", "1.1")], "11"),
        ([("EUR", "USD", "2026-02-01", "1.2"), ("EUR", "USD", "2026-03-03", "1.1")], "12"),
        ([("USD", "EUR", "2026-03-01", "0.9")], "11.111111111"),
        ([("USD", "EUR", "2026-03-01", "0.9"), ("EUR", "USD", "2020-01-01", "1.1")], "11"),
    ],
)
def test_prices_are_converted_with_the_newest_rate(given: list[tuple[str, str, str, str]], expected: str) -> None:
    tables = {
        "core.node_hours": run("a", START, START + HOUR), "raw.prices": [price(10, currency="EUR")],
        "raw.exchange_rates": rates(*given),
    }  # fmt: skip
    row = only(charges(tables))
    assert columns(row, ("list_unit_price", "billed_cost", "billing_currency")) == (dec(expected), dec(expected), "USD")
    assert columns(row, ("pricing_currency", "pricing_currency_list_unit_price")) == ("EUR", 10)
    assert row["pricing_currency_effective_cost"] == 10


def test_a_missing_rate_is_told() -> None:
    tables = {
        "core.node_hours": run("a", START, START + HOUR), "raw.prices": [price(10, currency="EUR")],
        "raw.exchange_rates": rates(("EUR", "USD", "2026-03-03", "1.1")),
        "raw.commitments": [commitment(currency="EUR", recurring_cost=dec(3), committed_quantity=dec("0.5"))],
    }  # fmt: skip
    rows = charges(tables)
    assert {r["flags"] for r in rows} == {"no_rate"}
    assert total(rows, "billed_cost") == total(rows, "effective_cost") == 0
    assert only(rows, commitment_id=None)["pricing_currency_effective_cost"] == 5


def test_a_commitment_in_another_currency_than_the_usage() -> None:
    """A Spend commitment is drawn down in its own currency: 4.40 USD an hour are 4 EUR of 6 EUR."""
    prices = [
        price(10), price("4.4", sku_price_id="c", billing_model="committed", commitment_type="plan"),
    ]  # fmt: skip
    plan = commitment(
        commitment_id="p", commitment_category="Spend", commitment_type="plan", committed_quantity=None,
        committed_spend=dec(6), currency="EUR", commitment_unit="EUR", recurring_cost=dec(6),
    )  # fmt: skip
    tables = {
        "core.node_hours": run("a", START, START + HOUR), "raw.prices": prices, "raw.commitments": [plan],
        "raw.exchange_rates": rates(("EUR", "USD", "2026-03-01", "1.1")),
    }  # fmt: skip
    rows = charges(tables)
    used, unused = (only(rows, commitment_discount_status=s) for s in ("Used", "Unused"))
    names = ("commitment_quantity", "commitment_unit", "effective_cost", "pricing_currency_effective_cost")
    # the usage was priced in USD
    assert columns(used, names) == (4, "EUR", dec("4.4"), dec("4.4"))
    assert columns(unused, names) == (2, "EUR", dec("2.2"), dec("2"))
    assert columns(unused, ("list_unit_price", "list_cost")) == (dec("1.1"), dec("2.2"))


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
