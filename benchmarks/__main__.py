"""Every bench, one after the other: `python -m benchmarks` or `make bench`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHES = ("parse", "ledger", "cost", "rightsizing", "queueing", "demo")


def main() -> None:
    folder = Path(__file__).parent
    for name in BENCHES:
        print(f"== {name}", flush=True)
        # A process each: peak memory is inherited from a large parent.
        subprocess.run([sys.executable, str(folder / f"{name}.py")], check=True)


if __name__ == "__main__":
    main()
