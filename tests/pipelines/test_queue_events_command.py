"""From the queue's event log to its tables: by `strandline ingest queue-events` and `build`, and through Dagster."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import dagster as dg
import pytest
from queue_log import hand_worked, raw_log, submitted, us, write_log

from assets import metadata, partitions
from pipelines import cli
from pipelines.definitions import build_definitions
from pipelines.settings import Settings
from warehouse.lake import Lake

D2, D3, D4 = date(2026, 6, 2), date(2026, 6, 3), date(2026, 6, 4)
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Runs the command on a lake of the test; returns exit code, stdout and stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exited:
            cli.main([*words, "--data", str(tmp_path / "lake")])
        said = capsys.readouterr()
        return int(exited.value.code or 0), said.out, said.err

    return run


def test_the_log_of_the_data_folder_is_taken_in_once(run, tmp_path: Path) -> None:
    code, _, err = run("ingest", "queue-events")
    assert code == 2
    assert "queue/events.db: no such file" in err
    write_log(tmp_path / "lake" / "queue" / "events.db", hand_worked())
    code, out, err = run("ingest", "queue-events", "--cluster", "prod")
    assert (code, out) == (0, "")
    assert f"raw.scheduler_events: {len(hand_worked())} new events" in err
    assert "2 days are to be computed anew" in err
    assert run("ingest", "queue-events", "--cluster", "prod") == (0, "", "raw.scheduler_events: 0 new events\n")


def test_a_bad_event_ends_with_2_after_the_others_are_in(run, tmp_path: Path) -> None:
    event = submitted("j", "08:00:00", 1)
    rows = [(event.event_at_us, event.kind, "j", event.payload, ""), (us("09:00:00"), "teleported", "j", {}, "")]
    path = raw_log(tmp_path / "log.db", rows)
    code, out, err = run("ingest", "queue-events", str(path))
    assert (code, out) == (2, "")
    assert "1 new event\n" in err
    assert f"{path}: event 2: kind: 'teleported' is unknown" in err
    assert "Traceback" not in err


def test_a_build_reads_the_log_by_itself(run, tmp_path: Path) -> None:
    write_log(tmp_path / "lake" / "queue" / "events.db", hand_worked())
    assert run("build")[0] == 0
    code, out, _ = run(
        "query", "select date, starts, evictions from mart.queue_daily where size_class = '2-7' order by date",
        "--format", "json",
    )  # fmt: skip
    assert code == 0
    assert [(r["starts"], r["evictions"]) for r in json.loads(out)] == [(2, 1), (0, 0)]


def test_dagster_brings_events_into_the_tables_and_checks_them(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "data")
    log = write_log(tmp_path / "elsewhere.db", hand_worked())
    settings = Settings(data=lake.root, queue_log=log, queue_cluster="prod", partitions_start=D2)
    definitions = build_definitions(settings)
    with dg.DagsterInstance.ephemeral() as instance:
        hourly = definitions.resolve_job_def("ingest_hourly").execute_in_process(
            instance=instance, partition_key="2026-06-03-23:00", run_config=QUIET
        )
        (event,) = hourly.asset_materializations_for_node("raw__scheduler_events")
        assert event.metadata["new_events"].value == len(hand_worked())
        assert {m.date for m in lake.marks()} == {D2, D3}
        daily = definitions.resolve_job_def("build_daily").execute_in_process(
            instance=instance, tags=partitions.range_tags(D2, D4), run_config=QUIET
        )
        assert daily.success
        passed = {
            e.asset_check_evaluation_data.check_name: e.asset_check_evaluation_data.passed
            for e in daily.all_events
            if e.event_type_value == "ASSET_CHECK_EVALUATION"
            and e.asset_check_evaluation_data.asset_key == metadata.asset_key("mart.queue_daily")
        }
    assert passed["running_is_starts_minus_ends"]
    assert passed["queue_days_in_full"]
    assert passed["contract"]
    rows = lake.read("mart.queue_daily").to_pylist()
    assert {(r["cluster"], r["date"]) for r in rows} == {("prod", D2), ("prod", D3)}
    assert lake.read("mart.slo_daily", ["answered_jobs"]).column("answered_jobs").to_pylist().count(1) == 1
    assert lake.marks() == []
