-- The GPU-second ledger: what became of every second of every GPU, by who held it.
-- grain: hour, unit (node, pci_bus_id, gi_id), holder (null: nobody)
-- key: hour, cluster, node, pci_bus_id, gi_id, holder
-- inputs: core.gpu_segments, core.gpu_samples, core.gpu_units, core.pod_allocations, raw.kube_snapshots
-- invariant: capacity = allocated + unallocated + unavailable; allocated = utilized + stranded + unobserved
with segments as (
    select * from core.gpu_segments where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- Samples before the window stand into it, and one that stands over the turn of an hour counts in both. The table is
-- read several times on purpose: kept in memory once, it would be the largest thing here.
resumed as (
    select
        cluster, node, pci_bus_id, gi_id, resumes_at as sampled_at, resumes_until_at as covers_until_at,
        util_ratio, util_source, coalesce(gpu_util_ratio, 0) as resident_ratio
    from core.gpu_samples
    where
        date >= cast($start_at - interval 1 day as date) and date < cast($end_at as date)
        and resumes_until_at > $start_at and util_source is not null
),
hourly as (
    select
        cluster, node, pci_bus_id, gi_id, date_trunc('hour', sampled_at) as hour, sampled_at, covers_until_at,
        util_ratio, util_source, resident_ratio
    from resumed
    union all
    select
        cluster, node, pci_bus_id, gi_id, date_trunc('hour', covers_until_at - interval 1 microsecond) as hour,
        sampled_at, covers_until_at, util_ratio, util_source, resident_ratio
    from resumed
    where date_trunc('hour', covers_until_at - interval 1 microsecond) > date_trunc('hour', sampled_at)
    union all
    select
        cluster, node, pci_bus_id, gi_id, date_trunc('hour', sampled_at) as hour, sampled_at, covers_until_at,
        util_ratio, util_source, coalesce(gpu_util_ratio, 0) as resident_ratio
    from core.gpu_samples
    where
        date >= cast($start_at as date) and date < cast($end_at as date) and util_source is not null
    union all
    select
        cluster, node, pci_bus_id, gi_id, date_trunc('hour', covers_until_at - interval 1 microsecond) as hour,
        sampled_at, covers_until_at, util_ratio, util_source, coalesce(gpu_util_ratio, 0) as resident_ratio
    from core.gpu_samples
    where
        date >= cast($start_at - interval 1 day as date) and date < cast($end_at as date)
        and covers_until_at > $start_at and util_source is not null
        and date_trunc('hour', covers_until_at - interval 1 microsecond) > date_trunc('hour', sampled_at)
),
spans as (
    select distinct cluster, node, pci_bus_id, gi_id, hour, segment_start_at, segment_end_at
    from segments
    where not is_uncarved
),
observed as (
    select
        g.cluster, g.node, g.pci_bus_id, g.gi_id, g.segment_start_at,
        date_diff('microsecond', greatest(g.segment_start_at, s.sampled_at), least(g.segment_end_at, s.covers_until_at))
            as covered_us,
        s.util_ratio, s.resident_ratio, s.util_source
    from hourly as s
    inner join spans as g
        on g.cluster = s.cluster and g.node = s.node and g.pci_bus_id = s.pci_bus_id
        and g.gi_id is not distinct from s.gi_id and g.hour = s.hour
        and g.segment_start_at < s.covers_until_at and g.segment_end_at > s.sampled_at
),
sums as (
    select
        cluster, node, pci_bus_id, gi_id, segment_start_at,
        -- In whole billionths of a microsecond: a sum of integers does not depend on the order it is made in.
        sum(covered_us) as covered_us,
        cast(sum(covered_us * cast(floor(util_ratio * 1000000000 + 0.5) as bigint)) as double) / 1000000000
            as utilized_us,
        cast(sum(covered_us * cast(floor(resident_ratio * 1000000000 + 0.5) as bigint)) as double) / 1000000000
            as resident_us,
        sum(case when util_source = 'sm_active' then covered_us else 0 end) as sm_us,
        sum(case when util_source = 'gr_engine' then covered_us else 0 end) as gr_us,
        sum(case when util_source = 'gr_engine_scaled' then covered_us else 0 end) as scaled_us,
        sum(case when util_source = 'gpu_util' then covered_us else 0 end) as gpu_util_us
    from observed
    group by cluster, node, pci_bus_id, gi_id, segment_start_at
),
parts as (
    select
        g.*,
        date_diff('microsecond', g.segment_start_at, g.segment_end_at) as device_us,
        coalesce(s.covered_us, 0) as covered_us, coalesce(s.utilized_us, 0) as utilized_us,
        coalesce(s.resident_us, 0) as resident_us, coalesce(s.sm_us, 0) as sm_us, coalesce(s.gr_us, 0) as gr_us,
        coalesce(s.scaled_us, 0) as scaled_us, coalesce(s.gpu_util_us, 0) as gpu_util_us,
        cast(g.share_end - g.share_start as double) / nullif(g.share_parts, 0)
            * (g.hold_end - g.hold_start) / nullif(g.hold_parts, 0) as share
    from segments as g
    left join sums as s
        on s.cluster = g.cluster and s.node = g.node and s.pci_bus_id = g.pci_bus_id
        and s.gi_id is not distinct from g.gi_id and s.segment_start_at = g.segment_start_at and not g.is_uncarved
),
-- Uncovered time is dealt out as the segment itself is: by running sums over units, then over holders.
dealt as (
    select
        *,
        ((device_us - covered_us) * share_end) // share_parts - ((device_us - covered_us) * share_start) // share_parts
            as unit_uncovered_us
    from parts
),
valued as (
    select
        *,
        part_us - unavailable_us as working_us,
        (unit_uncovered_us * hold_end) // nullif(hold_parts, 0)
        - (unit_uncovered_us * hold_start) // nullif(hold_parts, 0) as part_uncovered_us
    from dealt
),
judged as (
    select
        *,
        case when holder is not null then working_us else 0 end as allocated_us,
        case
            when holder is null then 0
            when unavailable_us = 0 then least(working_us, part_uncovered_us)
            -- A part that only partly works is uncovered in the same proportion.
            else least(working_us, (part_uncovered_us * working_us) // nullif(part_us, 0))
        end as unobserved_us,
        case
            when unavailable_us = 0 then 1.0
            else coalesce(cast(working_us as double) / nullif(part_us, 0), 0.0)
        end as working_share
    from valued
),
hours as (
    select
        date, hour, cluster, node, pci_bus_id, gi_id, holder, bool_or(is_uncarved) as is_uncarved,
        max(method) as method, sum(part_us) as capacity_us, sum(allocated_us) as allocated_us,
        sum(unavailable_us) as unavailable_us, sum(unobserved_us) as unobserved_us,
        -- Rounded once, to the microsecond.
        sum(case when holder is null then 0 else cast(floor(utilized_us * share * working_share + 0.5) as bigint) end)
            as utilized_us,
        sum(case when holder is null then 0 else cast(floor(resident_us * share * working_share + 0.5) as bigint) end)
            as resident_us,
        sum(
            case when holder is null and not is_not_ready then cast(floor(utilized_us * share + 0.5) as bigint) else 0 end
        ) as rogue_us,
        sum(sm_us) as sm_us, sum(gr_us) as gr_us, sum(scaled_us) as scaled_us, sum(gpu_util_us) as gpu_util_us,
        bool_or(is_not_ready) as is_not_ready, bool_or(is_lost) as is_lost, bool_or(is_cordoned) as is_cordoned,
        min(segment_start_at) as from_at
    from judged
    group by date, hour, cluster, node, pci_bus_id, gi_id, holder
),
bounded as (
    select
        *,
        -- Never more than what was held and covered.
        least(utilized_us, allocated_us - unobserved_us) as used_us,
        least(resident_us, allocated_us - unobserved_us) as busy_us
    from hours
),
unit_facts as (
    select *
    from core.gpu_units
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- The unit as it was when the holder first had it in the hour.
described as (
    select b.*, u.gpu_uuid, u.model, u.accelerator, u.mig_profile, u.provider, u.region, u.zone, u.instance_type
    from bounded as b
    left join unit_facts as u
        on u.date = b.date and u.cluster = b.cluster and u.node = b.node and u.pci_bus_id = b.pci_bus_id
        and u.gi_id is not distinct from b.gi_id
        and u.interval_start_at <= b.from_at and u.interval_end_at > b.from_at
),
holders as (
    select
        date, cluster, pod_uid, max(namespace) as namespace, max(pod) as pod, max(team) as team,
        max(workload_kind) as workload_kind,
        bool_or(end_reason = 'gone' and cast(finished_at as date) = date) as ends_unknown
    from core.pod_allocations
    where date >= cast($start_at as date) and date < cast($end_at as date)
    group by date, cluster, pod_uid
),
-- Where no list of pods was ever read, that nobody held a device is not known: such rows say so.
listed_clusters as (
    select distinct cluster from raw.kube_snapshots where kind = 'Pod' and is_complete
),
remarks as (
    select
        d.*,
        case when d.is_uncarved then 'uncarved,' else '' end
        || case when d.is_not_ready then 'node_not_ready,' else '' end
        || case when d.is_lost then 'gpu_lost,' else '' end
        || case when d.is_cordoned then 'cordoned,' else '' end
        || case when d.holder is null and l.cluster is null then 'no_pod_list,' else '' end
        || case when h.ends_unknown then 'end_unknown,' else '' end as remarks
    from described as d
    left join listed_clusters as l on l.cluster = d.cluster
    left join holders as h on h.date = d.date and h.cluster = d.cluster and h.pod_uid = d.holder
)
select
    d.hour, d.cluster, d.node, d.pci_bus_id, d.gi_id, d.holder, h.namespace, h.pod, h.team, h.workload_kind,
    d.gpu_uuid, d.model, d.accelerator, d.mig_profile, d.provider, d.region, d.zone, d.instance_type, d.method,
    case
        when d.sm_us + d.gr_us + d.scaled_us + d.gpu_util_us = 0 then null
        when d.sm_us >= greatest(d.gr_us, d.scaled_us, d.gpu_util_us) then 'sm_active'
        when d.gr_us >= greatest(d.scaled_us, d.gpu_util_us) then 'gr_engine'
        when d.scaled_us >= d.gpu_util_us then 'gr_engine_scaled'
        else 'gpu_util'
    end as util_source,
    cast(cast(d.capacity_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as capacity_gpu_seconds,
    cast(cast(d.allocated_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as allocated_gpu_seconds,
    cast(cast(d.capacity_us - d.allocated_us - d.unavailable_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as unallocated_gpu_seconds,
    cast(cast(d.unavailable_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as unavailable_gpu_seconds,
    cast(cast(d.used_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as utilized_gpu_seconds,
    cast(cast(d.allocated_us - d.unobserved_us - d.used_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as stranded_gpu_seconds,
    cast(cast(d.unobserved_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as unobserved_gpu_seconds,
    cast(cast(d.busy_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as resident_gpu_seconds,
    cast(cast(d.rogue_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as rogue_gpu_seconds,
    case when d.remarks <> '' then left(d.remarks, length(d.remarks) - 1) end as flags,
    d.date
from remarks as d
left join holders as h on h.date = d.date and h.cluster = d.cluster and h.pod_uid = d.holder
