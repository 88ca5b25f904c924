"""Built half a day at a time as data arrive, or all at once at the end: the same tables, with every fault on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from fleet.model import FleetSpec
from fleet.world import World
from warehouse.contracts import CONTRACTS
from warehouse.engine import open_database
from warehouse.lake import Lake
from warehouse.runner import build
from warehouse.windows import DAY

pytestmark = [pytest.mark.integration, pytest.mark.slow]

SPEC = FleetSpec(seed=3, days=3, history_days=0, scale=0.08, faults="all")
HALF = timedelta(hours=12)


def _lake(root: Path, tables: Iterable[tuple[str, pa.Table]]) -> Lake:
    lake = Lake(root)
    for name, table in tables:
        if CONTRACTS[name].window == "whole":
            lake.replace(name, table)
    return lake


def _put(lake: Lake, name: str, table: pa.Table, start: datetime, end: datetime) -> None:
    """Add the rows of [start, end) as whole hours, as sealing does."""
    rows = table.filter(pc.and_(pc.greater_equal(table["hour"], start), pc.less(table["hour"], end)))
    if rows.num_rows:
        lake.replace(name, rows, start, end)


def _differences(one: Lake, other: Lake) -> dict[str, int]:
    """Rows of core and mart tables that only one of the lakes holds."""
    found = {}
    with open_database(one.root) as con:
        for name, contract in CONTRACTS.items():
            if contract.layer == "raw":
                continue
            a, b = one.relation(name), other.relation(name)
            sql = f"select count(*) from ((({a}) except all ({b})) union all (({b}) except all ({a})))"
            found[name] = con.execute(sql).fetchone()[0]
    return found


def test_half_a_day_at_a_time_or_all_at_once(tmp_path: Path) -> None:
    world = World.build(SPEC)
    parts: dict[str, list[pa.Table]] = {}
    for name, table in world.raw_tables():
        if table.num_rows and CONTRACTS[name].window in ("hour", "whole"):
            parts.setdefault(name, []).append(table)
    tables = [(name, pa.concat_tables(t)) for name, t in parts.items()]
    hourly = [(n, t) for n, t in tables if CONTRACTS[n].window == "hour"]
    days = sorted({d.as_py() for _, t in hourly for d in pc.unique(t["date"])})

    whole = _lake(tmp_path / "whole", tables)
    for name, table in hourly:
        _put(whole, name, table, datetime.combine(days[0], time()), datetime.combine(days[-1] + DAY, time()))
    build(whole)

    piecewise = _lake(tmp_path / "piecewise", tables)
    for day in days:
        for start in (datetime.combine(day, time()), datetime.combine(day, time(12))):
            for name, table in hourly:
                _put(piecewise, name, table, start, start + HALF)
            build(piecewise)

    assert whole.rows_by_date("mart.gpu_ledger_hourly")
    assert {name: n for name, n in _differences(whole, piecewise).items() if n} == {}
    assert piecewise.marks() == []
