"""The thread that ticks: at once when something was asked for, else at an even pace, slower while the world is away.

Belongs here: pace and the end of the thread. Not here: what a tick does (`core.py`).
"""

from __future__ import annotations

import logging
import threading
import time

from scheduler.service.core import QueueService

log = logging.getLogger(__name__)
_MOST_PAUSE_S = 30.0


class Loop:
    """Ticks a service every `every_s` seconds, and `least_s` after a request at the earliest; a context manager."""

    def __init__(self, service: QueueService, every_s: float = 1.0, least_s: float = 0.1) -> None:
        self.service, self.every_s, self.least_s = service, every_s, least_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="queue-loop", daemon=True)

    def __enter__(self) -> Loop:
        # The loop pauses for `every_s`, or longer while the world is away, and then a tick has to end.
        self.service.health.ticked_s = time.monotonic()
        self.service.health.patience_s = 2 * max(self.every_s, _MOST_PAUSE_S)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self.service.wake.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        pause = self.every_s
        while not self._stop.is_set():
            begun = time.monotonic()
            try:
                is_well = self.service.tick()
            except Exception as error:
                # Whatever it was, the log holds: all is read again, and the queue goes on.
                log.exception("the tick failed")
                is_well = False
                self.service.reload(f"{type(error).__name__}: {error}")
            self.service.health.ticked_s = time.monotonic()
            self.service.health.cycle_s = self.service.health.ticked_s - begun
            pause = self.every_s if is_well else min(pause * 2, _MOST_PAUSE_S)
            self._stop.wait(self.least_s)
            if is_well:
                self.service.wake.wait(max(pause - self.least_s, 0.0))
                self.service.wake.clear()
            else:
                self._stop.wait(pause)
