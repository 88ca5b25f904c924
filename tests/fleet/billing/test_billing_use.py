"""What the simulated providers meter and at which price: units of use, the price that holds, hours of owned nodes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from billed_fleet import NODES, START, TWO_WEEKS, of_type

from fleet.billing import cirrus, nimbus
from fleet.billing.calendar import HOUR, Window
from fleet.billing.money import half_up
from fleet.billing.pricebook import price_book
from fleet.billing.pricelist import PriceList, owned_rate
from fleet.billing.usage import metered, uses
from fleet.topology import SPOT_LABEL
from warehouse.errors import BadInput


def test_units_begin_at_creation() -> None:
    """By the minute from 10:00:30: the unit that begins at 10:59:30 belongs to that hour, the one after to the next."""
    node = replace(of_type(cirrus.L40S, 1)[0], created_at=datetime(2026, 6, 1, 10, 0, 30))
    price = PriceList(price_book(NODES, TWO_WEEKS).prices).of_node(node, datetime(2026, 6, 1, 10))[0]
    ten, eleven = datetime(2026, 6, 1, 10), datetime(2026, 6, 1, 11)
    assert metered(node, price, node.created_at, eleven) == 1
    assert metered(node, price, eleven, eleven + HOUR) == 1
    assert metered(node, price, eleven, datetime(2026, 6, 1, 11, 0, 31)) == half_up(Fraction(1, 60), 9)
    seconds = replace(price, metering_s=1)
    assert metered(node, seconds, node.created_at, eleven) == half_up(Fraction(3570, 3600), 9)
    second = timedelta(seconds=1)
    begun = [node.created_at + i * second for i in range(3600)]
    assert sum(metered(node, seconds, at, at + second) for at in begun) == 1 and ten < node.created_at


def test_prices_nearest_and_newest_win() -> None:
    prices = PriceList(price_book(NODES, TWO_WEEKS).prices)
    h100, l4 = of_type(nimbus.H100, 1)[0], of_type(nimbus.L4, 1)[0]
    assert [p.list_unit_price for p in prices.of_node(h100, START)] == [Decimal("55.04")]
    # the year-old price held before
    assert [p.list_unit_price for p in prices.of_node(h100, datetime(2025, 6, 1))] == [Decimal("98.32")]
    assert [p.region for p in prices.of_node(l4, START)] == [nimbus.REGION]
    elsewhere = replace(l4, region="nb-south-9")
    assert [p.list_unit_price for p in prices.of_node(elsewhere, START)] == [Decimal("7.1")]
    with pytest.raises(BadInput):
        prices.of_node(replace(h100, region="nb-south-9"), START)


def test_parts_of_a_node_are_priced_apart_and_spot_by_slices() -> None:
    prices = PriceList(price_book(NODES, TWO_WEEKS).prices)
    a100, spot = of_type(cirrus.A100, 1)[0], of_type(cirrus.L4, 1)[0]
    assert spot.labels[SPOT_LABEL] == "true"
    window = Window(START, START + HOUR)
    quantities = {u.price.pricing_unit: u.quantity for u in uses([a100], prices, window)[START]}
    assert quantities == {"GPU-Hours": 8, "vCPU-Hours": 96, "GiB-Hours": 1152}
    slices = [prices.of_node(spot, START + i * HOUR)[0] for i in range(14 * 24)]
    turns = [i for i in range(1, len(slices)) if slices[i] is not slices[i - 1]]
    assert len(turns) >= 4 and all((START + i * HOUR).hour == 6 for i in turns)
    assert {s.billing_model for s in slices} == {"spot"}


def test_owned_hour_by_hand() -> None:
    """(149,000 / 5 + 9,000) / 8760 + 3.5 kW x 1.5 x 0.14 = 4.429223744 + 0.735."""
    book = price_book(NODES, TWO_WEEKS)
    assert owned_rate(of_type("dgx-v100", 1)[0], book.owned_hardware, START) == Fraction("5.164223744")
