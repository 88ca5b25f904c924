-- Whether jobs of the queue started as they were told: the first time that each job was told against its first start,
-- the share within the target wait, and how fast gangs were bound. Null where there is nothing to judge. Shares are of
-- jobs that started; those that wait beyond their P90 still are overdue_jobs, day after day until they start.
-- grain: date, queue, size class
-- key: date, cluster, queue, size_class
-- inputs: core.job_spells, core.job_starts, raw.scheduler_events, raw.settings
-- invariant: answered_jobs + unanswered_jobs = waited_jobs
with starts as (
    select
        *, date_diff('microsecond', estimated_at, run_started_at) / 1000000.0 as told_wait_s,
        date_diff('microsecond', estimated_at, p50_at) / 1000000.0 as p50_s,
        date_diff('microsecond', estimated_at, p90_at) / 1000000.0 as p90_s,
        date_diff('microsecond', estimated_at, bound_p90_at) / 1000000.0 as bound_p90_s,
        date_diff('microsecond', run_started_at, bound_at) as bind_us
    from core.job_starts
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
targets as (
    select max(cast(value as double)) as target_wait_s from raw.settings where setting = 'queue_target_wait_s'
),
losses as (
    select
        *, greatest(0.5 * (told_wait_s - p50_s), -0.5 * (told_wait_s - p50_s)) as p50_loss_s,
        greatest(0.9 * (told_wait_s - p90_s), -0.1 * (told_wait_s - p90_s)) as p90_loss_s,
        greatest(0.9 * (told_wait_s - bound_p90_s), -0.1 * (told_wait_s - bound_p90_s)) as bound_p90_loss_s
    from starts
    where is_first
),
sums as (
    select
        l.date, l.cluster, l.queue, l.size_class, max(t.target_wait_s) as target_wait_s, count(*) as first_starts,
        sum(case when l.was_passed_over then 1 else 0 end) as waited_jobs,
        sum(case when l.was_passed_over and l.p50_at is not null then 1 else 0 end) as answered_jobs,
        sum(case when l.p50_at >= l.run_started_at then 1 else 0 end) as p50_covers,
        sum(case when l.p90_at >= l.run_started_at then 1 else 0 end) as p90_covers,
        avg(l.p50_loss_s) as p50_pinball_s, avg(l.p90_loss_s) as p90_pinball_s,
        sum(case when l.p90_at is not null and l.bound_p90_at is not null then 1 else 0 end) as bound_jobs,
        avg(case when l.bound_p90_at is not null then l.p90_loss_s end) as bounded_p90_pinball_s,
        avg(l.bound_p90_loss_s) as bound_p90_pinball_s,
        sum(case when l.waited_us <= 1000000 * t.target_wait_s then 1 else 0 end) as within_target_jobs
    from losses as l
    cross join targets as t
    group by l.date, l.cluster, l.queue, l.size_class
),
reasons as (
    select date, cluster, queue, size_class, no_estimate_reason, count(*) as jobs
    from starts
    where no_estimate_reason is not null
    group by date, cluster, queue, size_class, no_estimate_reason
),
reason_texts as (
    select
        date, cluster, queue, size_class,
        string_agg(no_estimate_reason || ': ' || cast(jobs as varchar), '; ' order by no_estimate_reason) as unanswered_reasons
    from reasons
    group by date, cluster, queue, size_class
),
ranked as (
    select
        *, row_number() over (partition by date, cluster, queue, size_class order by bind_us, log_id, job_id, attempt) as place,
        count(*) over (partition by date, cluster, queue, size_class) as in_all
    from starts
    where bind_us is not null
),
binds as (
    select
        date, cluster, queue, size_class, avg(bind_us) / 1000000.0 as mean_bind_s,
        min(case when 100 * place >= 95 * in_all then bind_us end) / 1000000.0 as p95_bind_s
    from ranked
    group by date, cluster, queue, size_class
),
told as (
    select cluster, log_id, job_id, p90_at
    from raw.scheduler_events
    where event_kind = 'estimated' and p90_at is not null
    qualify row_number() over (partition by cluster, log_id, job_id order by event_id) = 1
),
overdue as (
    select w.date, w.cluster, w.queue, w.size_class, count(*) as overdue_jobs
    from core.job_spells as w
    inner join told as t on t.cluster = w.cluster and t.log_id = w.log_id and t.job_id = w.job_id
    where
        w.date >= cast($start_at as date) and w.date < cast($end_at as date) and w.attempt is null
        and (w.finished_at is null or w.finished_at >= cast(w.date as timestamp) + interval 1 day)
        and t.p90_at < w.interval_end_at
    group by w.date, w.cluster, w.queue, w.size_class
),
groups as (
    select date, cluster, queue, size_class from starts
    union
    select date, cluster, queue, size_class from overdue
)
select
    g.date, g.cluster, g.queue, g.size_class, coalesce(s.first_starts, 0) as first_starts,
    cast(coalesce(s.waited_jobs, 0) as bigint) as waited_jobs, cast(coalesce(s.answered_jobs, 0) as bigint) as answered_jobs,
    cast(coalesce(s.waited_jobs - s.answered_jobs, 0) as bigint) as unanswered_jobs, r.unanswered_reasons,
    cast(s.answered_jobs as double) / nullif(s.waited_jobs, 0) as answered_ratio,
    cast(s.p50_covers as double) / nullif(s.answered_jobs, 0) as p50_covers_ratio,
    cast(s.p90_covers as double) / nullif(s.answered_jobs, 0) as p90_covers_ratio, s.p50_pinball_s, s.p90_pinball_s,
    coalesce(o.overdue_jobs, 0) as overdue_jobs, cast(coalesce(s.bound_jobs, 0) as bigint) as bound_jobs, s.bounded_p90_pinball_s, s.bound_p90_pinball_s,
    t.target_wait_s,
    case when t.target_wait_s is not null then cast(coalesce(s.within_target_jobs, 0) as bigint) end as within_target_jobs,
    case
        when t.target_wait_s is not null then cast(s.within_target_jobs as double) / nullif(s.first_starts, 0)
    end as within_target_ratio,
    b.mean_bind_s, b.p95_bind_s
from groups as g
cross join targets as t
left join sums as s
    on s.date = g.date and s.cluster = g.cluster and s.queue = g.queue and s.size_class = g.size_class
left join reason_texts as r
    on r.date = g.date and r.cluster = g.cluster and r.queue = g.queue and r.size_class = g.size_class
left join overdue as o
    on o.date = g.date and o.cluster = g.cluster and o.queue = g.queue and o.size_class = g.size_class
left join binds as b
    on b.date = g.date and b.cluster = g.cluster and b.queue = g.queue and b.size_class = g.size_class
