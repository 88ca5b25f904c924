"""A process that reads a lake over and over until a file named `stop` appears in its output's folder.

Usage: lake_reader.py DATA OUTPUT. One line of OUTPUT is one read: how it read, and the row it saw, as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb

from warehouse.engine import connect

# One figure from every layer, and sums that two tables must agree on: a torn read cannot be even.
QUERY = """
with ledger as (
    select
        count(distinct case when cluster = 'extra' then node end) as nodes,
        sum(capacity_gpu_seconds)::varchar as capacity,
        sum(allocated_gpu_seconds + unallocated_gpu_seconds + unavailable_gpu_seconds)::varchar as parts,
        sum(utilized_gpu_seconds)::varchar as utilized,
        sum(stranded_gpu_seconds + unobserved_gpu_seconds)::varchar as rest
    from mart.gpu_ledger_hourly
),
teams as (
    select
        sum(capacity_gpu_seconds)::varchar as capacity, sum(utilized_gpu_seconds)::varchar as utilized,
        sum(stranded_gpu_seconds + unobserved_gpu_seconds)::varchar as rest
    from mart.stranding_hourly
)
select
    (select count(distinct target) from raw.scrapes where cluster = 'extra') as raw_nodes,
    (select count(distinct node) from core.gpu_inventory where cluster = 'extra') as core_nodes,
    l.nodes, l.capacity, t.capacity, l.parts, l.utilized, t.utilized, l.rest, t.rest
from ledger as l cross join teams as t
"""
# Connecting costs more than reading: a connection is read more than once, with builds going on in between.
TURNS = (("connect", 3), ("file", 1), ("file", 3))


def opened(how: str, data: Path) -> duckdb.DuckDBPyConnection:
    """The two ways in that people have."""
    if how == "connect":
        return connect(data, threads=1)
    return duckdb.connect(str(data / "strandline.duckdb"), read_only=True, config={"threads": 1})


def main(data: Path, output: Path) -> None:
    """Read until told to stop."""
    with output.open("w", buffering=1) as out:
        while not (output.parent / "stop").exists():
            for how, times in TURNS:
                with opened(how, data) as con:
                    for _ in range(times):
                        (row,) = con.execute(QUERY).fetchall()
                        out.write(json.dumps([how, row]) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
