"""Dagster's definitions: everything assembled in one function, so that a test builds its own.

Belongs here: which assets, checks, jobs, schedules, sensors and resources there are. Not here: what they do.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg

from assets import checks, maintenance, models, partitions, raw, recorded
from assets.computed import load_all_models
from assets.sql_checks import load_checks
from pipelines import automation
from pipelines.resources import LakeResource
from pipelines.settings import Settings, load
from warehouse.lake import Lake
from warehouse.models import SQL_DIRECTORY

# Collectors scrape by the minute and are sealed by the hour: a raw day without news for this long is late.
RAW_MAX_AGE = timedelta(hours=26)


def build_definitions(
    settings: Settings | None = None,
    resources: Mapping[str, Any] | None = None,
    sql: Path = SQL_DIRECTORY,
) -> dg.Definitions:
    """All definitions over the settings (default: resolved from file and environment).

    `resources` replaces resources by name, `sql` the folder of models and checks; nothing is read from the
    network or the lake, so loading is quick and never fails for their sake.
    """
    with warnings.catch_warnings():
        # Single-run backfills are called beta since Dagster 1.8; every start would say so once for every asset.
        warnings.filterwarnings("ignore", category=dg.BetaWarning)
        settings = settings or load().settings
        hourly, daily = partitions.hourly(settings.partitions_start), partitions.daily(settings.partitions_start)
        found = load_all_models(sql)
        tables = [*raw.SEALED, *raw.LOGGED, *recorded.TABLES, *found]
        marts = [name for name in found if name.startswith("mart.")]
        jobs = automation.build_jobs()
        return dg.Definitions(
            assets=[
                *raw.build_raw_assets(hourly),
                *models.build_model_assets(found, daily),
                *models.build_frozen_assets(),
                maintenance.build_maintenance(),
            ],
            asset_checks=checks.build_checks(tables, load_checks(sql / "check"), marts, RAW_MAX_AGE),
            jobs=list(jobs.values()),
            schedules=automation.build_schedules(jobs, daily),
            sensors=automation.build_sensors(jobs, Lake(settings.data), settings.partitions_start),
            resources={"lake": LakeResource.of(settings), **(resources or {})},
            # Steps are short SQL statements, and the run holds the lake's lock for all of them: one process.
            executor=dg.in_process_executor,
        )


defs = build_definitions()
