"""Bills in the lake: what replaces what, what changes nothing, and which days are built again."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from assets.bills import LINES_OF_A_PART, load_bills
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput
from warehouse.lake import Lake

TABLES = ("raw.bills", "raw.rejected_bill_lines")
ROW = {
    "BilledCost": "1", "EffectiveCost": "1", "ListCost": "1", "ContractedCost": "1", "BillingAccountId": "acc",
    "BillingCurrency": "USD", "BillingPeriodStart": "2026-05-01", "BillingPeriodEnd": "2026-06-01",
    "ChargePeriodStart": "2026-05-03T10:00:00Z", "ChargePeriodEnd": "2026-05-03T11:00:00Z",
    "ChargeCategory": "Usage", "ServiceProviderName": "Nimbus", "ResourceId": "i-1",
}  # fmt: skip


def june(**changes: str) -> dict[str, str]:
    return {"BillingPeriodStart": "2026-06-01", "BillingPeriodEnd": "2026-07-01",
            "ChargePeriodStart": "2026-06-02", "ChargePeriodEnd": "2026-06-03"} | changes  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake that knows telemetry of 2 May to 4 June."""
    lake = Lake(tmp_path / "data")
    days = [datetime(2026, 5, 2) + timedelta(days=i) for i in range(34)]
    scrapes = [{"cluster": "c", "scrape_at": d, "target": "t", "is_up": True, "hour": d, "date": d.date()}
               for d in days]  # fmt: skip
    rows = pa.Table.from_pylist(scrapes, schema=CONTRACTS["raw.scrapes"].arrow_schema)
    lake.replace("raw.scrapes", rows, days[0], days[-1] + timedelta(days=1), mark=False)
    return lake


def bill(path: Path, *changes: Mapping[str, str]) -> Path:
    with path.open("w", newline="") as f:
        writer = csv.DictWriter(f, list(ROW))
        writer.writeheader()
        writer.writerows([ROW | c for c in changes])
    return path


def costs(lake: Lake) -> dict[tuple[str, date], Decimal]:
    """Billed cost by account and month."""
    out: dict[tuple[str, date], Decimal] = {}
    for r in lake.read("raw.bills").to_pylist():
        key = (r["billing_account_id"], r["date"])
        out[key] = out.get(key, Decimal(0)) + r["billed_cost"]
    return out


def versions(lake: Lake) -> list[int | None]:
    return [lake.version(t) for t in TABLES]


def rejected(lake: Lake) -> list[tuple[Any, ...]]:
    rows = lake.read("raw.rejected_bill_lines").to_pylist()
    return sorted((Path(r["source"]).name, r["source_line"], r["field"], r["date"]) for r in rows)


def test_the_same_file_twice_changes_nothing(lake: Lake, tmp_path: Path) -> None:
    path = bill(tmp_path / "may.csv", {}, {}, {"ResourceId": "i-2"}, {"BilledCost": "x"})
    first = load_bills(lake, [path])
    assert (first.rows, first.refused, first.bills, first.replaced, first.unchanged) == (3, 1, 1, 0, 0)
    assert [str(r) for r in first.refusals] == [f"{path}:5: BilledCost: x is not a decimal number"]
    assert costs(lake) == {("acc", date(2026, 5, 1)): Decimal(3)}
    assert {m.date for m in lake.marks()} == {date(2026, 5, 3)} == set(first.dates)
    lake.clear(lake.marks())
    before, content = versions(lake), lake.read("raw.bills").to_pylist()

    packed = tmp_path / "again.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for paths in ([path], [path, path], [packed, path]):
        again = load_bills(lake, paths)
        assert (again.rows, again.refused, again.replaced, again.unchanged) == (3, 1, 0, 1)
        assert again.dates == []
    assert versions(lake) == before
    assert lake.read("raw.bills").to_pylist() == content
    assert not lake.marks()


def test_a_newer_export_replaces_the_bill_whole_and_no_other(lake: Lake, tmp_path: Path) -> None:
    early = bill(tmp_path / "early.csv", {}, {"ResourceId": "i-gone", "BilledCost": "5",
                 "ChargePeriodStart": "2026-05-20", "ChargePeriodEnd": "2026-05-22"})  # fmt: skip
    load_bills(lake, [early])
    load_bills(lake, [bill(tmp_path / "other.csv", {"BillingAccountId": "other"}, june(BilledCost="7"))])
    lake.clear(lake.marks())
    report = load_bills(lake, [bill(tmp_path / "final.csv", {"BilledCost": "2"}, {"BilledCost": "3"})])
    assert (report.rows, report.replaced, report.unchanged) == (2, 1, 0)
    assert costs(lake) == {("acc", date(2026, 5, 1)): Decimal(5), ("other", date(2026, 5, 1)): Decimal(1),
                           ("acc", date(2026, 6, 1)): Decimal(7)}  # fmt: skip
    # also the days that only the replaced bill knew
    assert {m.date for m in lake.marks()} == {date(2026, 5, d) for d in range(3, 22)}


def test_accounts_and_periods_in_one_file_are_bills_of_their_own(lake: Lake, tmp_path: Path) -> None:
    path = bill(tmp_path / "all.csv", {}, {"BillingAccountId": "b"}, june(), june(ServiceProviderName="Cirrus"))
    report = load_bills(lake, [path])
    assert (report.rows, report.bills) == (4, 4)
    assert len({r["bill_id"] for r in lake.read("raw.bills").to_pylist()}) == 4
    replaced = load_bills(lake, [bill(tmp_path / "b.csv", {"BillingAccountId": "b", "BilledCost": "9"})])
    assert (replaced.bills, replaced.replaced) == (1, 1)
    assert costs(lake)["b", date(2026, 5, 1)] == Decimal(9)
    assert len(lake.read("raw.bills")) == 4
    # telemetry begins on 2 May and ends on 4 June
    assert {m.date for m in lake.marks()} >= {date(2026, 5, 3), date(2026, 6, 2)}


def test_files_given_together_are_parts_of_one_bill(lake: Lake, tmp_path: Path) -> None:
    parts = [bill(tmp_path / "1.csv", {"ResourceId": "i-1"}, {"ResourceId": "i-2"}),
             bill(tmp_path / "2.csv", {"ResourceId": "i-3"}, {"BilledCost": "4"})]  # fmt: skip
    report = load_bills(lake, parts)
    assert (report.rows, report.bills, report.parts) == (4, 1, 2)
    assert costs(lake) == {("acc", date(2026, 5, 1)): Decimal(7)}
    lines = sorted(r["source_line"] for r in lake.read("raw.bills").to_pylist())
    assert lines == [2, 3, LINES_OF_A_PART + 2, LINES_OF_A_PART + 3]
    before = versions(lake)
    assert load_bills(lake, parts[::-1]).unchanged == 1
    assert versions(lake) == before
    # alone, a part is the newer export
    assert load_bills(lake, parts[:1]).replaced == 1
    assert costs(lake) == {("acc", date(2026, 5, 1)): Decimal(2)}


def test_sellers_of_a_replaced_export_go_with_it(lake: Lake, tmp_path: Path) -> None:
    load_bills(lake, [bill(tmp_path / "1.csv", {}, {"ServiceProviderName": "Seller"})])
    load_bills(lake, [bill(tmp_path / "other.csv", {"ServiceProviderName": "Cirrus"})])
    load_bills(lake, [bill(tmp_path / "2.csv", {"BilledCost": "2"})])
    found = {(r["provider"], r["billed_cost"]) for r in lake.read("raw.bills").to_pylist()}
    assert found == {("nimbus", Decimal(2)), ("cirrus", Decimal(1))}


def test_refused_lines_stand_beside_their_bill_and_go_with_it(lake: Lake, tmp_path: Path) -> None:
    bad = bill(tmp_path / "may.csv", {}, {"ChargeCategory": "?"}, june(BilledCost="?"), {"BillingCurrency": "?"})
    load_bills(lake, [bad, bill(tmp_path / "b.csv", {"BillingAccountId": "b"}, {"BillingAccountId": ""})])
    may, of_june = date(2026, 5, 1), date(2026, 6, 1)
    assert rejected(lake) == [("b.csv", 3, "BillingAccountId", may), ("may.csv", 3, "ChargeCategory", may),
                              ("may.csv", 4, "BilledCost", of_june),
                              ("may.csv", 5, "BillingCurrency", may)]  # fmt: skip
    load_bills(lake, [bill(tmp_path / "may-mended.csv", {}, {})])
    assert rejected(lake) == [("b.csv", 3, "BillingAccountId", may), ("may.csv", 4, "BilledCost", of_june)]
    load_bills(lake, [bill(tmp_path / "b.csv", {"BillingAccountId": "b", "BilledCost": "2"})])
    assert rejected(lake) == [("may.csv", 4, "BilledCost", of_june)]


def test_a_file_refused_line_by_line_leaves_the_bill_before_it(lake: Lake, tmp_path: Path) -> None:
    load_bills(lake, [bill(tmp_path / "may.csv", {})])
    report = load_bills(lake, [bill(tmp_path / "bad.csv", {"BilledCost": "1,5"})])
    assert (report.rows, report.refused, report.bills) == (0, 1, 0)
    assert costs(lake) == {("acc", date(2026, 5, 1)): Decimal(1)}
    assert rejected(lake) == [("bad.csv", 2, "BilledCost", date(2026, 5, 1))]


def test_an_unreadable_file_brings_nothing(lake: Lake, tmp_path: Path) -> None:
    good, bad = bill(tmp_path / "good.csv", {}), tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match=f"{bad}: no FOCUS bill"):
        load_bills(lake, [good, bad])
    assert versions(lake) == [None, None] and not lake.marks()
    assert not list((lake.root / "state" / "spill").glob("*/*/*.parquet"))


def test_a_provider_given_names_all_rows(lake: Lake, tmp_path: Path) -> None:
    path = bill(tmp_path / "1.csv", {}, {"ServiceProviderName": "Seller"}, {"ServiceProviderName": ""})
    report = load_bills(lake, [path], provider="Nimbus")
    assert (report.bills, report.refused) == (1, 0)
    rows = lake.read("raw.bills").to_pylist()
    assert {(r["provider"], r["service_provider"]) for r in rows} == {("nimbus", p) for p in ("Nimbus", "Seller", None)}
