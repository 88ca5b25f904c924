-- No part of a charge is more than the charge, and none has another sign: a share of a node's price never exceeds the
-- node's price.
-- table: mart.cost_hourly
with origins as (
    select
        date, charge_id, list_cost, contracted_cost, billed_cost, effective_cost, pricing_quantity, consumed_quantity,
        commitment_quantity
    from core.charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
)
select p.date, p.charge_id, p.cost_part, p.holder, p.list_cost, p.contracted_cost, p.billed_cost, p.effective_cost
from mart.cost_hourly as p
inner join origins as o on o.date = p.date and o.charge_id = p.charge_id
where
    p.date >= cast($start_at as date) and p.date < cast($end_at as date)
    and (
        p.list_cost not between least(o.list_cost, 0) and greatest(o.list_cost, 0)
        or p.contracted_cost not between least(o.contracted_cost, 0) and greatest(o.contracted_cost, 0)
        or p.billed_cost not between least(o.billed_cost, 0) and greatest(o.billed_cost, 0)
        or p.effective_cost not between least(o.effective_cost, 0) and greatest(o.effective_cost, 0)
        or p.pricing_quantity not between least(o.pricing_quantity, 0) and greatest(o.pricing_quantity, 0)
        or p.consumed_quantity not between least(o.consumed_quantity, 0) and greatest(o.consumed_quantity, 0)
        or p.commitment_quantity not between least(o.commitment_quantity, 0) and greatest(o.commitment_quantity, 0)
    )
