"""A plain ledger in DuckDB over the fleet's own history, to hold against its truth (rules 3 to 5 of the ledger)."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from fleet.world import World


def measure(world: World, tables: dict[str, pa.Table]) -> duckdb.DuckDBPyConnection:
    """A connection with `truth` (per pod) and `measured` (per pod: used and seen GPU-seconds) beside the raw tables."""
    con = duckdb.connect()
    for name in ("raw.dcgm_samples", "raw.scrapes", "raw.fleet_truth"):
        con.register(name.removeprefix("raw."), tables[name])
    units = [(p, u) for p in world.pods for u in p.units]
    con.register("holds", pa.table({
        "pod_uid": [p.uid for p, _ in units], "cluster": [p.cluster for p, _ in units],
        "node": [p.node for p, _ in units],
        "gpu_index": [u[0] for _, u in units], "gi": [-1 if u[1] is None else u[1] for _, u in units],
        "from_at": [p.scheduled_at for p, _ in units], "to_at": [p.finished_at for p, _ in units],
    }))  # fmt: skip
    con.execute(
        f"""
        create table cover as
        with scraped as (
            select cluster, target, scrape_at,
                lead(scrape_at) over (partition by cluster, target order by scrape_at) as next_at
            from scrapes
        )
        select s.cluster, s.node, s.gpu_index, coalesce(s.gi_id, -1) as gi, s.sampled_at,
            coalesce(try_cast(s.mig_profile[1] as int), 7) / 7.0 as share,
            case when sm_active_ratio <= 1 then sm_active_ratio end as sm, tensor_ratio, dram_ratio,
            pcie_rx_bytes_per_second as pcie, s.gi_id is not null as is_mig,
            case when x.next_at <= s.sampled_at + interval 300 second then x.next_at
                 else s.sampled_at + interval {world.spec.interval_s} second end as until_at
        from dcgm_samples as s
        inner join scraped as x on x.cluster = s.cluster and x.target = s.target and x.scrape_at = s.sampled_at
        """
    )
    con.execute(
        """
        create table measured as
        select h.pod_uid,
            sum(sm * share * epoch(least(until_at, to_at, $1) - greatest(sampled_at, from_at))) as used,
            sum(epoch(least(until_at, to_at, $1) - greatest(sampled_at, from_at)) * share)
                filter (sm is not null) as seen
        from holds as h
        inner join cover as c on c.cluster = h.cluster and c.node = h.node and c.gpu_index = h.gpu_index and c.gi = h.gi
            and c.until_at > h.from_at and c.sampled_at < h.to_at
        group by h.pod_uid
        """,
        [world.end_at],
    )
    con.execute(
        """
        create table truth as
        select pod_uid, any_value(team) as team, any_value(shape) as shape, any_value(devices) as devices,
            sum(held_gpu_seconds)::double as held, sum(true_utilized_gpu_seconds)::double as used,
            sum(hidden_gpu_seconds)::double as hidden
        from fleet_truth group by pod_uid
        """
    )
    return con
