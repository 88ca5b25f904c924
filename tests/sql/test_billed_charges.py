"""Lines of bills spread over hours: of a node by its running time, of anything else by the clock."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from billed_nodes import N, three_days
from small_bills import APRIL, BILLS, MARCH, SUMMED, by_hour, line, put_bills, total
from small_cloud import DAY, MINUTE, Node, at, models, put_lists, rows, run, times

from warehouse.lake import Lake
from warehouse.runner import build


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return three_days(tmp_path)


def test_an_hourly_line_is_one_charge_of_its_node(lake: Lake) -> None:
    put_bills(lake, [line(N, at(1, 5), None, "2", tags=[("team", "a")], resource_name="big")])
    run(lake, BILLS)
    (charge,) = rows(lake, "core.billed_charges")
    assert (charge["charge_id"], charge["charge_scope"], charge["hour"]) == (
        "bill/acct-202603/2/20260301T05",
        "node",
        at(1, 5),
    )
    assert (charge["cluster"], charge["node"], charge["resource_id"]) == ("c", "n", N)
    assert (charge["region"], charge["instance_type"], charge["owner_team"]) == ("eu-1", "p5", "o")
    assert (charge["list_cost"], charge["billed_cost"], charge["pricing_quantity"]) == (3, 2, 1)
    assert (charge["billing_currency"], charge["pricing_currency"]) == ("USD", "USD")
    assert (charge["tags"], charge["resource_name"], charge["flags"]) == ([("team", "a")], "big", None)


def test_a_daily_line_follows_the_running_time(lake: Lake) -> None:
    put_bills(lake, [line("aws:///eu-1a/i-m", at(1), at(2), "1")])
    run(lake, BILLS)
    found = by_hour(lake)
    # 10 hours and 20 minutes
    assert set(found) == set(range(11))
    assert found[0] == Decimal("2.3225806452")
    assert found[10] == Decimal("0.7741935484")
    for column in SUMMED:
        if column != "commitment_quantity":
            expected = {"list_cost": Decimal(36)}.get(column, Decimal(24))
            assert total(lake, column) == expected
    for charge in rows(lake, "core.billed_charges"):
        assert charge["list_cost"] == charge["list_unit_price"] * charge["pricing_quantity"]
    assert rows(lake, "core.billed_charges")[-1]["charge_period_end_at"] == at(1, 11)


def test_hours_in_which_a_node_of_the_day_did_not_run_are_still_its(lake: Lake) -> None:
    put_bills(lake, [line("aws:///eu-1a/i-m", at(1, 12), at(1, 15))])
    run(lake, BILLS)
    assert by_hour(lake, node="m", charge_scope="node") == {12: 1, 13: 1, 14: 1}


def test_a_line_of_a_month_follows_the_node_over_its_dates(lake: Lake) -> None:
    put_bills(lake, [line(N, MARCH, APRIL, "0.1"), line("aws:///eu-1a/i-m", MARCH, APRIL, "0.1")])
    run(lake, BILLS, 1, 3)
    # n was there for three days of the month, m for ten hours and twenty minutes
    assert total(lake, "billed_cost", node="n") == total(lake, "billed_cost", node="m") == Decimal("74.4")
    assert {r["date"].day for r in rows(lake, "core.billed_charges", node="n")} == {1, 2, 3}
    assert {r["date"].day for r in rows(lake, "core.billed_charges", node="m")} == {1}
    whole = rows(lake, "core.billed_charges")
    run(lake, BILLS, 1, 3, chunk_days=1)
    assert rows(lake, "core.billed_charges") == whole
    run(lake, BILLS, 2, 2)
    assert rows(lake, "core.billed_charges") == whole


def test_days_of_another_time_zone(lake: Lake) -> None:
    start = at(1, 8)
    put_bills(lake, [line(N, start, start + DAY), line("vol-1", start, start + DAY, service_category="Storage")])
    run(lake, BILLS, 1, 3)
    assert total(lake, "billed_cost", node="n", date=date(2026, 3, 1)) == 16
    assert total(lake, "billed_cost", node="n") == 24
    other = rows(lake, "core.billed_charges", charge_scope="other_services")
    assert [(r["hour"], r["billed_cost"], r["charge_period_end_at"]) for r in other] == [
        (at(1, 8), 16, at(2)), (at(2), 8, at(2, 8))
    ]  # fmt: skip


def test_a_new_date_moves_what_a_long_line_has_on_the_dates_before(tmp_path: Path) -> None:
    """A month's line of a node is spread anew when more of the node's month becomes known."""
    lake = Lake(tmp_path)
    put_bills(lake, [line(N, MARCH, APRIL, "1")])
    nodes = [Node("n")]
    chosen = models(BILLS)
    for day in range(1, 4):
        put_lists(lake, nodes, times(at(day), at(day + 1)))
        build(lake, models=chosen)
        assert total(lake, "billed_cost") == 744
        assert {r["date"].day for r in rows(lake, "core.billed_charges")} == set(range(1, day + 1))


def test_periods_that_are_no_whole_hours(lake: Lake) -> None:
    put_bills(lake, [
        line(N, at(1, 3, 30), at(1, 5)), line(N, at(1, 7), at(1, 7)), line(N, at(1, 8, 10), at(1, 8, 40)),
        line("vol-1", at(1, 9), at(1, 9), service_category="Storage"),
    ])  # fmt: skip
    run(lake, BILLS)
    found = by_hour(lake)
    assert (found[3], found[4], found[7], found[8], found[9]) == (
        Decimal("0.3333333333"),
        Decimal("0.6666666667"),
        1,
        1,
        1,
    )
    starts = {
        r["hour"].hour: (r["charge_period_start_at"], r["charge_period_end_at"])
        for r in rows(lake, "core.billed_charges")
    }
    assert starts[3] == (at(1, 3, 30), at(1, 4))
    assert starts[7] == (at(1, 7), at(1, 7))
    assert starts[8] == (at(1, 8, 10), at(1, 8, 10) + 30 * MINUTE)


def test_a_late_bill_recomputes_its_marked_dates(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    chosen = models(BILLS)
    for day in range(1, 6):
        put_lists(lake, [Node("n")], times(at(day), at(day + 1)))
    build(lake, models=chosen)
    assert not rows(lake, "core.billed_charges")
    put_bills(lake, [line(N, at(1, 5)), line(N, at(2), at(3))])
    lake.mark([date(2026, 3, 1), date(2026, 3, 2)], "bill")
    build(lake, models=chosen)
    assert total(lake, "billed_cost") == 25
    # the same bill shortened
    put_bills(lake, [line(N, at(1, 5))])
    lake.mark([date(2026, 3, 1), date(2026, 3, 2)], "bill")
    build(lake, models=chosen)
    assert total(lake, "billed_cost") == 1
