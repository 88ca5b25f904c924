-- FOCUS 1.4: the purchase of a commitment is charged to the commitment itself at the standard price, covers later
-- charges and so costs nothing effectively, has a quantity and no status. No purchase is usage-based.
-- table: mart.focus_cost_and_usage
select
    date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "ResourceId", "CommitmentDiscountId",
    "PricingCategory", "ChargeFrequency",
    "EffectiveCost", "CommitmentDiscountQuantity", "CommitmentDiscountStatus"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and "ChargeCategory" = 'Purchase'
    and (
        "ChargeFrequency" = 'Usage-Based'
        or (
            "CommitmentDiscountId" is not null
            and (
                "ResourceId" is distinct from "CommitmentDiscountId" or "EffectiveCost" <> 0
                or "CommitmentDiscountStatus" is not null
                or (
                    "ChargeClass" is null
                    and ("PricingCategory" is distinct from 'Standard' or "CommitmentDiscountQuantity" is null)
                )
            )
        )
    )
