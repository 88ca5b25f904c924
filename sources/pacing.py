"""Doing something every so often until told to stop: due times by the monotonic clock, signals.

What is done, and with which time stamp, is the collectors' business.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def ticks(every_s: float, stop: threading.Event) -> Iterator[int]:
    """Yield 0, 1, 2 ... now and every `every_s` seconds until `stop`; a tick that was slept through is skipped.

    The clock is the monotonic one, so that a step of the wall clock neither stalls nor doubles anything.
    """
    start = time.monotonic()
    number = 0
    while not stop.is_set():
        yield number
        number = max(number + 1, int((time.monotonic() - start) / every_s) + 1)
        if stop.wait(max(0.0, start + number * every_s - time.monotonic())):
            return


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set, so that a collector ends after what it is doing.

    Only the main thread may call this. The former handlers come back at the end.
    """
    stop = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()

    former = {s: signal.signal(s, handle) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
