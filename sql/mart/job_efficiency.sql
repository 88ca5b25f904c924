-- How each pod's run used what it held: medians and 95th percentiles of its metrics, the shape of work that they show
-- (told from metrics alone), the usual activity of that shape on that accelerator, and a verdict.
-- The row stands on the last date on which the pod held anything.
-- grain: pod run
-- key: date, cluster, pod_uid
-- inputs: core.pod_allocations, core.pod_metric_days, mart.gpu_ledger_hourly
-- invariant: one row per pod that held an accelerator
with resources as (
    select
        cluster, pod_uid, resource, max(date) as date, max(namespace) as namespace, max(pod) as pod, max(node) as node,
        max(team) as team, max(workload_kind) as workload_kind, max(owner_name) as owner_name,
        max(quantity) as quantity, max(started_at) as started_at, max(finished_at) as finished_at,
        max(end_reason) as end_reason
    from core.pod_allocations
    where source = 'kubernetes' and date >= cast($start_at as date)
    group by cluster, pod_uid, resource
),
held as (
    select
        cluster, pod_uid, max(date) as date, max(namespace) as namespace, max(pod) as pod, max(node) as node,
        max(team) as team, max(workload_kind) as workload_kind, max(owner_name) as owner_name,
        max(resource) as resource, sum(quantity) as devices, max(started_at) as started_at,
        max(finished_at) as finished_at, max(end_reason) as end_reason
    from resources
    group by cluster, pod_uid
),
runs as (
    select * from held where date < cast($end_at as date)
),
-- Runs longer than sixty days are judged by their last sixty.
buckets as (
    select m.cluster, m.pod_uid, m.metric, m.bucket, sum(m.samples) as samples, sum(m.value_micros) as value_micros
    from core.pod_metric_days as m
    inner join runs as r on r.cluster = m.cluster and r.pod_uid = m.pod_uid
    where m.date >= cast($start_at - interval 60 day as date)
    group by m.cluster, m.pod_uid, m.metric, m.bucket
),
ranked as (
    select
        *,
        sum(samples) over (partition by cluster, pod_uid, metric order by bucket rows between unbounded preceding and current row) as until_here,
        sum(samples) over (partition by cluster, pod_uid, metric) as in_all
    from buckets
),
quantiles as (
    select
        cluster, pod_uid, metric, max(in_all) as samples,
        cast(sum(value_micros) as double) / 1000000 / nullif(sum(samples), 0) as mean,
        min(case when until_here >= 0.5 * in_all then cast(value_micros as double) / 1000000 / nullif(samples, 0) end) as p50,
        min(case when until_here >= 0.95 * in_all then cast(value_micros as double) / 1000000 / nullif(samples, 0) end) as p95
    from ranked
    group by cluster, pod_uid, metric
),
wide as (
    select
        cluster, pod_uid, max(samples) as samples,
        max(case when metric = 'sm_active_ratio' then p50 end) as sm_active_p50,
        max(case when metric = 'sm_active_ratio' then p95 end) as sm_active_p95,
        max(case when metric = 'gpu_util_ratio' then p50 end) as gpu_util_p50,
        max(case when metric = 'gpu_util_ratio' then p95 end) as gpu_util_p95,
        max(case when metric = 'sm_occupancy_ratio' then p50 end) as sm_occupancy_p50,
        max(case when metric = 'sm_occupancy_ratio' then p95 end) as sm_occupancy_p95,
        max(case when metric = 'tensor_ratio' then p50 end) as tensor_p50,
        max(case when metric = 'tensor_ratio' then p95 end) as tensor_p95,
        max(case when metric = 'dram_ratio' then p50 end) as dram_p50,
        max(case when metric = 'dram_ratio' then p95 end) as dram_p95,
        max(case when metric = 'power_w' then p50 end) as power_w_p50,
        max(case when metric = 'power_w' then p95 end) as power_w_p95,
        1048576 * max(case when metric = 'fb_used_bytes' then p50 end) as fb_used_bytes_p50,
        1048576 * max(case when metric = 'fb_used_bytes' then p95 end) as fb_used_bytes_p95,
        coalesce(
            max(case when metric = 'sm_active_ratio' then mean end), max(case when metric = 'gr_engine_ratio' then mean end)
        ) as activity_mean,
        max(case when metric = 'tensor_ratio' then mean end) as tensor_mean,
        max(case when metric = 'dram_ratio' then mean end) as dram_mean
    from quantiles
    group by cluster, pod_uid
),
used as (
    select
        l.cluster, l.holder as pod_uid, max(l.accelerator) as accelerator, sum(l.allocated_gpu_seconds) as allocated_gpu_seconds,
        sum(l.utilized_gpu_seconds) as utilized_gpu_seconds, sum(l.stranded_gpu_seconds) as stranded_gpu_seconds,
        sum(l.unobserved_gpu_seconds) as unobserved_gpu_seconds, sum(l.resident_gpu_seconds) as resident_gpu_seconds
    from mart.gpu_ledger_hourly as l
    inner join runs as r on r.cluster = l.cluster and r.pod_uid = l.holder
    where l.date >= cast($start_at - interval 60 day as date)
    group by l.cluster, l.holder
),
-- Work is told by what it does per unit of activity: matrix work shows in the tensor pipe, decoding in memory traffic,
-- starvation in matrix work at low activity.
shaped as (
    select
        r.*, w.* exclude (cluster, pod_uid), u.* exclude (cluster, pod_uid),
        case
            when w.activity_mean is null or w.samples < 2 then 'unknown'
            when w.activity_mean < 0.06 then 'notebook'
            when w.tensor_mean is null or w.dram_mean is null then 'unknown'
            when w.dram_mean >= 0.9 * w.activity_mean and w.tensor_mean >= 0.04 * w.activity_mean then 'inference'
            when w.tensor_mean < 0.05 * w.activity_mean then 'batch'
            when w.tensor_mean >= 0.27 * w.activity_mean
                -- The median: a pause for a checkpoint or the first, half-empty sample does not starve a run.
                then case when coalesce(w.sm_active_p50, w.activity_mean) < 0.5 then 'starved' else 'training' end
            when w.dram_mean >= 0.41 * w.activity_mean then 'notebook'
            else 'sweep'
        end as shape
    from runs as r
    left join wide as w on w.cluster = r.cluster and w.pod_uid = r.pod_uid
    left join used as u on u.cluster = r.cluster and u.pod_uid = r.pod_uid
),
baselines as (
    select date, shape, accelerator, median(activity_mean) as baseline_activity_ratio, count(*) as baseline_runs
    from shaped
    where activity_mean is not null
    group by date, shape, accelerator
)
select
    s.date, s.cluster, s.pod_uid, s.namespace, s.pod, s.node, s.team, s.workload_kind, s.owner_name, s.accelerator,
    s.resource, cast(s.devices as bigint) as devices, s.started_at, s.finished_at, s.end_reason, s.samples,
    coalesce(s.allocated_gpu_seconds, 0) as allocated_gpu_seconds, coalesce(s.utilized_gpu_seconds, 0) as utilized_gpu_seconds,
    coalesce(s.stranded_gpu_seconds, 0) as stranded_gpu_seconds, coalesce(s.unobserved_gpu_seconds, 0) as unobserved_gpu_seconds,
    coalesce(s.resident_gpu_seconds, 0) as resident_gpu_seconds,
    cast(s.utilized_gpu_seconds as double)
        / nullif(cast(s.allocated_gpu_seconds - s.unobserved_gpu_seconds as double), 0) as utilization_ratio,
    s.activity_mean, s.sm_active_p50, s.sm_active_p95, s.gpu_util_p50, s.gpu_util_p95, s.sm_occupancy_p50,
    s.sm_occupancy_p95, s.tensor_p50, s.tensor_p95, s.dram_p50, s.dram_p95, s.power_w_p50, s.power_w_p95,
    s.fb_used_bytes_p50, s.fb_used_bytes_p95, s.shape, b.baseline_activity_ratio, b.baseline_runs,
    case
        when s.shape = 'unknown' then 'not_observed'
        when s.activity_mean < 0.01 then 'idle'
        when s.shape = 'starved' then 'input_starved'
        when s.shape = 'notebook' then 'mostly_idle'
        when b.baseline_runs >= 5 and s.activity_mean < 0.6 * b.baseline_activity_ratio then 'below_baseline'
        else 'as_expected'
    end as verdict
from shaped as s
left join baselines as b
    on b.date = s.date and b.shape = s.shape and b.accelerator is not distinct from s.accelerator
