"""The whole definition graph against its golden file: a change of it is read like any other change.

`make golden` (UPDATE_GOLDEN=1) writes the file anew.
"""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from pipelines.definitions import build_definitions
from pipelines.settings import Settings

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "definitions.json"


@pytest.fixture(scope="module")
def repository() -> dg.RepositoryDefinition:
    return build_definitions(Settings(data=Path("data"), partitions_start=date(2026, 1, 1))).get_repository_def()


def graph(repository: dg.RepositoryDefinition) -> dict[str, Any]:
    """Everything that the definitions promise, as JSON."""
    found = repository.asset_graph
    assets = {}
    for key in sorted(found.get_all_asset_keys()):
        node = found.get(key)
        assets[key.to_user_string()] = {
            "group": node.group_name,
            "inputs": sorted(k.to_user_string() for k in node.parent_keys),
            "partitions": str(node.partitions_def) if node.partitions_def else None,
            "backfill": node.backfill_policy.policy_type.value if node.backfill_policy else None,
            "kinds": sorted(node.kinds),
            "pools": sorted(node.pools or ()),
            "materializable": node.is_materializable,
            "description": (node.description or "").splitlines()[0],
            "metadata": sorted(node.metadata),
        }
    checks = {
        f"{k.asset_key.to_user_string()}:{k.name}": {
            "blocking": found.get(k).blocking,  # type: ignore[attr-defined]
            "description": found.get(k).description,  # type: ignore[attr-defined]
        }
        for k in sorted(found.asset_check_keys)
    }
    jobs = {
        job.name: {"assets": len(job.asset_layer.selected_asset_keys), "steps": len(job.nodes)}
        for job in sorted(repository.get_all_jobs(), key=lambda j: j.name)
        if not job.name.startswith("__")
    }
    schedules = {s.name: [s.cron_schedule, s.execution_timezone, s.job_name] for s in repository.schedule_defs}
    sensors = {s.name: [s.minimum_interval_seconds, s.job_name] for s in repository.sensor_defs}
    return {
        "assets": assets,
        "checks": checks,
        "jobs": jobs,
        "schedules": dict(sorted(schedules.items())),
        "sensors": sensors,
        "resources": sorted(repository.get_top_level_resources()),
    }


def test_the_graph_is_the_golden_one(repository: dg.RepositoryDefinition) -> None:
    text = json.dumps(graph(repository), indent=1, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8"), "the definition graph changed; `make golden` writes it anew"


def test_models_are_single_run_and_by_the_day(repository: dg.RepositoryDefinition) -> None:
    found = repository.asset_graph
    for key in found.get_all_asset_keys():
        node = found.get(key)
        if node.group_name in ("core", "mart"):
            assert node.backfill_policy == dg.BackfillPolicy.single_run(), key
            assert isinstance(node.partitions_def, dg.DailyPartitionsDefinition), key
            assert node.partitions_def.timezone == "UTC", key
            assert node.pools == {"lake_writer"}, key


def test_raw_partitions_are_hours_of_utc(repository: dg.RepositoryDefinition) -> None:
    node = repository.asset_graph.get(dg.AssetKey(["raw", "dcgm_samples"]))
    assert isinstance(node.partitions_def, dg.HourlyPartitionsDefinition)
    keys = node.partitions_def.get_partition_keys_in_range(dg.PartitionKeyRange("2026-11-01-00:00", "2026-11-01-23:00"))
    # The day on which clocks go back in New York has 24 hours here.
    assert len(keys) == 24


def test_column_lineage_reaches_raw(repository: dg.RepositoryDefinition) -> None:
    node = repository.asset_graph.get(dg.AssetKey(["core", "gpu_samples"]))
    lineage = node.metadata["dagster/column_lineage"]
    sources = {d.asset_key.to_user_string() for d in lineage.deps_by_column["gpu_util_ratio"]}
    assert "raw/dcgm_samples" in sources
