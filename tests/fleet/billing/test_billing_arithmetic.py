"""The arithmetic of bills: shares by largest remainder, rounding, conversion of currencies."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.billing.money import Exchange, as_decimal, half_up, shares
from fleet.billing.records import ExchangeRate
from warehouse.errors import BadInput


def test_shares_by_largest_remainder() -> None:
    unit = Fraction(1, 10**10)
    assert shares(10 * unit, [Fraction(1)] * 3) == [4 * unit, 3 * unit, 3 * unit]
    assert shares(unit, [Fraction(1), Fraction(2)]) == [0, unit]
    assert shares(unit, [Fraction(0), Fraction(0)]) == [unit, 0]


@given(st.integers(0, 10**14), st.lists(st.integers(0, 10**9), min_size=1, max_size=8))
def test_shares_add_up(units, weights) -> None:
    total = Fraction(units, 10**10)
    parts = shares(total, [Fraction(w) for w in weights])
    assert sum(parts) == total and min(parts) >= 0


def test_rounding_and_conversion() -> None:
    assert half_up(Fraction(5, 10**11), 10) == Fraction(1, 10**10)
    assert half_up(Fraction(4, 10**11), 10) == 0
    with pytest.raises(ValueError):
        as_decimal(Fraction(1, 3), 10)
    rates = [ExchangeRate("EUR", "USD", date(2026, 6, d), Decimal(r)) for d, r in ((8, "1.2"), (1, "1.1"))]
    exchange = Exchange(rates, "USD")
    assert [exchange.rate("EUR", date(2026, 6, d)) for d in (1, 7, 8)] == [
        Fraction("1.1"),
        Fraction("1.1"),
        Fraction("1.2"),
    ]
    assert exchange.rate("USD", date(2020, 1, 1)) == 1
    with pytest.raises(BadInput):
        exchange.rate("EUR", date(2026, 5, 31))
