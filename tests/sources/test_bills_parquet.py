"""Parquet in every type that exports use; and any sound rows, as CSV and as Parquet, come out as the same decimals."""

from __future__ import annotations

import json
import tempfile
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bill_files import SOUND, read, row, without, write_csv
from hypothesis import given, settings
from hypothesis import strategies as st

START, END = datetime(2026, 5, 3, 10), datetime(2026, 5, 3, 12)
TYPES: dict[str, dict[str, pa.Array]] = {
    "decimals": {"BilledCost": pa.array([Decimal("6.12")], pa.decimal128(38, 18)),
                 "PricingQuantity": pa.array([Decimal("0.000000001")], pa.decimal128(20, 9))},
    "doubles": {"BilledCost": pa.array([6.12]), "EffectiveCost": pa.array([6.12], pa.float32()),
                "PricingQuantity": pa.array([1e-9])},
    "integers": {"BilledCost": pa.array([6], pa.int64()), "PricingQuantity": pa.array([2], pa.int8())},
    "zoned-times": {"ChargePeriodStart": pa.array([START], pa.timestamp("ms", "UTC")),
                    "ChargePeriodEnd": pa.array([END], pa.timestamp("ns", "Europe/Berlin"))},
    "times": {"ChargePeriodStart": pa.array([START], pa.timestamp("us")),
              "ChargePeriodEnd": pa.array([END], pa.timestamp("s"))},
    "dates": {"BillingPeriodStart": pa.array([START.date().replace(day=1)], pa.date32())},
    "dictionaries": {"ChargeCategory": pa.array(["Usage"]).dictionary_encode(),
                     "BillingCurrency": pa.array(["USD"]).dictionary_encode()},
    "tags-as-map": {"Tags": pa.array([[("team", "vision")]], pa.map_(pa.string(), pa.string()))},
    "tags-as-structs": {"Tags": pa.array([[{"key": "team", "value": "vision"}]])},
    "bytes": {"ResourceId": pa.array([b"i-0a1"], pa.binary()), "SkuId": pa.array(["SKU1"], pa.large_string())},
    "nulls": {"CommitmentDiscountId": pa.nulls(1), "x_Note": pa.nulls(1)},
    "booleans-and-lists": {"x_Flag": pa.array([True]), "x_List": pa.array([[1, 2]])},
}  # fmt: skip


def _table(**columns: pa.Array) -> pa.Table:
    table = pa.table({k: pa.array([v]) for k, v in SOUND.items()})
    for name, values in columns.items():
        table = table.drop_columns([name]) if name in table.column_names else table
        table = table.append_column(name, values)
    return table


@pytest.mark.parametrize("columns", TYPES.values(), ids=TYPES)
def test_types_of_parquet(columns: dict[str, pa.Array], tmp_path: Path) -> None:
    path = tmp_path / "b.parquet"
    pq.write_table(_table(**columns), path)
    rows, rejected, _ = read(path)
    assert rejected == []
    (found,) = rows
    assert found["billed_cost"] == Decimal("6" if pa.types.is_integer(columns.get("BilledCost", pa.nulls(0)).type)
                                           else "6.12")  # fmt: skip
    assert found["effective_cost"] == Decimal("6.12")
    assert (found["charge_period_start_at"], found["charge_period_end_at"]) == (START, END)
    assert (found["tags"], found["resource_id"], found["source_line"]) == ([("team", "vision")], "i-0a1", 1)
    assert "rounded" not in (found["extra"] or "")
    if "PricingQuantity" in columns:
        assert found["pricing_quantity"] == Decimal(str(columns["PricingQuantity"][0].as_py()))
    if "x_List" in columns:
        assert json.loads(found["extra"]) == {"x_Note": "kept", "x_Flag": "true", "x_List": "[1,2]"}


def test_doubles_are_their_shortest_text_and_rounding_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "b.parquet"
    pq.write_table(_table(BilledCost=pa.array([0.1 + 0.2])), path)
    (found,), _, _ = read(path)
    assert found["billed_cost"] == Decimal("0.3")
    assert json.loads(found["extra"])["notes"] == ["BilledCost rounded to 10 digits (0.30000000000000004)"]


def test_rows_of_parquet_are_refused_by_row_and_field(tmp_path: Path) -> None:
    path = tmp_path / "b.parquet"
    bad = _table(BilledCost=pa.array([float("nan")]))
    broken = pa.table({"ResourceId": pa.array([b"\xff"], pa.binary())})
    table = pa.concat_tables([_table(BilledCost=pa.array([1.5])), bad, _table(BilledCost=pa.array([2.5]))])
    table = table.drop_columns(["ResourceId"]).append_column(
        "ResourceId", pa.chunked_array([[b"i-1"], [b"i-2"], broken["ResourceId"].chunk(0).to_pylist()], pa.binary())
    )
    pq.write_table(table, path)
    rows, rejected, report = read(path)
    assert [r["source_line"] for r in rows] == [1]
    assert [(r["source_line"], r["field"]) for r in rejected] == [(2, "BilledCost"), (3, "ResourceId")]
    assert json.loads(rejected[0]["line"])["ResourceId"] == "i-2"
    assert report.refused == 2


COST = st.decimals(min_value=-(10**12), max_value=10**12, places=10, allow_nan=False)
# Above zero: a list cost of 0 on something paid is a gap that an import fills.
QUANTITY = st.decimals(min_value="0.000000001", max_value=10**8, places=9)
PRICE = st.decimals(min_value="0.000000001", max_value=10**6, places=9)
HOUR = st.integers(min_value=0, max_value=30 * 24 - 1)
WORD = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Z")), min_size=1, max_size=8).filter(
    lambda t: t not in ("NULL", "null", "Null", "\\N", "<null>")
)


@st.composite
def sound_rows(draw: st.DrawFn) -> dict[str, object]:
    price, quantity = draw(PRICE), draw(QUANTITY)
    start = datetime(2026, 5, 1) + timedelta(hours=draw(HOUR))
    return {
        "BilledCost": draw(COST), "EffectiveCost": draw(COST), "ListCost": price * quantity,
        "ContractedCost": draw(st.decimals(min_value="0.01", max_value=10**9, places=18)),
        "ListUnitPrice": price, "PricingQuantity": quantity,
        "ChargePeriodStart": start, "ChargePeriodEnd": start + timedelta(hours=draw(st.integers(1, 48))),
        "BillingPeriodStart": datetime(2026, 5, 1), "BillingPeriodEnd": datetime(2026, 6, 1),
        "ResourceId": draw(WORD), "Tags": draw(st.dictionaries(WORD, WORD, max_size=3)),
    }  # fmt: skip


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat() + "Z"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return format(value, "f") if isinstance(value, Decimal) else str(value)


@settings(max_examples=25, deadline=None)
@given(st.lists(sound_rows(), min_size=1, max_size=6))
def test_any_sound_rows_come_out_alike_from_csv_and_parquet(made: list[dict[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        write_csv(base / "b.csv", *[row() | {k: _text(v) for k, v in r.items()} for r in made])
        wide = pa.decimal256(60, 18)
        columns: dict[str, pa.Array] = {k: pa.array([v] * len(made)) for k, v in SOUND.items() if k not in made[0]}
        for name in made[0]:
            values = [r[name] for r in made]
            kind = {Decimal: wide, datetime: pa.timestamp("us", "UTC"), dict: pa.map_(pa.string(), pa.string())}
            columns[name] = pa.array(values, kind.get(type(values[0]), pa.string()))
        pq.write_table(pa.table(columns), base / "b.parquet")
        from_csv, csv_refused, _ = read(base / "b.csv")
        from_parquet, parquet_refused, _ = read(base / "b.parquet")
    assert csv_refused == [] and parquet_refused == []
    for found in (from_csv, from_parquet):
        assert len(found) == len(made)
        for got, given_row in zip(found, made, strict=True):
            assert got["billed_cost"] == given_row["BilledCost"] and got["effective_cost"] == given_row["EffectiveCost"]
            assert got["pricing_quantity"] == given_row["PricingQuantity"]
            assert got["list_unit_price"] == given_row["ListUnitPrice"]
            assert got["contracted_cost"] == given_row["ContractedCost"]
            assert got["charge_period_start_at"] == given_row["ChargePeriodStart"]
            assert dict(got["tags"]) == given_row["Tags"]
    differing = ("source", "source_line", "source_sha256")
    assert without(from_csv, *differing) == without(from_parquet, *differing)
