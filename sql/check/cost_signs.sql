-- Only credits, corrections and what a provider calls an adjustment take money back; every other cost is at least 0.
-- table: mart.cost_hourly
with givers as (
    select date, charge_id
    from core.charges
    where
        date >= cast($start_at as date) and date < cast($end_at as date)
        and (charge_category in ('Credit', 'Adjustment') or charge_class is not distinct from 'Correction')
)
select p.date, p.charge_id, p.cost_part, p.holder, p.charge_category, p.list_cost, p.billed_cost, p.effective_cost
from mart.cost_hourly as p
anti join givers as g on g.date = p.date and g.charge_id = p.charge_id
where
    p.date >= cast($start_at as date) and p.date < cast($end_at as date)
    and (
        p.list_cost < 0 or p.contracted_cost < 0 or p.billed_cost < 0 or p.effective_cost < 0 or p.pricing_quantity < 0
        or p.consumed_quantity < 0 or p.commitment_quantity < 0
    )
