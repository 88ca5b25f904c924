-- table: mart.gpu_ledger_hourly
-- The ledger's proof: capacity is recomputed from the inventory, allocated and held-unavailable time from the device
-- assignments, unobserved time from held time that no sample covers. None of it uses the ledger's own columns or the
-- segments it was made from. Times agree to a millisecond (shares are dealt in whole microseconds), parts to the last
-- digit, and none is negative.
with hours as (
    select hour_at from unnest(generate_series($start_at, $end_at - interval 1 hour, interval 1 hour)) as h(hour_at)
),
ledger as (
    select * from mart.gpu_ledger_hourly where date >= cast($start_at as date) and date < cast($end_at as date)
),
inventory as (
    select
        h.hour_at as hour, v.cluster, v.node, v.pci_bus_id,
        sum(date_diff(
            'microsecond', greatest(v.interval_start_at, h.hour_at), least(v.interval_end_at, h.hour_at + interval 1 hour)
        )) / 1000000.0 as expected
    from core.gpu_inventory as v
    inner join hours as h on v.interval_start_at < h.hour_at + interval 1 hour and v.interval_end_at > h.hour_at
    where v.date >= cast($start_at as date) and v.date < cast($end_at as date)
    group by h.hour_at, v.cluster, v.node, v.pci_bus_id
),
capacity as (
    select hour, cluster, node, pci_bus_id, cast(sum(capacity_gpu_seconds) as double) as found
    from ledger
    group by hour, cluster, node, pci_bus_id
),
holds as (
    select
        a.cluster, a.node, a.pci_bus_id, a.gi_id, a.pod_uid, a.date,
        greatest(a.interval_start_at, u.interval_start_at) as from_at, least(a.interval_end_at, u.interval_end_at) as to_at,
        cast(a.parts as double) / nullif(a.of_parts, 0)
            * cast(u.share_end - u.share_start as double) / nullif(u.share_parts, 0) as share
    from core.device_assignments as a
    inner join core.gpu_units as u
        on u.date = a.date and u.cluster = a.cluster and u.node = a.node and u.pci_bus_id = a.pci_bus_id
        and u.gi_id is not distinct from a.gi_id and not u.is_uncarved
        and u.interval_start_at < a.interval_end_at and u.interval_end_at > a.interval_start_at
    where a.date >= cast($start_at as date) and a.date < cast($end_at as date)
),
held as (
    select
        x.hour_at as hour, h.cluster, h.node, h.pci_bus_id, h.gi_id, h.pod_uid,
        sum(
            h.share * date_diff('microsecond', greatest(h.from_at, x.hour_at), least(h.to_at, x.hour_at + interval 1 hour))
        ) / 1000000.0 as expected
    from holds as h
    inner join hours as x on h.from_at < x.hour_at + interval 1 hour and h.to_at > x.hour_at
    group by x.hour_at, h.cluster, h.node, h.pci_bus_id, h.gi_id, h.pod_uid
),
-- Covered held time, hour by hour; a sample may stand over the turn of one hour.
standing as (
    select cluster, node, pci_bus_id, gi_id, sampled_at, covers_until_at
    from core.gpu_samples
    where
        date >= cast($start_at - interval 1 day as date) and date < cast($end_at as date)
        and util_ratio is not null and covers_until_at > $start_at
    union all
    select cluster, node, pci_bus_id, gi_id, resumes_at, resumes_until_at
    from core.gpu_samples
    where
        date >= cast($start_at - interval 1 day as date) and date < cast($end_at as date)
        and util_ratio is not null and resumes_until_at > $start_at
),
hourly as (
    select *, date_trunc('hour', sampled_at) as hour from standing
    union all
    select *, date_trunc('hour', covers_until_at - interval 1 microsecond)
    from standing
    where date_trunc('hour', covers_until_at - interval 1 microsecond) > date_trunc('hour', sampled_at)
),
hold_hours as (
    select x.hour_at as hour, h.*
    from holds as h
    inner join hours as x on h.from_at < x.hour_at + interval 1 hour and h.to_at > x.hour_at
),
covered as (
    select
        h.hour, h.cluster, h.node, h.pci_bus_id, h.gi_id, h.pod_uid,
        sum(h.share * date_diff(
            'microsecond', greatest(h.from_at, s.sampled_at, h.hour),
            least(h.to_at, s.covers_until_at, h.hour + interval 1 hour)
        )) / 1000000.0 as expected
    from hold_hours as h
    inner join hourly as s
        on s.cluster = h.cluster and s.node = h.node and s.pci_bus_id = h.pci_bus_id
        and s.gi_id is not distinct from h.gi_id and s.hour = h.hour
        and s.sampled_at < h.to_at and s.covers_until_at > h.from_at
        and s.covers_until_at > h.hour and s.sampled_at < h.hour + interval 1 hour
    group by h.hour, h.cluster, h.node, h.pci_bus_id, h.gi_id, h.pod_uid
)
select 'capacity differs from the inventory' as what, c.hour, c.cluster, c.node, c.pci_bus_id, cast(null as varchar) as holder, c.found, i.expected
from capacity as c
full outer join inventory as i
    on i.hour = c.hour and i.cluster = c.cluster and i.node = c.node and i.pci_bus_id = c.pci_bus_id
where abs(coalesce(c.found, 0) - coalesce(i.expected, 0)) > 0.000001
union all
select
    'held time differs from the assignments', coalesce(l.hour, h.hour), coalesce(l.cluster, h.cluster), coalesce(l.node, h.node),
    coalesce(l.pci_bus_id, h.pci_bus_id), coalesce(l.holder, h.pod_uid),
    cast(l.allocated_gpu_seconds + l.unavailable_gpu_seconds as double), h.expected
from (select * from ledger where holder is not null) as l
full outer join held as h
    on h.hour = l.hour and h.cluster = l.cluster and h.node = l.node and h.pci_bus_id = l.pci_bus_id
    and h.gi_id is not distinct from l.gi_id and h.pod_uid = l.holder
where abs(coalesce(cast(l.allocated_gpu_seconds + l.unavailable_gpu_seconds as double), 0) - coalesce(h.expected, 0)) > 0.001
union all
select
    'unobserved differs from uncovered held time', l.hour, l.cluster, l.node, l.pci_bus_id, l.holder,
    cast(l.unobserved_gpu_seconds as double), h.expected - coalesce(c.expected, 0)
from ledger as l
inner join held as h
    on h.hour = l.hour and h.cluster = l.cluster and h.node = l.node and h.pci_bus_id = l.pci_bus_id
    and h.gi_id is not distinct from l.gi_id and h.pod_uid = l.holder
left join covered as c
    on c.hour = l.hour and c.cluster = l.cluster and c.node = l.node and c.pci_bus_id = l.pci_bus_id
    and c.gi_id is not distinct from l.gi_id and c.pod_uid = l.holder
where
    case
        when l.unavailable_gpu_seconds = 0
            then abs(cast(l.unobserved_gpu_seconds as double) - (h.expected - coalesce(c.expected, 0))) > 0.001
        -- Where part of the hold could not work, covers inside and outside of that part are not told apart here.
        else cast(l.unobserved_gpu_seconds as double) > h.expected - cast(l.unavailable_gpu_seconds as double) + 0.001
    end
union all
select
    'parts do not add up or are negative', hour, cluster, node, pci_bus_id, holder,
    cast(allocated_gpu_seconds + unallocated_gpu_seconds + unavailable_gpu_seconds as double), cast(capacity_gpu_seconds as double)
from ledger
where
    capacity_gpu_seconds <> allocated_gpu_seconds + unallocated_gpu_seconds + unavailable_gpu_seconds
    or allocated_gpu_seconds <> utilized_gpu_seconds + stranded_gpu_seconds + unobserved_gpu_seconds
    or least(
        capacity_gpu_seconds, allocated_gpu_seconds, unallocated_gpu_seconds, unavailable_gpu_seconds, utilized_gpu_seconds,
        stranded_gpu_seconds, unobserved_gpu_seconds, resident_gpu_seconds, rogue_gpu_seconds
    ) < 0
