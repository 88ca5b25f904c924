"""What a commitment costs each hour, and what it is billed when.

Upfront money T over a term of N hours: hour n (from 1) costs floor(n T / N) - floor((n - 1) T / N) in 1e-10, so the
hours add up to T. Recurring cost is added hour by hour; a recurring purchase is the sum of its hours. Other
currencies: the upfront fee is converted once with the rate of the term's first date, recurring cost with the rate of
the date its purchase is charged, so that purchases and amortization stay equal.
Belongs here: fees and their amortization. Not here: who used the commitment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from analytics.charges.currency import Exchange
from analytics.charges.money import half_up
from analytics.charges.records import Commitment, date_of, month_of

# a fee (1e-9) in units of a cost (1e-10)
COST_PER_FEE = 10


@dataclass(frozen=True)
class Purchase:
    """A charge for a commitment over hours [start, end): `count` times the fee `price` (1e-9 of each currency).

    `price` is None where no rate converts the fee. `quantity`: committed units it pays for, in 1e-9.
    """

    start: int
    end: int
    is_upfront: bool
    count: int
    price: int | None
    price_in_own: int
    quantity: int


class Plan:
    """Fees and amortization of one commitment in the reporting currency."""

    def __init__(self, commitment: Commitment, exchange: Exchange, currency: str) -> None:
        self.commitment = commitment
        self._exchange, self._currency = exchange, currency
        self._upfront = self._convert(commitment.upfront, commitment.start)
        self._recurring: dict[int, int | None] = {}

    def cost(self, hour: int) -> int | None:
        """Amortized cost of an hour of the term in 1e-10; None: no rate converts it."""
        recurring = self.recurring(hour)
        if self._upfront is None or recurring is None:
            return None
        return self._share(self._upfront, hour) + recurring * COST_PER_FEE

    def cost_in_own(self, hour: int) -> int:
        """Amortized cost of an hour in 1e-10 of the commitment's own currency."""
        return self._share(self.commitment.upfront, hour) + self.commitment.recurring * COST_PER_FEE

    def recurring(self, hour: int) -> int | None:
        """Recurring cost of an hour in 1e-9, converted as its purchase is."""
        charged = self.charged_at(hour)
        if charged not in self._recurring:
            self._recurring[charged] = self._convert(self.commitment.recurring, charged)
        return self._recurring[charged]

    def charged_at(self, hour: int) -> int:
        """The hour at which the recurring cost of `hour` is charged."""
        return hour if self.commitment.hourly else max(month_of(hour)[0], self.commitment.start)

    def purchases(self, start: int, end: int) -> Iterator[Purchase]:
        """Purchases charged in the hours [start, end)."""
        c = self.commitment
        if c.upfront and start <= c.start < end:
            quantity = self._upfront_quantity()
            yield Purchase(c.start, c.end, True, 1, self._upfront, c.upfront, quantity)
        if c.upfront and not c.recurring:
            return
        hour = max(start, c.start)
        while hour < min(end, c.end):
            following = hour + 1 if c.hourly else month_of(hour)[1]
            if self.charged_at(hour) == hour:
                until = min(following, c.end)
                quantity = self._recurring_quantity(until) - self._recurring_quantity(hour)
                yield Purchase(hour, until, False, until - hour, self.recurring(hour), c.recurring, quantity)
            hour = following

    def _share(self, upfront: int, hour: int) -> int:
        total, n, hours = upfront * COST_PER_FEE, hour - self.commitment.start, self.commitment.hours
        return (n + 1) * total // hours - n * total // hours

    def _convert(self, fee: int, hour: int) -> int | None:
        return self._exchange.price(fee, self.commitment.currency, self._currency, date_of(hour)) if fee else 0

    # FOCUS CommitmentDiscountQuantity of purchases adds up to what the term commits; partly upfront, each purchase
    # has the part that its fee is of all fees (appendix, purchase scenario 3: 4,380 of 8,760 USD). Newer samples of
    # the specification state the whole quantity on both, which would count it twice.
    def _upfront_quantity(self) -> int:
        c = self.commitment
        return half_up(c.quantity * c.hours * c.upfront, c.upfront + c.recurring * c.hours)

    def _recurring_quantity(self, until: int) -> int:
        c = self.commitment
        total = c.quantity * c.hours - (self._upfront_quantity() if c.upfront else 0)
        return total * (until - c.start) // c.hours
