"""Fixtures shared by all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def project_root() -> Path:
    """Root of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Real captures, traces and golden cases beside the checkout; skips where they are absent."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("../shared (real captures, traces, golden cases) is not beside this checkout")
    return path
