"""`strandline export --focus`: the versions, what is refused, and reading the file back."""

from __future__ import annotations

from pathlib import Path

import focus_month as given
import pytest
from typer.testing import CliRunner

from pipelines.cli import app
from warehouse.focus import COST_AND_USAGE
from warehouse.lake import Lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return given.fill(tmp_path_factory.mktemp("command") / "data")


def run(lake: Lake, *args: str | Path) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of `strandline export …` over the lake."""
    done = CliRunner().invoke(app, ["export", *map(str, args), "--data", str(lake.root)], standalone_mode=True)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return 2, done.stdout, str(done.exception)  # `main` says it and exits 2
    return done.exit_code, done.stdout, done.stderr


@pytest.mark.parametrize("version", ["1.4", "1.2"])
def test_a_dataset_is_written_and_verified(lake: Lake, version: str, tmp_path: Path) -> None:
    path = tmp_path / "usage.csv"
    code, out, err = run(lake, COST_AND_USAGE, "--focus", version, "--out", path, "--verify")
    assert (code, out.strip()) == (0, str(path))
    assert "sound" in err
    header = path.read_text().splitlines()[0].split(",")
    assert ("ProviderName" in header) == (version == "1.2")


def test_what_is_wrong_is_told(lake: Lake, tmp_path: Path) -> None:
    broken = Lake(tmp_path / "data")
    charges, division = given.month()
    for row in (*charges, *division):
        if row["charge_id"] == "own-1":
            row["effective_cost"] += 1
    given.put(broken, charges, division)
    given.build(broken)
    code, _, err = run(broken, COST_AND_USAGE, "--focus", "1.4", "--out", tmp_path / "x.csv", "--verify")
    assert code == 1
    assert "focus_effective_cost" in err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["mart.stranding_hourly", "--focus", "1.4"], "no FOCUS dataset"),
        (["mart.focus_contract_commitment", "--focus", "1.2"], "can be written for FOCUS 1.4"),
        ([COST_AND_USAGE, "--focus", "1.3"], "1.3"),
        ([COST_AND_USAGE, "--verify"], "--verify checks"),
    ],
)
def test_refusals(lake: Lake, args: list[str], says: str) -> None:
    code, _, err = run(lake, *args)
    assert code == 2
    assert says in err
