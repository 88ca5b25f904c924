"""When what runs: jobs, schedules and the sensor for late data.

Belongs here: selections, crons and run requests. Not here: what an asset does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg

from assets import maintenance, metadata, models, partitions, raw, recorded
from warehouse.lake import Lake
from warehouse.windows import contiguous

INGEST, BUILD, COMPACT = "ingest_hourly", "build_daily", "compact_weekly"
# A day is built with the one before it: rows that came up to 48 hours late are in.
LOOK_BACK_DAYS = 2
# The daily build comes first for the day that has just ended; the sensor looks after what remains.
SETTLED = timedelta(minutes=90)
# A run that died is retried whole, because its steps share one lock and one set of marks.
RETRY = {"dagster/retry_strategy": "ALL_STEPS"}

# Dagster exports neither of these types.
Job = Any
Schedule = Any


def build_jobs() -> dict[str, Job]:
    """The three jobs by name. `build_daily` is the main one: settings, core, mart, their checks, publication."""
    built = dg.AssetSelection.groups("core", "mart") | dg.AssetSelection.assets(models.PUBLISHED)
    settings = dg.AssetSelection.assets(*(metadata.asset_key(t) for t in recorded.TABLES))
    sealed = dg.AssetSelection.assets(*(metadata.asset_key(t) for t in (*raw.SEALED, *raw.LOGGED)))
    return {
        INGEST: dg.define_asset_job(
            INGEST, sealed, tags=RETRY, description="Seals the hour that has ended and takes in the queue's events."
        ),
        BUILD: dg.define_asset_job(
            BUILD, built | settings, tags=RETRY,
            description="Runs every model over the days, checks the tables and publishes them together.",
        ),
        COMPACT: dg.define_asset_job(
            COMPACT, dg.AssetSelection.assets(maintenance.COMPACTED), tags=RETRY, description="Compacts and vacuums."
        ),
    }  # fmt: skip


def build_schedules(jobs: Mapping[str, Job], daily: dg.DailyPartitionsDefinition) -> list[Schedule]:
    """Ingest each hour at :05, build each day at 00:30, compact on Sundays at 03:00; all UTC."""
    ingest = dg.build_schedule_from_partitioned_job(jobs[INGEST], minute_of_hour=5, name="ingest_hourly_schedule")

    @dg.schedule(
        name="build_daily_schedule",
        job=jobs[BUILD],
        cron_schedule="30 0 * * *",
        execution_timezone="UTC",
        description="Builds the day that has ended and the look-back before it, as one run.",
    )
    def build_schedule(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        today = context.scheduled_execution_time.date()
        first = daily.start.date()
        start = max(today - timedelta(days=LOOK_BACK_DAYS), first)
        if start >= today:
            return dg.SkipReason("no day has ended since the first partition")
        return dg.RunRequest(run_key=str(today), tags=partitions.range_tags(start, today))

    compact = dg.ScheduleDefinition(
        name="compact_weekly_schedule",
        job=jobs[COMPACT],
        cron_schedule="0 3 * * 0",
        execution_timezone="UTC",
        description="Compacts and vacuums on Sundays.",
    )
    return [ingest, build_schedule, compact]


def build_sensors(jobs: Mapping[str, Job], lake: Lake, first_day: date) -> list[dg.SensorDefinition]:
    """The sensor that builds days whose raw data or intervals changed after they were built.

    It reads the marks of `lake` itself and not through the runs' resource, which would wait for a build to end.
    """

    @dg.sensor(
        name="late_data_sensor",
        job=jobs[BUILD],
        minimum_interval_seconds=300,
        description="Builds days that were marked as changed, contiguous ones in one run; the running day waits.",
    )
    def late_data(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        ended = (datetime.now(UTC) - SETTLED).date()
        marks = [m for m in lake.marks() if first_day <= m.date < ended]
        if not marks:
            return dg.SkipReason("no day that has ended is marked")
        # A changed day touches the covers of both its neighbours.
        due = {m.date + timedelta(days=n) for m in marks for n in (-1, 0, 1)}
        requests = []
        for start, end in contiguous(d for d in due if first_day <= d < ended):
            tokens = sorted(m.token for m in marks if start <= m.date < end)
            # The marks name the run: the same ones never ask twice, one more asks again.
            key = f"{start}/{end}/{hashlib.sha256(' '.join(tokens).encode()).hexdigest()[:16]}"
            requests.append(dg.RunRequest(run_key=key, tags=partitions.range_tags(start, end)))
        return dg.SensorResult(run_requests=requests)

    return [late_data]
