"""Table contracts: the one place where a table's grain, key and columns are declared."""

from __future__ import annotations

from warehouse.contracts import core, cost, focus, mart, raw
from warehouse.contracts.model import Field, Table

CONTRACTS: dict[str, Table] = {
    t.name: t for t in (*raw.TABLES, *cost.RAW, *core.TABLES, *cost.CORE, *mart.TABLES, *cost.MART, *focus.MART)
}

__all__ = ["CONTRACTS", "Field", "Table"]
