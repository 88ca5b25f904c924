"""Commitments: what they cost by the hour, which use they cover first, what of them stands idle."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

from billed_fleet import NODES, START, TWO_WEEKS, of_type

from fleet.billing import nimbus
from fleet.billing.accounts import account
from fleet.billing.calendar import HOUR, Window, first_of_month, whole_hours
from fleet.billing.commitments import active, amortized, cover, payments
from fleet.billing.invoices import bill_fleet
from fleet.billing.pricebook import price_book
from fleet.billing.pricelist import PriceList
from fleet.billing.usage import Use
from fleet.topology import SITES, build_nodes


def test_amortized_hours_and_payments_add_up() -> None:
    for c in price_book(NODES, TWO_WEEKS).commitments:
        hours = whole_hours(c.starts_at, c.ends_at)
        whole = sum(amortized(c, c.starts_at + i * HOUR) for i in range(hours))
        assert whole == Fraction(c.upfront_cost) + Fraction(c.recurring_cost) * hours
        asked = list(payments(c, Window(c.starts_at, c.ends_at)))
        assert sum(p.amount for p in asked) == whole
        if c.payment_model == "No Upfront":
            assert [p.start for p in asked] == [first_of_month(c.starts_at, i) for i in range(12)]


def _use(instance_type: str, number: int, prices: PriceList) -> list[Use]:
    return [
        Use(n, prices.of_node(n, START)[0], START, START + HOUR, Fraction(1)) for n in of_type(instance_type, number)
    ]


def test_reservations_first_then_the_highest_saving() -> None:
    """Two H100 nodes, two A100 and one L4; one H100 node reserved, a plan of 60 USD an hour.

    The plan saves 31.8 % on H100 (33.024 against 48.4352) and 26.1 % on A100 (17.8405825 against 24.153404): it takes
    the other H100 node whole, 26.976 USD are left, one A100 node whole, and with 9.1354175 USD 0.512058252 hours of the
    other A100 node. The L4 node, where it would save 20.5 %, stays on demand.
    """
    book = price_book(NODES, TWO_WEEKS)
    prices = PriceList(book.prices)
    plan = replace(next(c for c in book.commitments if c.commitment_category == "Spend"), committed_spend=Decimal(60))
    reserved = next(c for c in book.commitments if c.commitment_id.endswith("ri-0a51"))
    reserved = replace(reserved, committed_quantity=Decimal(1))
    used = [*_use(nimbus.L4, 1, prices), *_use(nimbus.A100, 2, prices), *_use(nimbus.H100, 2, prices)]
    parts, left = cover(used, active([plan, reserved], START), prices, START)
    told = [(p.use.node.instance_type, p.commitment.commitment_type if p.commitment else None, p.quantity, p.committed)
            for p in parts]  # fmt: skip
    rest = Fraction("9.1354175")
    part = Fraction(int(rest / Fraction("17.8405825") * 10**9), 10**9)
    assert part == Fraction("0.512058252")
    assert told == [
        (nimbus.H100, "Reserved Instance", 1, 1),
        (nimbus.H100, "Savings Plan", 1, Fraction("33.024")),
        (nimbus.A100, "Savings Plan", 1, Fraction("17.8405825")),
        (nimbus.A100, "Savings Plan", part, rest),
        (nimbus.L4, None, 1, None),
        (nimbus.A100, None, 1 - part, None),
    ]
    assert left == {plan.commitment_id: 0, reserved.commitment_id: 0}


def test_a_small_fleet_by_hand() -> None:
    """One H100 and two L4 nodes of nimbus for two hours of 1 June.

    H100: reserved, nothing billed for its use, 35.776 USD an hour amortized. L4: four nodes reserved with two there, so
    half of the reservation stands idle. Its hour costs 4 x 18,000 / 8760 = 8.2191780821 (8.2191780822 in the second
    hour, where the cut digits add up) and 4 x 2.171 recurring. No plan was bought, as nothing was left for it.
    Recurring fees for June, 720 hours, are asked on the first: 35.776 x 720 and 8.684 x 720.
    """
    nodes = of_type(nimbus.H100, 1) + of_type(nimbus.L4, 2)
    window = Window(START, START + 2 * HOUR)
    lines = account(nodes, price_book(nodes, window), "nimbus", window, window)
    used = {(x.start, x.node.instance_type, x.status): [] for x in lines if x.node}
    for x in lines:
        if x.node:
            assert x.billed == 0
            used[(x.start, x.node.instance_type, x.status)].append(x.effective)
    assert used[(START, nimbus.H100, "Used")] == [Fraction("35.776")]
    unused = [x.effective for x in lines if x.status == "Unused"]
    fee = [Fraction(72000) * n / 8760 for n in range(24 * 92, 24 * 92 + 3)]
    hour = [Fraction(int(b * 10**10) - int(a * 10**10), 10**10) + Fraction("8.684") for a, b in pairwise(fee)]
    for at, whole in zip((START, START + HOUR), hour, strict=True):
        mine = used[(at, nimbus.L4, "Used")] + [x.effective for x in lines if x.status == "Unused" and x.start == at]
        assert sum(mine) == whole and max(mine) - min(mine) < sum(mine) / 2
        assert abs(mine[0] - whole / 4) <= Fraction(1, 10**10)
    assert [abs(u - h / 2) <= Fraction(1, 10**10) for u, h in zip(unused, hour, strict=True)] == [True, True]
    assert [x.committed for x in lines if x.status == "Unused"] == [2, 2]
    assert sorted(x.billed for x in lines if x.kind == "purchase") == [
        Fraction("8.684") * 720,
        Fraction("35.776") * 720,
    ]
    assert [(x.billed, x.effective) for x in lines if x.kind == "credit"] == [(-195, -195)]


def test_hours_of_a_commitment_add_up_to_its_amortized_cost(billing) -> None:
    spent: dict[tuple[str, datetime], Fraction] = defaultdict(Fraction)
    for a in billing.accounts:
        for x in a.known:
            if x.kind == "usage" and x.commitment:
                spent[(x.commitment.commitment_id, x.start)] += x.effective
                assert x.billed == 0
    for c in billing.book.commitments:
        hours = [h for h in (START + i * HOUR for i in range(14 * 24)) if c.starts_at <= h < c.ends_at]
        assert hours and [spent[(c.commitment_id, h)] for h in hours] == [amortized(c, h) for h in hours]


def test_one_commitment_is_too_large_and_one_is_used_up() -> None:
    for scale in (0.1, 0.5, 1.0):
        billing = bill_fleet(
            build_nodes(3, SITES, scale, datetime(2026, 2, 1)), Window(START, START + timedelta(days=1))
        )
        left = defaultdict(Fraction)
        for a in billing.accounts:
            for x in a.known:
                if x.kind == "usage" and x.commitment:
                    left[x.commitment.commitment_id] += x.committed if x.status == "Unused" else 0
        wasted = {c.rpartition("/")[2] for c, rest in left.items() if rest}
        assert wasted == {"ri-0c7e", "cud-a100-7f2"}
        assert len(left) == 5
