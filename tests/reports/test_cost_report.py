"""The cost report over small marts: its figures are the marts', parts add up, names are escaped."""

from __future__ import annotations

import re
from datetime import date, timedelta
from decimal import Decimal

import duckdb
import pytest

from reports import cost, cost_marts
from warehouse.contracts import CONTRACTS
from warehouse.sqltypes import duckdb_type

DAY = date(2026, 3, 1)
NEXT = DAY + timedelta(days=1)
MARTS = ("mart.cost_daily", "mart.commitment_balance_daily", "mart.bill_reconciliation", "mart.buy_or_rent")


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    """Empty marts with the columns of their contracts."""
    con = duckdb.connect()
    con.execute("create schema mart")
    for name in MARTS:
        columns = ", ".join(f'"{f.name}" {duckdb_type(f.arrow)}' for f in CONTRACTS[name].fields)
        con.execute(f"create table {name} ({columns})")
    return con


def add(con: duckdb.DuckDBPyConnection, table: str, **values: object) -> None:
    names = ", ".join(values)
    con.execute(f"insert into {table} ({names}) values ({', '.join('?' * len(values))})", list(values.values()))


def part(con: duckdb.DuckDBPyConnection, name: str, effective: str, **values: object) -> None:
    """A row of mart.cost_daily; billed as effective, list and contracted a tenth more."""
    money = Decimal(effective)
    add(
        con, "mart.cost_daily", date=DAY, cost_part=name, billing_currency="USD", effective_cost=money,
        billed_cost=money, list_cost=money * Decimal("1.1"), contracted_cost=money * Decimal("1.1"), **values,
    )  # fmt: skip


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split("</style>")[1]))


@pytest.fixture
def filled(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    part(
        con, "holder", "600", team="<b>vision</b>", accelerator="H100", provider="nimbus", allocated_gpu_seconds=360000,
        utilized_gpu_seconds=180000, utilized_cost=300, stranded_cost=250, unobserved_cost=50,
    )  # fmt: skip
    part(con, "unallocated", "300", provider="nimbus", owner_team="platform")
    part(con, "committed_unused", "90", provider="nimbus", owner_team="language", commitment_id="ri-1")
    part(con, "credit", "-40", provider="nimbus")
    return con


def test_the_three_wastes_make_the_headline(filled: duckdb.DuckDBPyConnection) -> None:
    page = cost.render(filled, DAY, NEXT)
    assert "640 of 950 USD went to GPUs that nobody used" in page
    text = text_of(page)
    assert "held and idle 250 the team that holds" in text
    assert "platform 300" in text and "language 90" in text
    assert "SIMULATED" not in page and "SIMULATED" in cost.render(filled, DAY, NEXT, simulated=True)


def test_what_a_team_pays_for_an_hour_it_used(filled: duckdb.DuckDBPyConnection) -> None:
    # 600 over 100 held and 50 utilized GPU-hours
    assert "6.00 12.00" in text_of(cost.render(filled, DAY, NEXT))


def test_parts_add_up_to_the_total(filled: duckdb.DuckDBPyConnection) -> None:
    found = cost_marts.read(filled, DAY, NEXT)
    assert sum(m.effective for _, m in found.parts) == found.total.effective == Decimal(950)
    assert [name for name, _ in found.parts] == ["holder", "unallocated", "committed_unused", "credit"]
    assert re.search(r"all 1,045 1,045 950\.00 950\.00", text_of(cost.render(filled, DAY, NEXT)))


def test_names_are_escaped(filled: duckdb.DuckDBPyConnection) -> None:
    page = cost.render(filled, DAY, NEXT)
    assert "<b>vision</b>" not in page and "&lt;b&gt;vision&lt;/b&gt;" in page


def test_an_empty_lake_says_so(con: duckdb.DuckDBPyConnection) -> None:
    text = text_of(cost.render(con, DAY, NEXT))
    assert "Nothing was charged in this time" in text and "No bill has been imported" in text
    assert cost_marts.days(con) is None


def test_balances_are_those_of_the_first_and_last_day(filled: duckdb.DuckDBPyConnection) -> None:
    for n in range(2):
        add(
            filled, "mart.commitment_balance_daily", date=DAY + timedelta(days=n), provider="nimbus",
            commitment_id="ri-1", commitment_name="Eight H100", commitment_type="Reserved Instance",
            committed_quantity=24, used_quantity=12, unused_quantity=12, eligible_quantity=48,
            commitment_coverage_ratio=0.25,
            opening_balance=1000 - 100 * n, purchased_cost=0, used_cost=50, unused_cost=50,
            closing_balance=900 - 100 * n,
        )  # fmt: skip
    found = cost_marts.read(filled, DAY, DAY + timedelta(days=2)).commitments[0]
    assert (found.opening, found.closing, found.used, found.unused) == (1000, 800, 100, 100)
    assert (found.utilization, found.coverage) == (0.5, 0.25)
    assert "50% 25%" in text_of(cost.render(filled, DAY, DAY + timedelta(days=2)))
