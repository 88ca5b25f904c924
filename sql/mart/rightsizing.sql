-- What each owner template should ask for, judged by the runs of its last 28 days: a verdict with its reason, or an
-- abstention with its reason. Peaks are per run and every run counts once, so ten busy minutes of eight devices weigh
-- as much as ten busy hours; peaks of failed and unfinished runs hold what is suggested up and never bring it down.
-- Thresholds stand where they are used, with why.
-- grain: team, namespace, owner template (kind, name), accelerator, role, resource, devices asked for
-- key: team, namespace, owner_kind, template, accelerator, role, resource, asked_devices
-- inputs: core.run_peaks
-- invariant: runs = judged_runs + failed_runs + unjudged_runs > 0; an abstention suggests nothing (null, never zero)
with cards as (
    -- From NVIDIA's data sheets: dense FP16 or BF16 tensor TFLOPS, memory bandwidth and one direction of the PCIe link
    -- in GB/s; of cards of one name, the largest.
    select * from (values
        ('T4', 65.0, 320.0, 12.0), ('V100', 125.0, 900.0, 12.0), ('L4', 121.0, 300.0, 25.0), ('A10', 125.0, 600.0, 25.0),
        ('A10G', 70.0, 600.0, 25.0), ('A30', 165.0, 933.0, 25.0), ('L40', 181.0, 864.0, 25.0), ('L40S', 362.0, 864.0, 25.0),
        ('A100', 312.0, 2039.0, 25.0), ('A800', 312.0, 2039.0, 25.0), ('H100', 989.0, 3350.0, 50.0),
        ('H800', 989.0, 3350.0, 50.0), ('GH200', 989.0, 4000.0, 50.0), ('H200', 989.0, 4800.0, 50.0),
        ('B200', 2250.0, 8000.0, 50.0), ('GB200', 2250.0, 8000.0, 50.0)
    ) as c(family, tflops, memory_gb_per_s, link_gb_per_s)
),
profiles as (
    -- MIG profiles by family and memory of the card (GiB, from and to), as NVIDIA names them.
    select * from (values
        ('A30', 20, 26, '1g.6gb', 1, 4, 6), ('A30', 20, 26, '2g.12gb', 2, 4, 12),
        ('A100', 36, 44, '1g.5gb', 1, 7, 5), ('A100', 36, 44, '2g.10gb', 2, 7, 10), ('A100', 36, 44, '3g.20gb', 3, 7, 20),
        ('A100', 72, 84, '1g.10gb', 1, 7, 10), ('A100', 72, 84, '2g.20gb', 2, 7, 20), ('A100', 72, 84, '3g.40gb', 3, 7, 40),
        ('A800', 72, 84, '1g.10gb', 1, 7, 10), ('A800', 72, 84, '2g.20gb', 2, 7, 20), ('A800', 72, 84, '3g.40gb', 3, 7, 40),
        ('H100', 72, 84, '1g.10gb', 1, 7, 10), ('H100', 72, 84, '2g.20gb', 2, 7, 20), ('H100', 72, 84, '3g.40gb', 3, 7, 40),
        ('H100', 88, 98, '1g.12gb', 1, 7, 12), ('H100', 88, 98, '2g.24gb', 2, 7, 24), ('H100', 88, 98, '3g.47gb', 3, 7, 47),
        ('H800', 72, 84, '1g.10gb', 1, 7, 10), ('H800', 72, 84, '2g.20gb', 2, 7, 20), ('H800', 72, 84, '3g.40gb', 3, 7, 40),
        ('H200', 130, 150, '1g.18gb', 1, 7, 18), ('H200', 130, 150, '2g.35gb', 2, 7, 35), ('H200', 130, 150, '3g.71gb', 3, 7, 71),
        ('B200', 165, 195, '1g.23gb', 1, 7, 23), ('B200', 165, 195, '2g.45gb', 2, 7, 45), ('B200', 165, 195, '3g.90gb', 3, 7, 90)
    ) as p(family, card_from_gib, card_to_gib, profile, slices, of_slices, memory_gib)
),
pods as (
    select
        *,
        -- A job still running may have its peak before it; what lives on is judged as it goes. Ten samples of each
        -- device are the least that a run is judged by.
        not is_failed and samples > 0 and (is_long_lived or finished_at is not null)
            and samples >= 10 * observed_devices and sampling_interval_s <= 300.5 as is_judged,
        not is_failed and samples > 0 and (is_long_lived or finished_at is not null)
            and (samples < 10 * observed_devices or sampling_interval_s > 300.5) as is_glimpsed,
        -- Nine tenths of the memory when a run fails: it may have wanted more than there was.
        is_failed and memory_peak_bytes >= 0.9 * memory_total_bytes as is_out_of_memory,
        samples * sampling_interval_s / nullif(observed_devices, 0) as observed_s
    from core.run_peaks
),
-- One row per run: of its pods in this role the one that needs most.
runs as (
    select
        team, namespace, owner_kind, template, accelerator, role, resource, asked_devices, cluster, rightsizing_run,
        bool_or(coalesce(is_judged, false)) as is_judged, bool_or(coalesce(is_glimpsed, false)) as is_glimpsed,
        bool_or(is_failed) as is_failed, count(*) as pods,
        max(case when is_judged or not is_failed then peak_busy_devices end) as peak_busy_devices,
        max(peak_busy_devices + dark_devices + greatest(asked_devices - observed_devices, 0)) as needed_devices,
        max(busy_devices + dark_devices + greatest(asked_devices - observed_devices, 0)) as ever_busy_devices,
        max(active_ratio) as active_ratio,
        max(case when is_judged then over_1_of_7_ratio end) as over_1_of_7_ratio,
        max(case when is_judged then over_2_of_7_ratio end) as over_2_of_7_ratio,
        max(case when is_judged then over_3_of_7_ratio end) as over_3_of_7_ratio,
        max(case when is_judged then over_4_of_7_ratio end) as over_4_of_7_ratio,
        max(case when is_judged then sm_active_p95 end) as sm_active_p95, max(activity_max) as activity_max,
        max(case when is_judged then activity_mean end) as activity_mean, max(tensor_max) as tensor_max,
        max(case when is_judged then tensor_p95 end) as tensor_p95, max(case when is_judged then dram_p95 end) as dram_p95,
        max(fb_used_bytes_p95) as fb_used_bytes_p95,
        max(case when is_judged then resident_mean end) as resident_mean,
        max(case when is_judged then occupancy_mean end) as occupancy_mean,
        max(case when is_judged then pcie_rx_mean_bytes_per_second end) as pcie_rx_mean_bytes_per_second,
        max(case when is_judged and shape = 'starved' then 1 else 0 end) as starved,
        min(case when is_judged then known_ratio end) as known_ratio, max(sampling_interval_s) as sampling_interval_s,
        max(case when is_judged then coalesce(cast(util_only_samples as double) / nullif(cast(samples as double), 0), 0) end)
            as util_only_ratio,
        max(memory_peak_bytes) as memory_peak_bytes, max(memory_sum_bytes) as memory_sum_bytes,
        max(memory_total_bytes) as memory_total_bytes, bool_or(coalesce(is_out_of_memory, false)) as is_out_of_memory,
        bool_and(is_long_lived) as is_long_lived, max(mig_profile) as mig_profile, min(share_ratio) as share_ratio,
        max(case when is_judged then observed_s else 0 end) as observed_s, min(started_at) as started_at,
        max(coalesce(finished_at, cast(date as timestamp) + interval 1 day)) as seen_until_at,
        sum(allocated_gpu_seconds) as allocated_gpu_seconds, sum(stranded_gpu_seconds) as stranded_gpu_seconds
    from pods
    group by team, namespace, owner_kind, template, accelerator, role, resource, asked_devices, cluster, rightsizing_run
),
ranked as (
    select
        *,
        row_number() over (
            partition by team, namespace, owner_kind, template, accelerator, role, resource, asked_devices
            order by case when is_judged then 0 else 1 end, peak_busy_devices, cluster, rightsizing_run
        ) as rank_of_peak,
        sum(case when is_judged then 1 else 0 end) over (
            partition by team, namespace, owner_kind, template, accelerator, role, resource, asked_devices
        ) as judged_in_all
    from runs
),
templates as (
    select
        team, namespace, owner_kind, template, accelerator, role, resource, asked_devices,
        count(*) as runs, sum(case when is_judged then 1 else 0 end) as judged_runs,
        sum(case when is_failed and not is_judged then 1 else 0 end) as failed_runs,
        sum(case when not is_failed and not is_judged then 1 else 0 end) as unjudged_runs, sum(pods) as pods,
        max(pods) as gang_pods, min(started_at) as first_run_at, max(seen_until_at) as last_run_at,
        sum(observed_s) / 3600 as judged_hours, max(observed_s) / 3600 as longest_hours,
        count(distinct case when is_judged then cast(started_at as date) end) as judged_dates,
        sum(case when memory_total_bytes is null and peak_busy_devices is null then 1 else 0 end) as unseen_runs,
        max(peak_busy_devices) as peak_busy_devices,
        max(case when rank_of_peak = cast(ceil(0.95 * judged_in_all) as bigint) then peak_busy_devices end) as peak_busy_devices_p95,
        avg(case when is_judged then cast(peak_busy_devices as double) end) as peak_busy_devices_mean,
        max(needed_devices) as needed_devices, max(ever_busy_devices) as ever_busy_devices,
        max(active_ratio) as active_ratio, max(over_1_of_7_ratio) as over_1_of_7_ratio,
        max(over_2_of_7_ratio) as over_2_of_7_ratio, max(over_3_of_7_ratio) as over_3_of_7_ratio,
        max(over_4_of_7_ratio) as over_4_of_7_ratio, max(sm_active_p95) as sm_active_p95,
        max(activity_max) as activity_peak, avg(activity_mean) as activity_mean, max(tensor_max) as tensor_peak,
        max(tensor_p95) as tensor_p95, max(dram_p95) as dram_p95, max(fb_used_bytes_p95) as fb_used_bytes_p95, avg(resident_mean) as resident_mean,
        avg(occupancy_mean) as occupancy_mean, avg(pcie_rx_mean_bytes_per_second) as pcie_rx_mean_bytes_per_second,
        cast(sum(starved) as double) / nullif(sum(case when is_judged then 1 else 0 end), 0) as starved_runs_ratio,
        avg(known_ratio) as known_ratio, max(sampling_interval_s) as sampling_interval_s,
        sum(case when is_glimpsed and not is_judged then 1 else 0 end) as glimpsed_runs, max(util_only_ratio) as util_only_ratio,
        max(memory_peak_bytes) as memory_peak_bytes, max(memory_sum_bytes) as memory_sum_bytes,
        max(memory_total_bytes) as memory_total_bytes, bool_or(is_out_of_memory) as is_out_of_memory,
        bool_and(is_long_lived) as is_long_lived, max(mig_profile) as mig_profile, min(share_ratio) as share_ratio,
        sum(allocated_gpu_seconds) as allocated_gpu_seconds, sum(stranded_gpu_seconds) as stranded_gpu_seconds
    from ranked
    group by team, namespace, owner_kind, template, accelerator, role, resource, asked_devices
),
measured as (
    select
        t.*, c.tflops, c.memory_gb_per_s,
        row_number() over (order by team, namespace, owner_kind, template, accelerator, role, resource, asked_devices) as template_id,
        -- Samples a minute apart (and a missed scrape here and there) show what a run peaks at; further apart they miss
        -- some of it.
        t.sampling_interval_s > 90.5 as is_coarse,
        -- 15 % over the peak, as VPA and KRR keep; 30 % where sampling can miss it, and 20 % more after running out.
        t.memory_peak_bytes * case when t.sampling_interval_s > 90.5 then 1.3 else 1.15 end
            * case when t.is_out_of_memory then 1.2 else 1.0 end as memory_needed_bytes,
        t.memory_sum_bytes * case when t.sampling_interval_s > 90.5 then 1.3 else 1.15 end as memory_sum_needed_bytes,
        -- In sevenths of the device, the level that 95 % of the samples of every run stay under.
        case
            when t.over_1_of_7_ratio is null then null
            when t.over_1_of_7_ratio <= 0.05 then 1
            when t.over_2_of_7_ratio <= 0.05 then 2
            when t.over_3_of_7_ratio <= 0.05 then 3
            when t.over_4_of_7_ratio <= 0.05 then 4
            else 7
        end as activity_sevenths,
        t.pcie_rx_mean_bytes_per_second / nullif(c.link_gb_per_s * 1000000000, 0) as pcie_rx_ratio
    from templates as t
    left join cards as c on c.family = regexp_extract(t.accelerator, '^([A-Z]+[0-9]+[A-Z]?)', 1)
),
sized as (
    select
        *,
        -- Coarse sampling cannot tell devices that took turns from devices that worked together: each counts.
        greatest(
            case when is_coarse then ever_busy_devices else needed_devices end,
            coalesce(cast(ceil(memory_sum_needed_bytes / nullif(memory_total_bytes, 0)) as bigint), asked_devices), 1
        ) as wanted_devices
    from measured
),
-- A gang is cut in halves, as tensor and pipeline parallel work is.
whole as (
    select
        *,
        case
            when wanted_devices >= asked_devices then asked_devices
            else least(
                asked_devices,
                case
                    when wanted_devices <= 1 then 1 when wanted_devices <= 2 then 2 when wanted_devices <= 4 then 4
                    when wanted_devices <= 8 then 8 when wanted_devices <= 16 then 16 else asked_devices
                end
            )
        end as gang_devices
    from sized
),
-- The smallest MIG profile with the memory and the slices; of a MIG instance, one with fewer slices.
mig_fits as (
    select
        w.template_id, p.profile,
        row_number() over (partition by w.template_id order by p.slices, p.memory_gib, p.profile) as rank_of_fit
    from whole as w
    inner join profiles as p
        on p.family = regexp_extract(w.accelerator, '^([A-Z]+[0-9]+[A-Z]?)', 1)
    left join profiles as o on o.family = p.family and o.profile = w.mig_profile and o.card_from_gib = p.card_from_gib
    where
        -- An instance shows about 5 % less memory than its profile is named after.
        w.memory_needed_bytes <= p.memory_gib * 1073741824.0 * 0.95
        and w.activity_sevenths * coalesce(o.slices, p.of_slices) <= 7 * p.slices
        and case
            when w.mig_profile is null
                then w.memory_total_bytes between p.card_from_gib * 1073741824.0 and p.card_to_gib * 1073741824.0
            else o.slices > p.slices
        end
),
-- Cards that runs of these days were seen on, whole.
known_cards as (
    select m.accelerator, max(m.memory_total_bytes) as card_bytes, max(m.tflops) as card_tflops,
        max(m.memory_gb_per_s) as card_gb_per_s
    from measured as m
    where m.mig_profile is null and m.memory_total_bytes is not null and m.tflops is not null
    group by m.accelerator
),
card_fits as (
    select
        w.template_id, k.accelerator as smaller_accelerator,
        row_number() over (
            partition by w.template_id order by k.card_bytes, k.card_tflops, k.accelerator
        ) as rank_of_fit
    from whole as w
    inner join known_cards as k
        -- Smaller in memory, which is what cards are priced by, with a fifth of its work and bandwidth to spare.
        on k.card_bytes < w.memory_total_bytes
        and w.memory_needed_bytes <= 0.95 * k.card_bytes
        and w.activity_sevenths * w.tflops <= 7 * 0.8 * k.card_tflops
        and w.dram_p95 * w.memory_gb_per_s <= 0.8 * k.card_gb_per_s
    where w.mig_profile is null
),
fitted as (
    select
        w.*, m.profile, k.smaller_accelerator,
        -- Time-slicing isolates no memory: everybody's has to fit, and everybody's work.
        case
            when w.mig_profile is not null then null
            when w.activity_sevenths <= 1 and 4 * w.memory_needed_bytes <= 0.95 * w.memory_total_bytes then 4
            when w.activity_sevenths <= 2 and 3 * w.memory_needed_bytes <= 0.95 * w.memory_total_bytes then 3
            when w.activity_sevenths <= 3 and 2 * w.memory_needed_bytes <= 0.95 * w.memory_total_bytes then 2
        end as time_slices
    from whole as w
    left join mig_fits as m on m.template_id = w.template_id and m.rank_of_fit = 1
    left join card_fits as k on k.template_id = w.template_id and k.rank_of_fit = 1
),
reasoned as (
    select
        *,
        case
            -- Runs that die for memory are answered even where none ends well.
            when is_out_of_memory then 'keep: memory_runs_out'
            when judged_runs = 0 and failed_runs > 0 then 'abstain: only_failed_runs'
            when memory_total_bytes is null and known_ratio is null and util_only_ratio is null then 'abstain: not_observed'
            when judged_runs < 3 and not is_long_lived and judged_runs + glimpsed_runs >= 3 then 'abstain: sampled_too_seldom'
            when judged_runs = 0 and glimpsed_runs > 0 then 'abstain: sampled_too_seldom'
            when 2 * unseen_runs > runs then 'abstain: not_observed'
            -- Three runs of a job. Of what lives on, 30 hours (as AWS Compute Optimizer asks) of one pod, or of pods begun
            -- on three dates: thirty replicas for an hour are one hour.
            when judged_runs < 3 and not is_long_lived then 'abstain: few_runs'
            when is_long_lived and longest_hours < 30 and (judged_dates < 3 or judged_hours < 30) then 'abstain: few_runs'
            when util_only_ratio > 0.05 then 'abstain: activity_unknown'
            when known_ratio is null or known_ratio < 0.5 then 'abstain: not_observed'
            -- Kernels all the time and no activity at all: one of the counters is stuck.
            when active_ratio <= 0.01 and resident_mean > 0.5 then 'abstain: counters_disagree'
            when share_ratio < 1 then 'abstain: device_shared'
            when active_ratio <= case when is_coarse then 0.0 else 0.01 end then 'stop: idle'
            when gang_devices < asked_devices then 'shrink: devices_never_busy'
            when activity_mean < 0.5 and activity_mean >= 0.05 and starved_runs_ratio >= 0.5 then 'fix_input: starved_shape'
            when activity_mean < 0.5 and activity_mean >= 0.05 and pcie_rx_ratio >= 0.3 then 'fix_input: pcie_bound'
            when asked_devices > 1 and activity_sevenths <= 3 then 'keep: gang_works_lightly'
            when asked_devices > 1 then 'keep: all_devices_used'
            when profile is not null and not is_coarse then 'share: mig_fits'
            when time_slices is not null and not is_coarse then 'share: time_slice_fits'
            when smaller_accelerator is not null then 'smaller_model: smaller_card_fits'
            when mig_profile like '1g.%' then 'keep: smallest_instance'
            when activity_sevenths <= 3 then case when is_coarse then 'keep: peaks_may_be_missed' else 'keep: memory_needed' end
            else 'keep: all_devices_used'
        end as finding
    from fitted
),
split as (
    select *, regexp_extract(finding, '^([a-z_]+)', 1) as verdict, regexp_extract(finding, ': ([a-z_]+)$', 1) as reason
    from reasoned
)
select
    team, namespace, owner_kind, template, accelerator, role, resource, asked_devices, verdict, reason,
    case
        when verdict = 'abstain' then null
        when judged_runs >= 20 and not is_coarse and known_ratio >= 0.9 and judged_hours >= 168 then 'high'
        when (judged_runs >= 5 or (is_long_lived and longest_hours >= 72)) and known_ratio >= 0.75 then 'medium'
        else 'low'
    end as confidence,
    case
        when verdict = 'abstain' then null
        when verdict = 'stop' then 0
        when verdict = 'shrink' then gang_devices
        else asked_devices
    end as suggested_devices,
    case
        when verdict = 'share' then coalesce(profile, 'time-slice/' || cast(time_slices as varchar))
        when verdict = 'smaller_model' then smaller_accelerator
    end as suggested_placement,
    case when verdict = 'abstain' or verdict = 'stop' then null else memory_needed_bytes end as suggested_memory_bytes,
    runs, cast(judged_runs as bigint) as judged_runs, cast(failed_runs as bigint) as failed_runs,
    cast(unjudged_runs as bigint) as unjudged_runs, cast(pods as bigint) as pods, gang_pods, judged_hours,
    cast($end_at - interval 28 day as timestamp) as window_from_at, first_run_at, last_run_at, sampling_interval_s, known_ratio,
    peak_busy_devices, peak_busy_devices_p95, peak_busy_devices_mean, needed_devices, ever_busy_devices, active_ratio,
    over_1_of_7_ratio, over_3_of_7_ratio, activity_peak, sm_active_p95, activity_mean, tensor_peak, tensor_p95, dram_p95,
    resident_mean, occupancy_mean, pcie_rx_ratio, starved_runs_ratio, memory_peak_bytes, fb_used_bytes_p95,
    memory_total_bytes, mig_profile, is_out_of_memory, cast(allocated_gpu_seconds as double) / 3600 as allocated_gpu_hours,
    cast(stranded_gpu_seconds as double) / 3600 as stranded_gpu_hours
from split
