"""The simulated providers' own bills: worked by hand, added up, and read back from what they write."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.billing import cirrus, nimbus
from fleet.billing.accounts import account
from fleet.billing.bills import daily, write_bills
from fleet.billing.calendar import HOUR, Window, first_of_month, whole_hours
from fleet.billing.cards import write_cards
from fleet.billing.commitments import active, amortized, cover, payments
from fleet.billing.invoices import bill_fleet, fleet_invoices
from fleet.billing.money import Exchange, as_decimal, half_up, shares
from fleet.billing.pricebook import price_book
from fleet.billing.pricelist import PriceList, owned_rate
from fleet.billing.records import ExchangeRate
from fleet.billing.usage import Use, metered, uses
from fleet.topology import OWNER_LABEL, SITES, SPOT_LABEL, build_nodes
from sources.prices.cards import read_cards
from warehouse.errors import BadInput

START = datetime(2026, 6, 1)
TWO_WEEKS = Window(START, START + timedelta(days=14))
NODES = build_nodes(7, SITES, 0.2, datetime(2026, 2, 1))


def of_type(instance_type: str, number: int):
    """That many nodes of a kind, in order of their provider ids."""
    found = [n for n in build_nodes(7, SITES, 1.0, datetime(2026, 2, 1)) if n.instance_type == instance_type]
    return sorted(found[:number], key=lambda n: n.provider_id)


@pytest.fixture(scope="module")
def billing():
    return bill_fleet(NODES, TWO_WEEKS)


# ---------------------------------------------------------------- arithmetic


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


# ---------------------------------------------------------------- use


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


# ---------------------------------------------------------------- commitments


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


# ---------------------------------------------------------------- bills and invoices


def test_every_line_keeps_the_rules_of_focus(billing) -> None:
    for a in billing.accounts:
        for x in (*a.known, *a.told):
            if x.list_price is not None:
                assert x.list_cost == x.list_price * x.quantity
                assert x.contracted_cost == x.contracted_price * x.quantity
            if x.kind == "credit":
                assert x.list_cost == x.contracted_cost == x.billed == x.effective < 0
            if x.kind == "tax":
                assert x.sku is None and x.quantity is None and x.pricing is None and x.effective == x.billed
            if x.kind == "purchase":
                assert x.effective == 0 and x.pricing == "Standard" and x.frequency != "Usage-Based"
            if x.status == "Unused":
                assert x.resource_id == x.commitment.commitment_id and x.committed > 0 and x.node is None


def test_days_cost_what_their_hours_cost(billing) -> None:
    told = next(a for a in billing.accounts if a.provider == "cirrus").told
    merged = daily(told)
    assert len(merged) < len(told) * 0.6
    for value in ("billed", "effective", "list_cost", "contracted_cost"):
        assert sum(getattr(x, value) for x in merged) == sum(getattr(x, value) for x in told)
    days = [x for x in merged if x.node and x.pricing == "Standard"]
    assert days and all(x.end - x.start == timedelta(days=1) for x in days)
    assert all(x.billed == half_up(x.contracted_price * x.quantity, 10) for x in days)
    assert all(x.end - x.start == HOUR for x in merged if x.pricing == "Dynamic" or x.status)


def test_files_say_what_was_charged(billing, tmp_path) -> None:
    files = write_bills(billing, tmp_path)
    assert [f.name for f in files] == ["cirrus-2026-06.parquet", "nimbus-2026-06.csv"]
    told = {a.provider: sum(x.billed for x in a.told) for a in billing.accounts}
    with open(files[1], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(Fraction(r["BilledCost"]) for r in rows) == told["nimbus"]
    assert len(rows[0]) == 57 and {r["ChargePeriodStart"][-1] for r in rows} == {"Z"}
    hourly = [r for r in rows if r["ResourceType"] == "Virtual Machine"]
    assert {r["ResourceId"] for r in hourly} == {n.provider_id for n in NODES if n.provider == "nimbus"} | {
        "nimbus:///nb-east-1a/bastion"
    }
    table = pq.read_table(files[0])
    assert Fraction(pc.sum(table.column("billed_cost")).as_py()) == told["cirrus"]
    assert set(table.column("billing_currency").to_pylist()) == {"EUR"}
    # month to date: two days behind
    assert max(table.column("charge_period_end").to_pylist()) == "2026-06-13 00:00:00"


def test_invoices_are_the_sums_of_lines(billing) -> None:
    rows = fleet_invoices(billing).to_pylist()
    assert {(r["provider"], r["kind"]) for r in rows} == {
        *(("nimbus", k) for k in ("usage", "purchase", "credit", "tax", "other", "not_in_cluster")),
        *(("cirrus", k) for k in ("usage", "credit", "tax", "other", "not_in_cluster")),
        ("onprem", "usage"),
    }  # fmt: skip
    for r in rows:
        a = next(a for a in billing.accounts if a.provider == r["provider"])
        own = sum(x.billed for x in a.invoiced if x.kind == r["kind"])
        assert Fraction(r["invoiced_billed_cost"]) == own
        if r["invoiced_currency"] == "USD":
            assert r["billed_cost"] == r["invoiced_billed_cost"]
        else:
            assert Fraction("1.08") < Fraction(r["billed_cost"]) / own < Fraction("1.0904")


def test_a_window_over_two_months_and_one_of_a_day(tmp_path) -> None:
    across = bill_fleet(NODES, Window(datetime(2026, 5, 30), datetime(2026, 6, 3)))
    assert [f.name for f in write_bills(across, tmp_path)] == [
        "cirrus-2026-05.parquet", "nimbus-2026-05.csv", "nimbus-2026-06.csv",
    ]  # fmt: skip
    with open(tmp_path / "nimbus-2026-05.csv", encoding="utf-8", newline="") as file:
        assert {r["InvoiceId"] for r in csv.DictReader(file)} == {"nimbus-202605-0001"}
    months = {(r["date"], r["kind"]) for r in fleet_invoices(across).to_pylist() if r["provider"] == "nimbus"}
    assert (date(2026, 6, 1), "purchase") in months and (date(2026, 5, 1), "usage") in months
    single = bill_fleet(NODES, Window(START, START + timedelta(days=1)))
    assert {a.provider: len(a.told) > 0 for a in single.accounts} == {"nimbus": True, "cirrus": True, "onprem": False}


# ---------------------------------------------------------------- cards


def test_cards_say_what_the_book_says(billing, tmp_path) -> None:
    book = billing.book
    read = [read_cards(path) for path in write_cards(book, TWO_WEEKS, tmp_path)]
    assert not [p for c in read for p in c.problems]
    for kind in ("prices", "commitments", "credits", "exchange_rates", "owned_hardware", "energy_factors"):
        rows = [r for c in read for r in c.rows.get(kind, ())]
        assert len(rows) == len(getattr(book, kind)), kind


def test_nodes_say_their_owner() -> None:
    owners = {n.labels.get(OWNER_LABEL) for n in NODES}
    assert {"language", "search", "vision", "speech", "recsys", "robotics", None} == owners
    assert {n.instance_type for n in NODES if SPOT_LABEL in n.labels} == {cirrus.L4}
