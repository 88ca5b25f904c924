-- What each node could give, per extended resource: time-weighted means over the hour, and what was free when it ended.
-- Devices are counted as the node advertises them (a shared GPU counts once per replica).
-- grain: hour, node, resource
-- key: hour, cluster, node, resource
-- inputs: core.gpu_segments, core.gpu_units, core.pod_allocations, core.node_outages
-- invariant: capacity_devices = bound_devices + free_devices + unavailable_devices, to the sixth digit they are rounded to
with units as (
    select * from core.gpu_units where date >= cast($start_at as date) and date < cast($end_at as date)
),
parts as (
    select
        g.date, g.hour, g.cluster, g.node, u.resource, u.accelerator, u.replicas, g.segment_start_at, g.segment_end_at,
        g.holder, coalesce(cast(g.unavailable_us as double) / nullif(g.part_us, 0), 0) as unavailable_share,
        date_diff('microsecond', g.segment_start_at, g.segment_end_at) / 3600000000.0 as hours,
        u.replicas * cast(g.hold_end - g.hold_start as double) / nullif(g.hold_parts, 0) as devices
    from core.gpu_segments as g
    inner join units as u
        on u.date = g.date and u.cluster = g.cluster and u.node = g.node and u.pci_bus_id = g.pci_bus_id
        and u.gi_id is not distinct from g.gi_id
        and u.interval_start_at <= g.segment_start_at and u.interval_end_at >= g.segment_end_at
    where g.date >= cast($start_at as date) and g.date < cast($end_at as date) and u.resource is not null
),
means as (
    select
        date, hour, cluster, node, resource, max(accelerator) as accelerator,
        sum(hours * devices) as capacity_devices,
        sum(case when holder is not null then hours * devices * (1 - unavailable_share) else 0 end) as bound_devices,
        sum(case when holder is null then hours * devices * (1 - unavailable_share) else 0 end) as free_devices,
        sum(hours * devices * unavailable_share) as unavailable_devices,
        max(segment_end_at) as last_at
    from parts
    group by date, hour, cluster, node, resource
),
requests as (
    select
        m.hour, m.cluster, m.node, m.resource,
        sum(
            a.quantity * date_diff(
                'microsecond', greatest(a.interval_start_at, m.hour),
                least(a.interval_end_at, m.hour + interval 1 hour, m.last_at)
            ) / 3600000000.0
        ) as requested_devices
    from means as m
    inner join core.pod_allocations as a
        on a.date = m.date and a.cluster = m.cluster and a.node = m.node and a.resource = m.resource
        and a.interval_start_at < least(m.hour + interval 1 hour, m.last_at) and a.interval_end_at > m.hour
        and a.date >= cast($start_at as date) and a.date < cast($end_at as date)
    group by m.hour, m.cluster, m.node, m.resource
),
shortages as (
    select
        m.hour, m.cluster, m.node, m.resource,
        sum(
            o.devices * date_diff(
                'microsecond', greatest(o.interval_start_at, m.hour), least(o.interval_end_at, m.last_at)
            ) / 3600000000.0
        ) as short_devices
    from means as m
    inner join core.node_outages as o
        on o.date = m.date and o.cluster = m.cluster and o.node = m.node and o.resource = m.resource
        and o.kind = 'unallocatable' and o.interval_start_at < m.last_at and o.interval_end_at > m.hour
        and o.date >= cast($start_at as date) and o.date < cast($end_at as date)
    group by m.hour, m.cluster, m.node, m.resource
),
-- The state at the end of the hour. A node whose evidence ends well before the cluster's has left and gives nothing.
cluster_ends as (
    select hour, cluster, max(last_at) as cluster_last_at from means group by hour, cluster
),
ends as (
    select
        m.hour, m.cluster, m.node, m.resource, m.accelerator,
        cast(floor(sum(case when p.holder is null then p.devices * (1 - p.unavailable_share) else 0 end) + 0.000001) as bigint) as free_at_end,
        cast(floor(sum(p.devices) + 0.000001) as bigint) as devices_at_end
    from means as m
    inner join cluster_ends as c on c.hour = m.hour and c.cluster = m.cluster
    inner join parts as p
        on p.hour = m.hour and p.cluster = m.cluster and p.node = m.node and p.resource = m.resource
        and p.segment_end_at = m.last_at
    where m.last_at >= c.cluster_last_at - interval 10 minute
    group by m.hour, m.cluster, m.node, m.resource, m.accelerator
),
pod_sizes as (
    select distinct hour, cluster, resource, accelerator, free_at_end as pod_size from ends where free_at_end > 0
),
gangs as (
    select
        s.hour, s.cluster, s.resource, s.accelerator, s.pod_size,
        sum(e.free_at_end // nullif(s.pod_size, 0)) * s.pod_size as gang_devices
    from pod_sizes as s
    inner join ends as e
        on e.hour = s.hour and e.cluster = s.cluster and e.resource = s.resource and e.accelerator = s.accelerator
    group by s.hour, s.cluster, s.resource, s.accelerator, s.pod_size
),
pools as (
    select
        hour, cluster, resource, accelerator,
        sum(free_at_end) as free, sum(case when free_at_end = devices_at_end then free_at_end else 0 end) as free_on_empty_nodes
    from ends
    group by hour, cluster, resource, accelerator
)
select
    -- Rounded, so that means do not depend on the order they were summed in.
    m.hour, m.cluster, m.node, m.resource, m.accelerator, round(m.capacity_devices, 6) as capacity_devices,
    round(greatest(m.capacity_devices - coalesce(s.short_devices, 0), 0), 6) as allocatable_devices,
    round(coalesce(r.requested_devices, 0), 6) as requested_devices, round(m.bound_devices, 6) as bound_devices,
    round(m.free_devices, 6) as free_devices, round(m.unavailable_devices, 6) as unavailable_devices,
    coalesce(e.free_at_end, 0) as free_at_end,
    coalesce(e.free_at_end, 0) as largest_gang_devices,
    cast(coalesce(g.gang_devices, 0) as bigint) as largest_gang_in_pool,
    1.0 - cast(p.free_on_empty_nodes as double) / nullif(cast(p.free as double), 0) as fragmentation_ratio,
    m.date
from means as m
left join requests as r on r.hour = m.hour and r.cluster = m.cluster and r.node = m.node and r.resource = m.resource
left join shortages as s on s.hour = m.hour and s.cluster = m.cluster and s.node = m.node and s.resource = m.resource
left join ends as e on e.hour = m.hour and e.cluster = m.cluster and e.node = m.node and e.resource = m.resource
left join gangs as g
    on g.hour = m.hour and g.cluster = m.cluster and g.resource = m.resource and g.accelerator = m.accelerator
    and g.pod_size = e.free_at_end
left join pools as p
    on p.hour = m.hour and p.cluster = m.cluster and p.resource = m.resource and p.accelerator = m.accelerator
