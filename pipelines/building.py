"""A build as the command runs it, without Dagster: seal, record settings, run the models, publish.

Not here: windows, models and publication (`warehouse/runner.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import date

from assets import recorded
from pipelines.settings import Settings
from warehouse import runner
from warehouse.lake import Lake

log = logging.getLogger(__name__)


def build(
    settings: Settings,
    start: date | None,
    end: date | None,
    select: Sequence[str],
    progress: Callable[[str], None],
) -> runner.BuildReport:
    """Build [start, end), or what changed; `BadInput` where the selection names no model."""
    from assets import sealing
    from assets.computed import load_all_models
    from assets.queue_events import load_queue_events
    from warehouse.models import select_models

    models = load_all_models()
    select_models(models, select)  # a wrong name is told before anything is sealed
    lake = Lake(settings.data)
    with lake.writer():
        progress("sealing what was collected")
        for message in sealing.seal(lake).errors:
            log.warning("%s", message)
        if (queue_log := settings.queue_log_path()).exists():
            for message in load_queue_events(lake, [queue_log], settings.queue_cluster).refused:
                log.warning("%s", message)
        record_settings(lake, settings)
        return runner.build(
            lake,
            start,
            end,
            select=select,
            progress=progress,
            models=models,
            memory_limit=settings.memory_limit,
            threads=settings.threads,
        )


def record_settings(lake: Lake, settings: Settings, run_id: str = "") -> bool:
    """Write the settings that models read, where they differ from what is stored."""
    return recorded.record(lake, settings.recorded(), settings.team_rules(), settings.team_rows(), run_id)


def summary(report: runner.BuildReport) -> str:
    """One line about a build."""
    days = sorted({day for m in report.models for window in m.windows for day in window})
    span = f", {days[0]} to {days[-1]}" if days else ""
    return f"build {report.build_id}: {len(report.models)} models, {report.rows:,} rows{span}, {report.seconds:.1f} s"
