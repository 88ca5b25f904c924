"""The contract check: each rule must be able to fail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import duckdb
import pyarrow as pa
import pytest

from assets.contract_checks import rule_count, schema_differences, violations
from warehouse.contracts import CONTRACTS

TABLE = "raw.kube_node_resources"
GOOD = "('c', timestamp '2026-01-01 10:05:00', 'n', 'r', 2, 2, timestamp '2026-01-01 10:00:00', date '2026-01-01')"


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("create schema raw")
        columns = "cluster varchar, snapshot_at timestamp, node varchar, resource varchar, capacity bigint, "
        connection.execute(f"create table {TABLE} ({columns} allocatable bigint, hour timestamp, date date)")
        connection.execute(f"insert into {TABLE} values {GOOD}")
        yield connection


def test_good_rows_break_nothing(con: duckdb.DuckDBPyConnection) -> None:
    assert violations(con, TABLE) == {}
    assert rule_count(TABLE) > 5


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("node = null", "node is not null"),
        ("capacity = -1", "capacity >= 0"),
        ("hour = timestamp '2026-01-01 10:05:00'", "hour is on the hour, date its day"),
        ("date = date '2026-01-02'", "hour is on the hour, date its day"),
    ],
)
def test_a_broken_rule_is_named_with_its_rows(con: duckdb.DuckDBPyConnection, change: str, rule: str) -> None:
    con.execute(f"update {TABLE} set {change}")
    assert violations(con, TABLE) == {rule: 1}


def test_twins_are_counted(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"insert into {TABLE} values {GOOD}, {GOOD}")
    assert violations(con, TABLE) == {"key (cluster, snapshot_at, node, resource) is unique": 2}


def test_only_the_window_is_looked_at(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"update {TABLE} set capacity = -1")
    assert violations(con, TABLE, datetime(2026, 1, 1, 11), datetime(2026, 1, 1, 12)) == {}


def test_a_stored_schema_is_compared() -> None:
    contract = CONTRACTS[TABLE]
    assert schema_differences(contract.arrow_schema, contract) == []
    changed = pa.schema(
        [f if f.name != "capacity" else pa.field("capacity", pa.int32()) for f in contract.arrow_schema]
    )
    assert schema_differences(changed, contract) == ["column capacity is int64, not int32"]
    lacking = pa.schema([f for f in contract.arrow_schema if f.name != "capacity"])
    assert schema_differences(lacking, contract) == ["column capacity exists"]
