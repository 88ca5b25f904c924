"""A sound FOCUS file passes every check; one thing changed is caught by the check that is for it, and by no other.

Files are exported from a lake made by hand, read back as whoever receives them would, and changed as text or as rows.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import focus_month as given
import pytest

from assets.focus_files import FileFinding, check_file
from assets.sql_checks import load_checks, run_check
from warehouse.contracts import CONTRACTS
from warehouse.engine import connect
from warehouse.errors import BadInput
from warehouse.export import export_table
from warehouse.focus import CONTRACT_COMMITMENT, COST_AND_USAGE
from warehouse.lake import Lake
from warehouse.models import SQL_DIRECTORY

CHECKS = load_checks(SQL_DIRECTORY / "check")
FOCUS = {name for name in CHECKS if name.startswith("focus_")}
Record = dict[str, str]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return given.fill(tmp_path_factory.mktemp("checks"))


@pytest.fixture(scope="module")
def files(lake: Lake) -> dict[str, Path]:
    found = {}
    for form in ("csv", "parquet"):
        for version in ("1.4", "1.2"):
            found[version, form] = lake.root / f"usage-{version}.{form}"
            export_table(lake.root, COST_AND_USAGE, form, found[version, form], focus_version=version)
    found["commitments"] = lake.root / "commitments.csv"
    export_table(lake.root, CONTRACT_COMMITMENT, "csv", found["commitments"], focus_version="1.4")
    return found


@pytest.fixture(scope="module")
def sound(files: dict[str, Path]) -> list[Record]:
    with files["1.4", "csv"].open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def caught(path: Path, commitments: Path, version: str = "1.4") -> dict[str, FileFinding]:
    return {f.rule: f for f in check_file(path, version, CHECKS, commitments)}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("version", ["1.4", "1.2"])
def test_a_sound_file_passes(files: dict[str, Path], version: str, form: str) -> None:
    assert caught(files[version, form], files["commitments"], version) == {}


def test_a_sound_lake_passes(lake: Lake) -> None:
    with connect(lake.root) as con:
        found = {n: run_check(con, CHECKS[n], given.DAY, given.END) for n in sorted(FOCUS)}
    assert {n: f.shown for n, f in found.items() if f.rows} == {}


@dataclass(frozen=True)
class Mutation:
    """One change of a sound file: rows it takes, what it makes of them, and the rule that must say so."""

    what: str
    charge: str
    change: Callable[[Record], None]
    rule: str
    part: str | None = None


def put(**cells: str) -> Callable[[Record], None]:
    return lambda row: row.update(cells)


def less_ratio(row: Record) -> None:
    details = json.loads(row["AllocatedMethodDetails"])
    details["Elements"][0]["AllocatedRatio"] -= 0.1
    row["AllocatedMethodDetails"] = json.dumps(details)


MUTATIONS = [
    Mutation("ListCost that is not price x quantity", "own-1", put(ListCost="9.0"), "focus_cost_of_prices", "holder"),
    Mutation("ContractedCost likewise", "od-2", put(ContractedCost="9.0"), "focus_cost_of_prices", "holder"),
    Mutation("unknown ChargeFrequency", "od-3", put(ChargeFrequency="Usage-based"), "focus_allowed_values"),
    Mutation("unknown CommitmentDiscountCategory", "year-used", put(CommitmentDiscountCategory="Money"),
             "focus_allowed_values", "unallocated"),
    Mutation("unknown CapacityReservationStatus", "held-2", put(CapacityReservationStatus="Idle"),
             "focus_allowed_values"),
    Mutation("currency that is none", "bill/disk", put(BillingCurrency="Dollar"), "focus_allowed_values"),
    Mutation("subcategory of another category", "bill/disk", put(ServiceSubcategory="Virtual Machines"),
             "focus_service_parents"),
    Mutation("commitment costs more than was paid", "res-used", put(EffectiveCost="4.5"), "focus_commitment_balance"),
    Mutation("commitment costs less than was paid", "res-unused", put(EffectiveCost="3.9"),
             "focus_commitment_balance"),
    Mutation("purchase with EffectiveCost", "res-fee", put(EffectiveCost="8.0"), "focus_purchases"),
    Mutation("purchase charged to a node", "plan-fee", put(ResourceId="aurora:///gpu-1"), "focus_purchases"),
    Mutation("usage-based purchase", "plan-fee", put(ChargeFrequency="Usage-Based"), "focus_purchases"),
    Mutation("ratios that add up to 0.9", "od-1", less_ratio, "focus_split_ratios", "holder uid-train-1"),
    Mutation("x_allocated_ratio out of tune", "od-1", put(x_allocated_ratio="0.275"), "focus_split_ratios",
             "holder uid-train-1"),
    Mutation("ResourceId of one share changed", "od-1", put(ResourceId="aurora:///gpu-9"), "focus_split_dimensions",
             "holder uid-train-1"),
    Mutation("tags of one share changed", "od-1", put(Tags="{}"), "focus_split_dimensions", "holder uid-train-1"),
    Mutation("allocated resource without a method", "bill/other-vm", put(AllocatedResourceId="uid-1"),
             "focus_split_columns"),
    Mutation("split without a method", "od-3", put(AllocatedMethodId=""), "focus_split_columns"),
    Mutation("time without a zone", "od-3", put(ChargePeriodStart="2026-03-02T05:00:00"), "times"),
    Mutation("time with another zone", "od-3", put(ChargePeriodEnd="2026-03-02T06:00:00+00:00"), "times"),
    Mutation("number with an exponent", "od-3", put(BilledCost="6E0"), "numbers"),
    Mutation("Unused with ConsumedQuantity", "plan-unused", put(ConsumedQuantity="1.0"), "focus_unused"),
    Mutation("Unused of nothing", "plan-unused", put(CommitmentDiscountQuantity="0.0"), "focus_unused"),
    Mutation("Unused charged to a node", "plan-unused", put(ResourceId="aurora:///gpu-1"), "focus_unused"),
    Mutation("covered usage that is billed", "year-used", put(BilledCost="1.0"), "focus_covered_usage", "unallocated"),
    Mutation("covered usage without a status", "plan-fee", put(CommitmentDiscountStatus="Used"),
             "focus_covered_usage focus_purchases"),
    Mutation("EffectiveCost null", "bill/disk", put(EffectiveCost=""), "focus_not_null"),
    Mutation("ListCost null", "held-1", put(ListCost=""), "focus_not_null"),
    Mutation("negative unit price", "bill/refund", put(ListUnitPrice="-3.0"), "focus_unit_prices"),
    Mutation("computed usage without a price", "own-1", put(ContractedUnitPrice="", ListUnitPrice=""),
             "focus_unit_prices focus_split_dimensions", "holder"),
    Mutation("tax with SKU", "bill/tax", put(SkuId="vat"), "focus_taxes"),
    Mutation("tax with another effective cost", "bill/tax", put(EffectiveCost="0.3"), "focus_taxes"),
    Mutation("credit with another effective cost", "credit-1", put(EffectiveCost="-1.0"), "focus_credits"),
    Mutation("credit that costs", "credit-1", put(**dict.fromkeys(
        ("ListCost", "ContractedCost", "BilledCost", "EffectiveCost"), "2.0")), "focus_credits"),
    Mutation("usage that is cheaper than billed", "held-1", put(EffectiveCost="5.0"), "focus_effective_cost"),
    Mutation("consumption without usage", "credit-1", put(ConsumedQuantity="1.0", ConsumedUnit="Hours"),
             "focus_consumption"),
    Mutation("reservation without a status", "held-1", put(CapacityReservationStatus=""), "focus_consumption"),
    Mutation("period that ends before it starts", "bill/disk", put(ChargePeriodEnd="2026-03-01T00:00:00Z"),
             "focus_periods"),
    Mutation("JSON cut off", "bill/disk", put(SkuPriceDetails='{"InstanceType":'), "focus_json"),
    Mutation("JSON that is no object", "bill/disk", put(Tags="[]"), "focus_json"),
]  # fmt: skip


def mutated(sound: list[Record], mutation: Mutation, path: Path) -> int:
    rows, changed = [dict(r) for r in sound], 0
    for row in rows:
        kind = f"{row['x_cost_part']} {row['x_holder']}".strip()
        if row["x_charge_id"] == mutation.charge and kind.startswith(mutation.part or ""):
            mutation.change(row)
            changed += 1
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(sound[0]))
        writer.writeheader()
        writer.writerows(rows)
    return changed


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: m.what)
def test_one_change_is_caught_by_its_check_alone(
    sound: list[Record], files: dict[str, Path], mutation: Mutation, tmp_path: Path
) -> None:
    path = tmp_path / "usage.csv"
    assert mutated(sound, mutation, path) == 1
    found = caught(path, files["commitments"])
    assert set(found) == set(mutation.rule.split()), [str(f) for f in found.values()]


def test_every_check_has_a_mutation() -> None:
    from_lake = {"focus_sums"}  # needs the charges: see below
    assert {r for m in MUTATIONS for r in m.rule.split()} - {"times", "numbers"} == FOCUS - from_lake


def test_rows_that_do_not_add_up_to_their_charge_are_found(lake: Lake) -> None:
    with connect(lake.root) as con:
        con.execute("create table kept as select * from mart.focus_cost_and_usage")
        con.execute("drop view mart.focus_cost_and_usage")
        con.execute("create view mart.focus_cost_and_usage as select * from kept")
        check = CHECKS["focus_sums"]
        assert run_check(con, check, given.DAY, given.END).rows == 0
        con.execute("""update kept set "EffectiveCost" = "EffectiveCost" + 1e-10 where x_cost_part = 'unavailable'""")
        assert [r["charge_id"] for r in run_check(con, check, given.DAY, given.END).shown] == ["od-1"]
        con.execute("delete from kept where x_charge_id in ('od-1', 'spot-1')")
        assert {r["charge_id"] for r in run_check(con, check, given.DAY, given.END).shown} == {"od-1", "spot-1"}


def test_files_that_are_something_else_are_refused(files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="lacks ProviderName, PublisherName"):
        check_file(files["1.4", "csv"], "1.2", CHECKS)
    other = tmp_path / "usage.csv"
    other.write_text("BilledCost\n1\n")
    with pytest.raises(BadInput, match=r"usage\.csv"):
        check_file(other, "1.4", CHECKS)
    with pytest.raises(BadInput, match=r"none\.csv"):
        check_file(tmp_path / "none.csv", "1.4", CHECKS)


def test_columns_in_another_order_and_naive_parquet_are_told(files: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "usage.parquet"
    source = f"'{files['1.4', 'parquet']}'"
    first, *others = [f.name for f in CONTRACTS[COST_AND_USAGE].fields if f.name != "date"]
    moved = ", ".join(f'"{c}"' for c in (*others, first))
    naive = moved.replace('"ChargePeriodStart"', 'cast("ChargePeriodStart" as timestamp) as "ChargePeriodStart"')
    duckdb.execute(f"copy (select {naive} from {source}) to '{path}' (format parquet)")
    assert set(caught(path, files["commitments"])) == {"columns", "times"}
