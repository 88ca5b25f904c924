"""The oracle against the ten golden cases beside the checkout. Checks the reference, not the project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from oracle.ledger import expected

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
