"""The queue service as a process that is going to be killed: `killed_service.py FOLDER KUBECONFIG PORT [DIE_AT]`.

With DIE_AT it kills itself with SIGKILL when so many gangs were handed to the world: after that start was logged as
intended and before (even DIE_AT) or in the middle of (odd) its binds. It says its URL on stdout.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from pipelines.queueing import Served, serve
from scheduler.service.worlds import Pod, Seen, World


class DyingWorld:
    """A world around the real one, under which the process dies at one start."""

    def __init__(self, world: World, die_at: int) -> None:
        self.world, self.die_at, self.starts = world, die_at, 0

    def now_us(self) -> int:
        """As the seam says."""
        return self.world.now_us()

    def see(self) -> Seen:
        """As the seam says."""
        return self.world.see()

    def start(self, pods: list[Pod]) -> None:
        """As the seam says, until death."""
        self.starts += 1
        if self.starts == self.die_at:
            if self.die_at % 2:
                self.world.start(pods[:1])
            os.kill(os.getpid(), signal.SIGKILL)
        self.world.start(pods)

    def save(self, names: list[str], kill_us: int) -> None:
        """As the seam says."""
        self.world.save(names, kill_us)

    def stop(self, names: list[str], grace_s: int) -> None:
        """As the seam says."""
        self.world.stop(names, grace_s)


def main() -> None:
    """Serve until killed."""
    folder, kubeconfig, port, *rest = sys.argv[1:]
    die_at = int(rest[0]) if rest else 0
    wanted = Served(
        Path(folder), Path(kubeconfig), port=int(port), tokens=Path(folder) / "tokens.csv", every_s=0.2,
        wrap=(lambda world: DyingWorld(world, die_at)) if die_at else (lambda world: world),
    )  # fmt: skip
    serve(wanted, lambda url: print(url, flush=True))


if __name__ == "__main__":
    main()
