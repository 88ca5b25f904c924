-- FOCUS 1.4: the ratios of a split add up to 1 over its origin, as told in AllocatedMethodDetails and in
-- x_allocated_ratio. Corrections are differences and have no ratio.
-- table: mart.focus_cost_and_usage
with told as (
    select
        date, x_charge_id, "BillingPeriodStart" as billed_from_at, x_allocated_ratio,
        list_sum(list_transform(
            json_extract_string("AllocatedMethodDetails", '$.Elements[*].AllocatedRatio'),
            lambda r: cast(r as decimal(18, 12))
        )) as ratio
    from mart.focus_cost_and_usage
    where
        date >= cast($start_at as date) and date < cast($end_at as date)
        and "AllocatedMethodDetails" is not null
)
select date, x_charge_id, count(*) as parts, sum(ratio) as details, sum(x_allocated_ratio) as ratios
from told
group by date, x_charge_id, billed_from_at
having sum(ratio) <> 1 or sum(x_allocated_ratio) <> 1 or count(ratio) <> count(*)
