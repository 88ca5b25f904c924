"""Core and mart assets: one per SQL model, its dependencies read from the SQL.

Thin: the window of the run goes to `warehouse.runner`, which replaces it. Not here: SQL, checks.
"""

# No `from __future__ import annotations` here: Dagster compares the annotation of `context` by identity (1.13).

from collections.abc import Mapping
from datetime import date

import dagster as dg

from assets import metadata, partitions
from assets.access import RESOURCE, WRITER_POOL, LakeAccess, lake_of
from warehouse import runner
from warehouse.contracts import CONTRACTS
from warehouse.models import Model
from warehouse.state import Mark
from warehouse.windows import DAY

PUBLISHED = dg.AssetKey(["lake", "published"])


def build_model_assets(models: Mapping[str, Model], daily: dg.DailyPartitionsDefinition) -> list[dg.AssetsDefinition]:
    """One asset per model, in run order, and the asset that publishes them together."""
    return [*(_model_asset(models, m, daily) for m in models.values()), _published(models, daily)]


def build_frozen_assets() -> list[dg.AssetSpec]:
    """Tables that no build writes: statements, which `strandline close` issues."""
    return [
        dg.AssetSpec(
            metadata.asset_key(contract.name),
            description=f"{contract.description}\n\nGrain: {contract.grain}. Written by `strandline close`.",
            group_name="statements",
            kinds={"deltalake"},
            metadata={"dagster/column_schema": metadata.table_schema(contract), "dagster/table_name": contract.name},
        )
        for contract in CONTRACTS.values()
        if contract.frozen
    ]


def _model_asset(models: Mapping[str, Model], model: Model, daily: dg.DailyPartitionsDefinition) -> dg.AssetsDefinition:
    contract = CONTRACTS[model.name]
    lineage = metadata.column_lineage(model)

    @dg.asset(
        key=metadata.asset_key(model.name),
        deps=[metadata.asset_key(name) for name in model.inputs if name != model.name],
        description=_description(model),
        group_name=contract.layer,
        kinds={"python", "deltalake"} if model.compute else {"sql", "duckdb", "deltalake"},
        partitions_def=daily,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={RESOURCE},
        pool=WRITER_POOL,
        metadata={
            "dagster/column_schema": metadata.table_schema(contract),
            "dagster/column_lineage": lineage,
            "dagster/table_name": model.name,
            **({} if model.compute else {"sql": dg.MetadataValue.md(f"```sql\n{model.sql.strip()}\n```")}),
        },
    )
    def model_asset(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        access = lake_of(context)
        window = partitions.days_of(context)
        if window is None:
            raise dg.Failure(f"{model.name} is built by the day: choose partitions")
        start, end = window
        runner.run_models(access.lake, [model.name], start, end, context.run.run_id, models=models)
        with access.connect([model.name]) as con:
            found = metadata.statistics(con, model.name, start, end)
        # The column graph of the web interface reads lineage from materializations only.
        return dg.MaterializeResult(metadata={**found, "dagster/column_lineage": lineage})

    return model_asset


def _description(model: Model) -> str:
    """The header of the SQL file as Markdown."""
    fields = model.fields
    named = [f"**{name}**: {fields[name]}" for name in ("grain", "key", "inputs", "invariant") if fields.get(name)]
    return "\n\n".join([fields["description"] or CONTRACTS[model.name].description, *named])


def _published(models: Mapping[str, Model], daily: dg.DailyPartitionsDefinition) -> dg.AssetsDefinition:
    @dg.asset(
        key=PUBLISHED,
        deps=[metadata.asset_key(name) for name in models],
        description=(
            "The manifest that readers go through: every table at the version of this build. It comes after all "
            "tables and their blocking checks, so a build that fails one is never seen."
        ),
        group_name="lake",
        kinds={"deltalake"},
        partitions_def=daily,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={RESOURCE},
        pool=WRITER_POOL,
    )
    def published(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        access = lake_of(context)
        manifest = access.lake.publish(context.run.run_id, note="")
        window = partitions.days_of(context)
        ran = context.job_def.asset_layer.selected_asset_keys
        if window and ran >= {metadata.asset_key(name) for name in models}:
            access.lake.clear(covered_marks(access, *window))
        return dg.MaterializeResult(metadata={"build": manifest.build_id, "tables": len(manifest.tables)})

    return published


def covered_marks(access: LakeAccess, start: date, end: date) -> list[Mark]:
    """Marks that a build of [start, end) has dealt with: its own, and older ones whose neighbours it built too.

    A changed day touches the covers of both its neighbours. A neighbour without data, and the day that is still
    going on, need no build now.
    """
    known = runner.known_dates(access.lake)
    today = access.now().date()
    older = set(access.marks_at_start)

    def is_covered(mark: Mark) -> bool:
        beside = (mark.date - DAY, mark.date + DAY)
        return mark not in older or all(start <= d < end or d not in known or d >= today for d in beside)

    return [m for m in access.lake.marks() if start <= m.date < end and is_covered(m)]
