"""Writes a random ledger case in the golden format, with the oracle's answer as its expectation.

usage: python -m tests.oracle.generate --seed N --out DIR [--count K] [--regular] [--one-target]

Belongs here: the folder of one case and the command line. Does not belong here: what is drawn (scenario.py, jobs.py),
how it is printed (render.py, kube.py), the answer (ledger.py).
"""

from __future__ import annotations

import argparse
import json
import shutil
from datetime import timedelta
from pathlib import Path

from .ledger import expected
from .render import Printer
from .scenario import draw


def generate(seed: int, out: Path, regular: bool = False, two_targets: bool = True) -> Path:
    """Write the case of a seed under ``out`` and return its folder.

    ``regular`` leaves interval and staleness unset (null in case.json, so only the runner of tests/oracle takes it).
    """
    scene = draw(seed, regular, two_targets)
    folder = out / f"seed-{seed:04d}{'-regular' if regular else ''}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    printer = Printer(scene, folder)
    printer.write()
    end = printer.base + timedelta(seconds=scene.length)
    spec = {
        "title": f"generated from seed {seed}: " + ", ".join(sorted(scene.features)),
        "scrape_interval_s": None if regular else scene.interval,
        "staleness_s": None if regular else scene.staleness,
        "from": printer.stamp(0),
        "to": printer.stamp(scene.length),
        "build_to": (end - timedelta(seconds=1) + timedelta(days=1)).strftime("%Y-%m-%d"),
        "features": sorted(scene.features),
    }
    case = folder / "case.json"
    case.write_text(json.dumps(spec, indent=1) + "\n")
    case.write_text(json.dumps({**spec, "expect": expected(folder)}, indent=1) + "\n")
    return folder


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1, help="consecutive seeds")
    parser.add_argument("--regular", action="store_true", help="one spacing; interval and staleness unset")
    parser.add_argument("--one-target", action="store_true", help="never two targets for one node")
    args = parser.parse_args()
    for seed in range(args.seed, args.seed + args.count):
        print(generate(seed, args.out, args.regular, not args.one_target))


if __name__ == "__main__":
    main()
