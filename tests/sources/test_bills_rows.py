"""Quirks and damage of single rows: a sound row beside each lands, a bad one is refused with line and field.

Where a case comes from a real export, its id names it: `azure-…` and `toolkit-…` are gaps that Microsoft's FinOps
toolkit records (issues 727, 834, 874, 1092, 2307), `aws-…` conformance gaps that AWS publishes, `sample-…`
FOCUS-Sample-Data.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from bill_files import read, row, write_csv

UNUSED = {
    "CommitmentDiscountId": "sp-1", "CommitmentDiscountType": "Savings Plan", "CommitmentDiscountCategory": "Spend",
    "CommitmentDiscountStatus": "Unused", "CommitmentDiscountQuantity": "4.5", "CommitmentDiscountUnit": "USD",
    "PricingCategory": "Committed", "BilledCost": "0", "ResourceId": "sp-1",
}  # fmt: skip
D = Decimal

# id, changes to the sound row, what raw.bills then holds, a word of the note (None: nothing noted)
LANDS: list[tuple[str, dict[str, str | None], dict[str, Any], str | None]] = [
    ("sample-text-null", {"SkuId": "NULL", "InvoiceId": "null"}, {"sku_id": None, "invoice_id": None}, None),
    ("hive-null", {"RegionId": "\\N"}, {"region": None}, None),
    ("blanks-around", {"BilledCost": " 6.12 ", "ResourceId": " i-0a1 "},
     {"billed_cost": D("6.12"), "resource_id": "i-0a1"}, None),
    ("sample-time-without-zone", {"ChargePeriodStart": "2026-05-03 10:00:00"},
     {"charge_period_start_at": datetime(2026, 5, 3, 10)}, None),
    ("time-with-offset", {"ChargePeriodStart": "2026-05-03T12:00:00+02:00"},
     {"charge_period_start_at": datetime(2026, 5, 3, 10)}, None),
    ("time-with-fraction", {"ChargePeriodStart": "2026-05-03T10:00:00.000Z"},
     {"charge_period_start_at": datetime(2026, 5, 3, 10)}, None),
    ("dates-only", {"ChargePeriodStart": "2026-05-03", "ChargePeriodEnd": "2026-05-04"},
     {"charge_period_start_at": datetime(2026, 5, 3), "charge_period_end_at": datetime(2026, 5, 4)}, None),
    ("hour-24", {"ChargePeriodEnd": "2026-05-03T24:00:00Z"}, {"charge_period_end_at": datetime(2026, 5, 4)}, None),
    ("month-of-another-zone", {"BillingPeriodStart": "2026-05-01T00:00:00+09:00",
                               "BillingPeriodEnd": "2026-06-01T00:00:00+09:00"}, {"date": date(2026, 5, 1)}, None),
    ("sample-usage-based-in-lower-case", {"ChargeFrequency": "Usage-based"}, {"charge_frequency": "Usage-Based"},
     "ChargeFrequency respelled (Usage-based)"),
    ("enum-spelling", {"ChargeCategory": "USAGE", "PricingCategory": "on demand"},
     {"charge_category": "Usage", "pricing_category": "Standard"}, "PricingCategory respelled (on demand)"),
    ("unknown-style-enum", {"PricingCategory": "Negotiated"}, {"pricing_category": None},
     "PricingCategory left out: unknown value (Negotiated)"),
    ("service-category-case", {"ServiceCategory": "compute"}, {"service_category": "Compute"}, "respelled"),
    ("currency-case", {"BillingCurrency": "eur"}, {"billing_currency": "EUR"}, "respelled (eur)"),
    ("billing-period-absent", {"BillingPeriodStart": None, "BillingPeriodEnd": None},
     {"date": date(2026, 5, 1), "billing_period_end_at": datetime(2026, 6, 1)}, "month of ChargePeriodStart"),
    ("aws-prices-and-names-null", {"ListUnitPrice": "", "ContractedUnitPrice": "", "PricingUnit": "", "SkuId": "",
                                   "InvoiceIssuerName": ""},
     {"list_unit_price": None, "list_cost": D("7.2"), "invoice_issuer": None}, None),
    ("provider-only-as-issuer", {"ServiceProviderName": ""}, {"provider": "nimbus", "service_provider": None}, None),
    ("scientific-notation", {"BilledCost": "6.12E+0", "EffectiveCost": "1e-7"},
     {"billed_cost": D("6.12"), "effective_cost": D("0.0000001")}, None),
    ("integers-for-decimals", {"BilledCost": "6", "EffectiveCost": "+6"},
     {"billed_cost": D(6), "effective_cost": D(6)}, None),
    ("thousands-that-can-only-be-that", {"BilledCost": "1,234.5"}, {"billed_cost": D("1234.5")},
     "BilledCost had thousands marks (1,234.5)"),
    ("more-digits-than-a-cent-has", {"EffectiveCost": "0.00069444444444444445"},
     {"effective_cost": D("0.0006944444")}, "EffectiveCost rounded to 10 digits (0.00069444444444444445)"),
    ("half-goes-to-even", {"BilledCost": "0.00000000005", "EffectiveCost": "0.00000000015"},
     {"billed_cost": D(0), "effective_cost": D("0.0000000002")}, "rounded"),
    ("quantity-in-bytes", {"ConsumedQuantity": "5000000000000", "ConsumedUnit": "By"},
     {"consumed_quantity": None, "billed_cost": D("6.12")}, "too large for its column (5000000000000)"),
    ("effective-missing", {"EffectiveCost": ""}, {"effective_cost": D("6.12")}, "taken to be BilledCost"),
    ("billed-missing", {"BilledCost": "NULL"}, {"billed_cost": D("6.12")}, "taken to be EffectiveCost"),
    ("toolkit-727-quantity-not-divided", {"x_PricingBlockSize": "100", "PricingQuantity": "200"},
     {"pricing_quantity": D(2), "list_cost": D("7.2")}, "divided by the block size of its price (200.000000000)"),
    ("toolkit-727-already-divided", {"x_PricingBlockSize": "100"}, {"pricing_quantity": D(2)}, None),
    ("block-size-in-words", {"x_PricingUnitDescription": "100 Hours", "PricingQuantity": "200"},
     {"pricing_quantity": D(2)}, "divided"),
    ("block-size-of-one", {"x_PricingUnitDescription": "1 Hour"}, {"pricing_quantity": D(2)}, None),
    ("toolkit-874-contracted-cost-0", {"ContractedCost": "0", "ContractedUnitPrice": "0"},
     {"contracted_cost": D("7.2"), "contracted_unit_price": D("3.6"), "effective_cost": D("6.12")},
     "ContractedCost filled from ListCost"),
    ("toolkit-2307-contracted-cost-0-with-price", {"ContractedCost": "0"}, {"contracted_cost": D("6.12")},
     "ContractedCost filled from unit price and quantity"),
    ("azure-list-cost-0", {"ListCost": "0", "ListUnitPrice": "0"},
     {"list_cost": D("6.12"), "list_unit_price": D("3.06")},
     "ListCost filled from ContractedCost"),
    ("free-of-charge", {"BilledCost": "0", "EffectiveCost": "0", "ContractedCost": "0"}, {"contracted_cost": D(0)},
     None),
    ("no-price-at-all", {"ListCost": "", "ContractedCost": "", "ListUnitPrice": "", "ContractedUnitPrice": ""},
     {"list_cost": D("6.12"), "contracted_cost": D("6.12")}, "filled from the cost paid"),
    ("toolkit-834-unused-savings-plan", UNUSED | {"EffectiveCost": "0", "ConsumedQuantity": "0"},
     {"effective_cost": D("4.5"), "consumed_quantity": None, "consumed_unit": None}, "filled from its quantity"),
    ("toolkit-834-by-unit-price", UNUSED | {"EffectiveCost": "0", "CommitmentDiscountQuantity": "",
                                            "x_EffectiveUnitPrice": "1.25"},
     {"effective_cost": D("2.5")}, "filled"),
    ("unused-with-consumed-quantity", UNUSED | {"EffectiveCost": "4.5"}, {"consumed_quantity": None},
     "ConsumedQuantity left out: what is unused is not consumed (2.000000000)"),
    ("toolkit-1092-purchase-with-effective-cost",
     {"ChargeCategory": "Purchase", "CommitmentDiscountId": "sp-1", "ChargeFrequency": "One-Time"},
     {"effective_cost": D(0), "billed_cost": D("6.12")}, "set to 0"),
    ("status-on-a-purchase", {"ChargeCategory": "Purchase", "CommitmentDiscountId": "sp-1",
                              "CommitmentDiscountStatus": "Used"}, {"commitment_discount_status": None}, "only usage"),
    ("tax-with-sku", {"ChargeCategory": "Tax"}, {"sku_id": None, "list_unit_price": None, "billed_cost": D("6.12")},
     "SkuId left out: a tax has none (SKU1)"),
    ("negative-credit", {"ChargeCategory": "Credit", "BilledCost": "-5", "EffectiveCost": "-5", "ListCost": "",
                         "ContractedCost": "", "ConsumedQuantity": "", "ConsumedUnit": ""},
     {"billed_cost": D(-5), "list_cost": D(-5)}, "ListCost filled from the cost paid"),
    ("refund-without-class", {"BilledCost": "-5", "EffectiveCost": "-5"},
     {"charge_class": "Correction", "charge_category": "Usage", "billed_cost": D(-5)},
     "ChargeClass was missing: taken to be Correction, as BilledCost is negative (-5.0000000000)"),
    ("refund-of-the-effective-cost-alone", {"EffectiveCost": "-0.01"}, {"charge_class": "Correction"},
     "as EffectiveCost is negative"),
    ("purchase-returned", {"ChargeCategory": "Purchase", "CommitmentDiscountId": "sp-1", "BilledCost": "-100"},
     {"charge_class": "Correction", "effective_cost": D(0)}, "as BilledCost is negative"),
    ("tax-refunded", {"ChargeCategory": "Tax", "BilledCost": "-1", "EffectiveCost": "-1"},
     {"charge_class": "Correction"}, "as BilledCost is negative"),
    ("quantity-taken-back", {"ConsumedQuantity": "-2", "BilledCost": "0", "EffectiveCost": "0"},
     {"charge_class": "Correction"}, "as ConsumedQuantity is negative (-2.000000000)"),
    ("correction-said", {"ChargeClass": "Correction", "BilledCost": "-5", "EffectiveCost": "-5"},
     {"charge_class": "Correction"}, None),
    ("negative-adjustment", {"ChargeCategory": "Adjustment", "BilledCost": "-5", "EffectiveCost": "-5",
                             "ConsumedQuantity": "", "ConsumedUnit": ""}, {"charge_class": None}, None),
    ("long-unknown-enum", {"PricingCategory": "N" * 500}, {"pricing_category": None},
     f"PricingCategory left out: unknown value ({'N' * 79}…)"),
    ("azure-minus-2", {"SkuPriceId": "-2"}, {"sku_price_id": None}, "stands for none"),
    ("preview-charge-subcategory", {"ChargeSubcategory": "Used Commitment", "CommitmentDiscountId": "ri-1",
                                    "BilledCost": "0"}, {"commitment_discount_status": "Used"}, "ChargeSubcategory"),
    ("sku-details-no-json", {"SkuPriceDetails": "H100 x 8"}, {"sku_price_details": None}, "no JSON object (H100 x 8)"),
    ("tags-as-pairs", {"Tags": "team=vision;env=prod"}, {"tags": [("env", "prod"), ("team", "vision")]}, None),
    ("tags-as-list", {"Tags": '[{"key":"team","value":"vision"}]'}, {"tags": [("team", "vision")]}, None),
    ("tags-as-entries", {"Tags": '[["team","vision"]]'}, {"tags": [("team", "vision")]}, None),
    ("tags-without-braces", {"Tags": '"team": "vision","env": "prod"'},
     {"tags": [("env", "prod"), ("team", "vision")]}, None),
    ("tags-of-hive", {"Tags": "{team=vision, env=prod}"}, {"tags": [("env", "prod"), ("team", "vision")]}, None),
    ("tags-not-text", {"Tags": '{"spot":true,"n":3,"none":null}'},
     {"tags": [("n", "3"), ("none", ""), ("spot", "true")]}, None),
    ("tags-empty", {"Tags": "{}"}, {"tags": []}, None),
    ("tags-null", {"Tags": "NULL"}, {"tags": None}, None),
]  # fmt: skip

# id, changes, field at fault, words of the reason
REFUSED: list[tuple[str, dict[str, str | None], str, str]] = [
    ("sample-hour-30", {"ChargePeriodEnd": "2026-05-03T30:00:00Z"}, "ChargePeriodEnd", "impossible time of day"),
    ("no-such-day", {"ChargePeriodStart": "2026-02-30T00:00:00Z"}, "ChargePeriodStart", "is no date"),
    ("american-date", {"ChargePeriodStart": "05/03/2026"}, "ChargePeriodStart", "ISO 8601"),
    ("azure-year-1", {"BillingPeriodStart": "0001-01-01"}, "BillingPeriodStart", "between 2000"),
    ("period-backwards", {"ChargePeriodEnd": "2026-05-03T09:00:00Z"}, "ChargePeriodEnd", "is not after"),
    ("billing-period-backwards", {"BillingPeriodEnd": "2026-05-01"}, "BillingPeriodEnd", "is not after"),
    ("no-charge-period", {"ChargePeriodStart": ""}, "ChargePeriodStart", "is missing"),
    ("no-account", {"BillingAccountId": "NULL"}, "BillingAccountId", "is missing"),
    ("no-currency", {"BillingCurrency": ""}, "BillingCurrency", "is missing"),
    ("no-category", {"ChargeCategory": ""}, "ChargeCategory", "is missing"),
    ("no-provider", {"ServiceProviderName": "", "InvoiceIssuerName": ""}, "ServiceProviderName", "--provider"),
    ("bad-category", {"ChargeCategory": "Consumption"}, "ChargeCategory", "is none of Usage"),
    ("bad-status", {"CommitmentDiscountStatus": "Partly"}, "CommitmentDiscountStatus", "is none of Used, Unused"),
    ("bad-currency", {"BillingCurrency": "Dollar"}, "BillingCurrency", "ISO 4217"),
    ("currency-that-is-none", {"BillingCurrency": "XYZ"}, "BillingCurrency", "ISO 4217"),
    ("decimal-comma", {"BilledCost": "6,12"}, "BilledCost", "comma"),
    ("comma-of-two-meanings", {"BilledCost": "1,234"}, "BilledCost", "comma"),
    ("european-thousands", {"BilledCost": "1.234,56"}, "BilledCost", "comma"),
    ("currency-sign", {"BilledCost": "$6.12"}, "BilledCost", "not a decimal number"),
    ("not-a-number", {"EffectiveCost": "NaN"}, "EffectiveCost", "not a decimal number"),
    ("infinite", {"EffectiveCost": "inf"}, "EffectiveCost", "not a decimal number"),
    ("beyond-the-column", {"BilledCost": "1e30"}, "BilledCost", "out of range"),
    ("negative-list-price", {"ListUnitPrice": "-3.6"}, "ListUnitPrice", "not negative"),
    ("negative-contracted-price", {"ContractedUnitPrice": "-0.01"}, "ContractedUnitPrice", "not negative"),
    ("negative-price-of-a-refund", {"BilledCost": "-5", "EffectiveCost": "-5", "ListUnitPrice": "-3.6"},
     "ListUnitPrice", "not negative"),
    ("full-width-digits", {"BilledCost": "２４"}, "BilledCost", "２４ is not a decimal number"),
    ("full-width-decimals", {"EffectiveCost": "6.１2"}, "EffectiveCost", "not a decimal number"),
    ("full-width-exponent", {"EffectiveCost": "6e１"}, "EffectiveCost", "not a decimal number"),
    ("arabic-digits-of-a-quantity", {"PricingQuantity": "٢"}, "PricingQuantity", "not a decimal number"),
    ("full-width-year", {"ChargePeriodStart": "２０２６-05-03"}, "ChargePeriodStart", "no ISO 8601"),
    ("no-cost", {"BilledCost": "", "EffectiveCost": ""}, "BilledCost", "and so is EffectiveCost"),
    ("commitment-without-effective", {"CommitmentDiscountId": "ri-1", "CommitmentDiscountStatus": "Used",
                                      "EffectiveCost": ""}, "EffectiveCost", "commitment"),
    ("commitment-without-billed", {"PricingCategory": "Committed", "BilledCost": ""}, "BilledCost", "commitment"),
    ("unused-at-no-cost", UNUSED | {"EffectiveCost": "0", "CommitmentDiscountUnit": "Hours"}, "EffectiveCost",
     "is 0 although"),
    ("tags-broken-json", {"Tags": '{"team":"vision"'}, "Tags", "no valid JSON"),
    ("tags-of-nothing", {"Tags": "vision"}, "Tags", "neither JSON nor key=value"),
    ("tags-list-of-text", {"Tags": '["vision"]'}, "Tags", "neither an object nor a list"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "expected", "note"), [c[1:] for c in LANDS], ids=[c[0] for c in LANDS])
def test_quirks_land(
    changes: dict[str, str | None], expected: dict[str, Any], note: str | None, tmp_path: Path
) -> None:
    rows, rejected, report = read(write_csv(tmp_path / "bill.csv", row(**changes), row(ResourceId="i-beside")))
    assert rejected == [] and report.refused == 0
    assert [r["source_line"] for r in rows] == [2, 3]
    assert {k: rows[0][k] for k in expected} == expected
    notes = json.loads(rows[0]["extra"]).get("notes", [])
    assert json.loads(rows[0]["extra"])["x_Note"] == "kept"
    if note is None:
        assert notes == []
    else:
        assert any(note in n for n in notes), notes
    assert rows[1]["resource_id"] == "i-beside"


@pytest.mark.parametrize(("changes", "field", "reason"), [c[1:] for c in REFUSED], ids=[c[0] for c in REFUSED])
def test_damage_is_refused_by_line_and_field(
    changes: dict[str, str | None], field: str, reason: str, tmp_path: Path
) -> None:
    path = write_csv(tmp_path / "bill.csv", row(), row(**changes), row(ResourceId="i-beside"))
    rows, rejected, report = read(path)
    assert [r["source_line"] for r in rows] == [2, 4]
    assert {(r["source"], r["source_line"], r["field"]) for r in rejected} == {(str(path), 3, field)}
    assert reason in rejected[0]["reason"]
    assert rejected[0]["date"] == date(2026, 5, 1) or field == "BillingPeriodStart"
    assert rejected[0]["line"] == path.read_text().splitlines()[2]
    assert report.refused == 1
    assert str(report.refusals[0]).startswith(f"{path}:3: {field}: ")


@pytest.mark.parametrize(
    ("field", "value"),
    [("BilledCost", "9" * 100_000), ("EffectiveCost", "x" * 5_000), ("ChargeCategory", "y" * 5_000),
     ("ChargePeriodStart", "2" * 5_000), ("BillingCurrency", "é" * 5_000), ("Tags", "k=v;" + "z" * 5_000),
     ("ListUnitPrice", "-0." + "1" * 5_000), ("CommitmentDiscountStatus", "Part" * 2_000)],
)  # fmt: skip
def test_a_long_value_is_quoted_in_part(field: str, value: str, tmp_path: Path) -> None:
    _, rejected, report = read(write_csv(tmp_path / "b.csv", row(**{field: value}), row()))
    assert {r["field"] for r in rejected} == {field}
    assert all(len(r["reason"]) < 200 and len(r["line"]) <= 2_000 for r in rejected)
    assert all(len(str(r)) < 300 + len(str(tmp_path)) for r in report.refusals)
    assert "…" in rejected[0]["reason"] or field == "ListUnitPrice"  # whose value is rounded by then
    if field == "BilledCost":
        assert rejected[0]["reason"] == f"{'9' * 79}… is out of range: more than 18 digits before the point"


def test_a_line_with_two_faults_is_named_twice_and_counted_once(tmp_path: Path) -> None:
    _, rejected, report = read(write_csv(tmp_path / "b.csv", row(BilledCost="x", ListUnitPrice="-1"), row()))
    assert [r["field"] for r in rejected] == ["BilledCost", "ListUnitPrice"]
    assert report.refused == 1 and report.rows == 1


def test_equal_lines_are_both_charged(tmp_path: Path) -> None:
    rows, _, _ = read(write_csv(tmp_path / "b.csv", row(), row()))
    assert [r["source_line"] for r in rows] == [2, 3]


@pytest.mark.parametrize(
    ("name", "provider"),
    [("AWS", "aws"), ("Amazon Web Services", "aws"), ("Microsoft", "azure"), ("Google Cloud", "gce"),
     ("CoreWeave", "coreweave")],
)  # fmt: skip
def test_providers_are_named_as_nodes_name_them(name: str, provider: str, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "b.csv", row(ServiceProviderName=name))
    assert read(path)[0][0]["provider"] == provider
    assert read(path, "Cirrus")[0][0]["provider"] == "cirrus"
