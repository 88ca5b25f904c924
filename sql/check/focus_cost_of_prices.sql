-- FOCUS 1.4: ListCost = ListUnitPrice x PricingQuantity and ContractedCost = ContractedUnitPrice x PricingQuantity, to
-- the last digit, wherever both factors are there. A bill's row that breaks this by itself is flagged, and its costs
-- are dealt.
-- table: mart.focus_cost_and_usage
select
    date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "PricingQuantity", "ListUnitPrice", "ListCost",
    "ContractedUnitPrice", "ContractedCost"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and not coalesce(x_flags, '') like '%cost_not_price_times_quantity%'
    and (
        "ListCost" <> "ListUnitPrice" * "PricingQuantity"
        or "ContractedCost" <> "ContractedUnitPrice" * "PricingQuantity"
    )
