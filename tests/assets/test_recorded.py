"""Settings in raw tables: written once, and a change marks the days there are."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from assets.recorded import record
from warehouse.contracts import CONTRACTS
from warehouse.errors import BadInput
from warehouse.lake import Lake

RULES = [(1, "pod_label", "team"), (2, "mapping", None)]


def test_a_change_is_recorded_and_marks_raw_days(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    scrape = {"cluster": "c", "scrape_at": datetime(2026, 3, 1, 10, 1), "target": "t", "is_up": True,
              "hour": datetime(2026, 3, 1, 10), "date": date(2026, 3, 1)}  # fmt: skip
    schema = CONTRACTS["raw.scrapes"].arrow_schema
    lake.replace(
        "raw.scrapes",
        pa.Table.from_pylist([scrape], schema=schema),
        datetime(2026, 3, 1),
        datetime(2026, 3, 2),
        mark=False,
    )
    assert record(lake, {"staleness_s": "180"}, RULES, [("*", "web", "apps")])
    assert {m.date for m in lake.marks()} == {date(2026, 3, 1)}
    assert lake.read("raw.team_rules").sort_by("rank").column("source").to_pylist() == ["pod_label", "mapping"]
    lake.clear(lake.marks())

    assert not record(lake, {"staleness_s": "180"}, RULES, [("*", "web", "apps")])
    assert not lake.marks()

    assert record(lake, {"staleness_s": "60"}, RULES, [("*", "web", "apps")])
    assert [m.reason for m in lake.marks()] == ["raw.settings changed"]
    assert lake.read("raw.settings").to_pylist() == [{"setting": "staleness_s", "value": "60"}]


def test_days_that_only_bills_know_are_marked_too(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    charge = {"date": date(2026, 2, 1), "hour": datetime(2026, 2, 1), "charge_id": "bill/1", "tags": []}
    lake.replace(
        "core.charges",
        pa.Table.from_pylist([charge], schema=CONTRACTS["core.charges"].arrow_schema),
        date(2026, 2, 1),
        date(2026, 2, 2),
    )
    record(lake, {"currency": "EUR"}, RULES, [])
    assert {m.date for m in lake.marks()} == {date(2026, 2, 1)}


def test_a_lake_with_closed_months_keeps_its_currency(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    record(lake, {"currency": "USD"}, RULES, [])
    told = {"date": date(2026, 2, 1), "statement_id": "2026-02-1", "cost_part": "holder", "billing_currency": "USD"}
    lake.replace(
        "mart.cost_statement",
        pa.Table.from_pylist([told], schema=CONTRACTS["mart.cost_statement"].arrow_schema),
        date(2026, 2, 1),
        date(2026, 3, 1),
    )
    with pytest.raises(BadInput, match=r"closed in USD.*Set currency to USD"):
        record(lake, {"currency": "EUR"}, RULES, [])
    assert lake.read("raw.settings").to_pylist() == [{"setting": "currency", "value": "USD"}]
