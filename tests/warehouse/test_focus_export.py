"""FOCUS exports: columns of a version in its order, plain decimals, instants with Z, text that runs as no formula."""

from __future__ import annotations

import csv
import json
import re
from decimal import Decimal
from pathlib import Path

import focus_month as given
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse import focus
from warehouse.contracts import CONTRACTS
from warehouse.contracts.focus import FOCUS_1_4, OWN
from warehouse.errors import BadInput
from warehouse.export import export_table
from warehouse.lake import Lake

USAGE, COMMITMENTS = focus.COST_AND_USAGE, focus.CONTRACT_COMMITMENT


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """The month made by hand, with a pod whose name is a formula, and details as bills write them."""
    lake = Lake(tmp_path_factory.mktemp("export"))
    charges, division = given.month()
    for row in division:
        if row["pod"] == "train-3":
            row["pod"] = "=cmd|'/c calc'!a1"
    for row in charges:
        if row["charge_id"] == "bill/disk":  # as a bill may have it
            row["sku_price_details"] = '{"InstanceType": "a\\"b\\":c", "GpuCount":8, "memory" : "\\"x\\"","x_Own":1}'
        if row["charge_id"] == "credit-1":
            row["sku_price_id"] = "credit-sku"
    given.put(lake, charges, division)
    given.build(lake)
    return lake


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def export(lake: Lake, version: str, form: str = "csv", table: str = USAGE) -> Path:
    path = lake.root / f"{table}-{version}.{form}"
    export_table(lake.root, table, form, path, focus_version=version)
    return path


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_1_4_is_the_specification_and_then_ours(lake: Lake, form: str) -> None:
    path = export(lake, "1.4", form)
    names = list(read(path)[0]) if form == "csv" else pq.read_schema(path).names
    assert names == [f.name for f in (*FOCUS_1_4, *OWN)]
    assert len(FOCUS_1_4) == 65
    assert "date" not in names


def test_1_2_names_providers_and_keeps_what_is_newer_as_ours(lake: Lake) -> None:
    rows = read(export(lake, "1.2"))
    names = list(rows[0])
    own = [n for n in names if n.startswith("x_")]
    specified = names[: len(names) - len(own)]
    assert names == specified + own
    assert len(specified) == 57
    assert specified == sorted(specified)
    assert {"ProviderName", "PublisherName"} < set(specified)
    assert not {n for n in specified if n.startswith("Allocated")}
    spot = next(r for r in rows if r["x_charge_id"] == "spot-1" and r["x_cost_part"] == "holder")
    assert (spot["ProviderName"], spot["PublisherName"], spot["x_host_provider_name"]) == (
        "borealis", "borealis", "metalhall",
    )  # fmt: skip
    assert spot["x_allocated_resource_id"] == spot["x_holder"]
    newer = {f.name for f in FOCUS_1_4} - set(specified)
    assert len([n for n in own if n not in {f.name for f in OWN}]) == len(newer)


@pytest.mark.parametrize("version", focus.VERSIONS)
def test_cells(lake: Lake, version: str) -> None:
    path = export(lake, version)
    rows = read(path)
    kinds = {new: CONTRACTS[USAGE].field(old).type for new, old in focus.columns(USAGE, version)}
    for row in rows:
        for name, cell in row.items():
            if not cell:
                continue
            if kinds[name] == "timestamp":
                assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", cell), (name, cell)
            elif kinds[name] not in ("string", "integer"):
                assert re.fullmatch(r"-?\d+\.(0|\d*[1-9])", cell), (name, cell)
    by_charge = {r["x_charge_id"]: r for r in rows}
    assert by_charge["credit-1"]["BilledCost"] == "-2.0"  # a number is no formula
    assert by_charge["held-1"]["x_pod"] == "'=cmd|'/c calc'!a1"
    assert by_charge["bill/disk"]["Tags"] == ""
    # keys that FOCUS does not define begin with x_; texts are left alone
    assert json.loads(by_charge["bill/disk"]["SkuPriceDetails"]) == {
        "InstanceType": 'a"b":c', "GpuCount": 8, "x_memory": '"x"', "x_Own": 1,
    }  # fmt: skip
    assert by_charge["credit-1"]["SkuPriceId"] == ""  # it has no unit price


def test_numbers_are_those_of_the_table(lake: Lake) -> None:
    rows = {(r["x_charge_id"], r["x_cost_part"], r["x_holder"]): r for r in read(export(lake, "1.4"))}
    decimals = [f.name for f in (*FOCUS_1_4, *OWN) if pa.types.is_decimal(f.arrow)]
    for row in given.focus_rows(lake):
        told = rows[row["x_charge_id"], row["x_cost_part"], row["x_holder"] or ""]
        for name in decimals:
            assert (Decimal(told[name]) if told[name] else None) == row[name]


def test_parquet_keeps_types_and_marks_instants_utc(lake: Lake) -> None:
    schema = pq.read_schema(export(lake, "1.4", "parquet"))
    assert schema.field("ChargePeriodStart").type == pa.timestamp("us", tz="UTC")
    assert schema.field("ListCost").type == pa.decimal128(38, 18)
    assert schema.field("EffectiveCost").type == pa.decimal128(28, 10)
    assert schema.field("Tags").type == pa.string()
    table = pq.read_table(export(lake, "1.4", "parquet"), columns=["ChargePeriodStart"])
    assert min(table["ChargePeriodStart"].to_pylist()).isoformat() == "2026-03-01T00:00:00+00:00"


def test_contract_commitments_are_written_for_1_4_only(lake: Lake) -> None:
    lake.replace("raw.commitments", given.rows_to_table("raw.commitments", given.commitments()))
    given.build(lake)
    rows = read(export(lake, "1.4", table=COMMITMENTS))
    assert len(rows[0]) == 30
    assert {r["ContractCommitmentPaymentUpfrontPercentage"] for r in rows} == {"0.0", "1.0", "0.409836065573"}
    with pytest.raises(BadInput, match=r"--focus 1\.2: mart\.focus_contract_commitment can be written for FOCUS 1\.4"):
        export(lake, "1.2", table=COMMITMENTS)


def test_other_tables_are_refused(lake: Lake) -> None:
    with pytest.raises(BadInput, match=r"mart\.stranding_hourly is no FOCUS dataset"):
        export(lake, "1.4", table="mart.stranding_hourly")


def test_the_same_rows_give_the_same_file(lake: Lake) -> None:
    assert export(lake, "1.4").read_bytes() == export(lake, "1.4").read_bytes()
