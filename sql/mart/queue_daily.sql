-- What the queue did each day, by queue and size of job: arrivals, starts, ends, evictions, waits, depth, GPU-hours.
-- Waits are of the starts of the day: all time the job had waited until then, and for first starts since submission.
-- The day that goes on is told as far as the newest event of the log, its end is that instant.
-- grain: date, queue, size class
-- key: date, cluster, queue, size_class
-- inputs: raw.scheduler_events, core.job_spells, core.job_starts
-- invariant: starts that did not end are running_at_end; a day without jobs has no row
with events as (
    select
        date, cluster, queue, size_class,
        sum(case when event_kind = 'submitted' then 1 else 0 end) as submitted_jobs,
        sum(case when event_kind = 'impossible' then 1 else 0 end) as impossible_jobs,
        sum(case when event_kind = 'intended' then 1 else 0 end) as starts,
        sum(case when event_kind = 'ended' and is_success then 1 else 0 end) as ended_jobs,
        sum(
            case when event_kind in ('ended', 'patience_over') and not coalesce(is_success, false) and not will_return then 1 else 0 end
        ) as failed_jobs,
        sum(case when event_kind = 'cancelled' then 1 else 0 end) as cancelled_jobs,
        sum(case when event_kind = 'killed' and gpu_milli is null then 1 else 0 end) as evictions,
        sum(case when event_kind = 'killed' and gpu_milli is not null then 1 else 0 end) as shrinks,
        sum(
            case when event_kind in ('ended', 'patience_over') and not coalesce(is_success, false) then 1 else 0 end
        ) as losses,
        sum(case when event_kind = 'resubmitted' then 1 else 0 end) as requeues,
        sum(coalesce(lost_gpu_seconds, 0)) as lost_gpu_seconds,
        sum(
            case
                when lost_gpu_seconds is not null or gpu_milli is not null then 0
                when event_kind in ('killed', 'patience_over') then 1
                when event_kind = 'ended' and not coalesce(is_success, false) then 1
                else 0
            end
        ) as unknown_losses
    from raw.scheduler_events
    where date >= cast($start_at as date) and date < cast($end_at as date) and queue is not null
    group by date, cluster, queue, size_class
),
spells as (
    select
        *, date_diff('microsecond', interval_start_at, interval_end_at) as spell_us,
        finished_at is null or finished_at >= cast(date as timestamp) + interval 1 day as is_at_end
    from core.job_spells
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
times as (
    select
        date, cluster, queue, size_class,
        sum(case when spell_state <> 'running' then spell_us else 0 end) / 3600000000.0 as waiting_job_hours,
        sum(case when spell_state <> 'running' then spell_us * (asked_gpu_milli / 1000.0) else 0 end) / 3600000000.0 as waiting_gpu_hours,
        sum(case when spell_state = 'running' then spell_us * (gpu_milli / 1000.0) else 0 end) / 3600000000.0 as run_gpu_hours,
        sum(case when is_at_end and spell_state <> 'running' then 1 else 0 end) as pending_at_end,
        sum(case when is_at_end and spell_state = 'running' then 1 else 0 end) as running_at_end
    from spells
    group by date, cluster, queue, size_class
),
turns as (
    select date, cluster, queue, size_class, interval_start_at as turn_at, 1 as turn
    from spells
    where spell_state <> 'running'
    union all
    select date, cluster, queue, size_class, interval_end_at, -1
    from spells
    where spell_state <> 'running'
),
steps as (
    select date, cluster, queue, size_class, turn_at, sum(turn) as turn
    from turns
    group by date, cluster, queue, size_class, turn_at
),
depths as (
    select
        date, cluster, queue, size_class,
        sum(turn) over (
            partition by date, cluster, queue, size_class order by turn_at rows between unbounded preceding and current row
        ) as depth
    from steps
),
deepest as (
    select date, cluster, queue, size_class, max(depth) as depth_max
    from depths
    group by date, cluster, queue, size_class
),
starts as (
    select * from core.job_starts where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- a job that started twice on a day counts with the last of these starts
last_starts as (
    select *
    from starts
    qualify row_number() over (partition by date, cluster, log_id, job_id order by attempt desc) = 1
),
ranked as (
    select
        *, row_number() over (partition by date, cluster, queue, size_class order by waited_us, log_id, job_id) as place,
        count(*) over (partition by date, cluster, queue, size_class) as in_all
    from last_starts
),
waits as (
    select
        date, cluster, queue, size_class, avg(waited_us) / 1000000.0 as mean_wait_s,
        min(case when 2 * place >= in_all then waited_us end) / 1000000.0 as p50_wait_s,
        min(case when 100 * place >= 95 * in_all then waited_us end) / 1000000.0 as p95_wait_s
    from ranked
    group by date, cluster, queue, size_class
),
first_ranked as (
    select
        *, row_number() over (partition by date, cluster, queue, size_class order by waited_us, log_id, job_id) as place,
        count(*) over (partition by date, cluster, queue, size_class) as in_all
    from starts
    where is_first
),
first_waits as (
    select
        date, cluster, queue, size_class, count(*) as first_starts, avg(waited_us) / 1000000.0 as mean_first_wait_s,
        min(case when 2 * place >= in_all then waited_us end) / 1000000.0 as p50_first_wait_s,
        min(case when 100 * place >= 95 * in_all then waited_us end) / 1000000.0 as p95_first_wait_s
    from first_ranked
    group by date, cluster, queue, size_class
),
groups as (
    select date, cluster, queue, size_class from events
    union
    select date, cluster, queue, size_class from times
)
select
    g.date, g.cluster, g.queue, g.size_class, cast(coalesce(e.submitted_jobs, 0) as bigint) as submitted_jobs,
    cast(coalesce(e.impossible_jobs, 0) as bigint) as impossible_jobs, cast(coalesce(e.starts, 0) as bigint) as starts,
    coalesce(f.first_starts, 0) as first_starts, cast(coalesce(e.ended_jobs, 0) as bigint) as ended_jobs,
    cast(coalesce(e.failed_jobs, 0) as bigint) as failed_jobs, cast(coalesce(e.cancelled_jobs, 0) as bigint) as cancelled_jobs,
    cast(coalesce(e.evictions, 0) as bigint) as evictions, cast(coalesce(e.shrinks, 0) as bigint) as shrinks,
    cast(coalesce(e.losses, 0) as bigint) as losses, cast(coalesce(e.requeues, 0) as bigint) as requeues,
    case
        when coalesce(e.unknown_losses, 0) = 0 then cast(coalesce(e.lost_gpu_seconds, 0) / 3600 as decimal(18, 6))
    end as lost_gpu_hours,
    cast(coalesce(t.waiting_job_hours, 0) as decimal(18, 6)) as waiting_job_hours,
    cast(coalesce(t.waiting_gpu_hours, 0) as decimal(18, 6)) as waiting_gpu_hours,
    cast(coalesce(t.run_gpu_hours, 0) as decimal(18, 6)) as run_gpu_hours,
    cast(coalesce(d.depth_max, 0) as bigint) as depth_max, cast(coalesce(t.pending_at_end, 0) as bigint) as pending_at_end,
    cast(coalesce(t.running_at_end, 0) as bigint) as running_at_end, w.mean_wait_s, w.p50_wait_s, w.p95_wait_s,
    f.mean_first_wait_s, f.p50_first_wait_s, f.p95_first_wait_s
from groups as g
left join events as e
    on e.date = g.date and e.cluster = g.cluster and e.queue = g.queue and e.size_class = g.size_class
left join times as t
    on t.date = g.date and t.cluster = g.cluster and t.queue = g.queue and t.size_class = g.size_class
left join deepest as d
    on d.date = g.date and d.cluster = g.cluster and d.queue = g.queue and d.size_class = g.size_class
left join waits as w
    on w.date = g.date and w.cluster = g.cluster and w.queue = g.queue and w.size_class = g.size_class
left join first_waits as f
    on f.date = g.date and f.cluster = g.cluster and f.queue = g.queue and f.size_class = g.size_class
