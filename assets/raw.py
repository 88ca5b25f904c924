"""Raw assets: what was collected, sealed hour by hour; and the tables that arrive whole.

Thin: `sealing.seal` and `recorded.record` do the work. Not here: parsing, writing, policy.
"""

# No `from __future__ import annotations` here: Dagster compares the annotation of `context` by identity (1.13).

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg

from assets import metadata, partitions, queue_events, recorded, sealing
from assets.access import RESOURCE, WRITER_POOL, lake_of
from warehouse.contracts import CONTRACTS, Table

# Written by the simulated fleet or an import, at once and not by the hour.
IMPORTED = (
    "raw.allocation_history",
    *(t.name for t in CONTRACTS.values() if t.layer == "raw" and t.window != "hour" and t.name not in recorded.TABLES),
)
LOGGED = (queue_events.TABLE,)
SEALED = tuple(
    t.name for t in CONTRACTS.values() if t.layer == "raw" and t.window == "hour" and t.name not in (*IMPORTED, *LOGGED)
)


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
    """The sealing of collected bodies, the queue's events, the recording of settings, and imported tables."""

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

    @dg.asset(
        key=metadata.asset_key(queue_events.TABLE),
        description=(
            f"{CONTRACTS[queue_events.TABLE].description} Adds what is new in the event log of the queue service "
            "(setting queue_log), which may go on writing; days that it touches are marked."
        ),
        group_name="raw",
        kinds={"sqlite", "deltalake"},
        partitions_def=hourly,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={RESOURCE},
        pool=WRITER_POOL,
        metadata={
            "dagster/column_schema": metadata.table_schema(CONTRACTS[queue_events.TABLE]),
            "dagster/table_name": queue_events.TABLE,
        },
    )
    def queue_log(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        access = lake_of(context)
        report = queue_events.load_queue_events(
            access.lake, access.queue_logs(), access.queue_cluster, run_id=context.run.run_id
        )
        for message in report.refused:
            context.log.error("%s", message)
        window = partitions.hours_of(context) or (None, None)
        with access.connect(LOGGED) as con:
            found = metadata.statistics(con, queue_events.TABLE, *window)
        return dg.MaterializeResult(metadata={**found, "new_events": report.new, "refused": len(report.refused)})

    return [seal_collected, queue_log, record_settings, *(_spec(CONTRACTS[t]) for t in IMPORTED)]
