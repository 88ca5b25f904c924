-- FOCUS 1.4: what a commitment did not use is charged to the commitment itself, is not billed and not consumed, and is
-- some quantity of it.
-- table: mart.focus_cost_and_usage
select
    date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "ResourceId", "CommitmentDiscountId", "BilledCost",
    "ConsumedQuantity",
    "ConsumedUnit", "CommitmentDiscountQuantity"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and "ChargeCategory" = 'Usage' and "CommitmentDiscountStatus" = 'Unused'
    and (
        "ResourceId" is distinct from "CommitmentDiscountId" or "BilledCost" <> 0
        or "ConsumedQuantity" is not null or "ConsumedUnit" is not null
        or ("ChargeClass" is null and "CommitmentDiscountQuantity" <= 0)
    )
