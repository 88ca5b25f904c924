"""mart.cost_monthly: sums of the days, three policies with one total, energy and carbon, a whole-window model."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from money_rows import Money, at

TABLE = "mart.cost_monthly"
DAY = {"date": date(2026, 6, 3), "billing_currency": "USD", "region": "r1", "provider": "p1", "accelerator": "H100"}
POLICIES = ("central", "owner", "proportional")


@pytest.fixture
def money() -> Money:
    return Money()


def part(kind: str, effective: Any, team: str | None = None, **more: Any) -> dict[str, Any]:
    return {**DAY, "cost_part": kind, "team": team, "effective_cost": effective, **more}


def monthly(money: Money, days: list[dict[str, Any]], policy: str = "central") -> dict[tuple, dict[str, Any]]:
    money.put("mart.cost_daily", days)
    money.put("raw.settings", [{"setting": "unused_policy", "value": policy}])
    return {(str(r["month"])[:7], r["team"], r["accelerator"], r["provider"]): r for r in money.run(TABLE)}


def total(found: dict[tuple, dict[str, Any]], column: str) -> Decimal:
    return sum((r[column] for r in found.values()), Decimal(0))


WASTES = [
    part("holder", "30", "a", billed_cost="10"),
    part("holder", "10", "b"),
    part("holder", "5", "c", accelerator="A100"),
    part("holder", "2", None),
    part("unallocated", "7.0000000001", owner_team="b"),
    part("unavailable", "1", None, owner_team="z", accelerator="L4"),
    part("committed_unused", "3", None, owner_team=None, accelerator=None, commitment_id="k"),
    part("credit", "-4", None, accelerator=None),
    part("other_services", "6", None, accelerator=None, provider="p2"),
    part("node_overhead", "1", None, accelerator=None, provider="p2"),
]


def test_central_leaves_wastes_on_rows_without_a_team(money: Money) -> None:
    found = monthly(money, WASTES)
    june = "2026-06"
    assert found[june, "a", "H100", "p1"]["total_effective_cost"] == 30
    assert found[june, "a", "H100", "p1"]["billed_cost"] == 10
    pool = found[june, None, "H100", "p1"]
    assert (pool["own_effective_cost"], pool["borne_waste_cost"]) == (2, Decimal("7.0000000001"))
    assert found[june, None, None, "p1"]["own_effective_cost"] == -4  # a credit belongs to nobody under any policy
    assert found[june, None, None, "p1"]["borne_waste_cost"] == 3


def test_owner_bears_what_it_owns_else_the_pool(money: Money) -> None:
    found = monthly(money, WASTES, "owner")
    june = "2026-06"
    assert found[june, "b", "H100", "p1"]["borne_waste_cost"] == Decimal("7.0000000001")
    # z held nothing: its row is there for what it bears
    assert found[june, "z", "L4", "p1"]["borne_waste_cost"] == 1
    assert found[june, "z", "L4", "p1"]["effective_cost"] == 0
    assert found[june, None, None, "p1"]["borne_waste_cost"] == 3


def test_proportional_deals_within_accelerator_then_provider_then_everywhere(money: Money) -> None:
    found = monthly(money, WASTES, "proportional")
    june = "2026-06"
    # 7.0000000001 on H100 of p1 goes 30 : 10 to a and b: 5.250000000075 and 1.750000000025, the odd unit to a
    # 1 on L4 and 3 on no accelerator find no holder of their own and go 30 : 10 : 5 over p1's teams
    # 1 on p2, where nobody holds anything, goes 30 : 10 : 5 over all teams; in all 5 by 30 : 10 : 5
    a, b, c = (found[june, t, k, "p1"]["borne_waste_cost"] for t, k in (("a", "H100"), ("b", "H100"), ("c", "A100")))
    assert abs(a - (Decimal("5.250000000075") + Decimal(5) * 30 / 45)) < Decimal("0.0000000004")
    assert abs(b - (Decimal("1.750000000025") + Decimal(5) * 10 / 45)) < Decimal("0.0000000004")
    assert a + b + c == Decimal("12.0000000001")
    assert total({k: v for k, v in found.items() if k[1] is None}, "borne_waste_cost") == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_the_total_is_the_same_to_the_last_digit(money: Money, policy: str) -> None:
    found = monthly(money, WASTES, policy)
    wanted = sum(Decimal(str(r["effective_cost"])) for r in WASTES)
    assert total(found, "total_effective_cost") == total(found, "effective_cost") == wanted


def test_the_odd_unit_goes_to_the_largest_remainder_and_ties_to_the_first_key(money: Money) -> None:
    days = [part("holder", "1", t) for t in ("c", "a", "b")] + [part("unallocated", "0.0000000002")]
    found = monthly(money, days, "proportional")
    borne = {k[1]: r["borne_waste_cost"] for k, r in found.items() if k[1]}
    assert borne == {"a": Decimal("1E-10"), "b": Decimal("1E-10"), "c": 0}
    # a negative pool (a correction) is dealt by its absolute value
    found = monthly(money, [*days[:3], part("unallocated", "-0.0000000002")], "proportional")
    borne = {k[1]: r["borne_waste_cost"] for k, r in found.items() if k[1]}
    assert borne == {"a": Decimal("-1E-10"), "b": Decimal("-1E-10"), "c": 0}


def test_months_are_apart_and_without_any_holder_the_pool_bears(money: Money) -> None:
    days = [part("unallocated", "5"), part("holder", "1", "a", date=date(2026, 7, 1)),
            part("unallocated", "2", date=date(2026, 7, 2))]  # fmt: skip
    found = monthly(money, days, "proportional")
    assert found["2026-06", None, "H100", "p1"]["borne_waste_cost"] == 5
    assert found["2026-07", "a", "H100", "p1"]["total_effective_cost"] == 3
    assert found["2026-07", None, "H100", "p1"]["total_effective_cost"] == 0


def test_cost_per_utilized_hour_is_null_where_nothing_was_utilized(money: Money) -> None:
    days = [part("holder", "10", "a", utilized_gpu_seconds=3 * 3600), part("holder", "10", "b")]
    found = monthly(money, days)
    assert found["2026-06", "a", "H100", "p1"]["cost_per_utilized_gpu_hour"] == Decimal("3.3333333333")
    assert found["2026-06", "b", "H100", "p1"]["cost_per_utilized_gpu_hour"] is None


def factor(pue: str | None, carbon: str | None, since: str, until: str | None = None, region: str = "r1") -> dict:
    return {"provider": "p1", "region": region, "pue": pue, "carbon_g_per_kwh": carbon, "valid_from_at": at(since),
            "valid_to_at": at(until) if until else None}  # fmt: skip


def test_energy_and_carbon_of_the_worked_example(money: Money) -> None:
    """8 cards at 700 W for an hour: 5.6 kWh; at 269.8 g / kWh and PUE 1 it is 1.511 kg (the leaderboard's function)."""
    money.put("raw.energy_factors", [factor("1", "269.8", "2026-01-01")])
    held = part("holder", "1", "a", metered_energy_j=8 * 700 * 3600, metered_gpu_seconds=8 * 3600)
    row = monthly(money, [held])["2026-06", "a", "H100", "p1"]
    assert (row["energy_kwh"], row["facility_kwh"], row["carbon_kg"]) == (
        Decimal("5.6"), Decimal("5.6"), Decimal("1.51088"),
    )  # fmt: skip


def test_factors_hold_from_their_date_and_the_exact_region_wins(money: Money) -> None:
    money.put("raw.energy_factors", [
        factor("2", "100", "2026-01-01", "2026-06-04"), factor("1.5", "200", "2026-06-04"),
        factor("9", "900", "2026-06-04", region="*"),
    ])  # fmt: skip
    joule = {"metered_energy_j": 3600000, "metered_gpu_seconds": 60}
    days = [part("holder", "1", "a", **joule), part("holder", "1", "a", date=date(2026, 6, 4), **joule),
            part("holder", "1", "b", region="r2", date=date(2026, 6, 4), **joule)]  # fmt: skip
    found = monthly(money, days)
    a, b = found["2026-06", "a", "H100", "p1"], found["2026-06", "b", "H100", "p1"]
    assert (a["energy_kwh"], a["facility_kwh"], a["carbon_kg"]) == (2, Decimal("3.5"), Decimal("0.5"))
    assert (b["facility_kwh"], b["carbon_kg"]) == (9, Decimal("8.1"))


def test_an_unknown_factor_is_null_and_never_zero(money: Money) -> None:
    money.put("raw.energy_factors", [factor("1.2", None, "2026-06-05")])
    joule = {"metered_energy_j": 3600000, "metered_gpu_seconds": 60}
    days = [part("holder", "1", "a", **joule), part("holder", "1", "b", date=date(2026, 6, 5), **joule),
            part("holder", "1", "c")]  # fmt: skip
    found = monthly(money, days)
    a, b, c = (found["2026-06", t, "H100", "p1"] for t in "abc")
    assert (a["energy_kwh"], a["facility_kwh"], a["carbon_kg"]) == (1, None, None)
    assert (b["facility_kwh"], b["carbon_kg"]) == (Decimal("1.2"), None)
    assert (c["energy_kwh"], c["facility_kwh"], c["carbon_kg"]) == (None, None, None)  # nothing was metered


KINDS = ("holder", "unallocated", "unavailable", "unledgered", "node_overhead", "committed_unused", "credit", "tax")
PARTS = st.lists(
    st.tuples(
        st.sampled_from(KINDS), st.integers(-(10**16), 10**16), st.sampled_from(["a", "b", "c", None]),
        st.sampled_from(["H100", "A100", None]), st.sampled_from(["p1", "p2", None]),
        st.sampled_from(["a", "z", None]), st.integers(1, 30), st.sampled_from([6, 7]),
    ),
    min_size=1, max_size=14, unique_by=lambda p: (p[0], p[2] if p[0] == "holder" else None, *p[3:]),
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PARTS)
def test_no_policy_changes_a_total(money: Money, parts: list[tuple]) -> None:
    days = [
        part(kind, Decimal(units).scaleb(-10), team if kind == "holder" else None, accelerator=accelerator,
             provider=provider, owner_team=owner, date=date(2026, month, day))
        for kind, units, team, accelerator, provider, owner, day, month in parts
    ]  # fmt: skip
    totals = set()
    for policy in POLICIES:
        found = monthly(money, days, policy)
        assert total(found, "own_effective_cost") + total(found, "borne_waste_cost") == total(found, "effective_cost")
        totals.add((total(found, "total_effective_cost"), total(found, "effective_cost")))
    wanted = sum((Decimal(p[1]).scaleb(-10) for p in parts), Decimal(0))
    assert totals == {(wanted, wanted)}
