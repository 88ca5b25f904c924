"""Table contracts: the one place where a table's grain, key and columns are declared."""

from __future__ import annotations

from warehouse.contracts import core, cost, focus, mart, planning, queue, raw
from warehouse.contracts.model import Field, Table

CONTRACTS: dict[str, Table] = {
    t.name: t
    for t in (
        *raw.TABLES, *cost.RAW, *queue.RAW, *core.TABLES, *cost.CORE, *queue.CORE, *mart.TABLES, *cost.MART,
        *queue.MART, *focus.MART, *planning.CORE, *planning.MART,
    )
}  # fmt: skip

__all__ = ["CONTRACTS", "Field", "Table"]
