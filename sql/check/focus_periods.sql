-- FOCUS 1.4: periods start before they end. A correction of a closed month is billed in a later one than it was charged
-- in.
-- table: mart.focus_cost_and_usage
select
    date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "ChargeClass", "ChargePeriodStart", "ChargePeriodEnd",
    "BillingPeriodStart",
    "BillingPeriodEnd"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (
        "ChargePeriodStart" >= "ChargePeriodEnd" or "BillingPeriodStart" >= "BillingPeriodEnd"
        or ("ChargeClass" = 'Correction' and x_charge_origin = 'computed'
        and "BillingPeriodStart" <= "ChargePeriodStart")
    )
