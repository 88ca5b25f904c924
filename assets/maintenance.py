"""Upkeep of the lake as an asset: compaction of small files, vacuum of those no version in use needs.

Thin: `warehouse.maintenance` does it. Not here: what counts as in use.
"""

# No `from __future__ import annotations` here: Dagster compares the annotation of `context` by identity (1.13).

import dagster as dg

from assets.access import RESOURCE, WRITER_POOL, lake_of
from warehouse import maintenance

COMPACTED = dg.AssetKey(["lake", "compacted"])


def build_maintenance() -> dg.AssetsDefinition:
    """The asset that the weekly schedule materializes."""

    @dg.asset(
        key=COMPACTED,
        description=(
            "Merges small files of every table and removes files older than the retention that neither a published "
            "manifest kept for the audit window nor an open reader can need."
        ),
        group_name="lake",
        kinds={"deltalake"},
        required_resource_keys={RESOURCE},
        pool=WRITER_POOL,
    )
    def compacted(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        access = lake_of(context)
        merged = maintenance.compact(access.lake)
        removed = maintenance.vacuum(access.lake, access.retention)
        return dg.MaterializeResult(metadata={"compacted": str(merged), "vacuumed": str(removed)})

    return compacted
