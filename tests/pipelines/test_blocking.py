"""A failed blocking check stops what is downstream: nothing is published, and the days stay marked."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

from assets import partitions
from assets.computed import load_all_models
from pipelines.definitions import build_definitions
from pipelines.settings import Settings
from warehouse.lake import Lake
from warehouse.models import SQL_DIRECTORY, downstream

START, END = date(2026, 3, 1), date(2026, 3, 3)
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
FAILING = "-- Never holds.\n-- table: core.gpu_units\nselect 1 as wrong"


@contextmanager
def run(data: Path, sql: Path) -> Iterator[dg.ExecuteInProcessResult]:
    definitions = build_definitions(Settings(data=data), sql=sql)
    job = definitions.resolve_job_def("build_daily")
    with dg.DagsterInstance.ephemeral() as instance:
        yield job.execute_in_process(
            instance=instance, tags=partitions.range_tags(START, END), run_config=QUIET, raise_on_error=False
        )


def steps(result: dg.ExecuteInProcessResult, kind: str) -> set[str]:
    return {e.step_key for e in result.all_events if e.event_type_value == kind and e.step_key}


@pytest.fixture
def sql(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SQL_DIRECTORY, tmp_path / "sql"))


def test_a_run_publishes_and_clears_its_marks(tmp_path: Path, sql: Path) -> None:
    lake = Lake(tmp_path / "data")
    lake.mark([START, date(2026, 4, 1)], "test")
    with run(lake.root, sql) as result:
        assert result.success
        published = result.asset_materializations_for_node("lake__published")
    assert len(published) == 2  # one for each day of the one run
    manifest = lake.published()
    assert manifest is not None
    assert manifest.build_id == result.run_id
    assert [m.date for m in lake.marks()] == [date(2026, 4, 1)]


def test_a_failed_blocking_check_stops_downstream(tmp_path: Path, sql: Path) -> None:
    (sql / "check" / "never_holds.sql").write_text(FAILING)
    lake = Lake(tmp_path / "data")
    lake.mark([START], "test")
    with run(lake.root, sql) as result:
        assert not result.success
        assert steps(result, "STEP_FAILURE") == {"check_core_gpu_units"}
        succeeded = steps(result, "STEP_SUCCESS")
    assert "core__gpu_units" in succeeded  # the table itself was written
    below = {name.replace(".", "__") for name in downstream(load_all_models(), "core.gpu_units")}
    assert "mart__gpu_ledger_hourly" in below and not succeeded & below
    assert "lake__published" not in succeeded
    assert lake.published() is None
    assert [m.date for m in lake.marks()] == [START]


def test_the_lock_is_free_after_a_failed_run(tmp_path: Path, sql: Path) -> None:
    (sql / "check" / "never_holds.sql").write_text(FAILING)
    with run(tmp_path / "data", sql):
        pass
    with Lake(tmp_path / "data").writer(timeout_s=0):
        pass
