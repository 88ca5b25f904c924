-- The time each node object was there, per date, and what the API server last said of it. An object is a name with its
-- uid (without one: its creation time), so a name that is used again is another object. It is there from its creation
-- to the first complete node list without it, at the open end to its last list and one usual spacing of that date's
-- lists. One that comes back under the same uid ran through: lists may be missing for up to 48 hours. Time before the
-- first list that shows an object counts for up to 48 hours, on dates that have lists or follow them within two days.
-- A name stands for one object at a time: the older one ends at the creation of the newer.
-- A row depends on lists of its date and of two dates on either side, so a build of one date gives what a build of many
-- does; started_at and finished_at tell those dates, cut to the life, for the dates a change of the row touches.
-- grain: date, node object
-- key: date, cluster, node, node_uid
-- inputs: raw.kube_nodes, raw.kube_node_resources, raw.kube_snapshots
-- invariant: rows of one node and date do not overlap
with listed as (
    select
        cluster, node, coalesce(node_uid, cast(created_at as varchar), '(unknown)') as node_uid, date,
        min(snapshot_at) as first_seen_at, max(snapshot_at) as last_seen_at, min(created_at) as created_at
    from raw.kube_nodes
    where date >= cast($start_at - interval 2 day as date) and date < cast($end_at + interval 2 day as date)
    group by cluster, node, coalesce(node_uid, cast(created_at as varchar), '(unknown)'), date
),
lists as (
    select
        cluster, date, snapshot_at, is_complete,
        date_diff(
            'microsecond', lag(snapshot_at) over (partition by cluster, date, is_complete order by snapshot_at), snapshot_at
        ) as spacing_us
    from raw.kube_snapshots
    where
        date >= cast($start_at - interval 2 day as date) and date < cast($end_at + interval 2 day as date) and kind = 'Node'
),
spacings as (
    select cluster, date, cast(floor(coalesce(median(spacing_us), 300000000)) as bigint) as spacing_us
    from lists
    where is_complete
    group by cluster, date
),
days as (
    select cast(day_at as timestamp) as day_at
    from unnest(generate_series($start_at, $end_at - interval 1 day, interval 1 day)) as d(day_at)
),
-- Dates on which a cluster had lists, or had them up to two days before.
known as (
    select distinct d.day_at, l.cluster
    from days as d
    inner join (select distinct cluster, date from lists) as l
        on l.date >= cast(d.day_at - interval 2 day as date) and l.date <= cast(d.day_at as date)
),
-- What the lists around a date show of an object: the last before it, those of it, the first after it.
around as (
    select
        d.day_at, s.cluster, s.node, s.node_uid, min(s.created_at) as created_at,
        max(case when s.date < cast(d.day_at as date) then s.last_seen_at end) as previous_at,
        max(case when s.date = cast(d.day_at as date) then s.first_seen_at end) as first_at,
        max(case when s.date = cast(d.day_at as date) then s.last_seen_at end) as last_at,
        min(case when s.date > cast(d.day_at as date) then s.first_seen_at end) as next_at,
        min(s.first_seen_at) as earliest_at, max(s.last_seen_at) as latest_at
    from days as d
    inner join listed as s
        on s.date >= cast(d.day_at - interval 2 day as date) and s.date <= cast(d.day_at + interval 2 day as date)
    group by d.day_at, s.cluster, s.node, s.node_uid
),
neighbours as (
    select
        *,
        max(latest_at) over (
            partition by day_at, cluster, node order by earliest_at, node_uid
            rows between unbounded preceding and 1 preceding
        ) as predecessor_at,
        lead(coalesce(least(created_at, earliest_at), earliest_at)) over (
            partition by day_at, cluster, node order by earliest_at, node_uid
        ) as successor_at
    from around
),
-- The first complete list after the last that shows the object, if no more than 48 hours later.
horizons as (
    select d.day_at, l.cluster, max(l.snapshot_at) as newest_at
    from days as d
    inner join lists as l
        on l.date >= cast(d.day_at - interval 2 day as date) and l.date <= cast(d.day_at + interval 2 day as date)
    where l.is_complete
    group by d.day_at, l.cluster
),
leaving as (
    select a.day_at, a.cluster, a.node, a.node_uid, a.latest_at, h.newest_at
    from around as a
    inner join horizons as h on h.day_at = a.day_at and h.cluster = a.cluster and h.newest_at > a.latest_at
),
absences as (
    select a.day_at, a.cluster, a.node, a.node_uid, min(l.snapshot_at) as absent_at
    from leaving as a
    inner join lists as l
        on l.cluster = a.cluster and l.is_complete and l.snapshot_at > a.latest_at
        and l.snapshot_at <= least(a.latest_at + interval 48 hour, a.newest_at)
    group by a.day_at, a.cluster, a.node, a.node_uid
),
-- When the object was gone after the last list that shows it.
ends as (
    select
        n.day_at, n.cluster, n.node, n.node_uid, n.created_at, n.previous_at, n.first_at, n.last_at, n.next_at,
        n.predecessor_at,
        case
            when n.successor_at is not null
                then greatest(n.latest_at, least(n.successor_at, coalesce(b.absent_at, n.successor_at)))
            else b.absent_at
        end as gone_at,
        coalesce(n.last_at, n.previous_at) + coalesce(p.spacing_us, 300000000) * interval 1 microsecond as open_end_at
    from neighbours as n
    left join absences as b
        on b.day_at = n.day_at and b.cluster = n.cluster and b.node = n.node and b.node_uid = n.node_uid
    left join spacings as p
        on p.cluster = n.cluster and p.date = cast(coalesce(n.last_at, n.previous_at) as date)
),
spans as (
    select
        e.*,
        -- Lists that show two objects of one name in turn leave it to the older until its last.
        greatest(
            case
                when previous_at is not null and (first_at is null or previous_at >= first_at - interval 48 hour)
                    then e.day_at
                when previous_at is not null then first_at
                else greatest(
                    coalesce(least(created_at, first_at, next_at), first_at, next_at),
                    coalesce(first_at, next_at) - interval 48 hour, e.day_at
                )
            end,
            coalesce(predecessor_at, e.day_at)
        ) as from_at,
        case
            when next_at is not null and next_at <= coalesce(last_at, previous_at, next_at) + interval 48 hour
                then e.day_at + interval 1 day
            when next_at is not null then open_end_at
            else coalesce(gone_at, open_end_at)
        end as to_at
    from ends as e
    inner join known as k on k.day_at = e.day_at and k.cluster = e.cluster
),
-- Of which list the description is taken: the newest of the date, else of those before, else the first after.
told as (
    select
        *, coalesce(last_at, previous_at, next_at) as told_at
    from spans
    where from_at < least(to_at, day_at + interval 1 day)
),
resources as (
    select
        cluster, snapshot_at, node,
        max(case when resource not like '%/mig-%' then capacity end) as whole_devices,
        sum(case
            when resource like '%/mig-%'
                then capacity * try_cast(split_part(split_part(resource, '/mig-', 2), 'g.', 1) as smallint)
        end) as mig_slices
    from raw.kube_node_resources
    where
        date >= cast($start_at - interval 2 day as date) and date < cast($end_at + interval 2 day as date)
        -- No node has more; beyond, sums of slices might not fit.
        and capacity > 0 and capacity <= 100000
        and (
            resource like '%/gpu%' or resource like '%/mig-%' or resource like 'gpu.intel.com/%'
            or resource in ('google.com/tpu', 'aws.amazon.com/neuron', 'habana.ai/gaudi')
        )
    group by cluster, snapshot_at, node
),
described as (
    select
        t.day_at, t.cluster, t.node, t.node_uid, t.created_at, t.from_at, t.to_at, t.gone_at, t.next_at,
        r.provider_id, r.cpu_milli, r.memory_bytes, r.labels, d.whole_devices, d.mig_slices,
        coalesce(r.labels['nvidia.com/gpu.product'], r.labels['cloud.google.com/gke-tpu-accelerator']) as product,
        cast(try_cast(r.labels['nvidia.com/gpu.count'] as smallint) as bigint) as labelled_devices,
        cast(try_cast(r.labels['nvidia.com/gpu.replicas'] as smallint) as bigint) as labelled_replicas,
        r.labels['nvidia.com/mig.strategy'] as mig_strategy,
        lower(coalesce(r.labels['karpenter.sh/capacity-type'], r.labels['eks.amazonaws.com/capacityType'])) as said_capacity_type
    from told as t
    inner join raw.kube_nodes as r
        on r.cluster = t.cluster and r.node = t.node and r.snapshot_at = t.told_at
        and r.date >= cast($start_at - interval 2 day as date) and r.date < cast($end_at + interval 2 day as date)
    left join resources as d on d.cluster = t.cluster and d.node = t.node and d.snapshot_at = t.told_at
),
counted as (
    select
        *,
        case
            -- Under this strategy the label counts instances, whose slices the product names: A100-MIG-1g.5gb.
            when mig_strategy = 'single' and product like '%MIG-%'
                then try_cast(split_part(split_part(product, 'MIG-', 2), 'g.', 1) as smallint)
                    * coalesce(labelled_devices, whole_devices)
            when labelled_devices is null then mig_slices
        end as slices,
        -- A device has seven compute slices, an A30 four.
        case when product like '%A30%' then 4 else 7 end as slices_of_device
    from described
)
select
    cast(day_at as date) as date, cluster, node, node_uid,
    greatest(least(coalesce(created_at, from_at), from_at), day_at - interval 2 day) as started_at,
    least(coalesce(gone_at, day_at + interval 2 day), day_at + interval 2 day) as finished_at,
    from_at as interval_start_at, least(to_at, day_at + interval 1 day) as interval_end_at, created_at,
    case when gone_at <= day_at + interval 2 day then gone_at end as node_finished_at,
    coalesce(provider_id, cluster || '/' || node) as resource_id,
    coalesce(labels['strandline.io/provider'], nullif(split_part(provider_id, ':', 1), '')) as provider,
    coalesce(labels['topology.kubernetes.io/region'], labels['failure-domain.beta.kubernetes.io/region']) as region,
    coalesce(labels['topology.kubernetes.io/zone'], labels['failure-domain.beta.kubernetes.io/zone']) as zone,
    coalesce(labels['node.kubernetes.io/instance-type'], labels['beta.kubernetes.io/instance-type']) as instance_type,
    -- The card's name, without what the label adds of its sharing.
    nullif(
        split_part(split_part(
            replace(replace(replace(replace(product, ' ', '-'), 'NVIDIA-', ''), 'Tesla-', ''), 'tpu-', 'TPU-'), '-SHARED', 1
        ), '-MIG-', 1),
        ''
    ) as accelerator,
    case
        when slices > 0
            then (slices + slices_of_device - 1) // nullif(slices_of_device, 0)
                + case when mig_strategy is not distinct from 'single' then 0 else coalesce(whole_devices, 0) end
        when labelled_devices > 0 then labelled_devices
        when labelled_replicas > 1 then coalesce(whole_devices // nullif(labelled_replicas, 0), 0)
        else coalesce(whole_devices, 0)
    end as gpu_count,
    case
        when
            said_capacity_type = 'spot' or labels['cloud.google.com/gke-spot'] = 'true'
            or labels['cloud.google.com/gke-preemptible'] = 'true' or labels['kubernetes.azure.com/scalesetpriority'] = 'spot'
            then 'spot'
        when said_capacity_type in ('reserved', 'capacity_block') then 'reserved'
        else 'on-demand'
    end as capacity_type,
    cpu_milli, memory_bytes, labels['strandline.io/owner'] as owner_team
from counted
