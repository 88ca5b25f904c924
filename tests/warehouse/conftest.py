"""A small lake with its models, new for every test."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_lake

from warehouse.lake import Lake
from warehouse.models import Model


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "data", small_lake.CONTRACTS)


@pytest.fixture
def models(tmp_path: Path) -> dict[str, Model]:
    return small_lake.small_models(tmp_path / "sql")
