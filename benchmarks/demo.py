"""The whole demo at its default size: seconds and peak memory of the command. Run: `python benchmarks/demo.py`."""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=14)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        command = [sys.executable, "-m", "pipelines.cli", "demo", "--data", data, "--days", str(args.days)]
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print("".join(f"{t:>12}" for t in ("days", "seconds", "peak MB")))
    print("".join(f"{f:>12}" for f in (str(args.days), f"{seconds:.0f}", f"{peak:.0f}")))


if __name__ == "__main__":
    main()
