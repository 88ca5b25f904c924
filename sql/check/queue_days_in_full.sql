-- The days of the queue hold every event of its jobs: starts and ends as logged, waits for every start, and running
-- time as in the spells.
-- table: mart.queue_daily
with logged as (
    select
        date, cluster, queue, sum(case when event_kind = 'intended' then 1 else 0 end) as starts,
        sum(case when event_kind = 'submitted' then 1 else 0 end) as submitted_jobs
    from raw.scheduler_events
    where date >= cast($start_at as date) and date < cast($end_at as date) and job_id is not null
    group by date, cluster, queue
),
told as (
    select
        date, cluster, queue, sum(starts) as starts, sum(submitted_jobs) as submitted_jobs,
        sum(case when starts > 0 and (mean_wait_s is null or p95_wait_s < p50_wait_s) then 1 else 0 end) as without_wait,
        sum(case when first_starts > starts or pending_at_end > depth_max then 1 else 0 end) as out_of_bounds
    from mart.queue_daily
    where date >= cast($start_at as date) and date < cast($end_at as date)
    group by date, cluster, queue
)
select
    coalesce(l.date, t.date) as date, coalesce(l.cluster, t.cluster) as cluster, coalesce(l.queue, t.queue) as queue,
    l.starts as logged_starts, t.starts, l.submitted_jobs as logged_submitted_jobs, t.submitted_jobs, t.without_wait,
    t.out_of_bounds
from logged as l
full join told as t on t.date = l.date and t.cluster = l.cluster and t.queue = l.queue
where
    coalesce(l.starts, 0) <> coalesce(t.starts, 0) or coalesce(l.submitted_jobs, 0) <> coalesce(t.submitted_jobs, 0)
    or t.without_wait > 0 or t.out_of_bounds > 0
