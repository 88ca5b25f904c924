"""A process that works on a small lake, for tests that kill it, read beside it, or move its time zone.

Usage: lake_worker.py rebuild|flip ROOT SQL_DIRECTORY [TIMES]
"""

from __future__ import annotations

import sys
from pathlib import Path

from small_lake import CONTRACTS, at, put

from warehouse.lake import Lake
from warehouse.models import load_models
from warehouse.runner import build


def rebuild(lake: Lake, models, times: int) -> None:
    """Late rows, a build, again: what a kill may interrupt anywhere. Always the same rows."""
    for _ in range(times):
        for day in range(1, 6):
            put(lake, at(day, 12), ["long", f"d{day}"])
        build(lake, models=models)
        print("built", flush=True)


def flip(lake: Lake, models, times: int) -> None:
    """Publish n pods of one hour in all tables, for n = 1, 2, 3 …; two thousand rows each, so that a tear shows."""
    for number in range(1, times + 1):
        put(lake, at(1), [f"p{i}" for i in range(number)])
        put(lake, at(1, 6), [f"p{i}" for i in range(number)])
        build(lake, models=models)
        print("built", flush=True)


if __name__ == "__main__":
    action, root, directory, *rest = sys.argv[1:]
    work = {"rebuild": rebuild, "flip": flip}[action]
    work(Lake(root, CONTRACTS), load_models(Path(directory)), int(rest[0]) if rest else 1)
