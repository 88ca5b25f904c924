"""Laws of charges on random fleets, cards and commitments; and that each law can be broken."""

from __future__ import annotations

import random
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import charge_laws as laws
import pytest
from charge_cases import BEGIN, DAYS, FIRST, cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_card import HOUR, Row, charges, commitment, dec, price, run

from analytics.charges.money import deal, half_up

QUICK = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


@QUICK
@given(cases())
def test_laws_hold(tables: dict[str, Any]) -> None:
    rows = charges(tables, FIRST, DAYS)
    for law in laws.LAWS:
        law(tables, rows)


@QUICK
@given(cases(), st.randoms(use_true_random=False))
def test_order_of_rows_and_cuts_of_the_window_change_nothing(tables: dict[str, Any], order: random.Random) -> None:
    shuffled = {name: order.sample(rows, len(rows)) for name, rows in tables.items()}
    assert charges(tables, FIRST, DAYS) == charges(shuffled, FIRST, DAYS, step=1)


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10**11), st.integers(1, 40 * 3_600_000_000), st.sampled_from((1, 60, 900, 3600, 86_400)),
    st.integers(0, 10_000), st.sampled_from(("up", "nearest", "none")), st.integers(1, 16),
)  # fmt: skip
def test_a_run_costs_its_units(
    begins: int, lasts: int, unit: int, minimum: int, rounding: str, gpus: int
) -> None:  # fmt: skip
    """However a run lies over hours and dates, its quantities add up to its units, rounded once."""
    begin = BEGIN + timedelta(microseconds=begins)
    tables = {
        "core.node_hours": run("a", begin, begin + timedelta(microseconds=lasts), gpu_count=gpus),
        "raw.prices": [
            price(1, pricing_unit="GPU-Hours", metering_s=unit, minimum_s=minimum, rounding=rounding)
        ],
        "raw.commitments": [commitment(committed_quantity=dec("0.3"), ends_at=BEGIN + 99 * HOUR, starts_at=BEGIN)],
    }  # fmt: skip
    rows = laws.of_nodes(charges(tables, begin.date(), 4))
    us = unit * 10**6
    units = {"up": -(-lasts // us), "nearest": (2 * lasts + us) // (2 * us)}.get(rounding, 0)
    charged = max(units, -(-minimum // unit)) * us if rounding != "none" else max(lasts, minimum * 10**6)
    exact = Fraction(charged * gpus, 3_600_000_000)
    expected = half_up(exact.numerator * 10**9, exact.denominator)
    assert sum(r["pricing_quantity"] for r in rows) == Decimal(expected).scaleb(-9)


@given(st.integers(0, 10**30), st.lists(st.integers(0, 10**20), min_size=1, max_size=12))
def test_dealing_is_exact_and_fair(total: int, weights: list[int]) -> None:
    parts = deal(total, weights)
    assert sum(parts) == total and min(parts) >= 0
    if whole := sum(weights):
        assert all(abs(part - Fraction(total * w, whole)) < 1 for part, w in zip(parts, weights, strict=True))
        assert all(a >= b for a, v in zip(parts, weights, strict=True)
                   for b, w in zip(parts, weights, strict=True) if v > w)  # fmt: skip


# a sound case with every kind of row (by quarters of an hour: the oracle counts units one by one), and one change that
# breaks each law


def sound() -> tuple[dict[str, Any], list[Row]]:
    plan = commitment(
        commitment_id="sp", commitment_category="Spend", commitment_type="plan", committed_quantity=None,
        committed_spend=dec(7), commitment_unit="USD", recurring_cost=dec(7), upfront_cost=dec(100),
        payment_interval="Hourly", starts_at=BEGIN, ends_at=BEGIN + 24 * HOUR, is_capacity_reservation=True,
    )  # fmt: skip
    half = commitment(starts_at=BEGIN, ends_at=BEGIN + 48 * HOUR, committed_quantity=dec("0.7"), recurring_cost=dec(3))
    credit = {"provider": "aws", "credit_id": "c", "amount": dec(5), "currency": "USD",
              "charge_period_start_at": BEGIN}  # fmt: skip
    tables = {
        "core.node_hours": run("a", BEGIN, BEGIN + timedelta(days=DAYS), is_open=True)
        + run("b", BEGIN + HOUR, BEGIN + 7 * HOUR),
        "raw.prices": [
            price(10, metering_s=900), price(8, sku_price_id="c", billing_model="committed", commitment_type="plan"),
        ],
        "raw.commitments": [plan, half],
        "raw.credits": [credit],
    }  # fmt: skip
    return tables, charges(tables, FIRST, DAYS)


def used(row: Row) -> bool:
    return bool(row["commitment_discount_status"] == "Used")


def unused(row: Row) -> bool:
    return bool(row["commitment_discount_status"] == "Unused")


def bought(row: Row) -> bool:
    return bool(row["charge_category"] == "Purchase")


def credited(row: Row) -> bool:
    return bool(row["charge_category"] == "Credit")


def on_demand(row: Row) -> bool:
    return bool(row["pricing_category"] == "Standard" and row["charge_scope"] == "node")


TICK, GRAIN = Decimal("0.0000000001"), Decimal("0.000000001")
BREAKS = [
    (laws.quantities_are_what_was_metered, on_demand, {"pricing_quantity": GRAIN}),
    (laws.quantities_are_what_was_metered, used, {"consumed_quantity": GRAIN}),
    (laws.costs_are_price_times_quantity, on_demand, {"list_cost": Decimal("1e-18")}),
    (laws.costs_are_price_times_quantity, unused, {"contracted_unit_price": GRAIN}),
    (laws.hours_cost_what_is_amortized, used, {"effective_cost": TICK}),
    (laws.hours_cost_what_is_amortized, unused, {"effective_cost": -TICK}),
    (laws.terms_cost_what_is_billed, bought, {"billed_cost": TICK}),
    (laws.terms_cost_what_is_billed, bought, {"effective_cost": TICK}),
    (laws.only_credits_are_negative, on_demand, {"billed_cost": Decimal(-20)}),
    (laws.only_credits_are_negative, credited, {"effective_cost": TICK}),
    (laws.only_credits_are_negative, credited, {c: Decimal(9) for c in laws.COSTS}),
    (laws.commitments_are_used_at_most, used, {"commitment_quantity": GRAIN}),
    (laws.commitments_are_used_at_most, bought, {"commitment_quantity": GRAIN}),
    (laws.nothing_is_covered_twice, used, {"billed_cost": TICK}),
    (laws.nothing_is_covered_twice, on_demand, {"effective_cost": TICK}),
    (laws.columns_of_focus_fit_together, unused, {"consumed_quantity": 1}),
    (laws.columns_of_focus_fit_together, used, {"commitment_discount_status": None}),
    (laws.columns_of_focus_fit_together, bought, {"charge_frequency": "Usage-Based"}),
    (laws.columns_of_focus_fit_together, unused, {"resource_id": "i-a"}),
    (laws.columns_of_focus_fit_together, on_demand, {"pricing_unit": None}),
]


@pytest.fixture(scope="module")
def sound_case() -> tuple[dict[str, Any], list[Row]]:
    return sound()


def test_the_sound_case_has_every_kind_of_row(sound_case: tuple[dict[str, Any], list[Row]]) -> None:
    tables, rows = sound_case
    for law in laws.LAWS:
        law(tables, rows)
    assert all(any(map(kind, rows)) for kind in (used, unused, bought, credited, on_demand))


@pytest.mark.parametrize("number", range(len(BREAKS)))
def test_each_law_can_be_broken(number: int, sound_case: tuple[dict[str, Any], list[Row]]) -> None:
    tables, rows = sound_case
    law, kind, change = BREAKS[number]
    place = next(i for i, r in enumerate(rows) if kind(r))
    broken = dict(rows[place])
    for column, by in change.items():
        is_step = isinstance(by, Decimal) and isinstance(broken[column], Decimal)
        broken[column] = broken[column] + by if is_step else by
    with pytest.raises(AssertionError):
        law(tables, [*rows[:place], broken, *rows[place + 1 :]])


@pytest.mark.parametrize("copied", [used, unused, on_demand])
def test_a_row_twice_is_seen(copied: Any, sound_case: tuple[dict[str, Any], list[Row]]) -> None:
    tables, rows = sound_case
    twice = [*rows, next(r for r in rows if copied(r))]
    seen = 0
    for law in laws.LAWS:
        try:
            law(tables, twice)
        except AssertionError:
            seen += 1
    assert seen >= 2
