"""Frozen tables after a writer died: what was written and never published is taken back.

A frozen table (`Table.frozen`) is published by its own writer together with what belongs to it; no build publishes it.
So rows beyond the published ones are those of a writer that did not live to publish, and nobody has seen them.
Belongs here: finding and taking back such rows. Does not: writing frozen tables.
"""

from __future__ import annotations

from datetime import UTC, datetime

from warehouse import delta
from warehouse.engine import relation_sql
from warehouse.lake import Lake
from warehouse.state import TableVersion
from warehouse.windows import contiguous


def settle(lake: Lake) -> list[str]:
    """Bring every frozen table back to its published rows; returns the tables that were not there. Takes the lock."""
    with lake.writer():
        published = lake.published()
        changed = []
        for name, contract in lake.contracts.items():
            if not contract.frozen:
                continue
            newest, told = lake.newest_version(name), published.tables.get(name) if published else None
            if set(newest.files if newest else ()) != set(told.files if told else ()):
                _take_back(lake, name, told)
                changed.append(name)
        if changed and published is not None:
            # the same rows in new files: published, so that they are not taken for new ones the next time
            entries = {**published.tables}
            for name in changed:
                version = lake.newest_version(name)
                assert version is not None
                entries[name] = version
            lake.publish_tables(f"settle-{datetime.now(UTC):%Y%m%dT%H%M%S%f}", entries, f"as {published.build_id}")
        return changed


def _take_back(lake: Lake, name: str, told: TableVersion | None) -> None:
    contract, directory = lake.contract(name), delta.table_path(lake.root, name)
    files = told.files if told else ()
    days = {d for d in map(delta.partition_day, files) if d} | set(lake.dates(name))
    source = relation_sql(contract, directory, files, evolved=told.evolved if told else False)
    for start, end in contiguous(days):
        with lake.stage(name, start, end) as staged:
            staged.add_query(f"select * from ({source}) where {staged.window.sql}", {}, name)
            lake.commit(staged, "settle")
