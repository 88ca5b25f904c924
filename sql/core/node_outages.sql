-- Times in which a node, or some of its devices, could not work: not ready, cordoned, or allocatable below capacity.
-- grain: date, node, kind, resource, interval
-- key: date, cluster, node, kind, resource, interval_start_at
-- inputs: raw.kube_nodes, raw.kube_node_resources, core.node_listings
-- invariant: intervals of one node, kind and resource do not overlap
with lists as (
    select
        cluster, node, snapshot_at, ready_status, ready_changed_at, is_unschedulable,
        lag(snapshot_at) over (partition by cluster, node order by snapshot_at) as previous_at,
        lag(ready_status) over (partition by cluster, node order by snapshot_at) as previous_status,
        lead(snapshot_at) over (partition by cluster, node order by snapshot_at) as next_at
    from raw.kube_nodes
    where date >= cast($start_at - interval 2 day as date) and date < cast($end_at + interval 2 day as date)
),
-- A state begins at its lastTransitionTime, but not before the list that still showed the other state.
readiness as (
    select
        cluster, node, ready_status,
        case
            when previous_at is null then least(snapshot_at, coalesce(ready_changed_at, snapshot_at))
            when ready_status is distinct from previous_status
                then least(snapshot_at, greatest(previous_at, coalesce(ready_changed_at, snapshot_at)))
            else snapshot_at
        end as from_at
    from lists
),
ready_spans as (
    select cluster, node, ready_status, from_at, lead(from_at) over (partition by cluster, node order by from_at) as to_at
    from readiness
),
shortages as (
    select
        cluster, node, resource, snapshot_at, greatest(capacity - allocatable, 0) as missing,
        lead(snapshot_at) over (partition by cluster, node, resource order by snapshot_at) as next_at
    from raw.kube_node_resources
    where date >= cast($start_at - interval 2 day as date) and date < cast($end_at + interval 2 day as date)
),
-- What a list said of a node holds until a list without the node.
absences as (
    select distinct cluster, node, absent_at
    from core.node_listings
    where
        date >= cast($start_at - interval 2 day as date) and date < cast($end_at + interval 2 day as date)
        and absent_at is not null
),
spans as (
    select cluster, node, 'not_ready' as kind, '' as resource, from_at, to_at, cast(0 as bigint) as devices
    from ready_spans
    where ready_status is distinct from 'True'
    union all
    select l.cluster, l.node, 'cordoned', '', l.snapshot_at, coalesce(a.absent_at, l.next_at), cast(0 as bigint)
    from lists as l
    left join absences as a
        on a.cluster = l.cluster and a.node = l.node and a.absent_at > l.snapshot_at
        and (l.next_at is null or a.absent_at < l.next_at)
    where l.is_unschedulable
    union all
    select s.cluster, s.node, 'unallocatable', s.resource, s.snapshot_at, coalesce(a.absent_at, s.next_at), s.missing
    from shortages as s
    left join absences as a
        on a.cluster = s.cluster and a.node = s.node and a.absent_at > s.snapshot_at
        and (s.next_at is null or a.absent_at < s.next_at)
    where s.missing > 0
),
-- Adjoining spans of the same kind and size become one.
starts as (
    select
        *,
        case
            when lag(to_at) over (partition by cluster, node, kind, resource, devices order by from_at) = from_at then 0
            else 1
        end as is_start
    from spans
    where from_at < $end_at and (to_at is null or to_at > from_at)
),
numbered as (
    select
        *,
        sum(is_start) over (
            partition by cluster, node, kind, resource, devices order by from_at
            rows between unbounded preceding and current row
        ) as run
    from starts
),
merged as (
    select
        cluster, node, kind, resource, devices, min(from_at) as from_at,
        max(coalesce(to_at, $end_at)) as to_at
    from numbered
    group by cluster, node, kind, resource, devices, run
),
days as (
    select cast(day_at as timestamp) as day_at
    from unnest(generate_series($start_at, $end_at - interval 1 day, interval 1 day)) as d(day_at)
)
select
    cast(d.day_at as date) as date, m.cluster, m.node, m.kind, m.resource, m.devices,
    greatest(m.from_at, d.day_at) as interval_start_at,
    least(m.to_at, d.day_at + interval 1 day) as interval_end_at
from merged as m
inner join days as d on m.from_at < d.day_at + interval 1 day and m.to_at > d.day_at
