"""The bridge to Great Expectations: what it renders, and that it can fail and cannot be silent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from assets import expectations
from warehouse.contracts import CONTRACTS
from warehouse.engine import create_views

TABLE = "raw.kube_node_resources"


@pytest.fixture
def con(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_views(connection, tmp_path, None, CONTRACTS)
        connection.execute(f"create table kept as select * from {TABLE}")
        connection.execute(f"drop view {TABLE}")
        connection.execute(f"create table {TABLE} as select * from kept")
        connection.execute(
            f"insert into {TABLE} select 'c', timestamp '2026-01-01 00:00:00' + i * interval 1 second, 'n', 'r', i, i, "
            "timestamp '2026-01-01 00:00:00', date '2026-01-01' from range(50) as t(i)"
        )
        yield connection


def test_a_contract_holds_and_fails(con: duckdb.DuckDBPyConnection) -> None:
    outcome = expectations.validate(con, TABLE)
    assert outcome.passed
    assert (outcome.rows, outcome.declared) == (50, outcome.evaluated)
    con.execute(f"update {TABLE} set capacity = -1 where capacity = 7")
    con.execute(f"update {TABLE} set node = null where capacity = 8")
    failed = expectations.validate(con, TABLE)
    assert not failed.passed
    assert {(f["expectation"], f["column"]) for f in failed.failures} == {
        ("expect_column_values_to_be_between", "capacity"),
        ("expect_column_values_to_not_be_null", "node"),
    }


def test_a_large_window_is_sampled(con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expectations, "MAX_ROWS", 20)
    frame, rows = expectations.frame(con, TABLE, None, None)
    again, _ = expectations.frame(con, TABLE, None, None)
    assert (len(frame), rows) == (20, 50)
    assert frame.equals(again)
    assert expectations.validate(con, TABLE).passed


def test_what_is_not_evaluated_is_no_success() -> None:
    assert not expectations.Outcome(rows=1, rows_in_window=1, declared=3, evaluated=2).passed


def test_definitions_do_not_import_great_expectations() -> None:
    import subprocess

    code = "import sys, pipelines.definitions; sys.exit('great_expectations' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
