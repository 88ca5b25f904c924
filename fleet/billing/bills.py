"""The bill files that providers send: the same facts, each provider in its own manner.

nimbus writes FOCUS 1.2 as CSV, a row for each hour. cirrus writes Parquet after FOCUS 1.0 with some columns of 1.1, its
headers in lower case, its times without a zone, words in its own spelling, `NULL` as text, machines under a longer id,
and on-demand use by the day. Belongs here: manners and quirks. Not here: what is charged.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fleet.billing import cirrus, nimbus
from fleet.billing.calendar import first_of_month
from fleet.billing.cards import plain
from fleet.billing.focus import COLUMNS_1_0, COLUMNS_1_1, COLUMNS_1_2, focus_row, zoned
from fleet.billing.invoices import Account, Billing
from fleet.billing.lines import Line

_NIMBUS_COLUMNS = sorted(COLUMNS_1_0 + COLUMNS_1_1 + COLUMNS_1_2)
_CIRRUS_COLUMNS = sorted(COLUMNS_1_0) + sorted(set(COLUMNS_1_1) - {"SkuMeter", "SkuPriceDetails"})
_AMOUNT = pa.decimal128(38, 18)
_TYPES = {"Cost": _AMOUNT, "UnitPrice": _AMOUNT, "Quantity": _AMOUNT}
_PROJECT = "//compute.cirrus.example/projects/gpu-prod"


def write_bills(billing: Billing, folder: Path) -> list[Path]:
    """The bills of all providers that send some, a file for each billing month; the paths, in order of name."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for account in billing.accounts:
        for month, lines in _by_month(account.told):
            is_closed = first_of_month(month, 1) <= billing.days.end_at
            name = f"{account.provider}-{month:%Y-%m}"
            if account.provider == nimbus.PROVIDER:
                paths.append(_nimbus(account, lines, is_closed, folder / f"{name}.csv"))
            if account.provider == cirrus.PROVIDER:
                paths.append(_cirrus(account, lines, is_closed, folder / f"{name}.parquet"))
    return sorted(paths)


def _by_month(lines: Sequence[Line]) -> Iterator[tuple[datetime, list[Line]]]:
    months: dict[datetime, list[Line]] = {}
    for line in lines:
        months.setdefault(first_of_month(line.start), []).append(line)
    yield from sorted(months.items())


def _nimbus(account: Account, lines: Sequence[Line], is_closed: bool, path: Path) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(_NIMBUS_COLUMNS)
        for line in lines:
            row = focus_row(line, account.provider, account.account_id, account.currency, is_closed)
            out.writerow([_cell(row.get(c)) for c in _NIMBUS_COLUMNS])
    return path


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return zoned(value)
    return plain(value) if isinstance(value, Decimal) else str(value)


def _cirrus(account: Account, lines: Sequence[Line], is_closed: bool, path: Path) -> Path:
    rows = [
        _quirks(focus_row(line, account.provider, account.account_id, account.currency, is_closed))
        for line in daily(lines)
    ]
    schema = pa.schema([(_snake(c), _type(c)) for c in _CIRRUS_COLUMNS])
    table = pa.Table.from_pylist([{_snake(c): row.get(c) for c in _CIRRUS_COLUMNS} for row in rows], schema=schema)
    pq.write_table(table, path)
    return path


def daily(lines: Sequence[Line]) -> list[Line]:
    """On-demand use of machines put together by day and price, everything else as it is; what it costs is added up.

    Quantities of a day times the price are its list and contracted cost, as those of its hours are.
    """
    out: list[Line] = []
    open_: dict[tuple[Any, ...], int] = {}
    for line in lines:
        if line.kind not in ("usage", "not_in_cluster") or line.pricing != "Standard":
            out.append(line)
            continue
        key = (line.start.date(), line.resource_id, line.sku_price, line.list_price, line.contracted_price)
        at = open_.get(key)
        if at is None or out[at].end != line.start:
            open_[key] = len(out)
            out.append(line)
            continue
        so_far = out[at]
        assert so_far.quantity is not None and line.quantity is not None
        out[at] = replace(
            so_far, end=line.end, quantity=so_far.quantity + line.quantity, billed=so_far.billed + line.billed,
            effective=so_far.effective + line.effective,
        )  # fmt: skip
    return out


def _quirks(row: dict[str, Any]) -> dict[str, Any]:
    row["ChargeCategory"] = row["ChargeCategory"].lower()
    row["ChargeFrequency"] = {"Usage-Based": "Usage-based"}.get(row["ChargeFrequency"], row["ChargeFrequency"])
    row["PricingCategory"] = row["PricingCategory"] and row["PricingCategory"].lower()
    row["ChargeClass"] = "NULL"
    if row["AvailabilityZone"] is not None:
        machine = row["ResourceId"].rpartition("/")[2]
        row["ResourceId"] = f"{_PROJECT}/zones/{row['AvailabilityZone']}/instances/{machine}"
    for column in ("ChargePeriodStart", "ChargePeriodEnd", "BillingPeriodStart", "BillingPeriodEnd"):
        row[column] = row[column].isoformat(sep=" ")
    return row


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _type(column: str) -> pa.DataType:
    return next((t for end, t in _TYPES.items() if column.endswith(end)), pa.string())
