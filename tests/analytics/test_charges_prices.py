"""Which price holds, in which currency; owned, spot and unknown nodes."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from small_card import (
    HOUR,
    START,
    Row,
    charges,
    columns,
    commitment,
    dec,
    one_hour,
    only,
    price,
    rates,
    run,
    total,
)


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
