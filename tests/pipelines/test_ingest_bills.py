"""`strandline ingest bills`: exit codes, and what it says of lines that did not land."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from warehouse.errors import BadInput
from warehouse.lake import Lake

HEADER = "BilledCost,EffectiveCost,BillingAccountId,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory\n"
LINE = "1.5,1.5,acc,USD,2026-05-03T10:00:00Z,2026-05-03T11:00:00Z,Usage\n"


def run(*args: object):
    return CliRunner().invoke(app, ["ingest", "bills", *map(str, args)])


def test_sound_bills_land_with_exit_code_0(tmp_path: Path) -> None:
    path = tmp_path / "may.csv"
    path.write_text(HEADER + LINE + LINE)
    done = run(path, "--provider", "nimbus", "--data", tmp_path / "data")
    assert done.exit_code == 0, done.output
    assert "rows: 2 in 1 bill" in done.stderr and done.stdout == ""
    assert len(Lake(tmp_path / "data").read("raw.bills")) == 2
    assert "unchanged: 1" in run(path, "--provider", "nimbus", "--data", tmp_path / "data").stderr


def test_refused_lines_are_named_and_counted_with_exit_code_2(tmp_path: Path) -> None:
    path = tmp_path / "may.csv"
    path.write_text(HEADER + LINE + LINE.replace("1.5", "1,5", 1).replace("1,5", '"1,5"', 1) * 30)
    done = run(path, "--provider", "nimbus", "--data", tmp_path / "data")
    assert done.exit_code == 2
    lines = done.stderr.splitlines()
    assert [line.split(": ")[:2] for line in lines[1:21]] == [[f"{path}:{n}", "BilledCost"] for n in range(3, 23)]
    assert lines[21].startswith("strandline: 30 lines refused, 10 more than shown")
    assert len(lines) == 22
    assert len(Lake(tmp_path / "data").read("raw.bills")) == 1
    assert len(Lake(tmp_path / "data").read("raw.rejected_bill_lines")) == 30


def test_a_header_without_lines_is_warned_of(tmp_path: Path) -> None:
    empty, full = tmp_path / "empty.csv", tmp_path / "may.csv"
    empty.write_text(HEADER)
    full.write_text(HEADER + LINE)
    done = run(empty, full, "--provider", "nimbus", "--data", tmp_path / "data")
    assert done.exit_code == 0, done.output
    assert "rows: 1 in 1 bill" in done.stderr
    (warning,) = [line for line in done.stderr.splitlines() if "warning" in line]
    assert warning.startswith(f"strandline: warning: {empty}: a header and no line")


def test_a_header_without_its_mandatory_columns_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "cut.csv"
    path.write_text(HEADER.strip().removesuffix("ChargeCategory"))
    with pytest.raises(BadInput, match=r"cut\.csv: no FOCUS bill: columns missing: ChargeCategory"):
        CliRunner().invoke(app, ["ingest", "bills", str(path), "--data", str(tmp_path / "data")],
                           catch_exceptions=False)  # fmt: skip


def test_a_huge_value_is_not_echoed_whole(tmp_path: Path) -> None:
    path = tmp_path / "may.csv"
    path.write_text(HEADER + LINE.replace("1.5", "9" * 100_000, 1))
    done = run(path, "--provider", "nimbus", "--data", tmp_path / "data")
    assert done.exit_code == 2
    assert "out of range" in done.stderr and len(done.stderr) < 1000 + 3 * len(str(path))
    (refused,) = Lake(tmp_path / "data").read("raw.rejected_bill_lines").to_pylist()
    assert len(refused["reason"]) < 200


def test_a_file_that_is_no_bill_brings_nothing(tmp_path: Path) -> None:
    path = tmp_path / "may.csv"
    path.write_text(HEADER + LINE)
    (tmp_path / "note.txt").write_text("hello\n")
    with pytest.raises(BadInput, match=r"note\.txt: no FOCUS bill"):  # exit code 2, by `cli.main`
        CliRunner().invoke(app, ["ingest", "bills", str(path), str(tmp_path / "note.txt"), "--data",
                                 str(tmp_path / "data")], catch_exceptions=False)  # fmt: skip
    assert Lake(tmp_path / "data").version("raw.bills") is None
