"""The bills of a small fleet that several tests read; none changes them."""

from __future__ import annotations

import pytest
from billed_fleet import NODES, TWO_WEEKS

from fleet.billing.invoices import Billing, bill_fleet


@pytest.fixture(scope="session")
def billing() -> Billing:
    """Two weeks of it, billed by its providers."""
    return bill_fleet(NODES, TWO_WEEKS)
