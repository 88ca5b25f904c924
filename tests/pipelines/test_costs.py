"""What the demo prints of money, from marts made by hand: everything in the table, sums told when they differ."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal

import duckdb
import pytest

from pipelines import costs

START, END = date(2026, 6, 1), date(2026, 6, 3)


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Two days of one month: two teams, pods without a team, idle nodes, a commitment, a credit."""
    connection = duckdb.connect()
    for text in (
        "create schema mart", "create schema core", "create schema raw",
        """create table mart.cost_daily as select * from (values
            (date '2026-06-01', 'holder', 'vision', 60.0, 40.0, 15.0, 5.0),
            (date '2026-06-02', 'holder', 'vision', 20.0, 20.0, 0.0, 0.0),
            (date '2026-06-02', 'holder', 'search', 90.0, 30.0, 60.0, 0.0),
            (date '2026-06-02', 'holder', null, 1.0, 0.0, 0.0, 1.0),
            (date '2026-06-01', 'unallocated', null, 10.5, null, null, null),
            (date '2026-06-01', 'committed_unused', null, 7.0, null, null, null),
            (date '2026-06-01', 'commitment_purchase', null, 0.0, null, null, null),
            (date '2026-06-01', 'credit', null, -5.0, null, null, null),
            (date '2026-06-01', 'something_new', null, 2.0, null, null, null),
            (date '2026-07-01', 'holder', 'vision', 999.0, 0.0, 0.0, 0.0)
        ) as t(date, cost_part, team, effective_cost, utilized_cost, stranded_cost, unobserved_cost)""",
        """create table core.charges as select * from (values
            (date '2026-06-01', 'USD', 185.5, 300.0), (date '2026-07-01', 'USD', 999.0, 999.0)
        ) as t(date, billing_currency, effective_cost, billed_cost)""",
        "create table raw.fleet_invoices as select date '2026-06-01' as date, 300.0::decimal(28, 10) as billed_cost, "
        "'USD' as billing_currency",
        """create table mart.commitment_balance_daily as
        select * replace (cast(closing_balance as decimal(28, 10)) as closing_balance) from (values
            (date '2026-06-01', 'nimbus', 'c1', 'plan', 'USD', 20.0, 4.0, 100.0, 120.0, 70.0, 30.0, 20.0, 'USD'),
            (date '2026-06-02', 'nimbus', 'c1', 'plan', 'USD', 20.0, 4.0, 120.0, 214.5, 124.5, 20.0, 10.0, 'USD')
        ) as t(date, provider, commitment_id, commitment_name, commitment_unit, used_quantity, unused_quantity,
            opening_balance, closing_balance, purchased_cost, used_cost, unused_cost, billing_currency)""",
    ):  # fmt: skip
        connection.execute(text)
    yield connection
    connection.close()


def test_every_part_is_in_the_table(con) -> None:
    rows = costs.cost_rows(con, START, END)
    assert [(r.name, r.effective) for r in rows] == [
        ("search", 90), ("vision", 80), ("no team", 1), ("unallocated", Decimal("10.5")), ("committed unused", 7),
        ("credits", -5), ("something_new", 2),
    ]  # fmt: skip
    assert (rows[1].utilized, rows[1].stranded, rows[1].unobserved) == (60, 15, 5)
    assert rows[3].utilized is None


def test_sums_are_proved(con) -> None:
    rows, sums = costs.cost_rows(con, START, END), costs.cost_sums(con, START, END)
    assert costs.proofs(rows, sums) == [
        "teams and the rest 185.50 = sum of EffectiveCost 185.50 USD: equal to the cent",
        "sum of BilledCost 300.00 = invoices of the simulated providers 300.00 USD: equal to the cent",
        "BilledCost - EffectiveCost 114.50 = change of prepaid balances 114.50 USD: equal to the cent",
    ]


def test_differences_are_told(con) -> None:
    con.execute("update raw.fleet_invoices set billed_cost = 299.99")
    con.execute(
        "update mart.commitment_balance_daily set closing_balance = closing_balance + 0.001 where date = '2026-06-02'"
    )
    told = costs.proofs(costs.cost_rows(con, START, END), costs.cost_sums(con, START, END))
    assert told[1].endswith("DIFFERENCE 0.01")
    assert told[2].endswith("equal to the cent (difference -0.001)")


def test_unknown_balances_and_other_currencies_are_left_out(con) -> None:
    con.execute("update raw.fleet_invoices set billing_currency = 'EUR'")
    con.execute("update mart.commitment_balance_daily set closing_balance = null where date = '2026-06-02'")
    sums = costs.cost_sums(con, START, END)
    assert sums.invoiced is None and sums.prepaid is None
    assert len(costs.proofs(costs.cost_rows(con, START, END), sums)) == 1


def test_a_line_for_each_commitment(con) -> None:
    assert costs.commitment_lines(con, START, END) == [
        "commitment nimbus, plan: used 40 USD (83%), unused 8; prepaid 100.00 + bought 194.50 - used 50.00 - unused "
        "30.00 = 214.50 USD"
    ]
