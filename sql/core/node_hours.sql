-- Which nodes there were in each hour and for how long, nodes without accelerators too. node_finished_at is told on the
-- date it falls on and the one before.
-- grain: hour, node object
-- key: date, hour, cluster, node, node_uid
-- inputs: core.node_lives
-- invariant: 0 < running_us <= 3600000000; over the objects of one name an hour has no more than that in all
with hours as (
    select hour_at from unnest(generate_series($start_at, $end_at - interval 1 hour, interval 1 hour)) as h(hour_at)
)
select
    n.date, h.hour_at as hour, n.cluster, n.node, n.node_uid, n.resource_id, n.provider, n.region, n.zone, n.instance_type,
    n.accelerator, n.gpu_count, n.capacity_type, n.cpu_milli, n.memory_bytes, n.created_at, n.node_finished_at,
    date_diff(
        'microsecond', greatest(n.interval_start_at, h.hour_at), least(n.interval_end_at, h.hour_at + interval 1 hour)
    ) as running_us,
    n.owner_team
from core.node_lives as n
inner join hours as h
    on cast(h.hour_at as date) = n.date and n.interval_start_at < h.hour_at + interval 1 hour
    and n.interval_end_at > h.hour_at
where n.date >= cast($start_at as date) and n.date < cast($end_at as date)
