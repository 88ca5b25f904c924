-- When jobs of the queue waited and ran. A spell begins with an event and lasts until the job's next one that changes
-- anything: an eviction that leaves some pods begins a smaller run, a stop begins a backoff, or nothing where it was the
-- last of the job. Events count in the order of the log.
-- grain: date, job, spell
-- key: date, cluster, log_id, job_id, spell
-- inputs: raw.scheduler_events
-- invariant: interval_start_at < interval_end_at, both within the date; spells of a job do not overlap
with steps as (
    select
        *,
        case
            when event_kind in ('submitted', 'resubmitted') then 'queued'
            when event_kind in ('intended', 'resized') then 'running'
            when event_kind = 'killed' and gpu_milli is not null then 'running'
            when event_kind in ('killed', 'patience_over') and coalesce(will_return, true) then 'backoff'
            when event_kind = 'ended' and not coalesce(is_success, false) and coalesce(will_return, true) then 'backoff'
        end as spell_state
    from raw.scheduler_events
    where
        job_id is not null
        and event_kind in (
            'submitted', 'impossible', 'intended', 'resized', 'killed', 'patience_over', 'resubmitted', 'ended', 'cancelled'
        )
),
spells as (
    select
        cluster, log_id, job_id, event_id as spell, queue, team, size_class, spell_state, gpu_milli, event_at as started_at,
        lead(event_at) over (partition by cluster, log_id, job_id order by event_id) as finished_at,
        lead(event_kind) over (partition by cluster, log_id, job_id order by event_id) as end_reason,
        min(case when event_kind = 'submitted' then event_at end) over (partition by cluster, log_id, job_id) as submitted_at,
        min(case when event_kind = 'submitted' then gpu_milli end) over (partition by cluster, log_id, job_id) as asked_gpu_milli,
        sum(case when event_kind = 'intended' then 1 else 0 end) over (
            partition by cluster, log_id, job_id order by event_id rows between unbounded preceding and current row
        ) as attempt
    from steps
),
days as (
    select cast(day_at as timestamp) as day_at
    from unnest(generate_series($start_at, $end_at - interval 1 day, interval 1 day)) as d(day_at)
),
newest as (
    select cluster, log_id, max(event_at) as newest_at
    from raw.scheduler_events
    group by cluster, log_id
)
select
    cast(d.day_at as date) as date, s.cluster, s.log_id, s.job_id, s.spell, s.queue, s.team, s.size_class, s.spell_state,
    case when s.spell_state = 'running' then s.gpu_milli else 0 end as gpu_milli, s.asked_gpu_milli,
    nullif(cast(s.attempt as bigint), 0) as attempt, s.submitted_at, s.started_at, s.finished_at,
    coalesce(s.end_reason, 'open') as end_reason, greatest(s.started_at, d.day_at) as interval_start_at,
    -- A spell that is still open is known up to the newest event of its log, that instant included.
    least(coalesce(s.finished_at, n.newest_at + interval 1 microsecond), d.day_at + interval 1 day) as interval_end_at
from spells as s
inner join newest as n on n.cluster = s.cluster and n.log_id = s.log_id
inner join days as d
    on s.started_at < d.day_at + interval 1 day and (s.finished_at is null or s.finished_at > d.day_at)
where
    s.spell_state is not null
    and (s.finished_at is null or s.finished_at > s.started_at)
    and (s.finished_at is not null or d.day_at <= n.newest_at)
