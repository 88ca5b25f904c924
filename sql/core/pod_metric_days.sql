-- How the metrics of each pod's devices were distributed on a date, in buckets: what medians and percentiles of a
-- whole run are read from without reading its samples again. Ratios have 1/256 wide buckets, power (W)
-- 4 W, memory (MiB) 256 MiB. Values are summed in whole millionths, so that the sum does not depend on the order.
-- grain: date, pod_uid, metric, bucket
-- key: date, cluster, pod_uid, metric, bucket
-- inputs: core.gpu_samples, core.device_assignments
-- invariant: value_micros / 1000000 / samples lies within the bucket
with holds as (
    select *
    from core.device_assignments
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
taken as (
    select
        s.date, s.cluster, h.pod_uid, s.sm_active_ratio, s.gr_engine_ratio, s.gpu_util_ratio, s.sm_occupancy_ratio,
        s.tensor_ratio, s.dram_ratio, s.power_w, s.fb_used_bytes
    from core.gpu_samples as s
    inner join holds as h
        on h.date = s.date and h.cluster = s.cluster and h.node = s.node and h.pci_bus_id = s.pci_bus_id
        and h.gi_id is not distinct from s.gi_id
        and h.interval_start_at <= s.sampled_at and h.interval_end_at > s.sampled_at
    where s.date >= cast($start_at as date) and s.date < cast($end_at as date)
),
metrics as (
    select * from (values
        ('sm_active_ratio', 256.0), ('gr_engine_ratio', 256.0), ('gpu_util_ratio', 256.0),
        ('sm_occupancy_ratio', 256.0), ('tensor_ratio', 256.0), ('dram_ratio', 256.0), ('power_w', 0.25),
        ('fb_used_bytes', 0.00390625)
    ) as m(metric, buckets_per_unit)
),
tall as (
    select
        t.date, t.cluster, t.pod_uid, m.metric, m.buckets_per_unit,
        case m.metric
            when 'sm_active_ratio' then t.sm_active_ratio
            when 'gr_engine_ratio' then t.gr_engine_ratio
            when 'gpu_util_ratio' then t.gpu_util_ratio
            when 'sm_occupancy_ratio' then t.sm_occupancy_ratio
            when 'tensor_ratio' then t.tensor_ratio
            when 'dram_ratio' then t.dram_ratio
            when 'power_w' then t.power_w
            when 'fb_used_bytes' then t.fb_used_bytes / 1048576
        end as value
    from taken as t
    cross join metrics as m
)
select
    date, cluster, pod_uid, metric, cast(floor(value * buckets_per_unit) as bigint) as bucket, count(*) as samples,
    cast(sum(cast(floor(value * 1000000 + 0.5) as bigint)) as bigint) as value_micros
from tall
where value is not null
group by date, cluster, pod_uid, metric, cast(floor(value * buckets_per_unit) as bigint)
