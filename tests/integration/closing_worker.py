"""A process that closes March 2026 of a lake and kills itself at its n-th commit: `python closing_worker.py ROOT N`."""

from __future__ import annotations

import os
import signal
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from closing_march import CHECKS, MARCH, MODELS

from assets.closing import close
from warehouse.lake import Lake


def main(root: str, last: int) -> None:
    """Close, up to the commit `last`."""
    commits, whole = 0, Lake.commit

    def commit(self: Lake, staged: Any, run_id: str = "", **more: Any) -> int:
        nonlocal commits
        version = whole(self, staged, run_id, **more)
        commits += run_id.startswith("close-")
        if commits == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return version

    Lake.commit = commit  # type: ignore[method-assign]
    close(Lake(root), MARCH, MODELS, CHECKS, now=datetime(2026, 4, 5, 9))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
