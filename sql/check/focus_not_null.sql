-- FOCUS 1.4: columns that allow no null have none.
-- table: mart.focus_cost_and_usage
select date, x_charge_id, x_cost_part, x_holder, "ChargeCategory"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (
        "BilledCost" is null or "BillingAccountId" is null or "BillingAccountType" is null
        or "BillingCurrency" is null or "BillingPeriodEnd" is null or "BillingPeriodStart" is null
        or "ChargeCategory" is null or "ChargeFrequency" is null or "ChargePeriodEnd" is null
        or "ChargePeriodStart" is null or "ContractedCost" is null or "EffectiveCost" is null
        or "InvoiceIssuerName" is null or "ListCost" is null or "PricingCurrency" is null
        or "PricingCurrencyEffectiveCost" is null or "ServiceCategory" is null or "ServiceName" is null
        or "ServiceProviderName" is null or "ServiceSubcategory" is null
    )
