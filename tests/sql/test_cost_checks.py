"""Each check of the attribution holds on sound tables and fails on one that is wrong in one place."""

from __future__ import annotations

from decimal import Decimal

import pytest
from money_rows import Money
from node_hour import CHECKS, NodeHour, attribute, broken, failing, free, held, usage

FLEET = (
    NodeHour(
        node="a", gpus=4,
        ledger=[held("x", 3600, 1200, 600), free(3600), held("y"), broken(3600)],
        energy=[("00", 1000, 3600)], charges=[usage(8, 1, "a/1"), usage(2, 1, "a/2")],
    ),
    NodeHour(
        node="b", gpus=1, ledger=[held("x", 3600, 3600)],
        charges=[
            usage(3, 1, "b/1"),
            usage(1, -1, "b/2", charge_class="Correction"),
            usage(1, 1, "b/3", charge_scope="credit", charge_category="Credit", list_cost=-1, contracted_cost=-1,
                  billed_cost=-1, effective_cost=-1, pricing_quantity=None, consumed_quantity=None,
                  list_unit_price=None, contracted_unit_price=None),
        ],
    ),
)  # fmt: skip
PART = "charge_id = 'a/1' and holder = 'x'"
# (change to a table, checks that find it)
MUTATIONS = [
    *((f"update mart.cost_hourly set {c} = {c} + 0.0000000001 where {PART}",
       {"cost_sums", "cost_of_nodes", "cost_days"}) for c in ("list_cost", "contracted_cost", "billed_cost")),
    (f"update mart.cost_hourly set effective_cost = effective_cost - 0.0000000001 where {PART}",
     {"cost_sums", "cost_of_nodes", "cost_days", "cost_of_holders"}),
    *((f"update mart.cost_hourly set {c}_quantity = {c}_quantity - 0.000000001 where {PART}", {"cost_sums"})
      for c in ("pricing", "consumed")),
    (f"update mart.cost_hourly set commitment_quantity = 1 where {PART}", {"cost_sums"}),
    ("delete from mart.cost_hourly where charge_id = 'b/3'", {"cost_sums", "cost_days"}),
    ("delete from core.charges where charge_id = 'b/3'", {"cost_sums", "cost_signs"}),
    (f"update mart.cost_hourly set allocated_ratio = allocated_ratio - 0.1 where {PART}", {"cost_ratios"}),
    (f"update mart.cost_hourly set gpu_ratio = 0.5 where {PART}", {"cost_ratios"}),
    (f"update mart.cost_hourly set allocated_ratio = null where {PART}", {"cost_ratios"}),
    ("update mart.cost_hourly set effective_cost = effective_cost + case when holder = 'x' then 100 else -100 end, "
     "unobserved_cost = unobserved_cost + case when holder = 'x' then 100 else -100 end "
     "where charge_id = 'a/1' and holder in ('x', 'y')", {"cost_bounds", "cost_signs", "cost_days"}),
    ("update core.charges set charge_class = null where charge_id = 'b/2'", {"cost_signs"}),
    ("update core.charges set charge_category = 'Usage' where charge_id = 'b/3'", {"cost_signs"}),
    (f"update mart.cost_hourly set node = 'b' where {PART}", {"cost_of_nodes", "cost_seconds"}),
    (f"update mart.cost_hourly set stranded_cost = stranded_cost + 0.0000000001 where {PART}",
     {"cost_of_holders", "cost_days"}),
    (f"update mart.cost_hourly set utilized_cost = -1, stranded_cost = stranded_cost + utilized_cost + 1 where {PART}",
     {"cost_of_holders", "cost_days"}),
    ("update mart.cost_hourly set utilized_cost = 1 where charge_id = 'a/1' and cost_part = 'unallocated'",
     {"cost_of_holders", "cost_days"}),
    *((f"update mart.cost_hourly set {c}_gpu_seconds = {c}_gpu_seconds + 0.000001 where {PART}",
       {"cost_seconds", "cost_days"}) for c in ("allocated", "utilized", "stranded", "unobserved")),
    ("update mart.cost_hourly set unallocated_gpu_seconds = 0 where cost_part = 'unallocated'",
     {"cost_seconds", "cost_days"}),
    ("update mart.cost_hourly set unavailable_gpu_seconds = 3600 where charge_id = 'a/2' and cost_part = 'unavailable'",
     {"cost_seconds", "cost_days"}),
    ("update mart.gpu_ledger_hourly set holder = 'z' where holder = 'y'", {"cost_seconds"}),
    (f"update mart.cost_hourly set method_id = 'strandline-fixed-1' where {PART}", {"cost_methods"}),
    ("update mart.cost_hourly set method_id = 'mine' where charge_id = 'a/1'", {"cost_methods"}),
    (f"update mart.cost_hourly set method_id = null where {PART}", {"cost_methods"}),
    ("update mart.cost_daily set effective_cost = effective_cost + 0.0000000001 where team = 'team-x'", {"cost_days"}),
    ("update mart.cost_daily set metered_energy_j = 0", {"cost_days"}),
    ("delete from mart.cost_daily where cost_part = 'unavailable'", {"cost_days"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def money() -> Money:
    made = Money()
    attribute(made, FLEET)
    return made


def test_sound_tables_pass(money: Money) -> None:
    assert failing(money) == []
    parts = money.con.sql("select count(*) from mart.cost_hourly").fetchall()
    assert parts == [(4 + 4 + 1 + 1 + 1,)]


@pytest.mark.parametrize(("mutation", "found"), MUTATIONS)
def test_a_change_in_one_place_is_found(money: Money, mutation: str, found: set[str]) -> None:
    money.con.execute("begin")
    try:
        money.con.execute(mutation).fetchall()
        assert found <= set(failing(money))
    finally:
        money.con.execute("rollback")


def test_every_check_is_shown_to_fail() -> None:
    assert set().union(*(found for _, found in MUTATIONS)) == set(CHECKS)


def test_an_adjustment_of_a_provider_may_be_negative(money: Money) -> None:
    given = usage(1, -1, "1", charge_category="Adjustment", charge_origin="bill")
    other = Money()
    attribute(other, [NodeHour(ledger=[held("x")], charges=[given])])
    assert failing(other) == []
    assert other.con.sql("select sum(effective_cost) from mart.cost_hourly").fetchall() == [(Decimal(-1),)]
