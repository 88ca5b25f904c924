"""Small worlds that several tests of the fleet read; none changes them."""

from __future__ import annotations

import pyarrow as pa
import pytest
from small_fleet import SMALL, collect

from fleet.model import FleetSpec
from fleet.world import World


@pytest.fixture(scope="session")
def small_world() -> World:
    """Thirteen nodes for two days, nothing broken."""
    return World.build(SMALL)


@pytest.fixture(scope="session")
def small_tables(small_world: World) -> dict[str, pa.Table]:
    """Its history."""
    return collect(small_world)


@pytest.fixture(scope="session")
def broken_world() -> World:
    """A few more nodes for three days with every fault on."""
    return World.build(FleetSpec(scale=0.4, days=3, history_days=8, faults="all", seed=11))


@pytest.fixture(scope="session")
def broken_tables(broken_world: World) -> dict[str, pa.Table]:
    """Its history."""
    return collect(broken_world)
