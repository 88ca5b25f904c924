-- What can be held, per date: whole devices, MIG instances and the uncarved rest of a cut device, each with its share
-- of the device (ledger rule 6) and the extended resource that Kubernetes knows it by.
-- grain: date, unit (node, pci_bus_id, gi_id), interval
-- key: date, cluster, node, pci_bus_id, gi_id, interval_start_at
-- inputs: core.gpu_inventory, core.mig_layouts
-- invariant: at any instant the shares of a device's units add up to the device
with slots as (
    select * from core.gpu_inventory where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- A date without a sample keeps the layout that the slot last showed.
layout_dates as (
    select s.date, s.cluster, s.node, s.pci_bus_id, max(l.date) as layout_date
    from (select distinct date, cluster, node, pci_bus_id from slots) as s
    inner join core.mig_layouts as l
        on l.cluster = s.cluster and l.node = s.node and l.pci_bus_id = s.pci_bus_id and l.date <= s.date
    group by s.date, s.cluster, s.node, s.pci_bus_id
),
layouts as (
    select
        d.date, l.cluster, l.node, l.pci_bus_id, l.gi_id, l.mig_profile, l.mig_layout, l.slices,
        case when l.date = d.date then l.layout_from_at else cast(d.date as timestamp) end as layout_from_at,
        case when l.date = d.date then l.layout_to_at else cast(d.date as timestamp) + interval 1 day end as layout_to_at
    from layout_dates as d
    inner join core.mig_layouts as l
        on l.cluster = d.cluster and l.node = d.node and l.pci_bus_id = d.pci_bus_id and l.date = d.layout_date
    where l.date = d.date or l.layout_to_at = cast(l.date as timestamp) + interval 1 day
),
cut as (
    select
        v.*, l.gi_id, l.mig_profile, l.mig_layout, l.slices,
        greatest(v.interval_start_at, l.layout_from_at) as unit_start_at,
        least(v.interval_end_at, l.layout_to_at) as unit_end_at
    from slots as v
    left join layouts as l
        on l.date = v.date and l.cluster = v.cluster and l.node = v.node and l.pci_bus_id = v.pci_bus_id
        and l.layout_from_at < v.interval_end_at and l.layout_to_at > v.interval_start_at
),
timed as (
    select
        * exclude (unit_start_at, unit_end_at),
        coalesce(unit_start_at, interval_start_at) as unit_start_at,
        coalesce(unit_end_at, interval_end_at) as unit_end_at,
        case when accelerator like 'A30%' then 4 else 7 end as model_slices
    from cut
),
placed as (
    select
        *,
        sum(slices) over (
            partition by date, cluster, node, pci_bus_id, unit_start_at order by gi_id
            rows between unbounded preceding and current row
        ) as slices_until,
        sum(slices) over (partition by date, cluster, node, pci_bus_id, unit_start_at) as slices_used
    from timed
),
units as (
    select
        date, cluster, node, pci_bus_id, gi_id, unit_start_at, unit_end_at, mig_profile, mig_layout, slices,
        slices_until - slices as share_start, slices_until as share_end,
        greatest(model_slices, slices_used) as share_parts, false as is_uncarved
    from placed
    where gi_id is not null
    union all
    select
        date, cluster, node, pci_bus_id, cast(null as bigint), unit_start_at, unit_end_at, cast(null as varchar),
        mig_layout, cast(max(model_slices - slices_used) as bigint), max(slices_used), max(model_slices), max(model_slices), true
    from placed
    where gi_id is not null and slices_used < model_slices
    group by date, cluster, node, pci_bus_id, unit_start_at, unit_end_at, mig_layout
    union all
    select
        date, cluster, node, pci_bus_id, cast(null as bigint), unit_start_at, unit_end_at, cast(null as varchar),
        cast(null as varchar), cast(null as bigint), 0, 1, 1, false
    from placed
    where gi_id is null
)
select
    u.date, u.cluster, u.node, u.pci_bus_id, u.gi_id, u.unit_start_at as interval_start_at,
    u.unit_end_at as interval_end_at, u.mig_profile, u.mig_layout, u.slices,
    cast(u.share_start as bigint) as share_start, cast(u.share_end as bigint) as share_end,
    cast(u.share_parts as bigint) as share_parts, u.is_uncarved,
    case
        when u.is_uncarved then null
        when u.mig_profile is not null and (v.resource is null or v.has_mig_resources)
            then 'nvidia.com/mig-' || replace(u.mig_profile, '+', '.')
        else coalesce(v.resource, 'nvidia.com/gpu')
    end as resource,
    v.replicas, v.gpu_uuid, v.model, v.accelerator, v.provider, v.region, v.zone, v.instance_type, v.is_unseen
from units as u
inner join slots as v
    on v.date = u.date and v.cluster = u.cluster and v.node = u.node and v.pci_bus_id = u.pci_bus_id
    and u.unit_start_at >= v.interval_start_at and u.unit_end_at <= v.interval_end_at
where u.unit_end_at > u.unit_start_at
