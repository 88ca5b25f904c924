-- FOCUS 1.4: what is split keeps the origin's dimensions: resource, service, SKU, unit prices, period and tags are the
-- same on all rows. Corrections of a charge may differ from what they correct, and among each other.
-- table: mart.focus_cost_and_usage
select date, x_charge_id, count(*) as parts, min("ResourceId") as resource, max("ResourceId") as other_resource
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and x_charge_scope = 'node' and ("ChargeClass" is null or x_charge_origin = 'bill')
group by date, x_charge_id, "BillingPeriodStart", "ChargeClass"
having
    count(distinct concat_ws(
        chr(31),
        coalesce(cast("ResourceId" as varchar), ''), coalesce(cast("ResourceName" as varchar), ''),
        coalesce(cast("ResourceType" as varchar), ''), coalesce(cast("RegionId" as varchar), ''),
        coalesce(cast("ServiceName" as varchar), ''), coalesce(cast("ServiceCategory" as varchar), ''),
        coalesce(cast("ServiceSubcategory" as varchar), ''), coalesce(cast("SkuId" as varchar), ''),
        coalesce(cast("SkuPriceId" as varchar), ''), coalesce(cast("SkuPriceDetails" as varchar), ''),
        coalesce(cast("ListUnitPrice" as varchar), ''), coalesce(cast("ContractedUnitPrice" as varchar), ''),
        coalesce(cast("PricingCategory" as varchar), ''), coalesce(cast("PricingUnit" as varchar), ''),
        coalesce(cast("ChargeCategory" as varchar), ''), coalesce(cast("ChargePeriodStart" as varchar), ''),
        coalesce(cast("ChargePeriodEnd" as varchar), ''), coalesce(cast("CommitmentDiscountId" as varchar), ''),
        coalesce(cast("CommitmentDiscountStatus" as varchar), ''), coalesce(cast("BillingCurrency" as varchar), ''),
        coalesce(cast("Tags" as varchar), '')
    )) > 1
