-- Where GPU-time is stranded, by team: the ledger summed over devices. Rows without a team are time nobody held.
-- grain: hour, team, namespace, accelerator
-- key: hour, team, namespace, accelerator
-- inputs: mart.gpu_ledger_hourly
-- invariant: sums to the ledger in every column
select
    hour, team, namespace, accelerator,
    sum(capacity_gpu_seconds) as capacity_gpu_seconds, sum(allocated_gpu_seconds) as allocated_gpu_seconds,
    sum(unallocated_gpu_seconds) as unallocated_gpu_seconds, sum(unavailable_gpu_seconds) as unavailable_gpu_seconds,
    sum(utilized_gpu_seconds) as utilized_gpu_seconds, sum(stranded_gpu_seconds) as stranded_gpu_seconds,
    sum(unobserved_gpu_seconds) as unobserved_gpu_seconds, sum(resident_gpu_seconds) as resident_gpu_seconds,
    sum(rogue_gpu_seconds) as rogue_gpu_seconds, date
from mart.gpu_ledger_hourly
where date >= cast($start_at as date) and date < cast($end_at as date)
group by hour, team, namespace, accelerator, date
