-- FOCUS 1.4: unit prices are never negative, and a quantity has its unit. A computed charge has its price, its quantity
-- and a pricing category; where no price was found the charge says so.
-- table: mart.focus_cost_and_usage
select
    date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "SkuPriceId", "PricingQuantity", "PricingUnit",
    "ListUnitPrice", "ContractedUnitPrice",
    "PricingCurrencyListUnitPrice", "PricingCurrencyContractedUnitPrice", "PricingCategory"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (
        least(
            "ListUnitPrice", "ContractedUnitPrice", "PricingCurrencyListUnitPrice", "PricingCurrencyContractedUnitPrice"
        ) < 0
        or ("PricingQuantity" is null) <> ("PricingUnit" is null)
        or (
            x_charge_origin = 'computed' and "ChargeCategory" in ('Usage', 'Purchase') and "ChargeClass" is null
            and not coalesce(x_flags, '') like '%no_price%' and not coalesce(x_flags, '') like '%no_rate%'
            and (
                "ListUnitPrice" is null or "ContractedUnitPrice" is null or "PricingQuantity" is null
                or "PricingCategory" is null or "SkuPriceId" is null
            )
        )
    )
