-- A job does one thing at a time: its spells do not overlap, and none lies outside its date.
-- table: core.job_spells
with spells as (
    select
        date, cluster, log_id, job_id, spell, interval_start_at, interval_end_at,
        lag(interval_end_at) over (partition by date, cluster, log_id, job_id order by interval_start_at, spell) as before_at
    from core.job_spells
    where date >= cast($start_at as date) and date < cast($end_at as date)
)
select date, cluster, log_id, job_id, spell, interval_start_at, interval_end_at, before_at
from spells
where
    interval_start_at < before_at or interval_start_at >= interval_end_at
    or interval_start_at < cast(date as timestamp) or interval_end_at > cast(date as timestamp) + interval 1 day
