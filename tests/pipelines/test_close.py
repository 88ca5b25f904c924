"""`strandline close` and `export --as-of` as commands: exit codes, what is said where."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipelines.cli import main
from warehouse.contracts import CONTRACTS
from warehouse.lake import Lake


def run(*argv: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(a) for a in argv])
    code = stopped.value.code
    assert isinstance(code, int) or code is None
    return code or 0


def put(lake: Lake, table: str, **row: Any) -> None:
    contract = CONTRACTS[table]
    data = pa.Table.from_pylist([{c: row.get(c) for c in contract.columns}], schema=contract.arrow_schema)
    window = () if contract.window == "whole" else (date(2026, 5, 1), date(2026, 9, 1))
    lake.replace(table, data, *window)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """One charge in June, known to the 10th of it."""
    lake = Lake(tmp_path / "data")
    hour, day = datetime(2026, 6, 9, 5), date(2026, 6, 9)
    same = {"date": day, "hour": hour, "charge_id": "c", "charge_scope": "tax", "effective_cost": Decimal(3)}
    put(lake, "core.charges", **same, billing_period_start_at=datetime(2026, 6, 1))
    put(lake, "mart.cost_hourly", **same, cost_part="tax")
    put(lake, "core.node_hours", date=day, hour=datetime(2026, 6, 9, 23), cluster="c", node="n", node_uid="u")
    put(lake, "mart.focus_cost_and_usage", date=day, x_charge_id="c", x_cost_part="tax", EffectiveCost=Decimal(3),
        BillingPeriodStart=datetime(2026, 6, 1))  # fmt: skip
    lake.publish("made")
    return lake


@pytest.mark.parametrize(
    ("month", "says"),
    [
        ("June", "MONTH: 'June' is no month, for example 2026-01"),
        ("2026-13", "MONTH: '2026-13' is no month"),
        ("2026-05", "2026-05 cannot be closed: no charge of that billing month is published"),
        ("2026-06", "2026-06 cannot be closed: it is not over, what is published reaches to 2026-06-10 00:00 UTC"),
    ],
)
def test_a_refusal_is_exit_code_2_and_its_reason(
    lake: Lake, month: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("close", month, "--data", lake.root) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert lake.version("mart.cost_statement") is None


def test_nothing_published_and_no_lake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    assert run("close", "2026-06", "--data", tmp_path / "empty") == 2
    assert "nothing has been published yet" in capsys.readouterr().err
    assert run("close", "2026-06", "--data", tmp_path / "none") == 2
    assert "no such folder" in capsys.readouterr().err


def test_statements_are_told_and_open_months_named(
    lake: Lake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(lake, "mart.cost_daily", date=date(2026, 7, 1), cost_part="tax")
    put(lake, "mart.cost_statement", date=date(2026, 6, 1), month=date(2026, 6, 1), statement_id="2026-06-1",
        issued_at=datetime(2026, 7, 3), cost_part="tax", effective_cost=Decimal(3))  # fmt: skip
    lake.publish_tables("made", {n: v for n in CONTRACTS if (v := lake.newest_version(n)) is not None})
    out = tmp_path / "told.csv"
    given = ("export", "mart.cost_statement", "--data", lake.root, "--out", out)
    assert run(*given, "--as-of", "2026-07-03") == 0
    told, err = capsys.readouterr()
    assert told.strip() == str(out)
    assert "1 rows of statements 2026-06-1" in err
    assert "not closed by the end of 2026-07-03 and left out: 2026-07" in err
    assert run(*given, "--as-of", "2026-07-02") == 2
    assert "no month was closed by the end of 2026-07-02" in capsys.readouterr().err
