"""Spend commitments: so much money an hour at committed rates.

The highest saving against the contracted on-demand price goes first, then the lowest committed rate, then SKU and
resource (AWS, Savings Plans user guide, "Understanding how Savings Plans apply to your usage"). Usage without a
committed rate for the commitment's type is not eligible. The rate is the card's for the hour of the usage: a provider
that locks rates at purchase has cards that say so by their validity. A commitment is drawn down in its own currency,
to which rates in others are converted on the date of the usage.
Belongs here: eligibility and order by saving, taking by money. Not here: scope, amortized cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from analytics.charges.currency import Exchange
from analytics.charges.money import NANO, deal, half_up
from analytics.charges.pieces import Hour, Taken, Usage
from analytics.charges.pricing import Card
from analytics.charges.records import Commitment
from analytics.charges.usage import in_scope


@dataclass(frozen=True)
class Offer:
    """A committed rate for a class of usage: 1e-9 of the commitment's currency, and its place in the order."""

    rate: int
    place: int


@dataclass(frozen=True)
class Market:
    """What committed rates are looked up and compared with."""

    card: Card
    exchange: Exchange
    currency: str

    def offers(self, commitment: Commitment, usages: Mapping[int, Usage], hour: int, day: date) -> dict[int, Offer]:
        """Offers for the classes of usage that are eligible in that hour.

        Not eligible is what has no committed rate, no price to save on, or no conversion.
        """
        rates, orders = dict[int, int](), dict[int, tuple[Fraction, int, str]]()
        for u, usage in usages.items():
            found = None
            if in_scope(commitment, usage):
                found = self.card.committed(usage.kind, usage.price.pricing_unit, commitment.type, hour)
            if found is None:
                continue
            rate = self.exchange.price(found.contracted_price, found.currency, commitment.currency, day)
            compared = self.exchange.price(found.contracted_price, found.currency, self.currency, day)
            price = self.exchange.price(usage.price.contracted_price, usage.price.currency, self.currency, day)
            if rate is None or compared is None or not price:
                continue
            rates[u] = rate
            # the share of the price that stays to pay: lowest first is highest saving first
            orders[u] = (Fraction(compared, price), compared, usage.price.sku_id or "")
        places = {order: place for place, order in enumerate(sorted(set(orders.values())))}
        return {u: Offer(rates[u], places[order]) for u, order in orders.items()}


def cover(commitment: Commitment, hour: Hour, offers: Mapping[int, Offer]) -> Taken:
    """Take of the hour's rows by saving, up to the committed money. `offers`: class of usage to its offer.

    Money is counted exactly, the last row takes what is left of it; the money used by each row is stated in 1e-9 by
    largest remainder.
    """
    eligible = []
    for i, row in enumerate(hour.rows):
        offer = offers.get(row.usage)
        if offer is not None and hour.left[i]:
            eligible.append((offer.place, i, offer.rate))
    eligible.sort()
    taken, left, exact = Taken(), commitment.quantity * NANO, []
    for _, i, rate in eligible:
        quantity = hour.left[i]
        money = quantity * rate
        if money > left:
            # cut, not rounded up: no usage is covered that was not paid
            quantity, money = left // rate, left
            if not quantity:
                continue
        hour.take(i, quantity)
        taken.add(i, quantity, 0)
        exact.append(money)
        left -= money
        if not left:
            break
    taken.used = deal(half_up(sum(exact), NANO), exact) if exact else []
    return taken
