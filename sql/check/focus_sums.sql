-- Every charge is in the FOCUS table whole: over its rows (holders, waste, what statements told and what corrects them)
-- each cost is the charge's, and so is each quantity unless a correction could tell none. So no change of a closed
-- month is unseen.
-- table: mart.focus_cost_and_usage
with told as (
    select
        date, x_charge_id, sum("ListCost") as list_cost, sum("ContractedCost") as contracted_cost,
        sum("BilledCost") as billed_cost, sum("EffectiveCost") as effective_cost,
        sum("PricingQuantity") as pricing_quantity, sum("ConsumedQuantity") as consumed_quantity,
        sum("CommitmentDiscountQuantity") as commitment_quantity,
        count(*) filter (
            where "ChargeClass" = 'Correction' and "PricingQuantity" is null and x_allocated_ratio is null
        ) > 0 as lacks_quantities
    from mart.focus_cost_and_usage
    where date >= cast($start_at as date) and date < cast($end_at as date)
    group by date, x_charge_id
),
charged as (
    select
        date, charge_id, list_cost, contracted_cost, billed_cost, effective_cost, pricing_quantity, consumed_quantity,
        commitment_quantity
    from core.charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
)
select
    coalesce(c.date, t.date) as date, coalesce(c.charge_id, t.x_charge_id) as charge_id, c.list_cost,
    t.list_cost as told_list, c.contracted_cost, t.contracted_cost as told_contracted, c.billed_cost,
    t.billed_cost as told_billed, c.effective_cost, t.effective_cost as told_effective, c.pricing_quantity, t.pricing_quantity as told_quantity
from charged as c
full outer join told as t on t.date = c.date and t.x_charge_id = c.charge_id
where
    coalesce(c.list_cost, 0) <> coalesce(t.list_cost, 0)
    or coalesce(c.contracted_cost, 0) <> coalesce(t.contracted_cost, 0)
    or coalesce(c.billed_cost, 0) <> coalesce(t.billed_cost, 0)
    or coalesce(c.effective_cost, 0) <> coalesce(t.effective_cost, 0)
    or (c.charge_id is not null and t.x_charge_id is null)
    or (
        not coalesce(t.lacks_quantities, false)
        and (
            coalesce(c.pricing_quantity, 0) <> coalesce(t.pricing_quantity, 0)
            or coalesce(c.consumed_quantity, 0) <> coalesce(t.consumed_quantity, 0)
            or coalesce(c.commitment_quantity, 0) <> coalesce(t.commitment_quantity, 0)
        )
    )
