"""The same seed gives the same world, in this process and in others; another seed another one."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from small_fleet import SMALL, collect, same

from fleet.world import World

HERE = Path(__file__).resolve().parent


def test_same_seed_same_tables(small_tables) -> None:
    """Within one process; that hash randomisation has no say is checked by the digest test below."""
    again = collect(World.build(SMALL))
    assert again.keys() == small_tables.keys()
    for name, table in again.items():
        assert same(table, small_tables[name]), name


_DIGEST = """
import hashlib
from dataclasses import replace
from fleet.world import World
from small_fleet import SMALL
digest = hashlib.sha256()
for name, table in World.build(replace(SMALL, days=1, history_days=3, faults="all")).raw_tables():
    digest.update(repr((name, table.slice(0, 300).to_pylist(), table.num_rows)).encode())
print(digest.hexdigest())
"""


def test_other_processes_give_the_same_world() -> None:
    found = set()
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent.parent)])}
        run = subprocess.run([sys.executable, "-c", _DIGEST], env=env, capture_output=True, text=True, check=True)
        found.add(run.stdout)
    assert len(found) == 1


def test_other_seed_other_tables(small_tables) -> None:
    other = World.build(replace(SMALL, seed=8))
    assert not same(other.truth(other.start_at, other.end_at), small_tables["raw.fleet_truth"])
