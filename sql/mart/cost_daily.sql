-- mart.cost_hourly by day and team.
-- grain: date, team, namespace, accelerator, provider, region, part, owner, commitment
-- key: date, team, namespace, accelerator, provider, region, cost_part, owner_team, commitment_id
-- inputs: mart.cost_hourly
-- invariant: sums to mart.cost_hourly in every column
select
    date, team, namespace, accelerator, provider, region, cost_part, owner_team, commitment_id,
    -- In the group: money of two currencies does not add up, and two rows of one key are refused.
    billing_currency, sum(list_cost) as list_cost, sum(contracted_cost) as contracted_cost,
    cast(sum(billed_cost) as decimal(28, 10)) as billed_cost,
    cast(sum(effective_cost) as decimal(28, 10)) as effective_cost,
    cast(sum(utilized_cost) as decimal(28, 10)) as utilized_cost,
    cast(sum(stranded_cost) as decimal(28, 10)) as stranded_cost,
    cast(sum(unobserved_cost) as decimal(28, 10)) as unobserved_cost,
    sum(allocated_gpu_seconds) as allocated_gpu_seconds, sum(utilized_gpu_seconds) as utilized_gpu_seconds,
    sum(stranded_gpu_seconds) as stranded_gpu_seconds, sum(unobserved_gpu_seconds) as unobserved_gpu_seconds,
    sum(unallocated_gpu_seconds) as unallocated_gpu_seconds, sum(unavailable_gpu_seconds) as unavailable_gpu_seconds,
    sum(metered_energy_j) as metered_energy_j, sum(metered_gpu_seconds) as metered_gpu_seconds
from mart.cost_hourly
where date >= cast($start_at as date) and date < cast($end_at as date)
group by
    date, team, namespace, accelerator, provider, region, cost_part, owner_team, commitment_id, billing_currency
