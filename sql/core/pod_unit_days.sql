-- What each device of a pod did on a date: how often it was active and how hard, the most memory it held, and how many
-- of the pod's devices were active in the same minute. Averages over a pod hide that one device of eight works.
-- Activity is SM_ACTIVE, else GR_ENGINE_ACTIVE (which is never below it); GPU_UTIL alone says nothing of how much of a
-- device works and only proves that it is idle. Sums are of whole millionths, so they do not depend on the order.
-- grain: date, pod_uid, unit (node, pci_bus_id, gi_id)
-- key: date, cluster, pod_uid, node, pci_bus_id, gi_id
-- inputs: core.gpu_samples, core.device_assignments
-- invariant: active_samples <= known_samples <= samples; peak_busy_devices is at most the units of the pod on that date
with holds as (
    select *, count(*) over (partition by date, cluster, pod_uid) as pod_holds
    from core.device_assignments
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
taken as (
    select
        s.date, s.cluster, h.pod_uid, s.node, s.pci_bus_id, s.gi_id, s.sampled_at, h.pod_holds, h.share_ratio, s.mig_profile,
        date_diff('microsecond', s.sampled_at, s.covers_until_at) as cover_us, s.util_source, s.gpu_util_ratio,
        s.tensor_ratio, s.sm_occupancy_ratio, s.fb_used_bytes, s.pcie_rx_bytes_per_second,
        s.fb_used_bytes + s.fb_free_bytes + coalesce(s.fb_reserved_bytes, 0) as fb_total_bytes,
        case
            when s.util_source in ('sm_active', 'gr_engine_scaled') then s.util_ratio
            -- Not scaled, the engine of an instance shows a part of what it does: good for idle alone.
            when s.util_source = 'gr_engine' and (s.gi_id is null or s.util_ratio = 0) then s.util_ratio
            when s.util_source = 'gpu_util' and s.util_ratio = 0 then 0.0
        end as activity_ratio
    from core.gpu_samples as s
    inner join holds as h
        on h.date = s.date and h.cluster = s.cluster and h.node = s.node and h.pci_bus_id = s.pci_bus_id
        and h.gi_id is not distinct from s.gi_id
        and h.interval_start_at <= s.sampled_at and h.interval_end_at > s.sampled_at
    where s.date >= cast($start_at as date) and s.date < cast($end_at as date)
),
-- Whole minutes: two exporters of one node need not scrape together, and at shorter spacing a minute keeps its peak.
minutes as (
    select date, cluster, pod_uid, minute_at, count(*) as busy_devices
    from (
        select distinct date, cluster, pod_uid, date_trunc('minute', sampled_at) as minute_at, node, pci_bus_id, gi_id
        from taken
        where
            pod_holds > 1
            and (activity_ratio > 0.01 or tensor_ratio > 0.01 or (activity_ratio is null and gpu_util_ratio > 0.01))
    ) as busy
    group by date, cluster, pod_uid, minute_at
),
peaks as (
    select date, cluster, pod_uid, max(busy_devices) as peak_busy_devices
    from minutes
    group by date, cluster, pod_uid
),
units as (
    select
        date, cluster, pod_uid, node, pci_bus_id, gi_id, max(mig_profile) as mig_profile, min(share_ratio) as share_ratio,
        count(*) as samples, sum(cover_us) as cover_us, count(activity_ratio) as known_samples,
        sum(case when activity_ratio > 0.01 or (activity_ratio is not null and tensor_ratio > 0.01) then 1 else 0 end)
            as active_samples,
        sum(case when activity_ratio is null and gpu_util_ratio > 0.01 then 1 else 0 end) as util_only_samples,
        sum(case when activity_ratio * 7 > 1 then 1 else 0 end) as over_1_of_7_samples,
        sum(case when activity_ratio * 7 > 2 then 1 else 0 end) as over_2_of_7_samples,
        sum(case when activity_ratio * 7 > 3 then 1 else 0 end) as over_3_of_7_samples,
        sum(case when activity_ratio * 7 > 4 then 1 else 0 end) as over_4_of_7_samples,
        max(activity_ratio) as activity_max,
        sum(cast(floor(activity_ratio * 1000000 + 0.5) as bigint)) as activity_micros,
        count(gpu_util_ratio) as resident_samples,
        sum(cast(floor(gpu_util_ratio * 1000000 + 0.5) as bigint)) as resident_micros,
        count(sm_occupancy_ratio) as occupancy_samples,
        sum(cast(floor(sm_occupancy_ratio * 1000000 + 0.5) as bigint)) as occupancy_micros,
        max(tensor_ratio) as tensor_max,
        count(pcie_rx_bytes_per_second) as pcie_samples,
        -- In KB/s: a month of bytes per second times a million would leave 64 bits.
        sum(cast(floor(pcie_rx_bytes_per_second / 1000) as bigint)) as pcie_rx_kilobytes,
        max(fb_used_bytes) as fb_used_max_bytes, max(fb_total_bytes) as fb_total_bytes
    from taken
    group by date, cluster, pod_uid, node, pci_bus_id, gi_id
)
select
    u.date, u.cluster, u.pod_uid, u.node, u.pci_bus_id, u.gi_id, u.mig_profile, u.share_ratio, u.samples,
    cast(u.cover_us as bigint) as cover_us, u.known_samples, cast(u.active_samples as bigint) as active_samples,
    cast(u.util_only_samples as bigint) as util_only_samples, cast(u.over_1_of_7_samples as bigint) as over_1_of_7_samples,
    cast(u.over_2_of_7_samples as bigint) as over_2_of_7_samples, cast(u.over_3_of_7_samples as bigint) as over_3_of_7_samples,
    cast(u.over_4_of_7_samples as bigint) as over_4_of_7_samples, u.activity_max,
    cast(u.activity_micros as bigint) as activity_micros, u.resident_samples,
    cast(u.resident_micros as bigint) as resident_micros, u.occupancy_samples,
    cast(u.occupancy_micros as bigint) as occupancy_micros, u.tensor_max, u.pcie_samples,
    cast(u.pcie_rx_kilobytes as bigint) as pcie_rx_kilobytes, u.fb_used_max_bytes, u.fb_total_bytes,
    coalesce(p.peak_busy_devices, case when u.active_samples + u.util_only_samples > 0 then 1 else 0 end) as peak_busy_devices
from units as u
left join peaks as p on p.date = u.date and p.cluster = u.cluster and p.pod_uid = u.pod_uid
