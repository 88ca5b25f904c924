"""Partitions of the asset graph and the window of a run. UTC only: raw hourly, core and mart daily.

A day is closed only when it has ended, so there is no partition for the running hour or day. Cluster is a
column and no partition dimension: keys would multiply by it. Not here: what is done in a window.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import dagster as dg

HOUR_FORMAT = "%Y-%m-%d-%H:%M"
RANGE_START, RANGE_END, PARTITION = (
    "dagster/asset_partition_range_start",
    "dagster/asset_partition_range_end",
    "dagster/partition",
)


def hourly(start: date) -> dg.HourlyPartitionsDefinition:
    """Hours from the start of `start`, UTC."""
    return dg.HourlyPartitionsDefinition(start_date=f"{start.isoformat()}-00:00", timezone="UTC", fmt=HOUR_FORMAT)


def daily(start: date) -> dg.DailyPartitionsDefinition:
    """Days from `start`, UTC."""
    return dg.DailyPartitionsDefinition(start_date=start.isoformat(), timezone="UTC")


def range_tags(start: date, end: date) -> dict[str, str]:
    """Run tags for the days [start, end): one run for all of them."""
    return {RANGE_START: start.isoformat(), RANGE_END: (end - timedelta(days=1)).isoformat()}


def _keys(context: Any) -> tuple[str, str] | None:
    # Tags, because checks have no window of their own, and an asset and its checks must agree on it.
    tags = context.run.tags
    if RANGE_START in tags and RANGE_END in tags:
        return tags[RANGE_START], tags[RANGE_END]
    return (tags[PARTITION], tags[PARTITION]) if PARTITION in tags else None


def days_of(context: Any) -> tuple[date, date] | None:
    """The run's days [start, end), or None for a run without partitions. An hour counts as its day."""
    keys = _keys(context)
    if keys is None:
        return None
    first, last = (date.fromisoformat(k[:10]) for k in keys)
    return first, last + timedelta(days=1)


def hours_of(context: Any) -> tuple[datetime, datetime] | None:
    """The run's hours [start, end) as UTC naive datetimes; a day counts as its 24 hours."""
    keys = _keys(context)
    if keys is None:
        return None
    first, last = keys
    start = datetime.strptime(first, HOUR_FORMAT if len(first) > 10 else "%Y-%m-%d")
    if len(last) > 10:
        return start, datetime.strptime(last, HOUR_FORMAT) + timedelta(hours=1)
    return start, datetime.fromisoformat(last) + timedelta(days=1)
