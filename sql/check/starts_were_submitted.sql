-- Nothing starts that was not submitted, or before it was, or with more GPUs than it asked for.
-- table: core.job_starts
select date, cluster, log_id, job_id, attempt, submitted_at, run_started_at, gpu_milli, asked_gpu_milli
from core.job_starts
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (submitted_at is null or submitted_at > run_started_at or gpu_milli > asked_gpu_milli)
