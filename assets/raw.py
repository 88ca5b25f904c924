"""Raw assets: what was collected, sealed hour by hour; and the tables that arrive whole.

Thin: `sealing.seal` and `recorded.record` do the work. Not here: parsing, writing, policy.
"""

# No `from __future__ import annotations` here: Dagster compares the annotation of `context` by identity (1.13).

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from assets import metadata, partitions, recorded, sealing
from assets.access import RESOURCE, WRITER_POOL, lake_of
from warehouse.contracts import CONTRACTS, Table

# Written by the simulated fleet or an import, at once and not by the hour.
IMPORTED = (
    "raw.allocation_history",
    *(t.name for t in CONTRACTS.values() if t.layer == "raw" and t.window != "hour" and t.name not in recorded.TABLES),
)
SEALED = tuple(t.name for t in CONTRACTS.values() if t.layer == "raw" and t.window == "hour" and t.name not in IMPORTED)


def _spec(contract: Table, partitions_def: dg.PartitionsDefinition | None = None) -> dg.AssetSpec:
    return dg.AssetSpec(
        metadata.asset_key(contract.name),
        description=f"{contract.description}\n\nGrain: {contract.grain}.",
        group_name="raw",
        kinds={"deltalake"},
        partitions_def=partitions_def,
        metadata={"dagster/column_schema": metadata.table_schema(contract), "dagster/table_name": contract.name},
    )


def build_raw_assets(hourly: dg.HourlyPartitionsDefinition) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """The sealing of collected bodies, the recording of settings, and the imported tables as they are."""

    @dg.multi_asset(
        name="seal_collected",
        specs=[_spec(CONTRACTS[t], hourly) for t in SEALED],
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={RESOURCE},
        pool=WRITER_POOL,
        description="Parses what the collectors landed up to the end of the window and replaces the hours it touches.",
    )
    def seal_collected(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        access = lake_of(context)
        window = partitions.hours_of(context)
        start, end = window if window else (None, datetime.now(UTC).replace(tzinfo=None))
        context.log.info("sealed: %s", sealing.seal(access.lake, until=end, run_id=context.run.run_id))
        with access.connect(SEALED) as con:
            for table in SEALED:
                found = metadata.statistics(con, table, start, end)
                yield dg.MaterializeResult(asset_key=metadata.asset_key(table), metadata=found)

    @dg.multi_asset(
        name="record_settings",
        specs=[_spec(CONTRACTS[t]) for t in recorded.TABLES],
        required_resource_keys={RESOURCE},
        pool=WRITER_POOL,
        description="Writes the settings that models read; a change marks every day that raw holds.",
    )
    def record_settings(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult]:
        access = lake_of(context)
        recorded.record(
            access.lake, access.recorded(), access.team_rules(), access.team_rows(), run_id=context.run.run_id
        )
        with access.connect(recorded.TABLES) as con:
            for table in recorded.TABLES:
                found = metadata.statistics(con, table)
                yield dg.MaterializeResult(asset_key=metadata.asset_key(table), metadata=found)

    return [seal_collected, record_settings, *(_spec(CONTRACTS[t]) for t in IMPORTED)]
