"""Checks that are SQL: their files are well-formed, and each finds what it is for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import duckdb
import pytest

from assets.sql_checks import SqlCheck, load_checks, run_check
from warehouse.contracts import CONTRACTS
from warehouse.engine import create_views
from warehouse.errors import BadInput
from warehouse.models import SQL_DIRECTORY
from warehouse.sqltypes import literal, quote

CHECKS = load_checks(SQL_DIRECTORY / "check")
DAY, NEXT = date(2026, 3, 1), date(2026, 3, 2)


@pytest.fixture
def con(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_views(connection, tmp_path, None, CONTRACTS)
        yield connection


def put(con: duckdb.DuckDBPyConnection, table: str, *rows: dict[str, object]) -> None:
    """Make `table` hold these rows; columns not named are null, `date` is DAY."""
    types = {row[0]: row[1] for row in con.execute(f"describe {table}").fetchall()}
    con.execute(f"drop view {quote(table)}")
    con.execute(f"create table {quote(table)} ({', '.join(f'{quote(c)} {t}' for c, t in types.items())})")
    for row in rows:
        full = {"date": DAY, **row}
        values = ", ".join(literal(v) if isinstance(v, (str, date)) else str(v) for v in full.values())
        con.execute(f"insert into {quote(table)} ({', '.join(map(quote, full))}) values ({values})")


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_every_check_runs_and_holds_on_nothing(con: duckdb.DuckDBPyConnection, check: SqlCheck) -> None:
    assert check.header
    assert run_check(con, check, DAY, NEXT).rows == 0


def held(pod: str, start: int, end: int, share: float) -> dict[str, object]:
    at = "2026-03-01 {:02}:00:00"
    unit = {"cluster": "c", "node": "n", "pci_bus_id": "0"}
    return {**unit, "pod_uid": pod, "interval_start_at": at.format(start), "interval_end_at": at.format(end),
            "share_ratio": share}  # fmt: skip


def test_shares_beyond_one_are_found(con: duckdb.DuckDBPyConnection) -> None:
    put(con, "core.device_assignments", held("a", 1, 5, 0.5), held("b", 2, 6, 0.5), held("c", 6, 7, 1.0))
    assert run_check(con, CHECKS["shares_of_units"], DAY, NEXT).rows == 0
    con.execute("update core.device_assignments set share_ratio = 0.6 where pod_uid = 'b'")
    finding = run_check(con, CHECKS["shares_of_units"], DAY, NEXT)
    assert finding.rows == 1
    assert finding.shown[0]["shares"] == pytest.approx(1.1)
    assert run_check(con, CHECKS["shares_of_units"], NEXT, date(2026, 3, 3)).rows == 0


def test_units_beyond_their_slot_are_found(con: duckdb.DuckDBPyConnection) -> None:
    unit = {"cluster": "c", "node": "n", "pci_bus_id": "0", "interval_start_at": "2026-03-01 00:00:00",
            "interval_end_at": "2026-03-02 00:00:00", "share_parts": 7}  # fmt: skip
    first, second = (
        {**unit, "gi_id": 1, "share_start": 0, "share_end": 4},
        {**unit, "gi_id": 2, "share_start": 4, "share_end": 7},
    )
    put(con, "core.gpu_units", first, second)
    assert run_check(con, CHECKS["units_of_slots"], DAY, NEXT).rows == 0
    con.execute("update core.gpu_units set share_start = 3 where gi_id = 2")
    assert run_check(con, CHECKS["units_of_slots"], DAY, NEXT).rows == 1


@pytest.mark.parametrize(
    ("name", "table"),
    [("utilization_of_units", "mart.gpu_ledger_hourly"), ("utilization_of_teams", "mart.stranding_hourly")],
)
def test_utilization_beyond_what_is_held_is_found(con: duckdb.DuckDBPyConnection, name: str, table: str) -> None:
    put(con, table, {"allocated_gpu_seconds": 10, "utilized_gpu_seconds": 10, "resident_gpu_seconds": 0})
    assert run_check(con, CHECKS[name], DAY, NEXT).rows == 0
    con.execute(f"update {table} set resident_gpu_seconds = 11")
    assert run_check(con, CHECKS[name], DAY, NEXT).rows == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("select 1", "-- table: layer.table"),
        ("-- table: core.nothing\nselect 1", "-- table: layer.table"),
        ("-- table: core.gpu_units\nselect from where", "bad.sql"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.sql").write_text(text)
    with pytest.raises(BadInput, match=says):
        load_checks(tmp_path)
