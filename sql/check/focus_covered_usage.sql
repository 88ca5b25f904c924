-- FOCUS 1.4: usage of a commitment says whether it is used or unused, is priced as committed, has a quantity of the
-- commitment, and is not billed again. Nothing else has a status; quantity and unit go together.
-- table: mart.focus_cost_and_usage
select
    date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "CommitmentDiscountId", "CommitmentDiscountStatus",
    "PricingCategory",
    "CommitmentDiscountQuantity", "CommitmentDiscountUnit", "BilledCost"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (
        ("CommitmentDiscountStatus" is not null) <> ("CommitmentDiscountId" is not null and "ChargeCategory" = 'Usage')
        or ("CommitmentDiscountQuantity" is null) <> ("CommitmentDiscountUnit" is null)
        or (
            "CommitmentDiscountStatus" is not null and "ChargeClass" is null
            and (
                "PricingCategory" is distinct from 'Committed' or "CommitmentDiscountQuantity" is null
                or (x_charge_origin = 'computed' and "BilledCost" <> 0)
            )
        )
    )
