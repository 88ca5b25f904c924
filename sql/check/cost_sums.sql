-- Nothing is lost in dividing: over the parts of each charge, every cost and quantity adds up to the charge's to the
-- last digit, every charge has parts, and no part is without a charge.
-- table: mart.cost_hourly
with parts as (
    select
        date, charge_id, count(*) as parts, sum(list_cost) as list_cost, sum(contracted_cost) as contracted_cost,
        sum(billed_cost) as billed_cost, sum(effective_cost) as effective_cost,
        sum(pricing_quantity) as pricing_quantity, sum(consumed_quantity) as consumed_quantity,
        sum(commitment_quantity) as commitment_quantity
    from mart.cost_hourly
    where date >= cast($start_at as date) and date < cast($end_at as date)
    group by date, charge_id
),
origins as (
    select
        date, charge_id, list_cost, contracted_cost, billed_cost, effective_cost, pricing_quantity, consumed_quantity,
        commitment_quantity
    from core.charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
)
select
    coalesce(o.date, p.date) as date, coalesce(o.charge_id, p.charge_id) as charge_id, p.parts, o.list_cost,
    p.list_cost as parts_list_cost, o.contracted_cost, p.contracted_cost as parts_contracted_cost, o.billed_cost,
    p.billed_cost as parts_billed_cost, o.effective_cost, p.effective_cost as parts_effective_cost, o.pricing_quantity,
    p.pricing_quantity as parts_pricing_quantity, p.consumed_quantity as parts_consumed_quantity,
    p.commitment_quantity as parts_commitment_quantity
from origins as o
full join parts as p on p.date = o.date and p.charge_id = o.charge_id
where
    o.charge_id is null or p.charge_id is null or o.list_cost is distinct from p.list_cost
    or o.contracted_cost is distinct from p.contracted_cost or o.billed_cost is distinct from p.billed_cost
    or o.effective_cost is distinct from p.effective_cost or o.pricing_quantity is distinct from p.pricing_quantity
    or o.consumed_quantity is distinct from p.consumed_quantity
    or o.commitment_quantity is distinct from p.commitment_quantity
