-- FOCUS 1.4: what neither covers nor is covered by another charge costs effectively what is billed. So a file that
-- holds purchases and what they cover has one total; balances of commitments are checked by focus_commitment_balance.
-- table: mart.focus_cost_and_usage
select date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "BilledCost", "EffectiveCost"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and x_charge_origin = 'computed' and "ChargeCategory" in ('Usage', 'Adjustment') and "CommitmentDiscountId" is null
    and "EffectiveCost" <> "BilledCost"
