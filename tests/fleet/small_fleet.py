"""A small fleet's spec, how to read all of a world's history at once, and whether two tables are the same."""

from __future__ import annotations

import pyarrow as pa

from fleet.model import FleetSpec
from fleet.world import World

SMALL = FleetSpec(scale=0.1, days=2, history_days=8, faults="none")


def collect(world: World) -> dict[str, pa.Table]:
    """All tables of the history face."""
    parts: dict[str, list[pa.Table]] = {}
    for name, table in world.raw_tables():
        parts.setdefault(name, []).append(table)
    return {name: pa.concat_tables(tables) for name, tables in parts.items()}


def same(a: pa.Table, b: pa.Table) -> bool:
    """Equal with NaN-free bits: both tables serialised."""

    def body(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as out:
            out.write_table(table.combine_chunks())
        return sink.getvalue().to_pybytes()

    return body(a) == body(b)
