"""Quantities: what the hours of a node come to under a price's metering.

A run is one node object's life from its creation. Units of `metering_s` begin at the creation; a unit is charged in
the hour in which it begins. `up`: every begun unit counts; `nearest`: one that at least half passed; `none`: exact
microseconds. What the minimum adds is charged in the hour of the run's end. Hours of clocks do not matter: all is UTC.
Quantities are rounded half up at 1e-9 of the run's sum, so that the hours of a run add up to it.

The first hours of a lake know a node's presence but not since which instant of the hour: its time is taken to start
with the hour there. Belongs here: time to quantities. Not here: prices.
"""

from __future__ import annotations

import duckdb

# Times in microseconds, units as HUGEINT: microseconds x bytes of memory x 10 exceeds 64 bits.
# phase: where units begin; from_us, to_us: presence in the hour; end_us: the run's end where it is known.
_METER = """
create or replace temp table metered as
with present as (
    select
        n.node_row, n.date, k.kind_id, n.gpu_count, n.cpu_milli, n.memory_bytes, n.running_us,
        epoch_us(n.hour) as hour_us, epoch_us(n.node_finished_at) as finished_us,
        case when epoch_us(n.created_at) < epoch_us(n.hour) + 3600000000 then epoch_us(n.created_at) end as began_us,
        coalesce(n.capacity_type, '') = 'reserved' as is_reserved
    from node_hours as n
    inner join kinds as k
        on n.provider is not distinct from k.provider and n.region is not distinct from k.region
        and n.instance_type is not distinct from k.instance_type and n.accelerator is not distinct from k.accelerator
        and (coalesce(n.capacity_type, '') = 'spot') = k.is_spot
    where n.running_us > 0
),
bounded as (
    select
        p.*, coalesce(p.began_us, p.hour_us) as phase_us, greatest(coalesce(p.began_us, 0), p.hour_us) as from_us,
        least(greatest(coalesce(p.began_us, 0), p.hour_us) + p.running_us, p.hour_us + 3600000000) as to_us,
        case when p.finished_us > coalesce(p.began_us, p.hour_us) then p.finished_us end as end_us
    from present as p
),
priced as (
    select
        b.*, s.rate_id, s.n, r.unit_us, r.minimum_us, r.rounding,
        cast(case r.pricing_unit
            when 'Hours' then 1
            when 'GPU-Hours' then b.gpu_count
            when 'vCPU-Hours' then b.cpu_milli
            else b.memory_bytes
        end as hugeint) as factor,
        cast(case r.pricing_unit when 'vCPU-Hours' then 1000 when 'GiB-Hours' then 1073741824 else 1 end as hugeint)
            as divisor
    from bounded as b
    inner join segments as s on b.kind_id = s.kind_id and b.hour_us >= s.from_us and b.hour_us < s.to_us
    inner join rates as r on s.rate_id = r.rate_id
),
counted as (
    select
        p.*,
        (p.from_us - p.phase_us + p.unit_us - 1) // p.unit_us as begun_before,
        (p.to_us - p.phase_us + p.unit_us - 1) // p.unit_us as begun_until,
        -- of a run whose end is not known yet every begun unit counts; greatest() would skip the null
        case when p.end_us is not null then greatest(
            case
                when p.rounding = 'nearest' then (2 * (p.end_us - p.phase_us) + p.unit_us) // (2 * p.unit_us)
                else (p.end_us - p.phase_us + p.unit_us - 1) // p.unit_us
            end,
            (p.minimum_us + p.unit_us - 1) // p.unit_us
        ) end as charged_units,
        coalesce(p.end_us > p.hour_us and p.end_us <= p.hour_us + 3600000000, false) as is_last
    from priced as p
),
spans as (
    select
        c.*,
        least(c.begun_before, coalesce(c.charged_units, c.begun_before)) * c.unit_us as charged_before,
        case when c.is_last then c.charged_units else least(c.begun_until, coalesce(c.charged_units, c.begun_until)) end
            * c.unit_us as charged_until
    from counted as c
)
select
    4 * s.node_row + s.n as row_id, s.node_row, s.n, s.date, s.hour_us, s.kind_id, s.rate_id, s.gpu_count,
    s.is_reserved, s.factor is null as is_unmeasured,
    -- microseconds x factor x 1e9 / (3.6e9 x divisor), half up
    cast(coalesce(
        (10 * s.charged_until * s.factor + 18 * s.divisor) // (36 * s.divisor)
        - (10 * s.charged_before * s.factor + 18 * s.divisor) // (36 * s.divisor), 0
    ) as bigint) as quantity,
    cast(coalesce(
        (10 * (s.to_us - s.phase_us) * s.factor + 18 * s.divisor) // (36 * s.divisor)
        - (10 * (s.from_us - s.phase_us) * s.factor + 18 * s.divisor) // (36 * s.divisor), 0
    ) as bigint) as consumed
from spans as s
"""


def meter(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill the temporary table `metered` from the relations node_hours, kinds, segments and rates.

    One row per node-hour and price: quantity and consumed in 1e-9 of the pricing unit; consumed is the presence
    itself, quantity what metering makes of it. Where the node's count of what is priced is unknown, both are 0 and
    `is_unmeasured` says so. node_hours are numbered by `node_row` in the order of hour and resource; `row_id` keeps
    that order (a node-hour has four prices at most, one for each pricing unit).
    """
    connection.execute(_METER)
