"""Commitments at work in one hour: which use they cover, what that costs amortized, and when they are paid.

Belongs here: order and reach of reservations and savings plans, amortization, payments. Not here: what on-demand use
costs (`usage.py`), and the lines made of it (`accounts.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from fleet.billing.calendar import HOUR, Window, first_of_month, whole_hours
from fleet.billing.money import COST, UNIT, floored
from fleet.billing.pricelist import PriceList
from fleet.billing.records import Commitment
from fleet.billing.usage import Use


@dataclass(frozen=True)
class Part:
    """A part of a use: `quantity` of its pricing units, under a commitment (`committed` of its units) or under none."""

    use: Use
    quantity: Fraction
    commitment: Commitment | None = None
    committed: Fraction | None = None


@dataclass(frozen=True)
class Payment:
    """What a commitment asks for a period: the upfront fee, or a recurring one."""

    commitment: Commitment
    start: datetime
    end: datetime
    is_upfront: bool
    amount: Fraction


def active(commitments: Sequence[Commitment], hour: datetime) -> list[Commitment]:
    """Those whose term holds in the hour, in the order in which they apply: reservations before spending plans."""
    return sorted(
        (c for c in commitments if c.starts_at <= hour < c.ends_at),
        key=lambda c: (
            c.commitment_category != "Usage",
            c.precedence,
            # what reaches fewer kinds of nodes goes first
            len(c.eligible_instance_types) or 10**6,
            c.commitment_id,
        ),
    )


def cover(
    used: Sequence[Use], commitments: Sequence[Commitment], prices: PriceList, hour: datetime
) -> tuple[list[Part], dict[str, Fraction]]:
    """The uses of one hour in parts, and what each commitment has left of the hour (units, or money).

    `commitments` are those active, in order. Spot use is never covered.
    """
    open_: list[Fraction] = [u.quantity for u in used]
    parts: list[Part] = []
    left: dict[str, Fraction] = {}
    for c in commitments:
        eligible = [i for i, u in enumerate(used) if not u.is_spot and open_[i] and _reaches(c, u)]
        if c.commitment_category == "Usage":
            rest = Fraction(c.committed_quantity or 0)
            for i in eligible:
                taken = min(rest, open_[i])
                if taken and used[i].price.pricing_unit == c.commitment_unit:
                    parts.append(Part(used[i], taken, c, taken))
                    open_[i] -= taken
                    rest -= taken
        else:
            rest = _spend(c, used, open_, eligible, parts, prices, hour)
        left[c.commitment_id] = rest
    parts += [Part(u, open_[i]) for i, u in enumerate(used) if open_[i]]
    return parts, left


def _spend(
    c: Commitment, used: Sequence[Use], open_: list[Fraction], eligible: Sequence[int], parts: list[Part],
    prices: PriceList, hour: datetime,
) -> Fraction:  # fmt: skip
    """Take eligible use by the highest saving, at most for the committed money; what of that is left."""
    rest = Fraction(c.committed_spend or 0)
    offers = []
    for i in eligible:
        use = used[i]
        rate = prices.committed(use.node, use.price.pricing_unit, c.commitment_type, hour)
        if rate is not None:
            saving = 1 - rate / Fraction(use.price.contracted_unit_price)
            offers.append((-saving, rate, use.price.sku_id, use.node.provider_id, i))
    for _, rate, _, _, i in sorted(offers):
        wanted = open_[i] * rate
        if wanted <= rest:
            quantity, money = open_[i], wanted
        else:
            # the money is used up on the last use; its quantity is cut, not rounded up, so that none is given away
            quantity, money = floored(rest / rate, UNIT), rest
        if quantity:
            parts.append(Part(used[i], quantity, c, money))
            open_[i] -= quantity
            rest -= money
    return rest


def _reaches(c: Commitment, use: Use) -> bool:
    return c.region in (use.node.region, "*") and (
        not c.eligible_instance_types or use.node.instance_type in c.eligible_instance_types
    )


def amortized(c: Commitment, hour: datetime) -> Fraction:
    """What the hour costs, ten decimals: its share of the upfront fee and the recurring cost of an hour.

    The shares of all hours add up to the fee: the hour gets what is due by its end less what was by its start.
    """
    hours = whole_hours(c.starts_at, c.ends_at)
    n = whole_hours(c.starts_at, hour)
    fee = Fraction(c.upfront_cost)
    return floored(fee * (n + 1) / hours, COST) - floored(fee * n / hours, COST) + Fraction(c.recurring_cost)


def payments(c: Commitment, window: Window) -> Iterator[Payment]:
    """What is asked within the window: the upfront fee when the term starts, recurring fees in advance."""
    if c.upfront_cost and window.start_at <= c.starts_at < window.end_at:
        yield Payment(c, c.starts_at, c.ends_at, True, Fraction(c.upfront_cost))
    if not c.recurring_cost:
        return
    start = c.starts_at
    while start < min(c.ends_at, window.end_at):
        end = start + HOUR if c.payment_interval == "Hourly" else min(first_of_month(start, 1), c.ends_at)
        if start >= window.start_at:
            yield Payment(c, start, end, False, Fraction(c.recurring_cost) * whole_hours(start, end))
        start = end
