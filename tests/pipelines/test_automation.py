"""Schedules and the sensor, evaluated without a daemon."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from pipelines.definitions import build_definitions
from pipelines.settings import Settings
from warehouse.lake import Lake

RANGE = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


@pytest.fixture
def repository(tmp_path: Path) -> dg.RepositoryDefinition:
    return build_definitions(Settings(data=tmp_path, partitions_start=date(2026, 1, 1))).get_repository_def()


def tick(repository: dg.RepositoryDefinition, name: str, at: datetime) -> list[dg.RunRequest]:
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_schedule_context(instance, scheduled_execution_time=at, repository_def=repository)
        return list(repository.get_schedule_def(name).evaluate_tick(context).run_requests or [])


def test_the_daily_tick_asks_for_the_look_back_in_one_run(repository: dg.RepositoryDefinition) -> None:
    (request,) = tick(repository, "build_daily_schedule", datetime(2026, 3, 10, 0, 30, tzinfo=UTC))
    assert [request.tags[t] for t in RANGE] == ["2026-03-08", "2026-03-09"]


def test_the_first_day_has_nothing_before_it(repository: dg.RepositoryDefinition) -> None:
    assert not tick(repository, "build_daily_schedule", datetime(2026, 1, 1, 0, 30, tzinfo=UTC))
    (request,) = tick(repository, "build_daily_schedule", datetime(2026, 1, 2, 0, 30, tzinfo=UTC))
    assert [request.tags[t] for t in RANGE] == ["2026-01-01", "2026-01-01"]


def test_the_hourly_tick_seals_the_hour_that_ended(repository: dg.RepositoryDefinition) -> None:
    (request,) = tick(repository, "ingest_hourly_schedule", datetime(2026, 3, 10, 7, 5, tzinfo=UTC))
    assert request.partition_key == "2026-03-10-06:00"


def sense(repository: dg.RepositoryDefinition) -> list[dg.RunRequest]:
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance, repository_def=repository)
        return list(repository.get_sensor_def("late_data_sensor").evaluate_tick(context).run_requests or [])


def test_late_days_are_built_with_their_neighbours(repository: dg.RepositoryDefinition, tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    assert not sense(repository)
    lake.mark([date(2026, 3, 1), date(2026, 3, 2), date(2026, 3, 20)], "late")
    requests = sense(repository)
    assert [[r.tags[t] for t in RANGE] for r in requests] == [
        ["2026-02-28", "2026-03-03"],
        ["2026-03-19", "2026-03-21"],
    ]
    # The same marks name the same runs, so the sensor asks once; one more mark asks again.
    assert [r.run_key for r in sense(repository)] == [r.run_key for r in requests]
    lake.mark([date(2026, 3, 20)], "later still")
    assert sense(repository)[1].run_key != requests[1].run_key


def test_the_running_day_and_days_before_the_first_partition_wait(
    repository: dg.RepositoryDefinition, tmp_path: Path
) -> None:
    today = datetime.now(UTC).date()
    Lake(tmp_path).mark([today, today + timedelta(days=1), date(2025, 12, 31)], "test")
    assert not sense(repository)
