"""March 2026 for tests that close it: a lake that knows it, what may come late, and questions to what was told.

Belongs here: lakes, changes to them and queries. Not here: what is to be true of a closing.
"""

from __future__ import annotations

import sys
from datetime import date, datetime
from decimal import Decimal as D
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # focus_month is shared by several rooms

import focus_month as made

from assets.closing import CloseReport, close
from assets.sql_checks import load_checks, run_check
from assets.statements import COST, FOCUS_MART
from warehouse.engine import connect
from warehouse.lake import Lake
from warehouse.models import SQL_DIRECTORY, read_model
from warehouse.runner import run_models

MARCH, APRIL = date(2026, 3, 1), date(2026, 4, 1)
NAMES = ("mart.cost_daily", "mart.cost_monthly", "mart.focus_cost_and_usage")
MODELS = {n: read_model(SQL_DIRECTORY / f"{n.replace('.', '/')}.sql", n) for n in NAMES}
CHECKS = {n: c for n, c in load_checks(SQL_DIRECTORY / "check").items() if n == "closed_months"}
LATE = D("12.5")
CURRENT = "select sum(effective_cost) from mart.cost_daily where date < '2026-04-01'"
STATED = f"select sum(effective_cost) from {COST} where statement_id = "
CORRECTED = f'select coalesce(sum("EffectiveCost"), 0) from {FOCUS_MART} where "BillingPeriodStart" >= \'2026-04-01\''


def build(lake: Lake, start: date = MARCH, end: date = date(2026, 5, 1)) -> None:
    run_models(lake, (), start, end, models=MODELS)
    lake.publish("built")


def known_until(lake: Lake, hour: datetime) -> None:
    row = {"date": hour.date(), "hour": hour, "cluster": "c", "node": "n", "node_uid": "u", "running_us": 3600000000}
    lake.replace("core.node_hours", made.rows_to_table("core.node_hours", [row]), MARCH, date(2026, 6, 1))


def march_known(root: Path) -> Lake:
    """A lake that knows all of March, built and published."""
    lake = Lake(root)
    made.put(lake, *made.month())
    known_until(lake, datetime(2026, 4, 3))
    build(lake)
    return lake


def closed(lake: Lake, month: date = MARCH, day: int = 5, **more: Any) -> CloseReport:
    return close(lake, month, MODELS, CHECKS, now=datetime(2026, 4, day, 9), **more)


def one(lake: Lake, query: str) -> Any:
    with connect(lake.root) as con:
        return con.execute(query).fetchall()[0][0]


def check(lake: Lake) -> list[dict[str, Any]]:
    with connect(lake.root) as con:
        return run_check(con, CHECKS["closed_months"], MARCH, date(2026, 6, 1)).shown


def late_bill(lake: Lake) -> None:
    """A charge of March that comes after all, and one that is dearer than it was."""
    charges, division = made.month()
    row = made.charge("bill/late", made.SECOND, charge_scope="other_services", charge_origin="bill",
                      **{m: LATE for m in ("list_cost", "contracted_cost", "billed_cost", "effective_cost")},
                      list_unit_price=LATE, contracted_unit_price=LATE)  # fmt: skip
    for rows in (charges, division):
        changed = next(r for r in rows if r["charge_id"] == "bill/disk")
        changed["billed_cost"] += 1
        changed["effective_cost"] += 1
    made.put(lake, [*charges, row], [*division, *made.whole(row, "other_services")])


def april_too(lake: Lake) -> None:
    """A charge in April, and all of April known."""
    hour = datetime(2026, 4, 20, 5)
    row = made.charge("april", hour, billing_period_start_at=datetime(2026, 4, 1),
                      billing_period_end_at=datetime(2026, 5, 1))  # fmt: skip
    for table, rows in (("core.charges", [row]), ("mart.cost_hourly", made.divided(row, [("ml/april", 8)]))):
        lake.replace(table, made.rows_to_table(table, rows), hour.date(), date(2026, 4, 21))
    known_until(lake, datetime(2026, 5, 2))
    build(lake)
