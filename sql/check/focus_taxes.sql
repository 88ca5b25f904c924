-- FOCUS 1.4: a tax has no SKU, price, priced quantity or pricing category, and its effective cost is what is billed.
-- table: mart.focus_cost_and_usage
select
    date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "SkuId", "SkuPriceId", "PricingCategory",
    "PricingQuantity", "ListUnitPrice",
    "ContractedUnitPrice", "BilledCost", "EffectiveCost"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and "ChargeCategory" = 'Tax'
    and (
        coalesce("SkuId", "SkuPriceId", "SkuMeter", "SkuPriceDetails", "PricingCategory", "PricingUnit") is not null
        or coalesce(
            "ListUnitPrice", "ContractedUnitPrice", "PricingCurrencyListUnitPrice", "PricingCurrencyContractedUnitPrice"
        ) is not null
        or "PricingQuantity" is not null or "EffectiveCost" <> "BilledCost"
    )
