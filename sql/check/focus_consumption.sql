-- FOCUS 1.4: only usage consumes, a consumed quantity has its unit, and a capacity reservation has a status on usage
-- only.
-- table: mart.focus_cost_and_usage
select
    date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "ConsumedQuantity", "ConsumedUnit",
    "CapacityReservationId",
    "CapacityReservationStatus"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (
        ("ChargeCategory" <> 'Usage' and "ConsumedQuantity" is not null)
        or (
            coalesce("CommitmentDiscountStatus", '') <> 'Unused'
            and ("ConsumedQuantity" is null) <> ("ConsumedUnit" is null)
        )
        or ("CapacityReservationStatus" is not null and "CapacityReservationId" is null)
        or ("CapacityReservationStatus" is null and "CapacityReservationId" is not null and "ChargeCategory" = 'Usage')
    )
