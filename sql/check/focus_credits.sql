-- FOCUS 1.4: a credit lowers all four costs alike. What is computed is negative only as a credit or a correction.
-- table: mart.focus_cost_and_usage
select
    date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "ChargeClass", "ListCost", "ContractedCost",
    "BilledCost", "EffectiveCost"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (
        (
            "ChargeCategory" = 'Credit'
            and (
                "EffectiveCost" <> "BilledCost" or "ListCost" <> "BilledCost" or "ContractedCost" <> "BilledCost"
                or ("ChargeClass" is null and "BilledCost" > 0)
            )
        )
        or (
            x_charge_origin = 'computed' and "ChargeCategory" <> 'Credit' and "ChargeClass" is null
            and least("ListCost", "ContractedCost", "BilledCost", "EffectiveCost") < 0
        )
    )
