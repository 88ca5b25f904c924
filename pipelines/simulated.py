"""The simulated fleet's history in a lake: writing it, replacing an earlier one, and never touching real data.

Belongs here: which data folder may be overwritten, and in which windows. Not here: the fleet itself (`fleet/`), the
build over it (`demo.py`).
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fleet.model import FleetSpec
from fleet.world import World
from pipelines.billing import foreign_money
from pipelines.settings import FILES
from warehouse.contracts import CONTRACTS
from warehouse.durable import write_atomically
from warehouse.engine import open_database
from warehouse.errors import BadInput
from warehouse.lake import Lake
from warehouse.landing import Landing
from warehouse.windows import DAY, contiguous

# The tables the settings are recorded in are written by every build; the fleet's go to the lake's own settings.
SETTING_TABLES = ("raw.team_rules", "raw.team_map")
HEADER = "# Settings of this simulated fleet, written by `strandline demo`. SIMULATED data.\n"


def _marker(lake: Lake) -> Path:
    return lake.state / "simulated.json"


def check_replaceable(lake: Lake) -> None:
    """`BadInput` where the folder holds clusters or money that no earlier demo made; pending bodies of its own go."""
    marker = _marker(lake)
    ours = set(json.loads(marker.read_text("utf-8"))["clusters"]) if marker.is_file() else set()
    found = _clusters(lake)
    landing = Landing(lake.root)
    pending = landing.files()
    for landed in pending:
        found |= {record.cluster for record in landing.read(landed) or ()}
    if foreign := sorted(found - ours):
        raise BadInput(
            f"{lake.root} holds data of {', '.join(foreign)}, which no demo made; the demo replaces what it finds, "
            "so give it a folder of its own with --data"
        )
    if money := foreign_money(lake):
        raise BadInput(
            f"{lake.root} holds cards or bills that no demo made ({'; '.join(money)}); give the demo a folder of its "
            "own with --data"
        )
    landing.delete(pending)


def _clusters(lake: Lake) -> set[str]:
    tables = [t for t in ("raw.scrapes", "raw.kube_snapshots") if lake.version(t) is not None]
    with open_database(lake.root) as con:
        return {
            row[0]
            for t in tables
            for row in con.execute(f"select distinct cluster from ({lake.relation(t)})").fetchall()
        }


def write_settings(lake: Lake, world: World, partitions_start: date) -> None:
    """The fleet's team chain and mapping as the lake's own strandline.toml."""
    # They come first, so nothing else of the history is made for them.
    tables = dict(itertools.takewhile(lambda item: item[0] in SETTING_TABLES, world.raw_tables()))
    rules = tables["raw.team_rules"].to_pylist()
    mapping = tables["raw.team_map"].to_pylist()
    chain = [r["source"] + (f":{r['key']}" if r["key"] else "") for r in rules]
    teams = {f"{m['cluster']}/{m['namespace']}": m["team"] for m in mapping}
    # JSON strings are TOML strings.
    text = HEADER + f"team_chain = {json.dumps(chain)}\npartitions_start = {partitions_start.isoformat()}\n"
    text += "[team_map]\n" + "".join(f"{json.dumps(k)} = {json.dumps(v)}\n" for k, v in teams.items())
    lake.root.mkdir(parents=True, exist_ok=True)
    write_atomically(lake.root / FILES[0], text.encode())


def write_history(lake: Lake, world: World, progress: Callable[[str], None]) -> dict[str, set[date]]:
    """Write the world's history table by table and day by day; the days written of each table."""
    clusters = sorted({n.cluster for n in world.nodes})
    spec = world.spec
    about = {"clusters": clusters, "seed": spec.seed, "end_at": spec.end_at.isoformat(), "days": spec.days}
    write_atomically(_marker(lake), json.dumps(about).encode())
    written: dict[str, set[date]] = defaultdict(set)
    late: dict[str, dict[date, list[pa.Table]]] = defaultdict(lambda: defaultdict(list))
    for name, table in world.raw_tables():
        if name in SETTING_TABLES or not table.num_rows:
            continue
        if name == "raw.dcgm_samples":
            progress(f"simulating {pc.min(table.column('date')).as_py()}")
        if CONTRACTS[name].window == "date" or name == "raw.allocation_history":
            days = [d.as_py() for d in table.column("date").unique()]
            _replace(lake, name, table, min(days), max(days) + DAY)
            written[name] |= set(days)
            continue
        # A node whose clock is skewed stamps rows beyond midnight: they belong to the other day.
        parts = _by_day(table)
        day = max(parts, key=lambda d: parts[d].num_rows)
        for other in parts.keys() - {day}:
            late[name][other].append(parts[other])
        _replace(lake, name, pa.concat_tables([parts[day], *late[name].pop(day, [])]), day, day + DAY)
        written[name].add(day)
    for name, by_day in late.items():
        for day, tables in by_day.items():
            _replace(lake, name, pa.concat_tables([lake.read(name, start=day, end=day + DAY), *tables]), day, day + DAY)
            written[name].add(day)
    return written


def _by_day(table: pa.Table) -> dict[date, pa.Table]:
    dates = table.column("date")
    days = [d.as_py() for d in dates.unique()]
    return {days[0]: table} if len(days) == 1 else {d: table.filter(pc.equal(dates, d)) for d in days}


def _replace(lake: Lake, name: str, table: pa.Table, start: date, end: date) -> None:
    if CONTRACTS[name].window == "hour":
        start, end = datetime.combine(start, time()), datetime.combine(end, time())
    # Nobody builds from marks here: the demo builds all of its days itself.
    lake.replace(name, table, start, end, run_id="demo", mark=False)


def clear_beyond(lake: Lake, kept: Mapping[str, set[date]], window: tuple[date, date]) -> None:
    """Empty what an earlier demo left: days not in `kept`, and in core and mart outside of the window [start, end).

    Months that somebody closed on an earlier demo go too: nothing of what they tell is in the folder any more.
    """
    for name, contract in CONTRACTS.items():
        if contract.window == "whole" or lake.version(name) is None:
            continue
        rebuilt = contract.layer != "raw" and not contract.frozen
        inside = kept.get(name, set()) | (_days(*window) if rebuilt else set())
        for start, end in contiguous(d for d in lake.dates(name) if d not in inside):
            _replace(lake, name, contract.arrow_schema.empty_table(), start, end)
    published = lake.published()
    frozen = {name for name, contract in CONTRACTS.items() if contract.frozen}
    if published is not None and frozen & published.tables.keys():
        # builds publish frozen tables as they are published
        left = {name: version for name, version in published.tables.items() if name not in frozen}
        lake.publish_tables("demo", left, "months closed on an earlier demo are gone")


def _days(start: date, end: date) -> set[date]:
    return {start + timedelta(days=n) for n in range((end - start).days)}


def spec_window(spec: FleetSpec) -> tuple[date, date]:
    """Days [start, end) that the telemetry of a spec touches."""
    start = (spec.end_at - timedelta(days=spec.days)).date()
    last = spec.end_at - timedelta(microseconds=1)
    return start, last.date() + DAY


def describe(world: World) -> dict[str, int]:
    """What was simulated, for people."""
    return {
        "nodes": len(world.nodes),
        "accelerators": sum(len(n.devices) for n in world.nodes),
        "providers": len({n.provider for n in world.nodes}),
        "regions": len({n.region for n in world.nodes}),
        "pods": len(world.pods),
        "faults": len(world.faults),
    }
