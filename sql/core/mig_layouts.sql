-- How a GPU was cut into MIG instances, per date: runs of scrapes that show the same instances. A set of instances
-- that shows for less than five minutes between two equal ones is a scrape with rows missing, not another layout.
-- grain: date, slot (node, pci_bus_id), layout, instance (null where the run shows the whole device)
-- key: date, cluster, node, pci_bus_id, layout_from_at, gi_id
-- inputs: core.gpu_samples
-- invariant: runs of one slot follow each other without a gap
with cut_slots as (
    select distinct cluster, node, pci_bus_id
    from core.gpu_samples
    where
        gi_id is not null
        and date >= cast($start_at - interval 1 day as date) and date < cast($end_at + interval 1 day as date)
        and sampled_at >= $start_at - interval 1 hour and sampled_at < $end_at + interval 1 hour
),
shown as (
    select s.cluster, s.node, s.pci_bus_id, s.sampled_at, s.gi_id, s.mig_profile
    from core.gpu_samples as s
    inner join cut_slots as c on c.cluster = s.cluster and c.node = s.node and c.pci_bus_id = s.pci_bus_id
    where
        s.date >= cast($start_at - interval 1 day as date) and s.date < cast($end_at + interval 1 day as date)
        and s.sampled_at >= $start_at - interval 1 hour and s.sampled_at < $end_at + interval 1 hour
),
scrapes as (
    select
        cluster, node, pci_bus_id, sampled_at,
        coalesce(string_agg(cast(gi_id as varchar) || ':' || coalesce(mig_profile, ''), ',' order by gi_id), '') as layout
    from shown
    group by cluster, node, pci_bus_id, sampled_at
),
changes as (
    select
        *,
        case when lag(layout) over (partition by cluster, node, pci_bus_id order by sampled_at) = layout then 0 else 1 end
            as is_change
    from scrapes
),
runs as (
    select
        *,
        sum(is_change) over (
            partition by cluster, node, pci_bus_id order by sampled_at rows between unbounded preceding and current row
        ) as run
    from changes
),
spans as (
    select cluster, node, pci_bus_id, run, max(layout) as layout, min(sampled_at) as from_at
    from runs
    group by cluster, node, pci_bus_id, run
),
neighbours as (
    select
        *,
        lead(from_at) over (partition by cluster, node, pci_bus_id order by from_at) as to_at,
        lag(layout) over (partition by cluster, node, pci_bus_id order by from_at) as previous_layout,
        lead(layout) over (partition by cluster, node, pci_bus_id order by from_at) as next_layout
    from spans
),
kept as (
    select
        cluster, node, pci_bus_id, layout, from_at,
        case when lag(layout) over (partition by cluster, node, pci_bus_id order by from_at) = layout then 0 else 1 end
            as is_change
    from neighbours
    where
        previous_layout is null or next_layout is null or previous_layout <> next_layout
        or date_diff('microsecond', from_at, to_at) >= 300000000
),
layouts as (
    select
        cluster, node, pci_bus_id, layout, from_at,
        lead(from_at) over (partition by cluster, node, pci_bus_id order by from_at) as to_at,
        lag(from_at) over (partition by cluster, node, pci_bus_id order by from_at) is null as is_first
    from kept
    where is_change = 1
),
days as (
    select cast(day_at as timestamp) as day_at
    from unnest(generate_series($start_at, $end_at - interval 1 day, interval 1 day)) as d(day_at)
),
dated as (
    select
        cast(d.day_at as date) as date, l.cluster, l.node, l.pci_bus_id, l.layout,
        case when l.is_first then d.day_at else greatest(l.from_at, d.day_at) end as layout_from_at,
        least(coalesce(l.to_at, d.day_at + interval 1 day), d.day_at + interval 1 day) as layout_to_at
    from layouts as l
    inner join days as d
        on (l.from_at < d.day_at + interval 1 day or l.is_first) and (l.to_at is null or l.to_at > d.day_at)
),
instances as (
    select cluster, node, pci_bus_id, layout, gi_id, max(mig_profile) as mig_profile
    from (
        select r.cluster, r.node, r.pci_bus_id, r.layout, s.gi_id, s.mig_profile
        from runs as r
        inner join shown as s
            on s.cluster = r.cluster and s.node = r.node and s.pci_bus_id = r.pci_bus_id and s.sampled_at = r.sampled_at
        where r.is_change = 1
    ) as first_of_run
    where gi_id is not null or layout = ''
    group by cluster, node, pci_bus_id, layout, gi_id
)
select
    d.date, d.cluster, d.node, d.pci_bus_id, d.layout_from_at, d.layout_to_at, i.gi_id, i.mig_profile,
    coalesce(try_cast(split_part(i.mig_profile, 'g.', 1) as bigint), 0) as slices,
    nullif(d.layout, '') as mig_layout
from dated as d
inner join instances as i
    on i.cluster = d.cluster and i.node = d.node and i.pci_bus_id = d.pci_bus_id and i.layout = d.layout
