-- The pod runs of the last 28 days as samples of their owner's template: which template and role they are of, how they
-- ended, and the peaks of what they used. A generated suffix (of a job, of a replica set) is no part of a template; the
-- role is what an operator's label says, else the word between the owner's name and the number in the pod's name.
-- Failed runs are in: what they held in memory counts.
-- grain: pod run
-- key: cluster, pod_uid
-- inputs: core.pod_states, core.pod_unit_days, mart.job_efficiency
-- invariant: peak_busy_devices <= busy_devices; a pod whose devices nobody sampled has null peaks, never zero
with runs as (
    select *
    from mart.job_efficiency
    where date >= cast($end_at - interval 28 day as date) and date < cast($end_at as date)
    qualify row_number() over (partition by cluster, pod_uid order by date desc) = 1
),
states as (
    select
        cluster, pod_uid, max(owner_kind) as owner_kind, max(labels['training.kubeflow.org/replica-type']) as replica_type,
        max(labels['ray.io/node-type']) as node_type, max(case when phase = 'Failed' then 1 else 0 end) as failed
    from core.pod_states
    where date >= cast($end_at - interval 28 day as date) and date < cast($end_at as date)
    group by cluster, pod_uid
),
units as (
    select
        cluster, pod_uid, node, pci_bus_id, gi_id, max(mig_profile) as mig_profile, min(share_ratio) as share_ratio,
        sum(samples) as samples, sum(cover_us) as cover_us, sum(known_samples) as known_samples,
        sum(active_samples) as active_samples, sum(util_only_samples) as util_only_samples,
        sum(over_1_of_7_samples) as over_1_of_7_samples, sum(over_2_of_7_samples) as over_2_of_7_samples,
        sum(over_3_of_7_samples) as over_3_of_7_samples, sum(over_4_of_7_samples) as over_4_of_7_samples,
        max(activity_max) as activity_max, sum(activity_micros) as activity_micros,
        sum(resident_samples) as resident_samples, sum(resident_micros) as resident_micros,
        sum(occupancy_samples) as occupancy_samples, sum(occupancy_micros) as occupancy_micros,
        max(tensor_max) as tensor_max, sum(pcie_samples) as pcie_samples, sum(pcie_rx_kilobytes) as pcie_rx_kilobytes,
        max(fb_used_max_bytes) as fb_used_max_bytes, max(fb_total_bytes) as fb_total_bytes,
        max(peak_busy_devices) as peak_busy_devices
    from core.pod_unit_days
    where date >= cast($end_at - interval 28 day as date) and date < cast($end_at as date)
    group by cluster, pod_uid, node, pci_bus_id, gi_id
),
-- Shares of time over a level are those of the pod's busiest device.
pods as (
    select
        cluster, pod_uid, max(mig_profile) as mig_profile, min(share_ratio) as share_ratio, count(*) as observed_devices,
        sum(samples) as samples, sum(cover_us) as cover_us, sum(known_samples) as known_samples,
        sum(util_only_samples) as util_only_samples,
        max(cast(active_samples as double) / nullif(known_samples, 0)) as active_ratio,
        max(cast(over_1_of_7_samples as double) / nullif(known_samples, 0)) as over_1_of_7_ratio,
        max(cast(over_2_of_7_samples as double) / nullif(known_samples, 0)) as over_2_of_7_ratio,
        max(cast(over_3_of_7_samples as double) / nullif(known_samples, 0)) as over_3_of_7_ratio,
        max(cast(over_4_of_7_samples as double) / nullif(known_samples, 0)) as over_4_of_7_ratio,
        max(activity_max) as activity_max,
        cast(sum(resident_micros) as double) / 1000000 / nullif(sum(resident_samples), 0) as resident_mean,
        cast(sum(occupancy_micros) as double) / 1000000 / nullif(sum(occupancy_samples), 0) as occupancy_mean,
        max(tensor_max) as tensor_max,
        cast(sum(pcie_rx_kilobytes) as double) * 1000 / nullif(sum(pcie_samples), 0) as pcie_rx_mean_bytes_per_second,
        max(fb_used_max_bytes) as memory_peak_bytes, sum(fb_used_max_bytes) as memory_sum_bytes,
        max(fb_total_bytes) as memory_total_bytes, max(peak_busy_devices) as peak_busy_devices,
        sum(case when active_samples + util_only_samples > 0 then 1 else 0 end) as busy_devices,
        -- A device whose activity never showed may have been busy.
        sum(case when known_samples + util_only_samples = 0 then 1 else 0 end) as dark_devices
    from units
    group by cluster, pod_uid
),
named as (
    select
        r.*, s.replica_type, s.node_type, s.failed, coalesce(s.owner_kind, r.workload_kind, 'Pod') as owner_kind,
        coalesce(r.owner_name, r.pod, r.pod_uid) as owner
    from runs as r
    left join states as s on s.cluster = r.cluster and s.pod_uid = r.pod_uid
)
select
    n.cluster, n.pod_uid, coalesce(n.team, '(unmapped)') as team, coalesce(n.namespace, '') as namespace, n.owner_kind,
    case
        when n.owner_kind = 'ReplicaSet' then regexp_replace(n.owner, '-[a-z0-9]{5,10}$', '')
        when n.owner_kind in ('StatefulSet', 'Deployment', 'DaemonSet', 'Notebook') then n.owner
        else regexp_replace(n.owner, '-([0-9a-f]{5,}|[0-9]{4,}|[bcdfghjklmnpqrstvwxz2456789]{5})$', '')
    end as template,
    case
        when coalesce(n.replica_type, n.node_type) is not null then lower(coalesce(n.replica_type, n.node_type))
        when n.pod is not null and starts_with(n.pod, n.owner || '-')
            then coalesce(nullif(regexp_extract(substring(n.pod, length(n.owner) + 2), '^([a-z]+)-', 1), ''), 'main')
        else 'main'
    end as role,
    -- The pods of a job are one run, replicas of a service are runs of their own.
    case
        when n.owner_kind in ('ReplicaSet', 'StatefulSet', 'Deployment', 'DaemonSet', 'Notebook', 'Pod') then n.pod_uid
        else n.owner
    end as rightsizing_run,
    n.owner_kind in ('ReplicaSet', 'StatefulSet', 'Deployment', 'DaemonSet', 'Notebook', 'Pod') as is_long_lived,
    coalesce(n.accelerator, '(unknown)') as accelerator, coalesce(n.resource, '(unknown)') as resource,
    n.devices as asked_devices, n.started_at, n.finished_at, n.end_reason, n.failed = 1 as is_failed, n.date,
    n.shape, n.activity_mean, n.sm_active_p95, n.tensor_p95, n.dram_p95, n.fb_used_bytes_p95, n.allocated_gpu_seconds,
    n.stranded_gpu_seconds, n.unobserved_gpu_seconds, p.mig_profile, p.share_ratio,
    p.observed_devices, cast(p.samples as bigint) as samples, cast(p.known_samples as bigint) as known_samples,
    cast(p.util_only_samples as bigint) as util_only_samples,
    cast(p.cover_us as double) / 1000000 / nullif(cast(p.samples as double), 0) as sampling_interval_s,
    -- Of what the run held, the part in which it is known how active its devices were.
    (1 - cast(n.unobserved_gpu_seconds as double) / nullif(cast(n.allocated_gpu_seconds as double), 0))
        * cast(p.known_samples as double) / nullif(cast(p.samples as double), 0) as known_ratio,
    p.active_ratio, p.over_1_of_7_ratio, p.over_2_of_7_ratio, p.over_3_of_7_ratio, p.over_4_of_7_ratio, p.activity_max,
    p.resident_mean, p.occupancy_mean, p.tensor_max, p.pcie_rx_mean_bytes_per_second, p.memory_peak_bytes,
    p.memory_sum_bytes, p.memory_total_bytes, p.peak_busy_devices, cast(p.busy_devices as bigint) as busy_devices,
    cast(p.dark_devices as bigint) as dark_devices
from named as n
left join pods as p on p.cluster = n.cluster and p.pod_uid = n.pod_uid
