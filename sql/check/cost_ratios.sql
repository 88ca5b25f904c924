-- The ratios of a charge's parts add up to exactly 1; none is negative, none less than its part for accelerators.
-- table: mart.cost_hourly
select
    date, charge_id, sum(allocated_ratio) as ratios, min(allocated_ratio) as smallest, min(gpu_ratio) as smallest_gpu
from mart.cost_hourly
where date >= cast($start_at as date) and date < cast($end_at as date)
group by date, charge_id
having
    sum(allocated_ratio) <> 1 or min(allocated_ratio) < 0 or min(gpu_ratio) < 0
    or min(allocated_ratio - gpu_ratio) < 0 or count(allocated_ratio) < count(*) or count(gpu_ratio) < count(*)
