"""The oracle against the golden cases beside the checkout, and the generator. Checks the reference, not the project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from oracle.generate import generate
from oracle.ledger import TEAM, expected

NAMES = [
    "01-half-used",
    "02-between-scrapes",
    "03-gaps",
    "04-which-field",
    "05-phases",
    "06-lost-and-cordoned",
    "07-any-order",
    "08-lost-gpu",
    "09-empty-body-and-names",
    "10-mig",
]


def test_no_golden_case_is_left_out(shared_dir: Path) -> None:
    assert sorted(p.parent.name for p in shared_dir.glob("golden/ledger/*/case.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_oracle_agrees_with_the_golden_case(shared_dir: Path, name: str) -> None:
    folder = shared_dir / "golden" / "ledger" / name
    want = json.loads((folder / "case.json").read_text())["expect"]
    got = expected(folder)
    assert got["total"] == pytest.approx(want["total"], abs=1e-3)
    assert got["teams"].keys() == want["teams"].keys()
    for team, sums in want["teams"].items():
        assert got["teams"][team] == pytest.approx(sums, abs=1e-3)


@pytest.mark.parametrize("seed", range(1, 9))
def test_generated_cases_repeat_and_balance(tmp_path: Path, seed: int) -> None:
    first, second = generate(seed, tmp_path / "a"), generate(seed, tmp_path / "b")
    assert sorted(p.name for p in first.iterdir()) == sorted(p.name for p in second.iterdir())
    assert all(p.read_bytes() == (second / p.name).read_bytes() for p in first.iterdir())
    expect = json.loads((first / "case.json").read_text())["expect"]
    total = {key.removesuffix("_gpu_seconds"): value for key, value in expect["total"].items()}
    assert total["capacity"] == pytest.approx(
        total["allocated"] + total["unallocated"] + total["unavailable"], abs=1e-5
    )
    assert total["allocated"] == pytest.approx(total["utilized"] + total["stranded"] + total["unobserved"], abs=1e-5)
    assert min(total.values()) >= 0
    for key in TEAM:
        assert total[key] == pytest.approx(
            sum(team[f"{key}_gpu_seconds"] for team in expect["teams"].values()), abs=1e-4
        )
