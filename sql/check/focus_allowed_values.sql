-- FOCUS 1.4: enumerated columns hold one of the allowed values, in its spelling; currencies are three capitals.
-- table: mart.focus_cost_and_usage
select
    date, x_charge_id, x_cost_part, x_holder, "ChargeCategory", "ChargeClass", "ChargeFrequency", "PricingCategory",
    "CommitmentDiscountStatus", "CapacityReservationStatus", "ServiceCategory"
from mart.focus_cost_and_usage
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (
        "CapacityReservationStatus" not in ('Used', 'Unused')
        or "ChargeCategory" not in ('Usage', 'Purchase', 'Tax', 'Credit', 'Adjustment')
        or "ChargeClass" not in ('Correction')
        or "ChargeFrequency" not in ('One-Time', 'Recurring', 'Usage-Based')
        or "CommitmentDiscountCategory" not in ('Spend', 'Usage')
        or "CommitmentDiscountStatus" not in ('Used', 'Unused')
        or "PricingCategory" not in ('Standard', 'Dynamic', 'Committed', 'Other')
        or "ServiceCategory" not in ('AI and Machine Learning', 'Analytics', 'Business Applications',
            'Compute', 'Databases', 'Developer Tools', 'Multicloud', 'Identity', 'Integration', 'Internet of
            Things', 'Management and Governance', 'Media', 'Migration', 'Mobile', 'Networking', 'Security',
            'Storage', 'Web', 'Other')
        or not regexp_full_match("BillingCurrency", '[A-Z]{3}') or not regexp_full_match("PricingCurrency", '[A-Z]{3}')
    )
