-- What runs when a day ends is what was started until then and has not ended: starts less ends, job by job from the
-- events, against the spells. Logs with events missing, which the import has named, are left out.
-- table: mart.queue_daily
with whole as (
    select cluster, log_id, max(event_at) as newest_at
    from raw.scheduler_events
    group by cluster, log_id
    having count(*) = max(event_id)
),
clusters as (
    select cluster, min(is_whole) as is_whole
    from (
        select r.cluster, r.log_id, max(case when w.log_id is not null then 1 else 0 end) as is_whole
        from raw.scheduler_events as r
        left join whole as w on w.cluster = r.cluster and w.log_id = r.log_id
        group by r.cluster, r.log_id
    ) as logs
    group by cluster
),
days as (
    select cast(day_at as timestamp) + interval 1 day as end_at, cast(day_at as date) as date
    from unnest(generate_series($start_at, $end_at - interval 1 day, interval 1 day)) as d(day_at)
),
jobs as (
    select
        d.date, e.cluster, e.log_id, e.job_id, max(e.queue) as queue, max(e.size_class) as size_class,
        sum(case when e.event_kind = 'intended' then 1 else 0 end) as starts,
        sum(
            case
                when e.event_kind in ('ended', 'patience_over') then 1
                when e.event_kind = 'killed' and e.gpu_milli is null then 1
                else 0
            end
        ) as ends,
        max(case when e.event_kind = 'cancelled' then 1 else 0 end) as is_cancelled
    from days as d
    inner join raw.scheduler_events as e on e.event_at < d.end_at and e.job_id is not null
    inner join whole as w on w.cluster = e.cluster and w.log_id = e.log_id and w.newest_at >= d.end_at - interval 1 day
    group by d.date, e.cluster, e.log_id, e.job_id
),
expected as (
    select
        date, cluster, queue, size_class, sum(case when is_cancelled = 1 then 0 else starts - ends end) as running,
        max(case when starts - ends not in (0, 1) then job_id end) as impossible_job
    from jobs
    group by date, cluster, queue, size_class
),
told as (
    select q.date, q.cluster, q.queue, q.size_class, q.running_at_end
    from mart.queue_daily as q
    inner join clusters as c on c.cluster = q.cluster and c.is_whole = 1
    where q.date >= cast($start_at as date) and q.date < cast($end_at as date)
)
select
    coalesce(x.date, t.date) as date, coalesce(x.cluster, t.cluster) as cluster, coalesce(x.queue, t.queue) as queue,
    coalesce(x.size_class, t.size_class) as size_class, x.running, t.running_at_end, x.impossible_job
from expected as x
inner join clusters as c on c.cluster = x.cluster and c.is_whole = 1
full join told as t
    on t.date = x.date and t.cluster = x.cluster and t.queue = x.queue and t.size_class = x.size_class
where coalesce(x.running, 0) <> coalesce(t.running_at_end, 0) or x.impossible_job is not null
