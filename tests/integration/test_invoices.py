"""Charges against the invoices of the simulated providers, who work out theirs by code of their own.

Belongs here: sums of charges with and without bills, and a bill that is wrong. Not here: a bill worked by hand
(tests/fleet), the attribution of charges to teams (tests/sql).
"""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from simulated_lakes import once

from assets.bills import load_bills
from fleet.model import FleetSpec
from fleet.world import World
from pipelines import billing, building, costs, simulated
from pipelines.settings import load
from warehouse.contracts import CONTRACTS
from warehouse.engine import connect
from warehouse.errors import BadInput
from warehouse.lake import Lake

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SPEC = FleetSpec(seed=5, scale=0.1, days=2, history_days=8, interval_s=300, faults="none")
START, END = simulated.spec_window(SPEC)
# Conversion and amortization round every line at 1e-10.
ROUNDING = Decimal("0.000001")


@dataclass(frozen=True)
class Billed:
    """A built lake."""

    root: Path

    def rows(self, query: str) -> list[tuple]:
        with connect(self.root) as con:
            return con.execute(query).fetchall()


@pytest.fixture(scope="module")
def billed(tmp_path_factory: pytest.TempPathFactory) -> Billed:
    """A small fleet for two days with its cards and bills."""

    def make(root: Path) -> None:
        lake, world = Lake(root), World.build(SPEC)
        with lake.writer():
            simulated.write_settings(lake, world, START)
            simulated.write_history(lake, world, lambda _: None)
            billing.write_money(lake, world, lambda _: None)
        building.build(load({"data": root}).settings, START, END, (), lambda _: None)

    return Billed(once(tmp_path_factory, "lake-billed", make))


def invoiced(lake: Billed, kinds: tuple[str, ...]) -> dict[str, tuple[Decimal, Decimal]]:
    """Provider to billed and effective cost of the invoices of these kinds."""
    named = ", ".join(f"'{k}'" for k in kinds)
    return {
        p: (b, e)
        for p, b, e in lake.rows(
            "select provider, sum(billed_cost), sum(effective_cost) from raw.fleet_invoices "
            f"where kind in ({named}) group by provider"
        )
    }


def charged(lake: Billed, table: str) -> dict[str, tuple[Decimal, Decimal]]:
    """Provider to billed and effective cost of a table of charges."""
    rows = lake.rows(f"select provider, sum(billed_cost), sum(effective_cost) from {table} group by provider")
    return {p: (b, e) for p, b, e in rows}


def test_computed_charges_are_the_invoices(billed: Billed) -> None:
    """What rate cards say of nodes, commitments and credits is what the providers bill, to the last digit."""
    ours = charged(billed, "core.computed_charges")
    theirs = invoiced(billed, ("usage", "purchase", "credit"))
    assert ours.keys() == theirs.keys() == {"nimbus", "cirrus", "onprem"}
    for provider, (billed_cost, effective) in theirs.items():
        assert ours[provider][0] == billed_cost, provider
        assert abs(ours[provider][1] - effective) < ROUNDING, provider


def test_by_kind_of_charge(billed: Billed) -> None:
    rows = billed.rows(
        "select provider, lower(charge_category), sum(billed_cost) from core.computed_charges group by all order by all"
    )
    theirs = billed.rows(
        "select provider, kind, billed_cost from raw.fleet_invoices where kind in ('usage', 'purchase', 'credit') "
        "order by all"
    )
    assert rows == theirs


def test_bills_take_the_place_of_computed_charges(billed: Billed) -> None:
    """nimbus bills both days, cirrus the first, onprem none; the sums stay those of the invoices, all services in."""
    origins = billed.rows(
        "select provider, date, string_agg(distinct charge_origin, ',' order by charge_origin) from core.charges "
        "group by all order by all"
    )
    first, second = START, END - (END - START) / 2
    assert origins == [
        ("cirrus", first, "bill"), ("cirrus", second, "computed"), ("nimbus", first, "bill"),
        ("nimbus", second, "bill"), ("onprem", first, "computed"), ("onprem", second, "computed"),
    ]  # fmt: skip
    ours = charged(billed, "core.charges")
    theirs = invoiced(billed, ("usage", "purchase", "credit", "tax", "other", "not_in_cluster"))
    for provider, (billed_cost, effective) in theirs.items():
        assert ours[provider][0] == billed_cost, provider
        assert abs(ours[provider][1] - effective) < ROUNDING, provider
    scopes = billed.rows("select distinct charge_scope from core.charges order by 1")
    assert [s for (s,) in scopes] == [
        "commitment", "credit", "node", "not_in_cluster", "other_services", "tax",
    ]  # fmt: skip


def test_teams_and_the_rest_add_up(billed: Billed) -> None:
    with connect(billed.root) as con:
        rows, sums = costs.cost_rows(con, START, END), costs.cost_sums(con, START, END)
        lines = costs.commitment_lines(con, START, END)
    assert sum(r.effective for r in rows) == sums.effective
    assert sums.billed == sums.invoiced
    assert sums.billed - sums.effective == sums.prepaid
    assert all(r.utilized + r.stranded + r.unobserved == r.effective for r in rows if r.utilized is not None)
    assert len(lines) == 5
    for line in costs.proofs(rows, sums):
        assert line.endswith("equal to the cent"), line


def test_reconciliation_finds_nothing_in_sound_bills(billed: Billed) -> None:
    """Every node agrees with its bill in what is billed; what no bill tells yet is told apart."""
    verdicts = billed.rows(
        "select provider, date, string_agg(distinct verdict, ',' order by verdict) from mart.bill_reconciliation "
        "where charge_scope = 'node' group by all order by all"
    )
    first, second = START, END - (END - START) / 2
    assert verdicts == [
        ("cirrus", first, "match"), ("cirrus", second, "not_billed_yet"), ("nimbus", first, "match"),
        ("nimbus", second, "match"), ("onprem", first, "not_in_bill"), ("onprem", second, "not_in_bill"),
    ]  # fmt: skip
    wrong = "billed_difference <> 0 and verdict in ('match', 'differs') and charge_scope in ('node', 'commitment')"
    assert billed.rows(f"select * from mart.bill_reconciliation where {wrong}") == []


@pytest.fixture
def copied(billed: Billed, tmp_path: Path) -> Iterator[Billed]:
    """The lake once more, to do with as a test likes."""
    root = tmp_path / "lake"
    shutil.copytree(billed.root, root, ignore=shutil.ignore_patterns("*.lock"))
    yield Billed(root)


def test_a_planted_error_is_found(copied: Billed) -> None:
    """Two node-hours too dear by 10 USD and one hour left out: the day's difference of that node, and of no other."""
    path = copied.root / "simulated" / "bills" / f"nimbus-{START:%Y-%m}.csv"
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    mine = [r for r in rows if r["PricingCategory"] == "Standard" and r["ChargeCategory"] == "Usage"
            and r["SkuPriceDetails"]]  # fmt: skip
    victim = mine[0]["ResourceId"]
    hours = [r for r in mine if r["ResourceId"] == victim and r["ChargePeriodStart"].startswith(START.isoformat())]
    for r in hours[:2]:
        for column in ("BilledCost", "EffectiveCost"):
            r[column] = str(Decimal(r[column]) + 10)
    missing = hours[2]
    rows.remove(missing)
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    lake = Lake(copied.root)
    assert load_bills(lake, [path]).replaced == 1
    building.build(load({"data": copied.root}).settings, START, END, (), lambda _: None)
    found = copied.rows(
        "select date, resource_id, verdict, billed_difference from mart.bill_reconciliation "
        "where provider = 'nimbus' and charge_scope in ('node', 'commitment') and billed_difference <> 0"
    )
    assert found == [(START, victim, "differs", 20 - Decimal(missing["BilledCost"]))]


def test_another_fleet_in_the_same_folder(copied: Billed) -> None:
    """Cards, bills and invoices are replaced whole; nobody else's are touched."""
    spec = replace(SPEC, seed=6, days=1, end_at=SPEC.end_at.replace(day=3, month=5))
    lake, world = Lake(copied.root), World.build(spec)
    start, end = simulated.spec_window(spec)
    statement, month = "mart.cost_statement", date(2026, 5, 1)
    row = {"date": month, "statement_id": "s", "cost_part": "holder"}
    lake.replace(statement, pa.Table.from_pylist([row], schema=CONTRACTS[statement].arrow_schema), month, end)
    version = lake.newest_version(statement)
    assert version is not None
    lake.publish_tables("closed", {**lake.published().tables, statement: version})
    with lake.writer():
        simulated.check_replaceable(lake)
        written = billing.write_money(lake, world, lambda _: None)
        simulated.clear_beyond(lake, written, (start, end))
    assert not lake.dates(statement) and statement not in lake.published().tables
    assert lake.dates("raw.bills") == lake.dates("raw.fleet_invoices") == [date(2026, 5, 1)]
    terms = lake.read("raw.commitments").column("starts_at").to_pylist()
    assert max(terms).date() < date(2026, 5, 3)
    foreign = lake.read("raw.credits").to_pylist()
    foreign[0]["provider"] = "aws"
    lake.replace("raw.credits", pa.Table.from_pylist(foreign, schema=CONTRACTS["raw.credits"].arrow_schema))
    assert billing.foreign_money(lake) == ["raw.credits of aws"]
    with pytest.raises(BadInput, match=r"raw\.credits of aws"):
        simulated.check_replaceable(lake)
