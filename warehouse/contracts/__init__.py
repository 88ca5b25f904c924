"""Table contracts: the one place where a table's grain, key and columns are declared."""

from __future__ import annotations

from warehouse.contracts import core, mart, raw
from warehouse.contracts.model import Field, Table

CONTRACTS: dict[str, Table] = {t.name: t for t in (*raw.TABLES, *core.TABLES, *mart.TABLES)}

__all__ = ["CONTRACTS", "Field", "Table"]
