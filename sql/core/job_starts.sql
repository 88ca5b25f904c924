-- Every start of a job of the queue: how long it had waited until then, requeues included, and when its pods were bound.
-- The first start of a job also has the first time that the job was told, or why it was told none.
-- grain: start of a job
-- key: date, cluster, log_id, job_id, attempt
-- inputs: raw.scheduler_events
-- invariant: waited_us >= 0; a start has a submission
with events as (
    select
        e.*, sum(case when event_kind = 'intended' then 1 else 0 end) over (
            partition by cluster, log_id, job_id order by event_id rows between unbounded preceding and current row
        ) as starts_so_far
    from raw.scheduler_events as e
    where job_id is not null
),
steps as (
    select
        *,
        case
            when event_kind in ('submitted', 'resubmitted') then true
            when event_kind in ('killed', 'patience_over') then gpu_milli is null
            when event_kind = 'ended' then not coalesce(is_success, false)
            else false
        end as is_waiting,
        lead(event_at) over (partition by cluster, log_id, job_id order by event_id) as next_at
    from events
    where
        event_kind in (
            'submitted', 'impossible', 'intended', 'resized', 'killed', 'patience_over', 'resubmitted', 'ended', 'cancelled'
        )
),
waits as (
    select
        *,
        sum(case when is_waiting then greatest(date_diff('microsecond', event_at, next_at), 0) else 0 end) over (
            partition by cluster, log_id, job_id order by event_id rows between unbounded preceding and 1 preceding
        ) as waited_us
    from steps
),
submissions as (
    select cluster, log_id, job_id, min(event_at) as submitted_at, min(gpu_milli) as asked_gpu_milli
    from events
    where event_kind = 'submitted'
    group by cluster, log_id, job_id
),
binds as (
    select cluster, log_id, job_id, starts_so_far, min(event_at) as bound_at
    from events
    where event_kind = 'bound'
    group by cluster, log_id, job_id, starts_so_far
),
passed_over as (
    select cluster, log_id, job_id, count(*) as times
    from events
    where event_kind in ('waiting', 'estimated') and starts_so_far = 0
    group by cluster, log_id, job_id
),
told as (
    select *
    from events
    where event_kind = 'estimated' and starts_so_far = 0 and p50_at is not null
    qualify row_number() over (partition by cluster, log_id, job_id order by event_id) = 1
),
reasons as (
    select *
    from events
    where event_kind = 'estimated' and starts_so_far = 0 and p50_at is null
    qualify row_number() over (partition by cluster, log_id, job_id order by event_id desc) = 1
)
select
    w.date, w.cluster, w.log_id, w.job_id, cast(w.starts_so_far as bigint) as attempt, w.queue, w.team, w.size_class,
    w.gpu_milli, s.asked_gpu_milli, s.submitted_at, w.event_at as run_started_at, b.bound_at,
    w.starts_so_far = 1 as is_first, cast(coalesce(w.waited_us, 0) as bigint) as waited_us,
    p.times is not null as was_passed_over, t.estimated_at, t.estimate_method, t.p50_at, t.p90_at, t.bound_p90_at,
    case
        when w.starts_so_far = 1 and p.times is not null and t.p50_at is null
            then coalesce(nullif(r.reason, ''), 'it started before any estimate')
    end as no_estimate_reason
from waits as w
left join submissions as s on s.cluster = w.cluster and s.log_id = w.log_id and s.job_id = w.job_id
left join binds as b
    on b.cluster = w.cluster and b.log_id = w.log_id and b.job_id = w.job_id and b.starts_so_far = w.starts_so_far
left join passed_over as p on p.cluster = w.cluster and p.log_id = w.log_id and p.job_id = w.job_id
left join told as t
    on t.cluster = w.cluster and t.log_id = w.log_id and t.job_id = w.job_id and w.starts_so_far = 1
left join reasons as r on r.cluster = w.cluster and r.log_id = w.log_id and r.job_id = w.job_id
where w.event_kind = 'intended' and w.date >= cast($start_at as date) and w.date < cast($end_at as date)
