"""Resources of bills matched to nodes: by which of its names a node is known, and what charges of no node are."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from billed_nodes import N, three_days
from small_bills import APRIL, BILLS, MARCH, by_hour, flat, line, put_bills, total
from small_cloud import Node, at, put, put_lists, rows, run, times

from warehouse.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return three_days(tmp_path)


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
