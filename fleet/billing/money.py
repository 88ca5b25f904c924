"""Exact money: fractions until the one rounding that is due, shares that add up, dated conversion.

Belongs here: arithmetic. Not here: which price or which part is meant. A cost has ten decimals, a unit price and a
quantity nine.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction

from fleet.billing.records import ExchangeRate
from warehouse.errors import BadInput

COST, UNIT = 10, 9


def half_up(value: Fraction, decimals: int) -> Fraction:
    """`value` (0 or more) rounded to that many decimals, halves upwards."""
    scale = 10**decimals
    return Fraction((2 * value.numerator * scale + value.denominator) // (2 * value.denominator), scale)


def floored(value: Fraction, decimals: int) -> Fraction:
    """`value` cut to that many decimals."""
    scale = 10**decimals
    return Fraction(value.numerator * scale // value.denominator, scale)


def as_decimal(value: Fraction, decimals: int) -> Decimal:
    """The same number with that many decimals; `ValueError` where it has more."""
    scaled = value * 10**decimals
    if scaled.denominator != 1:
        raise ValueError(f"{value} has more than {decimals} decimals")
    return Decimal(scaled.numerator).scaleb(-decimals)


def shares(total: Fraction, weights: Sequence[Fraction]) -> list[Fraction]:
    """`total` (a multiple of 1e-10, 0 or more) by weights: floors, and what is left to the largest remainders.

    Ties go to who comes first. Weights without a sum give nothing to anybody but `total` to the first.
    """
    units = int(total * 10**COST)
    whole = sum(weights, Fraction(0))
    if not whole:
        return [total if i == 0 else Fraction(0) for i in range(len(weights))]
    exact = [units * w / whole for w in weights]
    given = [x.numerator // x.denominator for x in exact]
    order = sorted(range(len(weights)), key=lambda i: given[i] - exact[i])
    for i in order[: units - sum(given)]:
        given[i] += 1
    return [Fraction(g, 10**COST) for g in given]


class Exchange:
    """Conversion from currencies into one, by the newest rate that is not after the day."""

    def __init__(self, rates: Sequence[ExchangeRate], into: str) -> None:
        self.into = into
        self._known: dict[str, list[tuple[date, Fraction]]] = {}
        for r in sorted(rates, key=lambda r: r.rate_date):
            if r.to_currency == into:
                self._known.setdefault(r.from_currency, []).append((r.rate_date, Fraction(r.exchange_rate)))

    def rate(self, currency: str, day: date) -> Fraction:
        """Units of the target for one of `currency` on that day; `BadInput` where no rate holds."""
        if currency == self.into:
            return Fraction(1)
        known = [rate for since, rate in self._known.get(currency, ()) if since <= day]
        if not known:
            raise BadInput(f"the price book has no rate from {currency} to {self.into} for {day}")
        return known[-1]
