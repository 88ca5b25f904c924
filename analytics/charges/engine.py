"""core.computed_charges: what the nodes cost by the rate cards, hour by hour.

Belongs here: reading the inputs of a span of dates and putting the charges' rows together. Not here: how a price is
found, metered or discounted.
"""

from __future__ import annotations

from datetime import date

import duckdb
import pyarrow as pa

from warehouse.contracts import CONTRACTS

INPUTS = (
    "core.node_hours",
    "raw.commitments",
    "raw.credits",
    "raw.exchange_rates",
    "raw.owned_hardware",
    "raw.prices",
    "raw.settings",
)
HEADER = """Charges computed from node-hours, rate cards, commitments and credits.
grain: charge
key: date, charge_id
invariant: list_cost = list_unit_price x pricing_quantity; contracted_cost likewise"""


def compute(connection: duckdb.DuckDBPyConnection, start: date, end: date) -> pa.Table:
    """Charges whose period begins in [start, end)."""
    return CONTRACTS["core.computed_charges"].arrow_schema.empty_table()
