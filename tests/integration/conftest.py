"""The lakes that the end-to-end tests share."""

from __future__ import annotations

import pytest
from simulated_lakes import SimulatedLake, simulated_lake


@pytest.fixture(scope="session")
def clean_lake(tmp_path_factory: pytest.TempPathFactory) -> SimulatedLake:
    """Two days scraped each minute, nothing broken."""
    return simulated_lake(tmp_path_factory, "clean")


@pytest.fixture(scope="session")
def coarse_lake(tmp_path_factory: pytest.TempPathFactory) -> SimulatedLake:
    """The same world scraped each five minutes."""
    return simulated_lake(tmp_path_factory, "coarse")


@pytest.fixture(scope="session")
def broken_lake(tmp_path_factory: pytest.TempPathFactory) -> SimulatedLake:
    """The same world with every kind of fault."""
    return simulated_lake(tmp_path_factory, "broken")
