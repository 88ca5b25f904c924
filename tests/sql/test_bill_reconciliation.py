"""What the reconciliation says of bills and of what was computed."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from small_bills import APRIL, CHARGES, MARCH, computed, flat, line, put_bills, put_rates, total
from small_cloud import HOUR, Node, at, put, put_lists, rows, run, times

from warehouse.lake import Lake

ALL = (*CHARGES, "mart.bill_reconciliation")


def rid(name: str) -> str:
    return f"aws:///eu-1a/i-{name}"


def day(name: str, cost: str, **more: Any) -> list[dict[str, Any]]:
    """Computed charges of the first of March."""
    return [computed(rid(name), at(1, h), cost, node=name, **more) for h in range(24)]


def hourly(name: str, cost: str, hours: int = 24, **more: Any) -> list[dict[str, Any]]:
    """Billed hours of the first of March."""
    return [line(rid(name), at(1) + i * HOUR, None, cost, **more) for i in range(hours)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    put_lists(lake, [Node(n) for n in "abcdefghi"], times(at(1), at(2)))
    return lake


def verdicts(lake: Lake) -> dict[str | None, str]:
    """By the last letter of the resource, else by scope."""
    run(lake, ALL)
    return {
        (r["resource_id"].rsplit("-", 1)[-1] if r["resource_id"] else r["charge_scope"]): r["verdict"]
        for r in rows(lake, "mart.bill_reconciliation")
    }


def test_every_verdict(lake: Lake) -> None:
    put_rates(lake, ("EUR", "USD", 1, "2"))
    put(lake, "core.computed_charges", [
        *day("a", "2"), *day("b", "2"), *day("c", "2"), *day("d", "2"), *day("e", "0", flags="no_price"),
        *day("f", "0", flags="no_price"), *day("g", "2"), *day("h", "2"),
    ])  # fmt: skip
    put_bills(lake, [
        *hourly("a", "2.0003"), *hourly("b", "2.01"), *hourly("e", "1"),
        *hourly("g", "2", 12, billing_account_id="other"),
        # names c, but charges nothing for it on the first; h is billed in an unknown currency
        line(rid("c"), at(2)), *hourly("h", "2", billing_currency="JPY"), *hourly("z", "1"),
        *hourly("i", "1", billing_currency="EUR"),
        line("vol-1", at(1), at(2), service_category="Storage"), flat("Tax", MARCH, APRIL, "3"),
        flat("Credit", MARCH, APRIL, "-3"),
        line(rid("d"), at(1), None, "1", billing_account_id="other", charge_class="Correction"),
    ])  # fmt: skip
    assert verdicts(lake) == {
        "a": "match", "b": "differs", "c": "missing_in_bill", "d": "differs", "e": "not_computed", "f": "no_price",
        "g": "match", "h": "no_rate", "i": "not_computed", "z": "not_in_cluster", "other_services": "other_services",
        "tax": "tax", "credit": "credit",
    }  # fmt: skip
    (differing,) = rows(lake, "mart.bill_reconciliation", resource_id=rid("b"))
    assert (differing["computed_hours"], differing["bill_hours"]) == (24, 24)
    assert (differing["computed_billed_cost"], differing["billed_difference"]) == (48, Decimal("0.24"))
    assert (differing["cluster"], differing["node"], differing["billing_account_id"]) == ("c", "b", "acct")
    (part,) = rows(lake, "mart.bill_reconciliation", resource_id=rid("g"))
    # twelve of its hours are billed, the others stand as computed and are not compared yet
    assert (part["computed_hours"], part["bill_hours"], part["billed_difference"]) == (12, 12, 0)
    (missing,) = rows(lake, "mart.bill_reconciliation", resource_id=rid("c"))
    assert (missing["billing_account_id"], missing["billed_difference"]) == ("acct", -48)
    assert total(lake, "bill_billed_cost", "mart.bill_reconciliation") == total(lake, "billed_cost")


def test_without_a_bill(lake: Lake) -> None:
    put(lake, "core.computed_charges", [*day("a", "2"), *day("b", "2"), *day("c", "0", flags="no_price,no_rate")])
    assert verdicts(lake) == {"a": "not_in_bill", "b": "not_in_bill", "c": "no_rate"}
    put_bills(lake, [line(rid("a"), at(5))])
    assert verdicts(lake) == {"a": "not_billed_yet", "b": "not_in_bill", "c": "no_rate"}


def test_hours_of_several_units_and_charges(lake: Lake) -> None:
    half = {"pricing_quantity": Decimal("0.5")}
    put(lake, "core.computed_charges", [
        *day("a", "1", **half, sku_id="vm"),
        *(c | {"charge_id": c["charge_id"] + "b"} for c in day("a", "1", **half, sku_id="vm")),
        *day("b", "1", pricing_quantity=Decimal(8), pricing_unit="GPU-Hours"),
    ])  # fmt: skip
    put_bills(
        lake, [*hourly("a", "2", sku_id="vm"), *hourly("a", "0", sku_id="os"), *hourly("b", "1", pricing_unit="Hrs")]
    )
    run(lake, ALL)
    found = {
        r["node"]: (r["computed_hours"], r["bill_hours"], r["verdict"]) for r in rows(lake, "mart.bill_reconciliation")
    }
    assert found == {"a": (24, 24, "match"), "b": (24, 24, "match")}


def test_a_resource_in_two_accounts_is_compared_once(lake: Lake) -> None:
    put(lake, "core.computed_charges", day("a", "2"))
    put_bills(lake, [*hourly("a", "2"), line(rid("a"), at(1), None, "0.5", billing_account_id="support")])
    run(lake, ALL)
    found = {r["billing_account_id"]: r for r in rows(lake, "mart.bill_reconciliation")}
    assert found["acct"]["verdict"] == "match"
    assert (found["support"]["verdict"], found["support"]["computed_billed_cost"]) == ("not_computed", 0)


def test_credits_are_those_of_one_provider(lake: Lake) -> None:
    about = {"charge_scope": "credit", "charge_category": "Credit", "charge_period_end_at": APRIL}
    put(lake, "core.computed_charges", [
        computed(None, at(1), "-5", **about, provider=p, charge_id=p) for p in ("aws", "gcp")
    ])  # fmt: skip
    put_bills(lake, [flat("Credit", at(1), at(2), "-4"), flat("Credit", at(1), at(2), "-7", provider="azure")])
    run(lake, ALL)
    found = rows(lake, "mart.bill_reconciliation")
    assert {(r["provider"], r["verdict"], r["computed_billed_cost"], r["bill_billed_cost"]) for r in found} == {
        ("aws", "credit", -5, -4), ("azure", "credit", 0, -7), ("gcp", "not_in_bill", -5, 0)
    }  # fmt: skip


def test_commitments_are_compared_as_well(lake: Lake) -> None:
    unused = {"charge_scope": "commitment", "commitment_id": "ri-1", "commitment_discount_status": "Unused"}
    put(lake, "core.computed_charges", [computed("ri-1", at(1, h), "2", **unused) for h in range(24)])
    bill = {"commitment_id": "ri-1", "commitment_discount_status": "Unused", "consumed_quantity": None}
    put_bills(lake, [line("ri-1", at(1), at(2), "2", **bill)])
    assert verdicts(lake) == {"1": "match"}
