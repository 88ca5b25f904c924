"""Amounts of billed charges: in the reporting currency, and the cent that a division leaves."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from billed_nodes import N, three_days
from small_bills import APRIL, BILLS, SUMMED, by_hour, flat, line, put_bills, put_rates, total
from small_cloud import at, put, rows, run

from warehouse.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return three_days(tmp_path)


def test_another_currency(lake: Lake) -> None:
    put_rates(lake, ("EUR", "USD", 1, "1.1"), ("EUR", "USD", 2, "1.2"), ("USD", "GBP", 1, "0.8"))
    put_bills(lake, [
        line("aws:///eu-1a/i-m", at(1), at(2), "0.333333333", billing_currency="EUR"),
        line(N, at(2), None, "1", billing_currency="EUR"), line(N, at(3), None, "1", billing_currency="GBP"),
        line(N, at(3), None, "1", billing_currency="JPY"),
        line(N, at(3), None, "1", billing_currency="EUR", list_cost=Decimal(7)),
    ])  # fmt: skip
    run(lake, BILLS, 1, 3)
    first = rows(lake, "core.billed_charges", node="m")
    # 24 x 0.333333333 EUR at 1.1, converted as a whole
    assert total(lake, "billed_cost", node="m") == Decimal("8.7999999912")
    assert {r["contracted_unit_price"] for r in first} == {Decimal("0.366666666")}
    assert {r["pricing_currency_contracted_unit_price"] for r in first} == {Decimal("0.333333333")}
    assert total(lake, "contracted_cost", node="m") == 24 * Decimal("0.366666666")
    assert total(lake, "pricing_currency_effective_cost", node="m") == 24 * Decimal("0.333333333")
    assert {(r["billing_currency"], r["pricing_currency"]) for r in first} == {("USD", "EUR")}
    assert by_hour(lake, date=date(2026, 3, 2)) == {0: Decimal("1.2")}
    pounds, yen, odd = sorted(rows(lake, "core.billed_charges", hour=at(3)), key=lambda r: r["charge_id"])
    assert (pounds["billed_cost"], pounds["list_unit_price"]) == (Decimal("1.25"), Decimal("1.875"))
    assert (yen["billed_cost"], yen["list_unit_price"], yen["list_cost"], yen["flags"]) == (0, None, 0, "no_rate")
    assert (yen["pricing_quantity"], yen["pricing_currency_list_unit_price"]) == (1, Decimal("1.5"))
    assert (odd["list_cost"], odd["list_unit_price"]) == (Decimal("8.4"), Decimal("1.8"))


def test_a_prepaid_commitment_keeps_the_rate_of_its_day(lake: Lake) -> None:
    """Paid on the first at 1.1: what it costs on the second, at 1.2, is worth 1.1; its list cost is of the day."""
    put_rates(lake, ("EUR", "USD", 1, "1.1"), ("EUR", "USD", 2, "1.2"))
    put(lake, "raw.commitments", [
        {"provider": "aws", "commitment_id": i, "commitment_name": i, "payment_model": model, "starts_at": at(1),
         "ends_at": at(9), "as_of": date(2026, 3, 1)}
        for i, model in (("whole", "All Upfront"), ("monthly", "No Upfront"))
    ])  # fmt: skip
    used = {"billing_currency": "EUR", "commitment_discount_status": "Used", "billed_cost": Decimal(0)}
    unused = flat("Usage", at(2), at(2, 1), "3", **used | {"commitment_discount_status": "Unused"})
    put_bills(lake, [
        *(line(N, at(2, h), None, "1", **used, commitment_id=i) for h, i in enumerate(("whole", "monthly", "unknown"))),
        unused | {"commitment_id": "whole", "resource_id": "whole"},
        line(N, at(2, 5), None, "1", billing_currency="EUR", commitment_id="whole"),
    ])  # fmt: skip
    run(lake, BILLS, 2, 3)
    by_line = {r["charge_id"].split("/")[2]: r for r in rows(lake, "core.billed_charges")}
    assert [by_line[n]["effective_cost"] for n in "23456"] == [Decimal(x) for x in ("1.1", "1.2", "1.2", "3.3", "1.2")]
    assert [by_line[n]["list_cost"] for n in "234"] == [Decimal("1.8")] * 3
    assert by_line["2"]["pricing_currency_effective_cost"] == 1


def test_reporting_in_euro(lake: Lake) -> None:
    put(lake, "raw.settings", [{"setting": "currency", "value": "EUR"}])
    put_rates(lake, ("EUR", "USD", 1, "1.25"))
    put_bills(lake, [line(N, at(1)), line(N, at(1, 1), None, "1", billing_currency="EUR")])
    run(lake, BILLS)
    assert by_hour(lake, billing_currency="EUR") == {0: Decimal("0.8"), 1: 1}


def test_corrections_are_dealt_by_their_absolute_value(lake: Lake) -> None:
    more = {
        "charge_class": "Correction",
        "billing_period_start_at": APRIL,
        "billing_period_end_at": datetime(2026, 5, 1),
    }
    negative = dict.fromkeys(SUMMED[3:], Decimal("-0.0000000100"))
    put_bills(lake, [line(N, at(1), at(2), "0", pricing_quantity=Decimal("-0.000000005"), **negative, **more)])
    run(lake, BILLS)
    assert total(lake, "billed_cost", charge_class="Correction") == Decimal("-0.00000001")
    assert total(lake, "list_cost") == Decimal("-0.00000001")
    assert total(lake, "pricing_quantity") == Decimal("-0.000000005")
    # a hundred units over 24 hours: four too many after the floor of each, to the first hours
    assert [by_hour(lake)[h] for h in (0, 3, 4, 23)] == [Decimal(x) for x in ("-5E-10", "-5E-10", "-4E-10", "-4E-10")]


def test_costs_that_are_not_price_times_quantity(lake: Lake) -> None:
    put_bills(lake, [
        line("aws:///eu-1a/i-m", at(1), at(2), "1", list_cost=Decimal("100.000000000000000001")),
        line(N, at(1), at(2), "0.333333333", contracted_cost=Decimal("7.9999999921")),
        line(N, at(1, 3), None, "1", list_unit_price=None, contracted_cost=None),
    ])  # fmt: skip
    run(lake, BILLS)
    assert total(lake, "list_cost", node="m") == Decimal("100.000000000000000001")
    # off by its last digit: price x quantity, and the first row has the difference
    daily = [r for r in rows(lake, "core.billed_charges", node="n") if "/3/" in r["charge_id"]]
    assert sum(r["contracted_cost"] for r in daily) == Decimal("7.9999999921")
    assert [r["contracted_cost"] for r in daily[1:]] == [Decimal("0.333333333")] * 23
    (odd,) = [r for r in rows(lake, "core.billed_charges", node="n") if "/4/" in r["charge_id"]]
    assert (odd["list_cost"], odd["contracted_cost"], odd["list_unit_price"]) == (Decimal("1.5"), 0, None)
