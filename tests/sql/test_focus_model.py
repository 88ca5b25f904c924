"""The FOCUS tables: split rows add up to their charge, closed months stay as told, and what changed is a correction."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal as D
from pathlib import Path

import focus_month as given
import pytest
from sqlglot import exp

from warehouse.contracts import CONTRACTS
from warehouse.lake import Lake
from warehouse.models import load_models

SUMMED = {
    "PricingQuantity": "pricing_quantity", "ConsumedQuantity": "consumed_quantity",
    "CommitmentDiscountQuantity": "commitment_quantity", "ListCost": "list_cost",
    "ContractedCost": "contracted_cost", "BilledCost": "billed_cost", "EffectiveCost": "effective_cost",
    "PricingCurrencyEffectiveCost": "pricing_currency_effective_cost",
}  # fmt: skip
UNCHANGED = {
    "ResourceId": "resource_id", "SkuId": "sku_id", "SkuPriceId": "sku_price_id", "ListUnitPrice": "list_unit_price",
    "ContractedUnitPrice": "contracted_unit_price", "ChargePeriodStart": "charge_period_start_at",
}  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return given.fill(tmp_path_factory.mktemp("focus"))


@pytest.fixture(scope="module")
def rows(lake: Lake) -> list[given.Row]:
    return given.focus_rows(lake)


def test_columns_of_statements_stand_where_those_of_the_model_do() -> None:
    tree = load_models()["mart.focus_cost_and_usage"].tree
    parts = {cte.alias: cte.this for cte in tree.find_all(exp.CTE)}
    for name in ("computed", "corrections"):
        assert tuple(parts[name].named_selects) == CONTRACTS["mart.focus_statement"].columns


def test_every_charge_is_there_whole_and_its_dimensions_unchanged(rows: list[given.Row]) -> None:
    charges, _ = given.month()
    by_charge = defaultdict(list)
    for row in rows:
        by_charge[row["x_charge_id"]].append(row)
    assert by_charge.keys() == {c["charge_id"] for c in charges}
    for charge in charges:
        split = by_charge[charge["charge_id"]]
        for column, source in SUMMED.items():
            found = [r[column] for r in split if r[column] is not None]
            assert sum(found) == (charge[source] or 0), (charge["charge_id"], column)
            assert bool(found) == (charge[source] is not None)
        for column, source in UNCHANGED.items():
            assert {r[column] for r in split} == {charge[source]}
        assert {r["Tags"] and json.dumps(json.loads(r["Tags"])) for r in split} == {
            charge["tags"] and json.dumps(charge["tags"])
        }


def test_holders_are_allocated_resources_and_the_rest_has_none(rows: list[given.Row]) -> None:
    split = [r for r in rows if r["x_charge_id"] == "od-1"]
    assert {r["x_cost_part"]: r["AllocatedResourceName"] for r in split if r["x_holder"] is None} == {
        "unallocated": None,
        "unavailable": None,
    }
    assert {r["AllocatedResourceId"]: json.loads(r["AllocatedTags"])["team"] for r in split if r["x_holder"]} == {
        "uid-serve-1": "nlp",
        "uid-train-1": "ml",
    }
    details = {r["x_holder"] or r["x_cost_part"]: json.loads(r["AllocatedMethodDetails"])["Elements"] for r in split}
    assert details["uid-train-1"] == [{"AllocatedRatio": 0.375, "UsageUnit": "GPU-Seconds", "UsageQuantity": 10800}]
    assert details["unavailable"] == [{"AllocatedRatio": 0.125, "UsageUnit": "GPU-Seconds", "UsageQuantity": 3600}]
    assert {r["AllocatedMethodId"] for r in split} == {"strandline-whole-node-1"}
    overhead = [r for r in rows if r["x_cost_part"] == "node_overhead"]
    assert json.loads(overhead[0]["AllocatedMethodDetails"])["Elements"][0]["UsageUnit"] == "CPU and Memory Requests"


def test_what_is_not_divided_carries_no_allocation(rows: list[given.Row]) -> None:
    plain = [r for r in rows if r["x_charge_scope"] != "node"]
    assert len(plain) == 11
    assert {r[c] for r in plain for c in r if c.startswith("Allocated")} == {None}


def test_text_is_escaped_in_json(tmp_path: Path) -> None:
    charges, division = given.month()
    for row in division:
        if row["team"] == "ml":
            row["team"] = 'a"b\\c\nd'
    lake = Lake(tmp_path)
    given.put(lake, charges, division)
    given.build(lake)
    teams = {json.loads(r["AllocatedTags"])["team"] for r in given.focus_rows(lake) if r["AllocatedTags"]}
    assert teams == {'a"b\\c d', "nlp"}


def test_programs_and_contracts(rows: list[given.Row]) -> None:
    by_charge = {r["x_charge_id"]: r for r in rows}

    def programs(charge: str) -> list[str]:
        text = by_charge[charge]["CommitmentProgramEligibilityDetails"]
        return [p["ProgramType"] for p in json.loads(text)["CommitmentPrograms"]] if text else []

    assert programs("od-1") == programs("res-used") == ["Capacity Block", "Reservation", "Savings Plan"]
    assert programs("plan-unused") == ["Reservation", "Savings Plan"]  # a commitment for any instance type could, too
    assert programs("spot-1") == programs("own-1") == programs("res-fee") == programs("bill/tax") == []
    applied = json.loads(by_charge["res-used"]["ContractApplied"])["Elements"]
    assert applied == [
        {
            "ContractId": "res-1", "ContractCommitmentId": "res-1", "ContractCommitmentAppliedQuantity": 1,
            "ContractCommitmentAppliedUnit": "Hours",
        }
    ]  # fmt: skip
    assert by_charge["plan-unused"]["ContractApplied"] is None


def test_contract_commitments(lake: Lake) -> None:
    rows = {r["ContractCommitmentId"]: r for r in lake.read("mart.focus_contract_commitment").to_pylist()}
    assert rows["res-1"]["ContractCommitmentCost"] == 8
    assert rows["plan-1"]["ContractCommitmentCost"] == 4 * 8760
    assert [rows[i]["ContractCommitmentDurationType"] for i in ("res-1", "plan-1")] == ["2 Hours", "1 Year"]
    assert [rows[i]["ContractCommitmentLifecycleStatus"] for i in ("res-1", "plan-1")] == ["Expired", "Active"]
    inclusions = json.loads(rows["res-1"]["ContractCommitmentApplicability"])["Inclusions"]
    assert {i["Dimension"]: i["Values"] for i in inclusions}["x_instance_type"] == ["h8", "h8x"]


def close(lake: Lake, month: date, statement: str, issued_at: datetime) -> None:
    """Freeze the rows of a billing month, as closing it does."""
    rows = [r for r in given.focus_rows(lake) if r["BillingPeriodStart"].date().replace(day=1) == month]
    told = [r | {"statement_id": statement, "issued_at": issued_at, "month": month} for r in rows]
    frozen = lake.read("mart.focus_statement").to_pylist()
    table = given.rows_to_table("mart.focus_statement", frozen + told)
    lake.replace("mart.focus_statement", table, given.DAY, given.END)
    heads = lake.read("mart.cost_statement").to_pylist()
    heads.append({
        "date": month, "month": month, "statement_id": statement, "issued_at": issued_at, "cost_part": "holder",
    })  # fmt: skip
    table = given.rows_to_table("mart.cost_statement", heads)
    lake.replace("mart.cost_statement", table, date(2026, 1, 1), date(2027, 1, 1))
    lake.publish_tables(f"closed-{statement}", lake.newest().tables)  # no build publishes frozen tables


def totals(rows: list[given.Row]) -> dict[str, D]:
    return {c: sum((r[c] for r in rows if r[c] is not None), D(0)) for c in SUMMED}


MARCH, APRIL, MAY = date(2026, 3, 1), date(2026, 4, 1), date(2026, 5, 1)


def test_a_closed_month_stays_and_what_changed_is_a_correction(tmp_path: Path) -> None:
    lake = given.fill(tmp_path)
    told = given.focus_rows(lake)
    close(lake, MARCH, "s-1", datetime(2026, 4, 2))
    given.build(lake)
    again = given.focus_rows(lake)
    assert {r.pop("x_statement_id") for r in again} == {"s-1"}
    assert again == [{c: v for c, v in r.items() if c != "x_statement_id"} for r in told]

    # one charge dearer at the same price (2 hours instead of 1), one gone, one new, one holder's team renamed
    charges, division = given.month()
    longer = given.charge("od-1", given.FIRST, pricing_quantity=D(2), consumed_quantity=D(2), list_cost=D(16),
                          contracted_cost=D(12), billed_cost=D(12), effective_cost=D(12))  # fmt: skip
    parts: list[given.Part] = [("ml/train-1", 3), ("nlp/serve-1", 2), ("unallocated", 2), ("unavailable", 1)]
    late = given.charge("late", given.THIRD)
    charges = [c for c in charges if c["charge_id"] not in ("od-1", "own-1")] + [longer, late]
    division = [r for r in division if r["charge_id"] not in ("od-1", "own-1")]
    division += [*given.divided(longer, parts), *given.divided(late, [("unallocated", 8)])]
    for row in division:
        if row["charge_id"] == "res-used":
            row["team"] = "ml2"
    given.put(lake, charges, division)
    given.build(lake)
    rows = given.focus_rows(lake)
    new = [r for r in rows if r["x_statement_id"] is None]
    assert {r["ChargeClass"] for r in new} == {"Correction"}
    assert {(r["BillingPeriodStart"], r["BillingPeriodEnd"]) for r in new} == {
        (datetime(2026, 4, 1), datetime(2026, 5, 1))
    }
    changed = defaultdict(lambda: D(0))
    for r in new:
        changed[r["x_charge_id"], r["x_team"]] += r["EffectiveCost"]
    assert changed == {
        ("od-1", "ml"): D("2.25"), ("od-1", "nlp"): D("1.5"), ("od-1", None): D("2.25"), ("late", None): D(6),
        ("own-1", "ml"): D("-2.3561944898"), ("own-1", None): D("-0.7853981632"), ("res-used", "ml"): D(-4),
        ("res-used", "ml2"): D(4),
    }  # fmt: skip
    assert [r for r in rows if r["x_statement_id"]] == [r | {"x_statement_id": "s-1"} for r in told]
    for r in new:
        assert r["ListCost"] == r["ListUnitPrice"] * r["PricingQuantity"]
        assert r["AllocatedMethodDetails"] is None

    # the next month is closed with those corrections in it: nothing is told twice, the next difference is of May
    close(lake, APRIL, "s-2", datetime(2026, 5, 2))
    given.build(lake)
    assert {r["x_statement_id"] for r in given.focus_rows(lake)} == {"s-1", "s-2"}
    cheaper = given.charge(
        "late", given.THIRD, contracted_unit_price=D(5), contracted_cost=D(5), billed_cost=D(5), effective_cost=D(5)
    )
    charges = [c for c in charges if c["charge_id"] != "late"] + [cheaper]
    division = [r for r in division if r["charge_id"] != "late"] + given.divided(cheaper, [("unallocated", 8)])
    given.put(lake, charges, division)
    given.build(lake)
    last = [r for r in given.focus_rows(lake) if r["x_statement_id"] is None]
    assert [(r["x_charge_id"], r["BillingPeriodStart"].date(), r["EffectiveCost"]) for r in last] == [("late", MAY, -1)]
    # no quantity at one price stands for a change of price
    assert [last[0][c] for c in ("SkuPriceId", "PricingQuantity", "PricingUnit", "ContractedUnitPrice")] == [None] * 4
    assert totals(given.focus_rows(lake)) == totals_of_charges(charges)


def totals_of_charges(charges: list[given.Row]) -> dict[str, D]:
    return {c: sum((r[s] for r in charges if r[s] is not None), D(0)) for c, s in SUMMED.items()}


def test_the_newest_statement_of_a_month_counts(tmp_path: Path) -> None:
    lake = given.fill(tmp_path)
    close(lake, MARCH, "s-1", datetime(2026, 4, 2))
    charges, division = given.month()
    kept = [c for c in charges if c["charge_id"] != "od-3"]
    given.put(lake, kept, [r for r in division if r["charge_id"] != "od-3"])
    given.build(lake)
    assert totals(given.focus_rows(lake)) == totals_of_charges(kept)
    assert {r["ChargeClass"] for r in given.focus_rows(lake) if r["x_statement_id"] is None} == {"Correction"}
