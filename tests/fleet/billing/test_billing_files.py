"""Bills, invoices and price cards as the simulated providers write them, added up and read back."""

from __future__ import annotations

import csv
from datetime import date, datetime, timedelta
from fractions import Fraction

import pyarrow.compute as pc
import pyarrow.parquet as pq
from billed_fleet import NODES, START, TWO_WEEKS

from fleet.billing import cirrus
from fleet.billing.bills import daily, write_bills
from fleet.billing.calendar import HOUR, Window
from fleet.billing.cards import write_cards
from fleet.billing.invoices import bill_fleet, fleet_invoices
from fleet.billing.money import half_up
from fleet.topology import OWNER_LABEL, SPOT_LABEL
from sources.prices.cards import read_cards


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
