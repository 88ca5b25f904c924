"""A live API for every test of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from live_api import START, Live

from exporters.serve import build_app
from exporters.server import serving
from fleet.clock import Clock
from fleet.kubeapi.fixed import fixed_world
from fleet.kubeapi.reads import WatchTiming


@pytest.fixture
def live() -> Iterator[Live]:
    """One cluster whose clock stands still until a test moves it."""
    world, clock = fixed_world(), Clock(START, speed=0)
    app = build_app(world, clock, timing=WatchTiming(tick_s=0.05, bookmark_s=0.2), slow_s=0.3, log_size=50)
    with serving(app) as url:
        yield Live(url, world, clock)
