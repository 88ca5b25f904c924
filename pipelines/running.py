"""Running the main job in this process, against the instance that `strandline ui` shows.

Not here: the definitions (`definitions.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date

from assets import partitions
from pipelines import instance
from pipelines.settings import Settings

MAIN = "build_daily"


class JobFailed(RuntimeError):
    """A run failed; the message names the steps and checks."""


def run_main_job(settings: Settings, start: date, end: date) -> None:
    """Run core, mart, their checks and the publication over [start, end) as one run; `JobFailed` names why not."""
    import dagster as dg

    from pipelines.definitions import build_definitions

    home = instance.prepare_home(settings.data)
    # Dagster announces each event on stderr otherwise, hundreds of lines.
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    job = build_definitions(settings).resolve_job_def(MAIN)
    with (
        _environment(instance.environment(settings.data, os.environ)),
        dg.DagsterInstance.from_config(str(home)) as inst,
    ):
        result = job.execute_in_process(
            instance=inst, tags=partitions.range_tags(start, end), run_config=quiet, raise_on_error=False
        )
    if not result.success:
        raise JobFailed(
            f"{MAIN} failed (run {result.run_id}): {'; '.join(_reasons(result.all_events)) or 'see its log'}"
        )


def _reasons(events: object) -> list[str]:
    reasons = []
    for event in events:  # type: ignore[attr-defined]
        if event.event_type_value == "STEP_FAILURE":
            error = event.step_failure_data.error
            cause = (error.cause or error).message if error else ""
            reasons.append(f"{event.step_key}: {cause.strip().splitlines()[0] if cause else 'failed'}")
        if event.event_type_value == "ASSET_CHECK_EVALUATION" and not event.event_specific_data.passed:
            data = event.event_specific_data
            reasons.append(
                f"check {data.check_name} of {data.asset_key.to_user_string()}: {data.description or 'failed'}"
            )
    return reasons


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """The process environment with these values, put back afterwards: Dagster reads its home from there."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
