"""A lake of four small tables and three models, enough to show every rule of the warehouse."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from warehouse.contracts.model import Field, Table
from warehouse.engine import connect
from warehouse.lake import Lake
from warehouse.models import Model, load_models

HOUR = timedelta(hours=1)


def field(name: str, type_: str, low: float | None = None, high: float | None = None, values: tuple[str, ...] = ()):
    return Field(name, type_, f"what {name} means", low, high, values)


EVENTS = Table(
    "raw.events", "seen_at, pod", ("seen_at", "pod"),
    (field("seen_at", "timestamp"), field("pod", "string"), field("load", "double", 0, 1), field("tags", "labels"),
     field("hour", "timestamp"), field("date", "date")),
    "hour", "When a pod was seen.",
)  # fmt: skip
STAYS = Table(
    "core.stays", "date, pod", ("date", "pod"),
    (field("date", "date"), field("pod", "string"), field("started_at", "timestamp"),
     field("finished_at", "timestamp"), field("interval_start_at", "timestamp"),
     field("interval_end_at", "timestamp")),
    "date", "From the first to the last time a pod was seen.", spans=True,
)  # fmt: skip
DAYS = Table(
    "mart.days", "date", ("date",),
    (field("date", "date"), field("pods", "integer", 0), field("stay_seconds", "quantity", 0)),
    "date", "Pods and their time, by date.",
)  # fmt: skip
TOTALS = Table(
    "mart.totals", "pod", ("pod",), (field("pod", "string"), field("days", "integer", 1)), "whole", "Dates by pod.",
)  # fmt: skip
CONTRACTS = {t.name: t for t in (EVENTS, STAYS, DAYS, TOTALS)}

SQL = {
    "core/stays": """-- Stays of pods, clipped to dates.
-- grain: date, pod
-- key: date, pod
-- inputs: raw.events
-- invariant: started_at <= finished_at
with spans as (
    select pod, min(seen_at) as started_at, max(seen_at) as finished_at from raw.events group by pod
),
calendar as (
    select cast(u.day as date) as date
    from unnest(generate_series($start_at, $end_at - interval 1 day, interval 1 day)) as u(day)
)
select
    c.date, s.pod, s.started_at, s.finished_at,
    greatest(s.started_at, cast(c.date as timestamp)) as interval_start_at,
    least(s.finished_at, cast(c.date as timestamp) + interval 1 day) as interval_end_at
from spans as s
inner join calendar as c on c.date >= cast(s.started_at as date) and c.date <= cast(s.finished_at as date)
""",
    "mart/days": """-- Pods by date.
-- grain: date
-- key: date
-- inputs: core.stays
-- invariant: pods > 0
select
    date, count(*) as pods,
    cast(sum(date_diff('second', interval_start_at, interval_end_at)) as decimal(18, 6)) as stay_seconds
from core.stays
where date >= cast($start_at as date) and date < cast($end_at as date)
group by date
""",
    "mart/totals": """-- Dates by pod.
-- grain: pod
-- key: pod
-- inputs: core.stays
-- invariant: days > 0
select pod, count(*) as days from core.stays group by pod
""",
}


def small_models(directory: Path) -> dict[str, Model]:
    for name, sql in SQL.items():
        path = directory / f"{name}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(sql)
    return load_models(directory)


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 3, day, hour)


def events(hour: datetime, pods: Iterable[str], load: float | None = 0.5) -> pa.Table:
    rows = [
        {
            "seen_at": hour + timedelta(minutes=i), "pod": pod, "load": load, "tags": [("team", pod)],
            "hour": hour, "date": hour.date(),
        }
        for i, pod in enumerate(pods)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=EVENTS.arrow_schema)


def put(lake: Lake, hour: datetime, pods: Iterable[str], load: float | None = 0.5) -> int:
    return lake.replace("raw.events", events(hour, pods, load), hour, hour + HOUR, "test")


def day_rows(first: date, pods: Iterable[int]) -> pa.Table:
    rows = [{"date": first + timedelta(days=i), "pods": n, "stay_seconds": None} for i, n in enumerate(pods)]
    return pa.Table.from_pylist(rows, schema=DAYS.arrow_schema)


def contents(lake: Lake, table: str) -> list[dict]:
    rows = lake.read(table).to_pylist()
    return sorted(rows, key=lambda r: tuple(str(r[c]) for c in lake.contract(table).key))


def published(lake: Lake, sql: str) -> list[tuple]:
    with connect(lake.root, contracts=lake.contracts) as connection:
        return connection.execute(sql).fetchall()
