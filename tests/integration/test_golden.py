"""The command against the golden ledger cases, and against generated ones whose answer the oracle computed.

Belongs here: whole runs of ingest, build and query. Does not belong here: the oracle's own tests (tests/oracle).
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from oracle.command import differences
from oracle.generate import generate

pytestmark = pytest.mark.integration

SEEDS = (2002, 2003, 2004, 2008, 2012, 2013, 2014, 2022, 2033, 2042, 2044)  # together they have every feature
REGULAR_SEEDS = (201,)


@pytest.fixture(scope="module")
def command() -> list[str]:
    """The installed command beside the interpreter, else the module it runs."""
    script = Path(sys.executable).parent / "strandline"
    return [str(script)] if script.exists() else [sys.executable, "-m", "pipelines.cli"]


def test_golden_cases_agree(shared_dir: Path, command: list[str]) -> None:
    run = [sys.executable, str(shared_dir / "golden" / "run.py"), shlex.join(command)]
    done = subprocess.run(run, text=True, capture_output=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _check(folder: Path, command: list[str]) -> None:
    wrong = differences(command, folder)
    assert not wrong, json.loads((folder / "case.json").read_text())["title"] + "\n" + "\n".join(wrong)


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_case_agrees(seed: int, tmp_path: Path, command: list[str]) -> None:
    _check(generate(seed, tmp_path), command)


@pytest.mark.parametrize("seed", REGULAR_SEEDS)
def test_generated_case_agrees_with_interval_and_staleness_unset(seed: int, tmp_path: Path, command: list[str]) -> None:
    _check(generate(seed, tmp_path, regular=True), command)
