"""`strandline ui` as a person starts it: a run, a backfill of three days and a schedule tick through GraphQL."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parent.parent.parent
PLACE = {"repositoryLocationName": "pipelines.definitions", "repositoryName": "__repository__"}
DAYS = ["2026-03-01", "2026-03-02", "2026-03-03"]
Query = Callable[..., Any]


def wait_for(what: str, check: Callable[[], Any], seconds: float) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := check():
            return found
        time.sleep(1)
    raise AssertionError(f"{what}: not within {seconds} s")


@pytest.fixture(scope="module")
def query(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Query]:
    """Asks the GraphQL of a freshly started interface over an empty lake."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("ui")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("STRANDLINE_", "DAGSTER_"))}
    command = [sys.executable, "-m", "pipelines.cli", "ui", "--port", str(port), "--data", str(folder / "data")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environ, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def ask(text: str, **variables: Any) -> Any:
        body = json.dumps({"query": text, "variables": variables}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{port}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            found = json.load(answer)
        assert "errors" not in found, found
        return found["data"]

    def is_up() -> bool:
        assert process.poll() is None, (folder / "log").read_text()
        try:
            return bool(ask("{ version }"))
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    try:
        wait_for("the interface", is_up, 180)
        yield ask
    finally:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)


def run_status(query: Query, run_id: str) -> str:
    asked = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"
    status: str = query(asked, id=run_id)["runOrError"]["status"]
    return status if status in ("SUCCESS", "FAILURE", "CANCELED") else ""


def test_a_run(query: Query) -> None:
    launch = """mutation($p: ExecutionParams!) { launchRun(executionParams: $p) {
        __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }"""
    tags = [{"key": "dagster/partition", "value": DAYS[0]}]
    params = {"selector": {**PLACE, "jobName": "build_daily"}, "executionMetadata": {"tags": tags}, "mode": "default"}
    launched = query(launch, p=params)["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    run_id = launched["run"]["runId"]
    assert wait_for("the run", lambda: run_status(query, run_id), 240) == "SUCCESS"
    asked = """query($k: AssetKeyInput!, $r: String!) { assetNodeOrError(assetKey: $k) { ... on AssetNode {
        assetMaterializations(limit: 1) { partition runId }
        assetChecksOrError { ... on AssetChecks { checks {
        name blocking executionForLatestMaterialization { status } } } }
        } } runsOrError(filter: {runIds: [$r]}) { ... on Runs { count } } }"""
    asset = query(asked, k={"path": ["mart", "gpu_ledger_hourly"]}, r=run_id)["assetNodeOrError"]
    assert asset["assetMaterializations"] == [{"partition": DAYS[0], "runId": run_id}]
    checks = {c["name"]: c for c in asset["assetChecksOrError"]["checks"]}
    assert checks["contract"]["blocking"] and not checks["freshness"]["blocking"]
    assert {c["executionForLatestMaterialization"]["status"] for c in checks.values()} == {"SUCCEEDED"}


def test_a_backfill_of_three_days_is_one_run(query: Query) -> None:
    nodes = query("{ assetNodes { assetKey { path } groupName } }")["assetNodes"]
    keys = [n["assetKey"] for n in nodes if n["groupName"] in ("core", "mart")]
    keys.append({"path": ["lake", "published"]})
    launch = """mutation($b: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $b) {
        __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
    launched = query(launch, b={"assetSelection": keys, "partitionNames": DAYS})["launchPartitionBackfill"]
    assert launched["__typename"] == "LaunchBackfillSuccess", launched
    asked = """query($id: String!) { partitionBackfillOrError(backfillId: $id) {
        ... on PartitionBackfill { status error { message } } } }"""

    def finished() -> str:
        found = query(asked, id=launched["backfillId"])["partitionBackfillOrError"]
        assert not found["error"], found
        return found["status"] if found["status"].startswith(("COMPLETED", "FAILED", "CANCELED")) else ""

    assert wait_for("the backfill", finished, 300) == "COMPLETED_SUCCESS"
    runs = query("{ runsOrError(limit: 20) { ... on Runs { results { status tags { key value } } } } }")
    tags = [{t["key"]: t["value"] for t in r["tags"]} for r in runs["runsOrError"]["results"]]
    mine = [t for t in tags if t.get("dagster/backfill") == launched["backfillId"]]
    assert len(mine) == 1
    assert mine[0]["dagster/asset_partition_range_start"] == DAYS[0]
    assert mine[0]["dagster/asset_partition_range_end"] == DAYS[-1]


def test_a_schedule_tick(query: Query) -> None:
    dry = """mutation($s: ScheduleSelector!, $t: Float) { scheduleDryRun(selectorData: $s, timestamp: $t) {
        __typename ... on DryRunInstigationTick { evaluationResult {
        runRequests { runKey tags { key value } } error { message } } } } }"""
    at = datetime(2026, 3, 4, 0, 30, tzinfo=UTC).timestamp()
    tick = query(dry, s={**PLACE, "scheduleName": "build_daily_schedule"}, t=at)["scheduleDryRun"]
    assert tick["__typename"] == "DryRunInstigationTick"
    assert tick["evaluationResult"]["error"] is None
    (request,) = tick["evaluationResult"]["runRequests"]
    tags = {t["key"]: t["value"] for t in request["tags"]}
    assert tags["dagster/asset_partition_range_start"] == "2026-03-02"
    assert tags["dagster/asset_partition_range_end"] == "2026-03-03"
    start = """mutation($s: ScheduleSelector!) { startSchedule(scheduleSelector: $s) {
        __typename ... on ScheduleStateResult { scheduleState { status } } } }"""
    started = query(start, s={**PLACE, "scheduleName": "build_daily_schedule"})["startSchedule"]
    assert started["scheduleState"]["status"] == "RUNNING"
