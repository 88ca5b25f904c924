"""mart.commitment_balance_daily: flows, opening balances, coverage; and the check that compares them with the terms."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from money_rows import Money, at, rows

from analytics.charges.amortize import COST_PER_FEE, Plan
from analytics.charges.balance import compute
from analytics.charges.currency import Exchange
from analytics.charges.records import first_hour, hour_at, read_commitments

TABLE, CHECK = "mart.commitment_balance_daily", "commitment_balance"
RESERVATION = {
    "provider": "p", "commitment_id": "r", "commitment_category": "Usage", "commitment_type": "Reservation",
    "commitment_unit": "Hours", "committed_quantity": 2, "region": "r1", "eligible_instance_types": "big, other",
    "currency": "USD", "payment_model": "Partial Upfront", "upfront_cost": "1000", "recurring_cost": "0.5",
    "payment_interval": "Monthly", "starts_at": at("2026-05-20"), "ends_at": at("2026-06-12 06:00"),
    "owner_team": "platform", "as_of": date(2026, 5, 1),
}  # fmt: skip


@pytest.fixture
def money() -> Money:
    return Money()


def charge(day: date, hour: int, **more: Any) -> dict[str, Any]:
    at_hour = datetime(day.year, day.month, day.day, hour)
    return {"date": day, "hour": at_hour, "charge_id": f"{at_hour}/{sorted(more.items())}", "provider": "p",
            "charge_origin": "computed", "charge_scope": "node", "charge_category": "Usage", "region": "r1",
            "instance_type": "big", "gpu_count": 8, "pricing_category": "Standard", "pricing_unit": "Hours",
            "pricing_quantity": 1, "contracted_cost": 10, "billed_cost": 0, "effective_cost": 0,
            "billing_currency": "USD", **more}  # fmt: skip


def commitment_charges(money: Money, start: date, end: date, used_of: int = 1) -> list[dict[str, Any]]:
    """What an engine would charge for every commitment: each hour `used_of` units used, the rest unused, purchases."""
    out: list[dict[str, Any]] = []
    for c in read_commitments(money.con):
        plan = Plan(c, Exchange([]), "USD")
        scope = {"commitment_id": c.commitment_id, "commitment_category": c.category, "commitment_type": c.type,
                 "commitment_unit": c.unit}  # fmt: skip
        first, last = (first_hour(datetime(d.year, d.month, d.day)) for d in (start, end))
        for hour in range(max(first, c.start), min(last, c.end)):
            total, day, h = plan.cost(hour) or 0, hour_at(hour).date(), hour_at(hour).hour
            used = total // 3
            out.append(charge(day, h, **scope, commitment_discount_status="Used", commitment_quantity=used_of,
                              pricing_category="Committed", effective_cost=Decimal(used).scaleb(-10)))  # fmt: skip
            out.append(charge(day, h, **scope, commitment_discount_status="Unused", charge_scope="commitment",
                              commitment_quantity=Decimal(c.quantity).scaleb(-9) - used_of,
                              effective_cost=Decimal(total - used).scaleb(-10)))  # fmt: skip
        for p in plan.purchases(first, last):
            at_hour = hour_at(p.start)
            out.append(charge(at_hour.date(), at_hour.hour, **scope, charge_category="Purchase",
                              charge_scope="commitment", charge_description=f"{p.is_upfront}",
                              billed_cost=Decimal(p.count * (p.price or 0) * COST_PER_FEE).scaleb(-10)))  # fmt: skip
    return out


def prepare(
    money: Money, terms: list[dict[str, Any]], start: date, end: date, others: list[dict[str, Any]] | None = None
) -> list[dict[str, Any]]:
    money.put("raw.commitments", terms)
    found = compute(money.con, start, end).to_pylist()
    money.put("core.commitment_terms_daily", found)
    money.put("core.charges", commitment_charges(money, start, end) + (others or []))
    return money.run(TABLE)


def test_a_term_that_began_earlier_opens_with_its_own_arithmetic(money: Money) -> None:
    found = prepare(money, [RESERVATION], date(2026, 6, 5), date(2026, 6, 15))
    assert [r["date"] for r in found] == [date(2026, 6, 5) + timedelta(days=i) for i in range(8)]
    # 1,000 upfront over 558 hours; 384 of them passed by June 5; June's 270 hours were charged on June 1
    hours, passed = 23 * 24 + 6, 16 * 24
    left = Decimal(1000) - Decimal((passed * 1000 * 10**10) // hours).scaleb(-10) + (hours - passed) * Decimal("0.5")
    assert found[0]["opening_balance"] == left
    assert found[-1]["closing_balance"] == 0
    assert found[-1]["committed_quantity"] == 12
    assert money.check(CHECK) == []


def test_a_term_inside_the_lake_opens_with_nothing_and_buys_on_its_first_date(money: Money) -> None:
    found = prepare(money, [RESERVATION], date(2026, 5, 1), date(2026, 6, 15))
    assert (found[0]["date"], found[0]["opening_balance"]) == (date(2026, 5, 20), 0)
    assert found[0]["purchased_cost"] == 1000 + 12 * 24 * Decimal("0.5")
    assert sum(r["purchased_cost"] for r in found) == sum(r["used_cost"] + r["unused_cost"] for r in found)
    for before, after in pairwise(found):
        assert after["opening_balance"] == before["closing_balance"]
    assert money.check(CHECK) == []


def test_after_a_gap_in_the_lake_the_terms_say_what_is_left(money: Money) -> None:
    money.put("raw.commitments", [RESERVATION])
    terms, charges = [], []
    for start, end in ((date(2026, 5, 20), date(2026, 5, 22)), (date(2026, 6, 3), date(2026, 6, 4))):
        terms += compute(money.con, start, end).to_pylist()
        charges += commitment_charges(money, start, end)
    money.put("core.commitment_terms_daily", terms)
    money.put("core.charges", charges)
    found = money.run(TABLE)
    assert [r["date"].day for r in found] == [20, 21, 3]
    assert found[2]["opening_balance"] == terms[2]["scheduled_opening_balance"] != found[1]["closing_balance"]
    assert money.check(CHECK) == []


def test_what_could_have_been_covered(money: Money) -> None:
    day = date(2026, 6, 5)
    others = [
        charge(day, 3, pricing_quantity=5),
        charge(day, 4, instance_type="other", pricing_quantity=7),
        charge(day, 5, instance_type="bigger", pricing_quantity=100),
        charge(day, 6, region="r2", pricing_quantity=100),
        charge(day, 7, provider="q", pricing_quantity=100),
        charge(day, 8, pricing_category="Dynamic", pricing_quantity=100),
        charge(day, 9, charge_scope="other_services", pricing_quantity=100),
    ]
    found = prepare(money, [RESERVATION], day, day + timedelta(days=1), others)
    assert found[0]["eligible_quantity"] == 24 + 5 + 7  # 24 node-hours that it covered among them
    assert found[0]["commitment_coverage_ratio"] == pytest.approx(24 / 36)
    assert found[0]["commitment_utilization_ratio"] == pytest.approx(24 / 48)
    assert (found[0]["used_quantity"], found[0]["unused_quantity"], found[0]["committed_quantity"]) == (24, 24, 48)


def test_units_of_accelerators_and_of_money(money: Money) -> None:
    day = date(2026, 6, 5)
    spend = {**RESERVATION, "commitment_id": "s", "commitment_category": "Spend", "commitment_type": "Plan",
             "committed_quantity": None, "committed_spend": "12.5", "commitment_unit": None, "region": None,
             "eligible_instance_types": None}  # fmt: skip
    gpus = {**RESERVATION, "commitment_id": "g", "commitment_unit": "GPU-Hours", "committed_quantity": 16}
    rate = {"provider": "p", "sku_price_id": "x", "region": "*", "instance_type": "big", "billing_model": "committed",
            "commitment_type": "Plan", "pricing_unit": "Hours", "valid_from_at": at("2026-01-01"),
            "as_of": day, "list_unit_price": 5, "contracted_unit_price": 5}  # fmt: skip
    money.put("raw.prices", [rate])
    others = [charge(day, 3, contracted_cost="33.5"), charge(day, 4, instance_type="other", contracted_cost=99)]
    found = {r["commitment_id"]: r for r in prepare(money, [spend, gpus], day, day + timedelta(days=1), others)}
    # covered by g: 24 node-hours of 8, by s: 24 at 10, and neither could cover what the other did; eligible for s is
    # only what has a committed rate
    assert found["g"]["eligible_quantity"] == 8 * (24 + 1 + 1)
    assert found["s"]["eligible_quantity"] == 24 * 10 + Decimal("33.5")
    assert found["s"]["committed_quantity"] == Decimal("12.5") * 24
    assert found["s"]["commitment_unit"] == "USD"
    assert found["s"]["commitment_coverage_ratio"] == pytest.approx(240 / 273.5)


def test_a_commitment_that_only_a_bill_knows_has_flows_and_no_balance(money: Money) -> None:
    day = date(2026, 6, 5)
    known = charge(day, 1, charge_origin="bill", commitment_id="b", commitment_discount_status="Used", effective_cost=3,
                   commitment_quantity=1)  # fmt: skip
    money.put("core.charges", [known])
    row = money.run(TABLE)[0]
    assert (row["used_cost"], row["commitment_utilization_ratio"]) == (3, 1.0)
    assert row["opening_balance"] is row["closing_balance"] is row["eligible_quantity"] is None
    assert money.check(CHECK) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("update mart.commitment_balance_daily set used_cost = used_cost + 1e-10 where date = '2026-06-06'", "closing"),
        ("update mart.commitment_balance_daily set opening_balance = opening_balance + 1, closing_balance = "
         "closing_balance + 1 where date = '2026-06-06'", "opening"),
        ("update mart.commitment_balance_daily set unused_quantity = unused_quantity + 1 where date = '2026-06-06'",
         "used"),
        ("update mart.commitment_balance_daily set opening_balance = opening_balance + 1, closing_balance = "
         "closing_balance + 1", "balance departs"),
    ],
)  # fmt: skip
def test_the_check_finds_what_is_wrong(money: Money, change: str, what: str) -> None:
    prepare(money, [RESERVATION], date(2026, 6, 5), date(2026, 6, 15))
    money.con.execute(change)
    found = money.check(CHECK)
    assert found
    assert found[0]["what"].startswith(what)
    assert money.check(CHECK, end=date(2026, 6, 5)) == []


def test_a_bill_may_depart_from_the_terms(money: Money) -> None:
    prepare(money, [RESERVATION], date(2026, 6, 5), date(2026, 6, 15))
    money.con.execute("update core.charges set charge_origin = 'bill', effective_cost = effective_cost + 1")
    found = money.run(TABLE)
    assert found[-1]["closing_balance"] != found[-1]["scheduled_balance"] == 0
    assert money.check(CHECK) == []


def test_rows_helper_refuses_unknown_columns() -> None:
    with pytest.raises(KeyError):
        rows(TABLE, [{"nothing": 1}])
