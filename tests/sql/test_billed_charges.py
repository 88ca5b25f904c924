"""Bills matched to nodes and spread over hours, in the reporting currency."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from small_bills import APRIL, BILLS, MARCH, SUMMED, by_hour, flat, line, put_bills, put_rates, total
from small_cloud import DAY, MINUTE, Node, at, models, put, put_lists, rows, run, times

from warehouse.lake import Lake
from warehouse.runner import build

N = "aws:///eu-1a/i-n"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """One node for three days and one that leaves on the first at 10:20."""
    lake = Lake(tmp_path)
    labels = {
        "topology.kubernetes.io/region": "eu-1",
        "node.kubernetes.io/instance-type": "p5",
        "strandline.io/owner": "o",
    }
    put_lists(lake, [Node("n", labels=labels), Node("m", gone_at=at(1, 10, 20))], times(at(1), at(4)))
    return lake


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


@pytest.mark.parametrize(
    ("provider_id", "billed", "matches"),
    [
        ("aws:///eu-1a/i-0aB", "aws:///eu-1a/i-0aB", True),
        ("aws:///eu-1a/i-0ab", "arn:aws:ec2:eu-1:12:instance/i-0AB", True),
        ("aws:///eu-1a/i-0ab", "i-0ab", True),
        ("aws:///eu-1a/i-0ab", "i-0ac", False),
        ("azure:///subscriptions/S/resourceGroups/g/vm/gpu-1", "/SUBSCRIPTIONS/s/resourcegroups/g/vm/GPU-1", True),
        ("azure:///subscriptions/S/resourceGroups/g/vm/gpu-1", "/subscriptions/T/resourcegroups/g/vm/gpu-1", False),
        ("azure:///subscriptions/s/vmss/a/vm/3", "/subscriptions/s/vmss/b/vm/3", False),
        ("azure:///subscriptions/s/vmss/a/vm/3", "3", False),
        ("gce://p/eu-1a/gpu-1", "//compute.googleapis.com/projects/p/zones/eu-1a/instances/gpu-1", True),
        (None, "c/n", True),
    ],
)
def test_resource_ids(tmp_path: Path, provider_id: str | None, billed: str, matches: bool) -> None:
    lake = Lake(tmp_path)
    put_lists(lake, [Node("n", provider_id=provider_id), Node("o")], [at(1)])
    put_bills(lake, [line(billed, at(1), provider=(provider_id or "aws").split(":")[0])])
    run(lake, BILLS)
    (charge,) = rows(lake, "core.billed_charges")
    assert charge["charge_scope"] == ("node" if matches else "not_in_cluster")
    assert charge["resource_id"] == ((provider_id or "c/n") if matches else billed)


def test_a_segment_that_two_have_means_neither(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    nodes = [
        Node("n", provider_id="gce://p/a/gpu-1"),
        Node("o", provider_id="gce://p/b/gpu-1"),
        Node("q", provider_id="x://z/w"),
    ]
    put_lists(lake, nodes, [at(1)])
    put_bills(lake, [
        line(i, at(1), provider=p)
        for i, p in (("gpu-1", "gce"), ("GCE://p/B/gpu-1", "gce"), ("1:i/w", "x"), ("2:i/w", "x"))
    ])  # fmt: skip
    run(lake, BILLS)
    found = [(r["node"], r["charge_scope"]) for r in rows(lake, "core.billed_charges")]
    assert found == [(None, "not_in_cluster"), ("o", "node"), (None, "not_in_cluster"), (None, "not_in_cluster")]


G1 = "//compute.googleapis.com/projects/p/zones/z"


def test_a_disk_of_a_nodes_name_is_no_node(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    put_lists(lake, [Node("n", provider_id="gce://p/z/g1"), Node("o", provider_id="gce://p/z/g2")], [at(1), at(2)])
    disks = [line(f"{G1}/disks/{d}", at(1), None, "0.1", service_category="Storage") for d in ("g1", "g2")]
    put_bills(lake, [
        *(disk | {"provider": "gce"} for disk in disks), line(f"{G1}/instances/g1", at(1), None, "3", provider="gce")
    ])  # fmt: skip
    run(lake, BILLS)
    assert {(r["billed_resource_id"], r["resource_id"]) for r in rows(lake, "core.bill_resources")} == {
        (f"{G1}/instances/g1", "gce://p/z/g1")
    }
    assert [(r["charge_scope"], r["node"], r["billed_cost"]) for r in rows(lake, "core.billed_charges")] == [
        ("other_services", None, Decimal("0.1")), ("other_services", None, Decimal("0.1")), ("node", "n", 3),
    ]  # fmt: skip


def test_other_services_of_a_nodes_resource_follow_time_and_not_the_node(lake: Lake) -> None:
    m = "aws:///eu-1a/i-m"
    put_bills(lake, [
        line(m, at(1), at(3)), line(m, at(1), at(3), "0.5", service_category="Networking"),
        line(N, at(1), None, "7", service_category="Databases", provider="x"),
    ])  # fmt: skip
    run(lake, BILLS, 1, 2)
    assert {r["billed_resource_id"] for r in rows(lake, "core.bill_resources")} == {m}
    other = [(r["resource_id"], r["date"].day, r["billed_cost"]) for r in rows(
        lake, "core.billed_charges", charge_scope="other_services")]  # fmt: skip
    assert other == [(m, 1, 12), (N, 1, 7), (m, 2, 12)]
    assert total(lake, "billed_cost", node="m") == 48
    assert {r["date"].day for r in rows(lake, "core.billed_charges", node="m")} == {1}


@pytest.mark.parametrize(
    ("provider_id", "label", "billed", "provider", "matches"),
    [
        ("gce://p/z/g1", None, "g1", "gcp", True),
        ("gce://p/z/g1", None, "g1", "Google", True),
        ("gce://p/z/g1", "gcp", "g1", "gce", True),
        ("gce://p/z/g1", None, "g1", "aws", False),
        ("gce://p/z/g1", None, "GCE://p/z/g1", "aws", False),
        ("gce://p/z/g1", None, "gce://p/z/g1", "aws", True),
        ("azure:///subscriptions/s/vm/g1", None, "/subscriptions/S/vm/g1", "Microsoft", True),
        ("kind://d/c/g1", "Nimbus", "g1", "nimbus", True),
        (None, None, "C/N", "aws", True),
    ],
)
def test_only_the_nodes_provider_may_call_it_otherwise(
    tmp_path: Path, provider_id: str | None, label: str | None, billed: str, provider: str, matches: bool
) -> None:
    lake = Lake(tmp_path)
    labels = {"strandline.io/provider": label} if label else {}
    put_lists(lake, [Node("n", provider_id=provider_id, labels=labels)], [at(1)])
    put_bills(lake, [line(billed, at(1), provider=provider)])
    run(lake, BILLS)
    (charge,) = rows(lake, "core.billed_charges")
    assert charge["charge_scope"] == ("node" if matches else "not_in_cluster")


def test_one_resource_twice_in_an_hour_and_one_resource_that_was_two_nodes(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    old = Node("a", provider_id=N, gone_at=at(1, 5, 15))
    put_lists(lake, [old, Node("b", provider_id=N, created_at=at(1, 5, 30))], times(at(1), at(2)))
    put_bills(lake, [line(N, at(1, 3)), line(N, at(1, 3), None, "0.5", sku_id="licence"), line(N, at(1, 5))])
    run(lake, BILLS)
    assert by_hour(lake, node="a") == {3: Decimal("1.5"), 5: Decimal("0.3333333333")}
    assert by_hour(lake, node="b") == {5: Decimal("0.6666666667")}
    ids = [r["charge_id"] for r in rows(lake, "core.billed_charges", hour=at(1, 5))]
    assert ids == ["bill/acct-202603/4/20260301T05", "bill/acct-202603/4/20260301T05/2"]


def test_scopes(lake: Lake) -> None:
    put(
        lake,
        "raw.commitments",
        [{"provider": "aws", "commitment_id": "ri-1", "as_of": date(2026, 1, 1), "owner_team": "t"}],
    )
    month = (MARCH, APRIL)
    put_bills(lake, [
        line("i-unknown", at(1, 1)), line(None, at(1, 1), service_category="AI and Machine Learning"),
        line("vol-1", at(1, 1), service_category="Storage"), line(N, at(1, 1), service_category="Networking"),
        flat("Tax", *month, "7", service_category="Compute"), flat("Credit", *month, "-5", resource_id=N),
        flat("Purchase", *month, "9", commitment_id="ri-1", resource_id="ri-1"), flat("Purchase", *month, "3"),
        line("ri-1", at(1), at(2), commitment_id="ri-1", commitment_discount_status="Unused", consumed_quantity=None,
             billed_cost=Decimal(0), commitment_quantity=Decimal(24)),
        line(N, at(1, 2), commitment_id="ri-1", commitment_discount_status="Used", billed_cost=Decimal(0)),
        flat("Adjustment", *month, "-0.01"),
    ])  # fmt: skip
    run(lake, BILLS)
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows(lake, "core.billed_charges"):
        found.setdefault(int(row["charge_id"].split("/")[2]), []).append(row)
    scopes = {number: charges[0]["charge_scope"] for number, charges in found.items()}
    assert list(dict(sorted(scopes.items())).values()) == [
        "not_in_cluster", "not_in_cluster", "other_services", "other_services", "tax", "credit", "commitment",
        "other_services", "commitment", "node", "other_services",
    ]  # fmt: skip
    assert {n: len(charges) for n, charges in found.items() if len(charges) > 1} == {10: 24}
    assert {(r["resource_id"], r["owner_team"], r["effective_cost"], r["commitment_quantity"]) for r in found[10]} == {
        ("ri-1", "t", 1, 1)
    }
    for number in (6, 7, 8, 9):
        (row,) = found[number]
        assert (row["hour"], row["charge_period_start_at"], row["charge_period_end_at"]) == (at(1), MARCH, APRIL)


def test_another_currency(lake: Lake) -> None:
    put_rates(lake, ("EUR", "USD", 1, "1.1"), ("EUR", "USD", 2, "1.2"), ("USD", "GBP", 1, "0.8"))
    put_bills(lake, [
        line("aws:///eu-1a/i-m", at(1), at(2), "0.333333333", billing_currency="EUR"),
        line(N, at(2), None, "1", billing_currency="EUR"), line(N, at(3), None, "1", billing_currency="GBP"),
        line(N, at(3), None, "1", billing_currency="JPY"),
        line(N, at(3), None, "1", billing_currency="EUR", list_cost=Decimal(7)),
    ])  # fmt: skip
    run(lake, BILLS, 1, 3)
    first = rows(lake, "core.billed_charges", node="m")
    # 24 x 0.333333333 EUR at 1.1, converted as a whole
    assert total(lake, "billed_cost", node="m") == Decimal("8.7999999912")
    assert {r["contracted_unit_price"] for r in first} == {Decimal("0.366666666")}
    assert {r["pricing_currency_contracted_unit_price"] for r in first} == {Decimal("0.333333333")}
    assert total(lake, "contracted_cost", node="m") == 24 * Decimal("0.366666666")
    assert total(lake, "pricing_currency_effective_cost", node="m") == 24 * Decimal("0.333333333")
    assert {(r["billing_currency"], r["pricing_currency"]) for r in first} == {("USD", "EUR")}
    assert by_hour(lake, date=date(2026, 3, 2)) == {0: Decimal("1.2")}
    pounds, yen, odd = sorted(rows(lake, "core.billed_charges", hour=at(3)), key=lambda r: r["charge_id"])
    assert (pounds["billed_cost"], pounds["list_unit_price"]) == (Decimal("1.25"), Decimal("1.875"))
    assert (yen["billed_cost"], yen["list_unit_price"], yen["list_cost"], yen["flags"]) == (0, None, 0, "no_rate")
    assert (yen["pricing_quantity"], yen["pricing_currency_list_unit_price"]) == (1, Decimal("1.5"))
    assert (odd["list_cost"], odd["list_unit_price"]) == (Decimal("8.4"), Decimal("1.8"))


def test_a_prepaid_commitment_keeps_the_rate_of_its_day(lake: Lake) -> None:
    """Paid on the first at 1.1: what it costs on the second, at 1.2, is worth 1.1; its list cost is of the day."""
    put_rates(lake, ("EUR", "USD", 1, "1.1"), ("EUR", "USD", 2, "1.2"))
    put(lake, "raw.commitments", [
        {"provider": "aws", "commitment_id": i, "commitment_name": i, "payment_model": model, "starts_at": at(1),
         "ends_at": at(9), "as_of": date(2026, 3, 1)}
        for i, model in (("whole", "All Upfront"), ("monthly", "No Upfront"))
    ])  # fmt: skip
    used = {"billing_currency": "EUR", "commitment_discount_status": "Used", "billed_cost": Decimal(0)}
    unused = flat("Usage", at(2), at(2, 1), "3", **used | {"commitment_discount_status": "Unused"})
    put_bills(lake, [
        *(line(N, at(2, h), None, "1", **used, commitment_id=i) for h, i in enumerate(("whole", "monthly", "unknown"))),
        unused | {"commitment_id": "whole", "resource_id": "whole"},
        line(N, at(2, 5), None, "1", billing_currency="EUR", commitment_id="whole"),
    ])  # fmt: skip
    run(lake, BILLS, 2, 3)
    by_line = {r["charge_id"].split("/")[2]: r for r in rows(lake, "core.billed_charges")}
    assert [by_line[n]["effective_cost"] for n in "23456"] == [Decimal(x) for x in ("1.1", "1.2", "1.2", "3.3", "1.2")]
    assert [by_line[n]["list_cost"] for n in "234"] == [Decimal("1.8")] * 3
    assert by_line["2"]["pricing_currency_effective_cost"] == 1


def test_reporting_in_euro(lake: Lake) -> None:
    put(lake, "raw.settings", [{"setting": "currency", "value": "EUR"}])
    put_rates(lake, ("EUR", "USD", 1, "1.25"))
    put_bills(lake, [line(N, at(1)), line(N, at(1, 1), None, "1", billing_currency="EUR")])
    run(lake, BILLS)
    assert by_hour(lake, billing_currency="EUR") == {0: Decimal("0.8"), 1: 1}


def test_corrections_are_dealt_by_their_absolute_value(lake: Lake) -> None:
    more = {
        "charge_class": "Correction",
        "billing_period_start_at": APRIL,
        "billing_period_end_at": datetime(2026, 5, 1),
    }
    negative = dict.fromkeys(SUMMED[3:], Decimal("-0.0000000100"))
    put_bills(lake, [line(N, at(1), at(2), "0", pricing_quantity=Decimal("-0.000000005"), **negative, **more)])
    run(lake, BILLS)
    assert total(lake, "billed_cost", charge_class="Correction") == Decimal("-0.00000001")
    assert total(lake, "list_cost") == Decimal("-0.00000001")
    assert total(lake, "pricing_quantity") == Decimal("-0.000000005")
    # a hundred units over 24 hours: four too many after the floor of each, to the first hours
    assert [by_hour(lake)[h] for h in (0, 3, 4, 23)] == [Decimal(x) for x in ("-5E-10", "-5E-10", "-4E-10", "-4E-10")]


def test_costs_that_are_not_price_times_quantity(lake: Lake) -> None:
    put_bills(lake, [
        line("aws:///eu-1a/i-m", at(1), at(2), "1", list_cost=Decimal("100.000000000000000001")),
        line(N, at(1), at(2), "0.333333333", contracted_cost=Decimal("7.9999999921")),
        line(N, at(1, 3), None, "1", list_unit_price=None, contracted_cost=None),
    ])  # fmt: skip
    run(lake, BILLS)
    assert total(lake, "list_cost", node="m") == Decimal("100.000000000000000001")
    # off by its last digit: price x quantity, and the first row has the difference
    daily = [r for r in rows(lake, "core.billed_charges", node="n") if "/3/" in r["charge_id"]]
    assert sum(r["contracted_cost"] for r in daily) == Decimal("7.9999999921")
    assert [r["contracted_cost"] for r in daily[1:]] == [Decimal("0.333333333")] * 23
    (odd,) = [r for r in rows(lake, "core.billed_charges", node="n") if "/4/" in r["charge_id"]]
    assert (odd["list_cost"], odd["contracted_cost"], odd["list_unit_price"]) == (Decimal("1.5"), 0, None)


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
