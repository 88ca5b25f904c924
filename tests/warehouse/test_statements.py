"""Exports by the statements in force at a date, from today's files."""

from __future__ import annotations

import csv
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput
from warehouse.lake import Lake
from warehouse.statements import export_statements

JUNE, JULY = date(2026, 6, 1), date(2026, 7, 1)
ISSUED = [
    ("2026-06-1", JUNE, datetime(2026, 7, 2, 9), 10),
    ("2026-06-2", JUNE, datetime(2026, 7, 20, 9), 11),
    ("2026-07-1", JULY, datetime(2026, 8, 3, 9), 20),
]


def write(lake: Lake, table: str, rows: list[dict[str, Any]]) -> None:
    contract = CONTRACTS[table]
    full = [{c: row.get(c) for c in contract.columns} for row in rows]
    lake.replace(table, pa.Table.from_pylist(full, schema=contract.arrow_schema), date(2026, 5, 1), date(2026, 9, 1))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two months closed, June twice; August open."""
    lake = Lake(tmp_path_factory.mktemp("statements") / "data")
    header = [{"date": m, "month": m, "statement_id": i, "issued_at": at} for i, m, at, _ in ISSUED]
    costs = [Decimal(cost) for *_, cost in ISSUED]
    row = {"team": "a", "accelerator": "H100", "provider": "p"}
    write(lake, "mart.cost_statement", [
        {**h, **row, "cost_part": "holder", "effective_cost": c} for h, c in zip(header, costs, strict=True)
    ])  # fmt: skip
    write(lake, "mart.cost_monthly_statement", [
        {**h, **row, "total_effective_cost": c} for h, c in zip(header, costs, strict=True)
    ])  # fmt: skip
    write(lake, "mart.focus_statement", [
        {**h, "date": date(2026, 5, 31), "x_charge_id": f"c{n}", "x_cost_part": "holder", "EffectiveCost": c,
         "BillingPeriodStart": datetime.combine(h["month"], datetime.min.time())}
        for n, (h, c) in enumerate(zip(header, costs, strict=True))
    ])  # fmt: skip
    days = [date(2026, 5, 31), JUNE, JULY, date(2026, 8, 1)]
    write(lake, "mart.cost_daily", [{"date": d, "cost_part": "holder"} for d in days])
    tables = {n: v for n in CONTRACTS if (v := lake.newest_version(n)) is not None}
    lake.publish_tables("made", tables)
    return lake.root


def told(
    root: Path, table: str, as_of: date, column: str, tmp_path: Path, **more: Any
) -> tuple[list[Decimal], list[str]]:
    report = export_statements(root, table, "csv", tmp_path / "out.csv", as_of, **more)
    with open(report.path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == report.rows
    return [Decimal(r[column]) for r in rows], [f"{m:%Y-%m}" for m in report.open_months]


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("mart.cost_statement", "effective_cost"),
        ("mart.cost_monthly", "total_effective_cost"),
        ("mart.focus_cost_and_usage", "EffectiveCost"),
    ],
)
@pytest.mark.parametrize(
    ("as_of", "costs", "unclosed"),
    [
        (date(2026, 7, 2), [10], ["2026-05", "2026-07"]),
        (date(2026, 7, 19), [10], ["2026-05", "2026-07"]),
        (date(2026, 7, 20), [11], ["2026-05", "2026-07"]),
        (date(2026, 8, 3), [11, 20], ["2026-05", "2026-08"]),
    ],
)
def test_what_was_in_force_at_the_end_of_the_day(
    root: Path, table: str, column: str, as_of: date, costs: list[int], unclosed: list[str], tmp_path: Path
) -> None:
    assert told(root, table, as_of, column, tmp_path) == (costs, unclosed)


def test_the_columns_are_those_of_the_table(root: Path, tmp_path: Path) -> None:
    for table in ("mart.cost_statement", "mart.cost_monthly", "mart.focus_cost_and_usage"):
        report = export_statements(root, table, "csv", tmp_path / "out.csv", date(2026, 9, 1))
        with open(report.path, newline="") as file:
            assert tuple(next(csv.reader(file))) == CONTRACTS[table].columns


def test_focus_forms_and_windows(root: Path, tmp_path: Path) -> None:
    focus, august = "mart.focus_cost_and_usage", date(2026, 8, 30)
    assert told(root, focus, august, "EffectiveCost", tmp_path, focus_version="1.2")[0] == [11, 20]
    assert told(root, focus, august, "EffectiveCost", tmp_path, start=JUNE, end=JULY)[0] == []
    assert told(root, "mart.cost_statement", august, "effective_cost", tmp_path, end=JULY)[0] == [11]
    with pytest.raises(BadInput, match="no window"):
        told(root, "mart.cost_monthly", august, "total_effective_cost", tmp_path, start=JUNE)
    with pytest.raises(BadInput, match="no FOCUS dataset"):
        told(root, "mart.cost_monthly", august, "total_effective_cost", tmp_path, focus_version="1.4")


def test_before_the_first_closing_there_is_nothing_to_tell(root: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no month was closed by the end of 2026-07-01"):
        told(root, "mart.cost_statement", JULY, "effective_cost", tmp_path)
    assert list(tmp_path.iterdir()) == []
