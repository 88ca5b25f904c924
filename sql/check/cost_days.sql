-- The days add up to the hours they are made of, by team and kind of part: in every cost, in seconds and in energy.
-- table: mart.cost_daily
with differences as (
    select
        date, team, cost_part, list_cost, contracted_cost, billed_cost, effective_cost, utilized_cost, stranded_cost,
        unobserved_cost, allocated_gpu_seconds, utilized_gpu_seconds, stranded_gpu_seconds, unobserved_gpu_seconds,
        unallocated_gpu_seconds, unavailable_gpu_seconds, metered_energy_j, metered_gpu_seconds
    from mart.cost_hourly
    where date >= cast($start_at as date) and date < cast($end_at as date)
    union all
    select
        date, team, cost_part, -list_cost, -contracted_cost, -billed_cost, -effective_cost, -utilized_cost,
        -stranded_cost, -unobserved_cost, -allocated_gpu_seconds, -utilized_gpu_seconds, -stranded_gpu_seconds,
        -unobserved_gpu_seconds, -unallocated_gpu_seconds, -unavailable_gpu_seconds, -metered_energy_j,
        -metered_gpu_seconds
    from mart.cost_daily
    where date >= cast($start_at as date) and date < cast($end_at as date)
)
select
    date, team, cost_part, sum(list_cost) as list_cost, sum(contracted_cost) as contracted_cost,
    sum(billed_cost) as billed_cost, sum(effective_cost) as effective_cost
from differences
group by date, team, cost_part
having
    sum(list_cost) <> 0 or sum(contracted_cost) <> 0 or sum(billed_cost) <> 0 or sum(effective_cost) <> 0
    or sum(utilized_cost) <> 0 or sum(stranded_cost) <> 0 or sum(unobserved_cost) <> 0
    or sum(allocated_gpu_seconds) <> 0 or sum(utilized_gpu_seconds) <> 0 or sum(stranded_gpu_seconds) <> 0
    or sum(unobserved_gpu_seconds) <> 0 or sum(unallocated_gpu_seconds) <> 0 or sum(unavailable_gpu_seconds) <> 0
    or sum(metered_energy_j) <> 0 or sum(metered_gpu_seconds) <> 0
