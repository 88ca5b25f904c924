"""Runs one case folder through the command and compares with its expectation, as the shared golden runner does.

Belongs here: ingest, build and query of one case in a lake of its own; a null interval or staleness leaves the setting
unset. Does not belong here: the expectation itself (ledger.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .ledger import TEAM, TOTAL

TOLERANCE = 1e-3
PARTS = ["allocated", "unallocated", "unavailable", "utilized", "stranded", "unobserved"]


def _call(command: Sequence[str], env: dict[str, str], *args: str) -> str:
    done = subprocess.run([*command, *args], env=env, text=True, capture_output=True, timeout=300, check=False)
    if done.returncode:
        raise AssertionError(f"{args[0]} exited {done.returncode}: {(done.stderr or done.stdout).strip()[-800:]}")
    return done.stdout


def _sums(keys: Sequence[str]) -> str:
    return ", ".join(f"coalesce(sum({k}_gpu_seconds), 0)::double as {k}" for k in keys)


def _environment(spec: dict[str, Any], lake: str) -> dict[str, str]:
    env = {**os.environ, "STRANDLINE_DATA": lake}
    for name, key in (("STRANDLINE_SCRAPE_INTERVAL", "scrape_interval_s"), ("STRANDLINE_STALENESS", "staleness_s")):
        env.pop(name, None)
        if spec[key] is not None:
            env[name] = f"{spec[key]}s"
    return env


def differences(command: Sequence[str], folder: Path) -> list[str]:
    """What the command says otherwise than case.json, one line each; empty where all agrees to 0.001 GPU-second."""
    spec = json.loads((folder / "case.json").read_text())
    bounds = [spec[k].replace("T", " ").rstrip("Z") for k in ("from", "to")]
    window = f"hour >= timestamp '{bounds[0]}' and hour < timestamp '{bounds[1]}'"
    with tempfile.TemporaryDirectory() as lake:
        env = _environment(spec, lake)

        def ask(sql: str) -> list[dict[str, Any]]:
            rows: list[dict[str, Any]] = json.loads(_call(command, env, "query", sql, "--format", "json"))
            return rows

        _call(command, env, "ingest", "manifest", str(folder / "manifest.jsonl"))
        _call(command, env, "build", "--from", spec["from"][:10], "--to", spec["build_to"])
        total = ask(f"select {_sums(TOTAL)} from mart.gpu_ledger_hourly where {window}")[0]
        least = ", ".join(f"{k}_gpu_seconds" for k in PARTS)
        unbalanced = ask(f"""select count(*) as n from mart.gpu_ledger_hourly where {window} and (
            capacity_gpu_seconds <> allocated_gpu_seconds + unallocated_gpu_seconds + unavailable_gpu_seconds
            or allocated_gpu_seconds <> utilized_gpu_seconds + stranded_gpu_seconds + unobserved_gpu_seconds
            or least({least}) < 0)""")[0]["n"]
        by_team = (
            f"select team, {_sums(TEAM)} from mart.stranding_hourly where {window} and team is not null group by team"
        )
        teams = {row["team"]: row for row in ask(by_team)}
    wrong = [f"{unbalanced} ledger rows do not balance"] if unbalanced else []
    wrong += _compare("total", total, spec["expect"]["total"])
    for team, want in spec["expect"]["teams"].items():
        wrong += _compare(team, teams.get(team, {}), want)
    for team, row in teams.items():
        if team not in spec["expect"]["teams"] and row["allocated"] > TOLERANCE:
            wrong.append(f"team {team} should hold nothing: {row['allocated']}")
    return wrong


def _compare(who: str, got: dict[str, Any], want: dict[str, float]) -> list[str]:
    wrong = []
    for key, value in want.items():
        found = got.get(key.removesuffix("_gpu_seconds"))
        if found is None or abs(found - value) > TOLERANCE:
            wrong.append(f"{who} {key}: {found} want {value}")
    return wrong
