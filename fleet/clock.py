"""The fleet's clock: which simulated instant it is now.

Mapping wall time to simulated time belongs here; what happens at an instant is the world's. Instants are UTC, naive.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta


class Clock:
    """A simulated clock that starts at `start_at` and runs `speed` times as fast as the wall (0: it stands still).

    Safe to use from several threads. `monotonic` gives wall seconds; tests hand in their own.
    """

    def __init__(self, start_at: datetime, speed: float = 1.0, monotonic: Callable[[], float] = time.monotonic) -> None:
        if speed < 0:
            raise ValueError(f"clock speed {speed} is negative; time in the fleet does not run backwards")
        if start_at.tzinfo is not None:
            raise ValueError(f"start_at {start_at.isoformat()} has a time zone; instants are UTC without one")
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._speed = speed
        self._origin = start_at
        self._since = monotonic()

    @property
    def speed(self) -> float:
        """Simulated seconds per wall second."""
        return self._speed

    def now(self) -> datetime:
        """The simulated instant, to the microsecond."""
        with self._lock:
            return self._now()

    def _now(self) -> datetime:
        if self._speed == 0:
            return self._origin
        return self._origin + timedelta(seconds=(self._monotonic() - self._since) * self._speed)

    def set(self, at: datetime | None = None, *, advance_s: float = 0.0, speed: float | None = None) -> datetime:
        """Moves the clock to `at` (else stays), then `advance_s` further, and changes its speed; gives the new now."""
        if speed is not None and speed < 0:
            raise ValueError(f"clock speed {speed} is negative; time in the fleet does not run backwards")
        with self._lock:
            self._origin = (at if at is not None else self._now()) + timedelta(seconds=advance_s)
            self._since = self._monotonic()
            if speed is not None:
                self._speed = speed
            return self._origin
