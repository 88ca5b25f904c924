"""Bills in place of computed charges: only for the hours and resources that they cover."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from small_bills import APRIL, CHARGES, MARCH, by_hour, computed, flat, line, put_bills, total
from small_cloud import DAY, HOUR, Node, at, put, put_lists, rows, run, times

from warehouse.lake import Lake

N, M, X = "aws:///eu-1a/i-n", "aws:///eu-1a/i-m", "aws:///eu-1a/i-x"


def charge_hours(resource: str, start: datetime, end: datetime, cost: str = "2", **more: Any) -> list[dict[str, Any]]:
    """Computed charges of a resource, hour by hour."""
    return [computed(resource, start + i * HOUR, cost, **more) for i in range((end - start) // HOUR)]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three nodes for two days, one of which left on the first at 10:20, with computed charges of 2 an hour."""
    lake = Lake(tmp_path)
    put_lists(lake, [Node("n"), Node("m", gone_at=at(1, 10, 20)), Node("x")], times(at(1), at(3)))
    put_computed(lake)
    return lake


def put_computed(lake: Lake, more: Iterable[dict[str, Any]] = ()) -> None:
    put(lake, "core.computed_charges", [
        *charge_hours(N, at(1), at(3)), *charge_hours(M, at(1), at(1, 11)), *charge_hours(X, at(1), at(3)), *more,
    ])  # fmt: skip


def origins(lake: Lake, resource: str, day: int = 1) -> dict[str, set[int]]:
    """Hours of the day by where their charge comes from."""
    found: dict[str, set[int]] = {}
    for row in rows(lake, "core.charges", resource_id=resource, date=date(2026, 3, day)):
        found.setdefault(row["charge_origin"], set()).add(row["hour"].hour)
    return found


def test_without_bills_every_computed_charge_counts(lake: Lake) -> None:
    run(lake, CHARGES, 1, 2)
    assert total(lake, "billed_cost", "core.charges") == 2 * (48 + 11 + 48)
    assert {r["charge_origin"] for r in rows(lake, "core.charges")} == {"computed"}


def test_a_bill_up_to_now_zeroes_nothing(lake: Lake) -> None:
    hourly = [line(N, at(1) + i * HOUR) for i in range(30)]
    # storage and a licence for the whole month are in it already
    whole = [line("vol", MARCH, APRIL, service_category="Storage"), line(N, MARCH, APRIL, "0.001", sku_id="licence")]
    put_bills(lake, [*hourly, *whole])
    run(lake, CHARGES, 1, 2)
    computed_hours = {r["hour"] for r in rows(lake, "core.charges", resource_id=N, charge_origin="computed")}
    assert computed_hours == {at(2, 6) + i * HOUR for i in range(18)}
    # the others are not in the bill at all
    assert origins(lake, M) == {"computed": set(range(11))}


def test_a_node_of_another_account_stays_computed(lake: Lake) -> None:
    put_bills(lake, [line(N, at(1), at(2)), line(X, at(2), at(3), billing_account_id="other")])
    run(lake, CHARGES, 1, 2)
    assert origins(lake, N) == {"bill": set(range(24))}
    assert origins(lake, X) == {"computed": set(range(24))}
    assert origins(lake, N, 2) == {"computed": set(range(24))}
    assert origins(lake, X, 2) == {"bill": set(range(24))}


def test_a_gap_of_the_node_in_a_covered_hour_is_a_saving_and_a_gap_of_the_bill_is_not(lake: Lake) -> None:
    # hour 5 is in the account by x alone, hour 6 is not in it at all
    lines = [line(N, at(1, h)) for h in range(24) if h not in (5, 6)] + [line(X, at(1, 5))]
    put_bills(lake, lines)
    run(lake, CHARGES)
    assert origins(lake, N) == {"bill": set(range(24)) - {5, 6}, "computed": {6}}


def test_a_day_of_storage_or_of_another_machine_stands_for_no_node_billed_by_the_hour(lake: Lake) -> None:
    hourly = [line(N, at(1, h)) for h in range(5)]
    store = line("bucket", at(1), at(2), "3.30", service_category="Storage")
    put_bills(lake, [*hourly, store, line("i-elsewhere", at(1), at(2))])
    run(lake, CHARGES)
    assert origins(lake, N) == {"bill": set(range(5)), "computed": set(range(5, 24))}


def test_the_hour_of_a_refused_line_stays_computed(lake: Lake) -> None:
    lines = [line(N, at(1, h)) for h in range(24) if h != 5] + [line(X, at(1, 5))]
    put_bills(lake, lines)
    run(lake, CHARGES)
    assert origins(lake, N) == {"bill": set(range(24)) - {5}}
    put(lake, "raw.rejected_bill_lines", [
        {"date": MARCH.date(), "source_sha256": "0", "source": "bill.csv", "source_line": 99, "field": "BilledCost",
         "reason": "45,00 is not a decimal number", "line": "…"},
    ])  # fmt: skip
    run(lake, CHARGES)
    assert origins(lake, N) == {"bill": set(range(24)) - {5}, "computed": {5}}


def test_a_node_that_left(lake: Lake) -> None:
    # the provider bills the whole hour of the end and another one
    put_bills(lake, [line(M, at(1, h)) for h in range(12)])
    run(lake, CHARGES)
    assert origins(lake, M) == {"bill": set(range(12))}
    assert total(lake, "billed_cost", "core.charges", node="m") == 12


def test_letter_case_of_the_resource(lake: Lake) -> None:
    put_bills(lake, [line("AWS:///EU-1a/I-N", at(1), at(2))])
    run(lake, CHARGES)
    assert origins(lake, N) == {"bill": set(range(24))}


def test_an_unknown_resource_replaces_nothing_and_is_not_lost(lake: Lake) -> None:
    put_bills(lake, [line("i-elsewhere", at(1), at(2), "3")])
    run(lake, CHARGES)
    assert origins(lake, N) == {"computed": set(range(24))}
    assert total(lake, "billed_cost", "core.charges", charge_scope="not_in_cluster") == 72


def test_a_correction_replaces_nothing(lake: Lake) -> None:
    put_bills(lake, [line(N, at(1, 3), None, "-0.5", charge_class="Correction")])
    run(lake, CHARGES)
    assert origins(lake, N) == {"computed": set(range(24)), "bill": {3}}
    assert by_hour(lake, table="core.charges", node="n", charge_origin="bill") == {3: Decimal("-0.5")}


def test_lines_of_a_month_alone_cover_their_node(lake: Lake) -> None:
    put_bills(lake, [line(N, MARCH, APRIL, "1")])
    run(lake, CHARGES, 1, 2)
    assert origins(lake, N) == origins(lake, N, 2) == {"bill": set(range(24))}
    assert origins(lake, X) == {"computed": set(range(24))}


def test_commitments(lake: Lake) -> None:
    scope = {"charge_scope": "commitment", "commitment_discount_status": "Unused"}
    # computed: ri-1 has unused hours all day, ri-2 as well, but no bill names it
    unused = [c for name in ("ri-1", "ri-2") for c in charge_hours(name, at(1), at(2), **scope, commitment_id=name)]
    put_computed(lake, unused)
    used = {"commitment_id": "ri-1", "commitment_discount_status": "Used", "billed_cost": Decimal(0)}
    put_bills(lake, [line(N, at(1), at(1, 12), **used)])
    run(lake, CHARGES)
    # fully used in the hours that the bill covers
    assert origins(lake, "ri-1") == {"computed": set(range(12, 24))}
    assert origins(lake, "ri-2") == {"computed": set(range(24))}


def purchase(name: str, start: datetime, end: datetime, **more: Any) -> dict[str, Any]:
    """A computed purchase."""
    about = {
        "charge_scope": "commitment", "charge_category": "Purchase", "commitment_id": name, "charge_period_end_at": end,
        "billing_account_id": "acct", "charge_id": f"purchase/{name}/{start}",
    }  # fmt: skip
    return computed(name, start, "100", **{**about, **more})


NAMES_RI = line(N, MARCH, MARCH + HOUR, commitment_id="ri-1")


@pytest.mark.parametrize(
    ("lines", "stays"),
    [
        ([], True),
        # the month's hours are not all in it
        ([NAMES_RI, *(line(N, MARCH + i * HOUR) for i in range(743))], True),
        ([NAMES_RI, *(line(N, MARCH + i * HOUR) for i in range(744))], False),
        ([NAMES_RI, *(line(N, MARCH + i * DAY, MARCH + (i + 1) * DAY) for i in range(31))], False),
        # all of them, and the commitment is nowhere: its fee stays as its amortized cost does
        ([line(N, MARCH + i * HOUR) for i in range(744)], True),
        ([line(N, MARCH + i * HOUR, billing_account_id="other") for i in range(744)], True),
        ([line(N, MARCH + i * HOUR, provider="gcp") for i in range(744)], True),
        ([flat("Purchase", MARCH, APRIL, "90", resource_id="ri-1", commitment_id="ri-1")], False),
        ([flat("Purchase", MARCH, APRIL, "90", resource_id="ri-2", commitment_id="ri-2")], True),
        ([flat("Purchase", MARCH, APRIL, "90", commitment_id="ri-1", billing_account_id="other")], True),
    ],
)
def test_purchases_of_a_month(lake: Lake, lines: list[dict[str, Any]], stays: bool) -> None:
    put_computed(lake, [purchase("ri-1", MARCH, APRIL)])
    put_bills(lake, lines) if lines else None
    run(lake, CHARGES)
    kept = rows(lake, "core.charges", charge_category="Purchase", charge_origin="computed")
    assert bool(kept) is stays


def test_purchases_of_an_hour_give_way_in_the_hours_of_the_bills_own(lake: Lake) -> None:
    put_computed(lake, [purchase("ri-1", at(1, h), at(1, h + 1)) for h in range(23)])
    put_bills(lake, [flat("Purchase", at(1, h), at(1, h + 1), "90", commitment_id="ri-1") for h in range(5)])
    run(lake, CHARGES)
    assert origins(lake, "ri-1") == {"bill": set(range(5)), "computed": set(range(5, 23))}


def test_credits(lake: Lake) -> None:
    about = {"charge_scope": "credit", "charge_category": "Credit", "charge_id": "credit/1"}
    put_computed(lake, [computed(None, MARCH, "-5", charge_period_end_at=APRIL, **about)])
    run(lake, CHARGES)
    assert total(lake, "billed_cost", "core.charges", charge_scope="credit") == -5
    put_bills(lake, [flat("Credit", at(1), at(2), "-4")])
    run(lake, CHARGES)
    assert total(lake, "billed_cost", "core.charges", charge_scope="credit") == -4
    put_bills(lake, [flat("Credit", at(1), at(2), "-4", provider="gcp")])
    run(lake, CHARGES)
    assert total(lake, "billed_cost", "core.charges", charge_scope="credit") == -9


def test_one_date_or_many(lake: Lake) -> None:
    put_computed(lake, [purchase("ri-1", MARCH, APRIL)])
    put_bills(lake, [
        *(line(N, MARCH + i * HOUR) for i in range(744)), line(M, at(1), at(2)), line(X, MARCH, APRIL),
        line("v", MARCH, APRIL),
        line(X, at(1, 8), at(2, 8), billing_account_id="other", billing_currency="EUR"),
    ])  # fmt: skip
    run(lake, CHARGES, 1, 2)
    whole = rows(lake, "core.charges")
    run(lake, CHARGES, 1, 2, chunk_days=1)
    assert rows(lake, "core.charges") == whole
    run(lake, CHARGES, 2, 2)
    assert rows(lake, "core.charges") == whole
