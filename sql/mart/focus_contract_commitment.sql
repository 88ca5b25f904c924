-- FOCUS 1.4 Contract Commitment: the newest record of every commitment in the rate cards, in its own currency. A rate
-- card knows no contract above the commitment, so each is its own contract, on the public terms of the card.
-- Capacity reservations and prepaid blocks give availability, all others a discount. What is committed lapses by the
-- hour. The cost is what is paid over the whole term; the state is that at the end of the lake's newest date.
-- grain: commitment
-- key: ContractCommitmentId, InvoiceIssuerName
-- inputs: raw.commitments
-- invariant: upfront share of the cost = upfront_cost; All Upfront is 1, No Upfront 0
with records as (
    select
        *,
        row_number() over (partition by provider, commitment_id order by as_of desc, source desc, source_line) as age,
        chr(92) as slash,
        chr(34) as quotes,
        date_diff('second', starts_at, ends_at) as term_s,
        12 * (extract(year from ends_at) - extract(year from starts_at))
            + extract(month from ends_at) - extract(month from starts_at) as months
    from raw.commitments
),
costs as (
    select
        *,
        cast(coalesce(upfront_cost, 0) * 10000000000 as hugeint) as upfront_units,
        cast(coalesce(upfront_cost, 0) * 10000000000 as hugeint)
            + cast(coalesce(recurring_cost, 0) * 10000000000 as hugeint) * term_s // 3600 as units,
        case
            when starts_at + months * interval 1 month <> ends_at or months < 1 then null
            when months % 12 = 0 then months // 12
            else months
        end as length
    from records
    where age = 1
),
scopes as (
    select
        *,
        '{"Dimension":"ServiceProviderName","Operator":"In","Values":["'
            || replace(replace(provider, slash, slash || slash), quotes, slash || quotes) || '"]}'
            || case
                when region is null or region = '*' then ''
                else ',{"Dimension":"RegionId","Operator":"In","Values":["'
                    || replace(replace(region, slash, slash || slash), quotes, slash || quotes) || '"]}'
            end
            || case
                when eligible_instance_types is null then ''
                else ',{"Dimension":"x_instance_type","Operator":"In","Values":["' || replace(
                    replace(replace(
                        replace(eligible_instance_types, ' ', ''), slash, slash || slash
                    ), quotes, slash || quotes), ',', '","'
                ) || '"]}'
            end as inclusions
    from costs
)
select
    currency as "BillingCurrency",
    '{"InclusionOperator":"And","Inclusions":[' || inclusions || ']}' as "ContractCommitmentApplicability",
    case when is_capacity_reservation then 'Availability' else 'Discount' end as "ContractCommitmentBenefitCategory",
    commitment_category as "ContractCommitmentCategory",
    cast(cast(units as decimal(28, 0)) * 0.0000000001 as decimal(28, 10)) as "ContractCommitmentCost",
    starts_at as "ContractCommitmentCreated",
    coalesce(commitment_name, commitment_type, commitment_id) as "ContractCommitmentDescription",
    cast(null as decimal(18, 12)) as "ContractCommitmentDiscountPercentage",
    case
        when length is not null and months % 12 = 0
            then cast(length as varchar) || case when length = 1 then ' Year' else ' Years' end
        when length is not null then cast(length as varchar) || case when length = 1 then ' Month' else ' Months' end
        when term_s % 86400 = 0
            then cast(term_s // 86400 as varchar) || case when term_s = 86400 then ' Day' else ' Days' end
        else cast(term_s // 3600 as varchar) || case when term_s // 3600 = 1 then ' Hour' else ' Hours' end
    end as "ContractCommitmentDurationType",
    'Hourly' as "ContractCommitmentFulfillmentInterval",
    commitment_id as "ContractCommitmentId",
    greatest(starts_at, cast(as_of as timestamp)) as "ContractCommitmentLastUpdated",
    case when starts_at >= $end_at then 'Pending' when ends_at <= $end_at then 'Expired' else 'Active' end
        as "ContractCommitmentLifecycleStatus",
    'Continuous' as "ContractCommitmentModel",
    'Public' as "ContractCommitmentOfferCategory",
    case
        when payment_model = 'All Upfront' then 'One-Time'
        when payment_interval = 'Hourly' then 'Custom'
        else 'Monthly'
    end as "ContractCommitmentPaymentInterval",
    payment_model as "ContractCommitmentPaymentModel",
    case
        when payment_model = 'All Upfront' then cast(1 as decimal(18, 12))
        when payment_model = 'No Upfront' then cast(0 as decimal(18, 12))
        else cast(cast(upfront_units * 1000000000000 // nullif(units, 0) as decimal(18, 0)) * 0.000000000001
            as decimal(18, 12))
    end as "ContractCommitmentPaymentUpfrontPercentage",
    ends_at as "ContractCommitmentPeriodEnd",
    starts_at as "ContractCommitmentPeriodStart",
    case when commitment_category = 'Usage' then committed_quantity end as "ContractCommitmentQuantity",
    commitment_type as "ContractCommitmentType",
    case when commitment_category = 'Usage' then commitment_unit end as "ContractCommitmentUnit",
    commitment_id as "ContractId",
    ends_at as "ContractPeriodEnd",
    starts_at as "ContractPeriodStart",
    provider as "InvoiceIssuerName",
    currency as "PricingCurrency",
    cast(cast(units as decimal(28, 0)) * 0.0000000001 as decimal(28, 10)) as "PricingCurrencyContractCommitmentCost",
    provider as "ServiceProviderName"
from scopes
