"""What nodes used, metered as their provider meters: before any commitment.

Belongs here: existence of nodes and metering units. A node is charged from its creation, in units that begin there;
the fleet's nodes do not go, so a minimum charge never adds to what they used. Not here: prices and discounts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache

from fleet.billing.calendar import Window, hour_of, hours_of
from fleet.billing.money import UNIT, half_up
from fleet.billing.pricelist import PriceList
from fleet.billing.records import Price
from fleet.model import Node

_US = timedelta(microseconds=1)


@dataclass(frozen=True)
class Use:
    """What one node used of one price in one clock hour."""

    node: Node
    price: Price
    start: datetime
    end: datetime
    quantity: Fraction

    @property
    def is_spot(self) -> bool:
        return self.price.billing_model == "spot"


def present(nodes: Sequence[Node], window: Window) -> Iterator[tuple[Node, datetime, datetime]]:
    """Each node and clock hour of the window in which it exists, hour by hour in order of the provider's ids."""
    ordered = sorted(nodes, key=lambda n: n.provider_id)
    for start, end in hours_of(window.start_at, window.end_at):
        for node in ordered:
            if node.created_at < end:
                yield node, max(start, node.created_at), end


def uses(nodes: Sequence[Node], prices: PriceList, window: Window) -> dict[datetime, list[Use]]:
    """What the nodes used in each clock hour of the window, in order of the provider's ids."""
    found: dict[datetime, list[Use]] = {}
    for node, start, end in present(nodes, window):
        hour = hour_of(start)
        for price in prices.of_node(node, hour):
            quantity = metered(node, price, start, end)
            if quantity:
                found.setdefault(hour, []).append(Use(node, price, start, end, quantity))
    return found


def metered(node: Node, price: Price, start: datetime, end: datetime) -> Fraction:
    """Pricing units charged for the node in `[start, end)`: the metering units since its creation that begin there."""
    unit_us = price.metering_s * 10**6
    first, last = (-(-((at - node.created_at) // _US) // unit_us) for at in (start, end))
    milli = {
        "Hours": 1000,
        "GPU-Hours": 1000 * len(node.devices),
        "vCPU-Hours": node.cpu_milli,
        "GiB-Hours": node.memory_bytes * 1000 // 1024**3,
    }[price.pricing_unit]
    # rounded over the node's life, so that its hours add up to it
    return _rounded(last * price.metering_s * milli) - _rounded(first * price.metering_s * milli)


@lru_cache(maxsize=100_000)
def _rounded(milli_seconds: int) -> Fraction:
    return half_up(Fraction(milli_seconds, 3_600_000), UNIT)


def metered_hours(node: Node, start: datetime, end: datetime) -> Fraction:
    """Hours of `[start, end)` to the microsecond, rounded over the node's life: how owned nodes are counted."""
    first, last = ((at - node.created_at) // _US for at in (start, end))
    return half_up(Fraction(last, 3_600_000_000), UNIT) - half_up(Fraction(first, 3_600_000_000), UNIT)
