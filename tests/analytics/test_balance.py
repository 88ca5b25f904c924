"""Balances by the terms alone, against the sum of the engine's own hours and purchases."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.charges.amortize import COST_PER_FEE, Plan
from analytics.charges.balance import _rows, balance
from analytics.charges.currency import Exchange
from analytics.charges.records import Commitment, first_hour

USD = Exchange([])
START = first_hour(datetime(2026, 1, 15, 7))


def term(**more: Any) -> Commitment:
    usual: dict[str, Any] = {
        "provider": "p", "commitment_id": "c", "name": None, "category": "Usage", "type": None, "precedence": None,
        "region": None, "account": None, "types": (), "quantity": 2 * 10**9, "unit": "Hours", "currency": "USD",
        "payment_model": None, "upfront": 0, "recurring": 0, "hourly": False, "start": START, "end": START + 24 * 90,
        "is_capacity_reservation": False, "owner_team": None,
    }  # fmt: skip
    return Commitment(**{**usual, **more})


def by_hours(plan: Plan, hour: int) -> int:
    """Paid before the hour - every hour's cost before it."""
    start, end = plan.commitment.start, plan.commitment.end
    paid = sum(p.count * (p.price or 0) * COST_PER_FEE for p in plan.purchases(start, min(hour, end)))
    return paid - sum(plan.cost(h) or 0 for h in range(start, min(hour, end)))


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**13), st.integers(0, 10**11), st.booleans(), st.integers(1, 24 * 70), st.integers(-30, 24 * 75)
)
def test_the_balance_is_what_the_hours_leave(upfront: int, recurring: int, hourly: bool, hours: int, at: int) -> None:
    plan = Plan(term(upfront=upfront, recurring=recurring, hourly=hourly, end=START + hours), USD, "USD")
    assert balance(plan, START + at) == by_hours(plan, START + at)


def test_a_year_paid_upfront_half_way() -> None:
    """FOCUS appendix, commitment purchase: 8,760 for 8,760 hours is 1.00 an hour."""
    plan = Plan(term(upfront=8760 * 10**9, end=START + 8760), USD, "USD")
    assert balance(plan, START + 4380) == 4380 * 10**10
    assert balance(plan, START) == balance(plan, START + 8760) == 0


def test_a_month_in_advance_is_left_until_its_hours_have_passed() -> None:
    plan = Plan(term(recurring=3 * 10**9), USD, "USD")
    february = first_hour(datetime(2026, 2, 1))
    assert balance(plan, february) == 0  # January's hours have passed, February is charged at this very hour
    assert balance(plan, february + 1) == (28 * 24 - 1) * 3 * 10**10


def test_fees_are_converted_as_the_engine_does_and_unknown_rates_leave_no_balance() -> None:
    exchange = Exchange(
        [("EUR", "USD", date(2026, 1, 1), Decimal("1.1")), ("EUR", "USD", date(2026, 2, 1), Decimal("2"))]
    )
    plan = Plan(term(upfront=10**12, recurring=10**9, currency="EUR"), exchange, "USD")
    for at in (0, 5, 24 * 20, 24 * 40, 24 * 90):
        assert balance(plan, START + at) == by_hours(plan, START + at)
    assert balance(Plan(term(upfront=10**12, currency="CHF"), exchange, "USD"), START + 5) is None


def test_dates_follow_each_other_and_part_dates_commit_their_hours_only() -> None:
    commitment = term(upfront=10**12, recurring=10**9, end=START + 24 * 20)
    rows = list(_rows(commitment, Plan(commitment, USD, "USD"), "USD", date(2026, 1, 1), date(2026, 3, 1)))
    assert [rows[0]["date"], rows[-1]["date"]] == [date(2026, 1, 15), date(2026, 2, 4)]
    assert rows[0]["committed_quantity"] == 2 * 17
    assert rows[-1]["committed_quantity"] == 2 * 7
    assert (rows[0]["scheduled_opening_balance"], rows[-1]["scheduled_balance"]) == (0, 0)
    for before, after in pairwise(rows):
        assert before["scheduled_balance"] == after["scheduled_opening_balance"]


@pytest.mark.parametrize(("first", "last", "dates"), [("2025-01-01", "2026-01-15", 0), ("2026-01-16", "2026-01-18", 2)])
def test_only_dates_of_the_term(first: str, last: str, dates: int) -> None:
    commitment = term(upfront=10**12)
    plan = Plan(commitment, USD, "USD")
    assert len(list(_rows(commitment, plan, "USD", date.fromisoformat(first), date.fromisoformat(last)))) == dates
