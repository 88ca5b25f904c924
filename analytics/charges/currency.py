"""Dated conversion of money between currencies.

Belongs here: which rate holds on a date, and converting unit prices. Not here: which amounts are converted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from fractions import Fraction

from analytics.charges.money import half_up


class Exchange:
    """Conversion rates by date. A date without a rate takes the newest before it."""

    def __init__(self, rates: Iterable[tuple[str, str, date, Decimal]]) -> None:
        """`rates`: from, to, date, units of `to` for one of `from`; rates that are not positive are left out."""
        self._series: dict[tuple[str, str], tuple[list[date], list[Fraction]]] = {}
        for origin, target, day, rate in sorted(rates, key=lambda r: r[:3]):
            if rate is not None and rate > 0:
                days, values = self._series.setdefault((origin, target), ([], []))
                days.append(day)
                values.append(Fraction(rate))

    def rate(self, origin: str | None, target: str | None, day: date) -> Fraction | None:
        """Units of `target` for one of `origin` on `day`; the inverse rate where only that is given; None: unknown."""
        if origin == target:
            return Fraction(1)
        if origin is None or target is None:
            return None
        direct = self._newest(origin, target, day)
        if direct is not None:
            return direct
        inverse = self._newest(target, origin, day)
        return None if inverse is None else 1 / inverse

    def price(self, price: int | None, origin: str | None, target: str | None, day: date) -> int | None:
        """A unit price (any unit) converted and rounded half up to the same unit; None: no price, or no rate."""
        rate = None if price is None else self.rate(origin, target, day)
        if price is None or rate is None:
            return None
        return half_up(price * rate.numerator, rate.denominator)

    def _newest(self, origin: str, target: str, day: date) -> Fraction | None:
        days, values = self._series.get((origin, target), ((), ()))
        at = bisect_right(days, day)
        return values[at - 1] if at else None
