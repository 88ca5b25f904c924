"""Small FOCUS files for tests: one sound row, and ways to write it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from sources.bills import Spooled, spool

SOUND: dict[str, str] = {
    "BilledCost": "6.12", "EffectiveCost": "6.12", "ListCost": "7.2", "ContractedCost": "6.12",
    "ListUnitPrice": "3.6", "ContractedUnitPrice": "3.06", "PricingQuantity": "2", "PricingUnit": "Hours",
    "ConsumedQuantity": "2", "ConsumedUnit": "Hours", "BillingAccountId": "123456789012", "BillingCurrency": "USD",
    "BillingPeriodStart": "2026-05-01T00:00:00Z", "BillingPeriodEnd": "2026-06-01T00:00:00Z",
    "ChargePeriodStart": "2026-05-03T10:00:00Z", "ChargePeriodEnd": "2026-05-03T12:00:00Z",
    "ChargeCategory": "Usage", "ChargeClass": "", "ChargeDescription": "p5 hours", "ChargeFrequency": "Usage-Based",
    "ServiceProviderName": "Nimbus", "InvoiceIssuerName": "Nimbus", "RegionId": "north-1", "ResourceId": "i-0a1",
    "ServiceCategory": "Compute", "ServiceName": "Instances", "SkuId": "SKU1", "SkuPriceId": "SKU1.OD",
    "CommitmentDiscountId": "", "CommitmentDiscountType": "", "CommitmentDiscountCategory": "",
    "CommitmentDiscountStatus": "", "CommitmentDiscountQuantity": "", "CommitmentDiscountUnit": "",
    "PricingCategory": "Standard", "Tags": '{"team":"vision"}', "x_Note": "kept",
}  # fmt: skip


def row(**changes: str | None) -> dict[str, str]:
    """The sound row with changes; a column changed to None is not in it."""
    return {k: v for k, v in (SOUND | changes).items() if v is not None}


def csv_text(rows: Sequence[Mapping[str, str]], separator: str = ",") -> str:
    """The rows as CSV, under all columns that occur."""
    names = list(dict.fromkeys(name for r in rows for name in r))
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([[r.get(n, "") for n in names] for r in rows])
    return out.getvalue()


def write_csv(path: Path, *rows: Mapping[str, str]) -> Path:
    path.write_text(csv_text(rows), encoding="utf-8")
    return path


def read(path: Path, provider: str | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Spooled]:
    """Rows of raw.bills, rows of raw.rejected_bill_lines and the report of a file."""
    scratch = path.parent / f"{path.name}.scratch"
    scratch.mkdir(exist_ok=True)
    found = spool(path, scratch, provider)
    return _rows(found.bills), _rows(found.rejected), found


def _rows(path: Path | None) -> list[dict[str, Any]]:
    return [] if path is None else pq.read_table(path).to_pylist()


def without(rows: Iterable[Mapping[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{k: v for k, v in r.items() if k not in names} for r in rows]
