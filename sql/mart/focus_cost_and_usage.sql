-- FOCUS 1.4 Cost and Usage. A node's charge becomes one row per holder and per kind of what nobody held: resource, SKU,
-- unit prices and tags stay the origin's, the pod is the allocated resource; the origin row itself is left out. Charges
-- that are not divided (commitments, credits, tax) carry no Allocated columns. PricingCurrencyEffectiveCost is dealt
-- over a split by cumulated ratio, so it adds up to the origin's. Rows of a closed month are those of its newest
-- statement; what the charges say differently today is a Correction row in the billing month after the last closed one,
-- over the original's charge period: one per charge, part, holder, team and accelerator, its amounts the differences.
-- Where the unit price changed, the correction has no SKU price, quantity or unit price, since none stands for it.
-- grain: charge, part, holder, billing period, class
-- key: date, x_charge_id, x_cost_part, x_holder, x_team, x_gpu_model, BillingPeriodStart, ChargeClass
-- inputs: core.charges, mart.cost_hourly, mart.cost_statement, mart.focus_statement, raw.commitments
-- invariant: over a charge every summable metric = the charge's; corrections + statement = what is computed today
with statements as (
    select month, statement_id, row_number() over (partition by month order by issued_at desc, statement_id desc) as age
    from (select distinct month, statement_id, issued_at from mart.cost_statement) as s
),
newest as (
    select month, statement_id from statements where age = 1
),
opened as (
    select
        cast(max(month) as timestamp) + interval 1 month as period_start_at,
        cast(max(month) as timestamp) + interval 2 month as period_end_at
    from newest
),
charges as (
    select
        *,
        case
            when pricing_currency is null or pricing_currency_effective_cost is null then billing_currency
            else pricing_currency
        end as priced_in,
        cast(pricing_currency_effective_cost * 10000000000 as hugeint) as priced_units,
        -- FOCUS 1.4: a SKU price has unit prices, which bills may leave out
        case
            when list_unit_price is not null and contracted_unit_price is not null then sku_price_id
        end as price_id,
        case
            when charge_category = 'Usage' and (
                commitment_type is not null
                or (charge_scope = 'node' and coalesce(pricing_category, '') <> 'Dynamic')
            ) then true
            else false
        end as is_eligible
    from core.charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- Categories and subcategories of services in FOCUS 1.4; what a bill says differently is "Other".
services as (
    select category, subcategories
    from (
        values
        ('AI and Machine Learning', ',AI Platforms,Bots,Generative AI,Machine Learning,Natural Language Processing,'),
        ('Analytics', ',Analytics Platforms,Business Intelligence,Data Processing,Search,Streaming Analytics,'),
        ('Business Applications', ',Productivity and Collaboration,'),
        ('Compute', ',Containers,End User Computing,Quantum Compute,Serverless Compute,Virtual Machines,'),
        (
            'Databases',
            ',Caching,Data Warehouses,Ledger Databases,NoSQL Databases,Relational Databases'
            || ',Time Series Databases,'
        ),
        (
            'Developer Tools',
            ',Continuous Integration and Deployment,Developer Platforms,Development Environments'
            || ',Quality Assurance,Source Code Management,'
        ),
        ('Multicloud', ',Multicloud Integration,'),
        ('Identity', ',Identity and Access Management,'),
        ('Integration', ',API Management,Messaging,Workflow Orchestration,'),
        ('Internet of Things', ',IoT Analytics,IoT Platforms,'),
        (
            'Management and Governance',
            ',Architecture,Compliance,Cost Management,Data Governance,Disaster Recovery'
            || ',Endpoint Management,Observability,Support,'
        ),
        ('Media', ',Content Creation,Gaming,Media Streaming,Mixed Reality,'),
        ('Migration', ',Data Migration,Resource Migration,'),
        ('Mobile', ''),
        (
            'Networking',
            ',Application Networking,Content Delivery,Network Connectivity,Network Infrastructure'
            || ',Network Routing,Network Security,'
        ),
        ('Security', ',Secret Management,Security Posture Management,Threat Detection and Response,'),
        ('Storage', ',Backup Storage,Block Storage,File Storage,Object Storage,Storage Platforms,'),
        ('Web', ',Application Platforms,'),
        ('Other', '')
    ) as v(category, subcategories)
),
-- Commitment programs that could cover a charge: those of its provider for its region and instance type, and its own.
kinds as (
    select distinct provider, region, instance_type, commitment_type from charges where is_eligible
),
programs as (
    select k.provider, k.region, k.instance_type, k.commitment_type, m.commitment_type as program
    from kinds as k
    inner join raw.commitments as m
        on m.provider = k.provider and m.commitment_type is not null
        and (m.region is null or m.region = '*' or m.region = k.region)
        and (
            m.eligible_instance_types is null
            or position(
                ',' || k.instance_type || ',' in ',' || replace(m.eligible_instance_types, ' ', '') || ','
            ) > 0
        )
    union
    select provider, region, instance_type, commitment_type, commitment_type
    from kinds
    where commitment_type is not null
),
listed as (
    select
        provider, region, instance_type, commitment_type,
        '{"CommitmentPrograms":[' || string_agg(
            '{"ProgramType":"'
                || replace(replace(program, chr(92), chr(92) || chr(92)), chr(34), chr(92) || chr(34)) || '"}',
            ',' order by program
        ) || ']}' as programs
    from programs
    group by provider, region, instance_type, commitment_type
),
-- Text in JSON: backslash and quote escaped, control characters blanked; numbers without trailing zeros.
parts as (
    select
        *,
        coalesce(gpu_ratio, 0) as gpu_share,
        cast(allocated_gpu_seconds + unallocated_gpu_seconds + unavailable_gpu_seconds as varchar) as seconds,
        '[' || chr(1) || '-' || chr(31) || ']' as controls,
        sum(cast(allocated_ratio * 1000000000000 as hugeint)) over (
            partition by date, charge_id order by cost_part, holder rows unbounded preceding
        ) as cumulated,
        cast(allocated_ratio * 1000000000000 as hugeint) as ratio
    from mart.cost_hourly
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
texts as (
    select
        *,
        '{"Elements":['
            || case
                when gpu_share > 0
                    then '{"AllocatedRatio":' || regexp_replace(cast(gpu_share as varchar), '[.]?0+$', '')
                        || ',"UsageUnit":"GPU-Seconds","UsageQuantity":'
                        || regexp_replace(seconds, '[.]?0+$', '') || '}'
                else ''
            end
            || case when gpu_share > 0 and allocated_ratio > gpu_share then ',' else '' end
            || case
                when allocated_ratio > gpu_share or gpu_share = 0
                    then '{"AllocatedRatio":'
                        || regexp_replace(cast(allocated_ratio - gpu_share as varchar), '[.]?0+$', '')
                        || ',"UsageUnit":"CPU and Memory Requests"}'
                else ''
            end
            || ']}' as details,
        case
            when holder is not null
                then '{"team":'
                    || coalesce(
                        '"' || replace(replace(
                            regexp_replace(team, controls, ' ', 'g'), chr(92), chr(92) || chr(92)
                        ), chr(34), chr(92) || chr(34)) || '"', 'null'
                    )
                    || ',"namespace":' || coalesce('"' || namespace || '"', 'null')
                    || ',"workload_kind":' || coalesce('"' || workload_kind || '"', 'null') || '}'
        end as holder_tags
    from parts
),
computed as (
    select
        cast(null as varchar) as statement_id,
        cast(null as timestamp) as issued_at,
        cast(date_trunc('month', c.billing_period_start_at) as date) as month,
        c.date,
        case when c.charge_scope = 'node' then h.details end as "AllocatedMethodDetails",
        case when c.charge_scope = 'node' then h.method_id end as "AllocatedMethodId",
        case when c.charge_scope = 'node' then h.holder end as "AllocatedResourceId",
        case when c.charge_scope = 'node' then h.pod end as "AllocatedResourceName",
        case when c.charge_scope = 'node' then h.holder_tags end as "AllocatedTags",
        c.zone as "AvailabilityZone", h.billed_cost as "BilledCost",
        coalesce(c.billing_account_id, c.provider) as "BillingAccountId",
        coalesce(c.billing_account_id, c.provider) as "BillingAccountName",
        'Billing Account' as "BillingAccountType",
        c.billing_currency as "BillingCurrency", c.billing_period_end_at as "BillingPeriodEnd",
        c.billing_period_start_at as "BillingPeriodStart", c.capacity_reservation_id as "CapacityReservationId",
        c.capacity_reservation_status as "CapacityReservationStatus", c.charge_category as "ChargeCategory",
        c.charge_class as "ChargeClass", c.charge_description as "ChargeDescription",
        coalesce(
            c.charge_frequency, case when c.charge_category = 'Usage' then 'Usage-Based' else 'One-Time' end
        ) as "ChargeFrequency",
        c.charge_period_end_at as "ChargePeriodEnd", c.charge_period_start_at as "ChargePeriodStart",
        c.commitment_category as "CommitmentDiscountCategory", c.commitment_id as "CommitmentDiscountId",
        c.commitment_name as "CommitmentDiscountName", h.commitment_quantity as "CommitmentDiscountQuantity",
        c.commitment_discount_status as "CommitmentDiscountStatus", c.commitment_type as "CommitmentDiscountType",
        case when h.commitment_quantity is not null then c.commitment_unit end as "CommitmentDiscountUnit",
        p.programs as "CommitmentProgramEligibilityDetails", h.consumed_quantity as "ConsumedQuantity",
        case when h.consumed_quantity is not null then c.consumed_unit end as "ConsumedUnit",
        case
            when
                c.charge_category = 'Usage' and c.commitment_discount_status = 'Used'
                and h.commitment_quantity is not null
                then '{"Elements":[{"ContractId":"' || replace(replace(
                    c.commitment_id, chr(92), chr(92) || chr(92)
                ), chr(34), chr(92) || chr(34)) || '","ContractCommitmentId":"' || replace(replace(
                    c.commitment_id, chr(92), chr(92) || chr(92)
                ), chr(34), chr(92) || chr(34)) || '",' || case
                    when c.commitment_category = 'Spend' and c.commitment_unit = c.billing_currency
                        then '"ContractCommitmentAppliedCost":'
                            || regexp_replace(cast(h.commitment_quantity as varchar), '[.]?0+$', '')
                    else '"ContractCommitmentAppliedQuantity":'
                        || regexp_replace(cast(h.commitment_quantity as varchar), '[.]?0+$', '')
                        || ',"ContractCommitmentAppliedUnit":"' || coalesce(c.commitment_unit, 'Hours') || '"'
                end || '}]}'
        end as "ContractApplied",
        h.contracted_cost as "ContractedCost", c.contracted_unit_price as "ContractedUnitPrice",
        h.effective_cost as "EffectiveCost",
        coalesce(c.host_provider, c.provider) as "HostProviderName",
        cast(null as varchar) as "InvoiceDetailId",
        c.invoice_id as "InvoiceId",
        coalesce(c.invoice_issuer, c.provider) as "InvoiceIssuerName",
        h.list_cost as "ListCost", c.list_unit_price as "ListUnitPrice", c.pricing_category as "PricingCategory",
        c.priced_in as "PricingCurrency",
        case
            when c.priced_in = c.billing_currency then c.contracted_unit_price
            else c.pricing_currency_contracted_unit_price
        end as "PricingCurrencyContractedUnitPrice",
        case
            when c.priced_in = c.billing_currency then h.effective_cost
            else cast(cast(
                c.priced_units * h.cumulated // 1000000000000
                - c.priced_units * (h.cumulated - h.ratio) // 1000000000000 as decimal(28, 0)
            ) * 0.0000000001 as decimal(28, 10))
        end as "PricingCurrencyEffectiveCost",
        case
            when c.priced_in = c.billing_currency then c.list_unit_price else c.pricing_currency_list_unit_price
        end as "PricingCurrencyListUnitPrice",
        h.pricing_quantity as "PricingQuantity",
        case when h.pricing_quantity is not null then c.pricing_unit end as "PricingUnit",
        c.region as "RegionId", c.region as "RegionName", c.resource_id as "ResourceId",
        c.resource_name as "ResourceName",
        case
            when c.resource_id is null then null
            when c.charge_scope = 'commitment' then coalesce(c.resource_type, 'Commitment')
            else coalesce(c.resource_type, 'Resource')
        end as "ResourceType",
        coalesce(g.category, 'Other') as "ServiceCategory",
        coalesce(c.service_name, c.service_category, 'Other') as "ServiceName",
        coalesce(c.service_provider, c.provider) as "ServiceProviderName",
        case
            when position(',' || c.service_subcategory || ',' in g.subcategories) > 0 then c.service_subcategory
            else 'Other (' || coalesce(g.category, 'Other') || ')'
        end as "ServiceSubcategory",
        c.sku_id as "SkuId", c.sku_meter as "SkuMeter",
        case when c.price_id is not null then c.sku_price_details end as "SkuPriceDetails",
        c.price_id as "SkuPriceId", c.sub_account_id as "SubAccountId", c.sub_account_id as "SubAccountName",
        case when c.sub_account_id is not null then 'Sub Account' end as "SubAccountType",
        cast(to_json(c.tags) as varchar) as "Tags",
        h.charge_id as x_charge_id, h.cost_part as x_cost_part, h.holder as x_holder,
        c.charge_origin as x_charge_origin, c.charge_scope as x_charge_scope,
        case h.cost_part
            when 'unallocated' then 'provisioned_unallocated'
            when 'unavailable' then 'unavailable'
            when 'committed_unused' then 'committed_unused'
            when 'node_overhead' then 'node_overhead'
            when 'unledgered' then 'unledgered'
        end as x_waste_kind,
        h.bearer as x_bearer, c.cluster as x_cluster, c.node as x_node, h.namespace as x_namespace, h.pod as x_pod,
        h.team as x_team, h.workload_kind as x_workload_kind, c.owner_team as x_owner_team,
        c.instance_type as x_instance_type, c.accelerator as x_gpu_model, c.gpu_count as x_gpu_count,
        h.method_id as x_price_share_method, h.allocated_ratio as x_allocated_ratio, h.gpu_ratio as x_gpu_ratio,
        h.allocated_gpu_seconds as x_gpu_seconds_allocated, h.utilized_gpu_seconds as x_gpu_seconds_utilized,
        h.stranded_gpu_seconds as x_gpu_seconds_stranded, h.unobserved_gpu_seconds as x_gpu_seconds_unobserved,
        h.unallocated_gpu_seconds as x_gpu_seconds_unallocated,
        h.unavailable_gpu_seconds as x_gpu_seconds_unavailable, h.utilized_cost as x_cost_utilized,
        h.stranded_cost as x_cost_stranded, h.unobserved_cost as x_cost_unobserved, h.flags as x_flags,
        cast(null as varchar) as x_statement_id
    from texts as h
    inner join charges as c on c.date = h.date and c.charge_id = h.charge_id
    left join services as g on g.category = c.service_category
    left join listed as p
        on c.is_eligible and p.provider = c.provider and p.region is not distinct from c.region
        and p.instance_type is not distinct from c.instance_type
        and p.commitment_type is not distinct from c.commitment_type
),
frozen as (
    select s.*
    from mart.focus_statement as s
    inner join newest as n on n.month = s.month and n.statement_id = s.statement_id
    where s.date >= cast($start_at as date) and s.date < cast($end_at as date)
),
-- What is computed today for closed months, against all that statements have told of the same charges.
sides as (
    select c.*, 1 as side from computed as c inner join newest as n on n.month = c.month
    union all
    select *, -1 from frozen
),
differences as (
    select
        date, x_charge_id, x_cost_part, x_holder, x_team, x_gpu_model,
        case
            when
                count("SkuPriceId") = count(*) and min("ListUnitPrice") = max("ListUnitPrice")
                and min("ContractedUnitPrice") = max("ContractedUnitPrice") and min("PricingUnit") = max("PricingUnit")
                then true
            else false
        end as is_one_price,
        sum(side * "BilledCost") as billed_cost,
        sum(case when side = 1 then "ContractedCost" else -"ContractedCost" end) as contracted_cost,
        sum(side * "EffectiveCost") as effective_cost,
        sum(case when side = 1 then "ListCost" else -"ListCost" end) as list_cost,
        sum(side * "PricingCurrencyEffectiveCost") as pricing_currency_effective_cost,
        sum(side * "PricingQuantity") as pricing_quantity, sum(side * "ConsumedQuantity") as consumed_quantity,
        sum(side * "CommitmentDiscountQuantity") as commitment_quantity,
        sum(side * x_gpu_seconds_allocated) as gpu_seconds_allocated,
        sum(side * x_gpu_seconds_utilized) as gpu_seconds_utilized,
        sum(side * x_gpu_seconds_stranded) as gpu_seconds_stranded,
        sum(side * x_gpu_seconds_unobserved) as gpu_seconds_unobserved,
        sum(side * x_gpu_seconds_unallocated) as gpu_seconds_unallocated,
        sum(side * x_gpu_seconds_unavailable) as gpu_seconds_unavailable,
        sum(side * x_cost_utilized) as cost_utilized, sum(side * x_cost_stranded) as cost_stranded,
        sum(side * x_cost_unobserved) as cost_unobserved
    from sides
    group by date, x_charge_id, x_cost_part, x_holder, x_team, x_gpu_model
),
changed as (
    select *
    from differences
    where
        billed_cost <> 0 or contracted_cost <> 0 or effective_cost <> 0 or list_cost <> 0 or
        pricing_currency_effective_cost <> 0 or pricing_quantity <> 0 or consumed_quantity <> 0 or commitment_quantity
        <> 0 or gpu_seconds_allocated <> 0 or gpu_seconds_utilized <> 0 or gpu_seconds_stranded <> 0 or
        gpu_seconds_unobserved <> 0 or gpu_seconds_unallocated <> 0 or gpu_seconds_unavailable <> 0 or cost_utilized
        <> 0 or cost_stranded <> 0 or cost_unobserved <> 0
),
examples as (
    select
        s.*,
        row_number() over (
            partition by s.date, s.x_charge_id, s.x_cost_part, s.x_holder, s.x_team, s.x_gpu_model
            order by s.side desc, s."BillingPeriodStart"
        ) as place
    from sides as s
    inner join changed as d
        on d.date = s.date and d.x_charge_id = s.x_charge_id and d.x_cost_part = s.x_cost_part
        and d.x_holder is not distinct from s.x_holder and d.x_team is not distinct from s.x_team
        and d.x_gpu_model is not distinct from s.x_gpu_model
),
corrections as (
    select
        cast(null as varchar) as statement_id, cast(null as timestamp) as issued_at,
        cast(o.period_start_at as date) as month, s.date,
        cast(null as varchar) as "AllocatedMethodDetails", s."AllocatedMethodId", s."AllocatedResourceId",
        s."AllocatedResourceName", s."AllocatedTags", s."AvailabilityZone",
        cast(d.billed_cost as decimal(28, 10)) as "BilledCost", s."BillingAccountId", s."BillingAccountName",
        s."BillingAccountType", s."BillingCurrency", o.period_end_at as "BillingPeriodEnd",
        o.period_start_at as "BillingPeriodStart", s."CapacityReservationId", s."CapacityReservationStatus",
        s."ChargeCategory", 'Correction' as "ChargeClass",
        'Correction: ' || coalesce(s."ChargeDescription", s."ChargeCategory") as "ChargeDescription",
        s."ChargeFrequency", s."ChargePeriodEnd", s."ChargePeriodStart", s."CommitmentDiscountCategory",
        s."CommitmentDiscountId", s."CommitmentDiscountName",
        case when d.is_one_price then cast(d.commitment_quantity as decimal(18, 9)) end as "CommitmentDiscountQuantity",
        s."CommitmentDiscountStatus", s."CommitmentDiscountType",
        case when d.is_one_price and d.commitment_quantity is not null then s."CommitmentDiscountUnit" end
            as "CommitmentDiscountUnit",
        s."CommitmentProgramEligibilityDetails",
        case when d.is_one_price then cast(d.consumed_quantity as decimal(18, 9)) end as "ConsumedQuantity",
        case when d.is_one_price and d.consumed_quantity is not null then s."ConsumedUnit" end as "ConsumedUnit",
        cast(null as varchar) as "ContractApplied", cast(d.contracted_cost as decimal(38, 18)) as "ContractedCost",
        case when d.is_one_price then s."ContractedUnitPrice" end as "ContractedUnitPrice",
        cast(d.effective_cost as decimal(28, 10)) as "EffectiveCost", s."HostProviderName",
        cast(null as varchar) as "InvoiceDetailId", cast(null as varchar) as "InvoiceId", s."InvoiceIssuerName",
        cast(d.list_cost as decimal(38, 18)) as "ListCost",
        case when d.is_one_price then s."ListUnitPrice" end as "ListUnitPrice",
        case when d.is_one_price then s."PricingCategory" end as "PricingCategory", s."PricingCurrency",
        case when d.is_one_price then s."PricingCurrencyContractedUnitPrice" end
            as "PricingCurrencyContractedUnitPrice",
        cast(d.pricing_currency_effective_cost as decimal(28, 10)) as "PricingCurrencyEffectiveCost",
        case when d.is_one_price then s."PricingCurrencyListUnitPrice" end as "PricingCurrencyListUnitPrice",
        case when d.is_one_price then cast(d.pricing_quantity as decimal(18, 9)) end as "PricingQuantity",
        case when d.is_one_price then s."PricingUnit" end as "PricingUnit", s."RegionId", s."RegionName",
        s."ResourceId", s."ResourceName", s."ResourceType", s."ServiceCategory", s."ServiceName",
        s."ServiceProviderName", s."ServiceSubcategory", s."SkuId", s."SkuMeter",
        case when d.is_one_price then s."SkuPriceDetails" end as "SkuPriceDetails",
        case when d.is_one_price then s."SkuPriceId" end as "SkuPriceId", s."SubAccountId", s."SubAccountName",
        s."SubAccountType", s."Tags", s.x_charge_id, s.x_cost_part, s.x_holder, s.x_charge_origin, s.x_charge_scope,
        s.x_waste_kind, s.x_bearer, s.x_cluster, s.x_node, s.x_namespace, s.x_pod, s.x_team, s.x_workload_kind,
        s.x_owner_team, s.x_instance_type, s.x_gpu_model, s.x_gpu_count, s.x_price_share_method,
        cast(null as decimal(18, 12)) as x_allocated_ratio, cast(null as decimal(18, 12)) as x_gpu_ratio,
        cast(d.gpu_seconds_allocated as decimal(18, 6)) as x_gpu_seconds_allocated,
        cast(d.gpu_seconds_utilized as decimal(18, 6)) as x_gpu_seconds_utilized,
        cast(d.gpu_seconds_stranded as decimal(18, 6)) as x_gpu_seconds_stranded,
        cast(d.gpu_seconds_unobserved as decimal(18, 6)) as x_gpu_seconds_unobserved,
        cast(d.gpu_seconds_unallocated as decimal(18, 6)) as x_gpu_seconds_unallocated,
        cast(d.gpu_seconds_unavailable as decimal(18, 6)) as x_gpu_seconds_unavailable,
        cast(d.cost_utilized as decimal(28, 10)) as x_cost_utilized,
        cast(d.cost_stranded as decimal(28, 10)) as x_cost_stranded,
        cast(d.cost_unobserved as decimal(28, 10)) as x_cost_unobserved, s.x_flags,
        cast(null as varchar) as x_statement_id
    from changed as d
    inner join examples as s
        on s.place = 1 and s.date = d.date and s.x_charge_id = d.x_charge_id and s.x_cost_part = d.x_cost_part
        and s.x_holder is not distinct from d.x_holder and s.x_team is not distinct from d.x_team
        and s.x_gpu_model is not distinct from d.x_gpu_model
    cross join opened as o
),
told as (
    select c.* from computed as c left join newest as n on n.month = c.month where n.month is null
    union all
    select * from frozen
    union all
    select * from corrections
)
select
    date, "AllocatedMethodDetails", "AllocatedMethodId", "AllocatedResourceId", "AllocatedResourceName",
    "AllocatedTags", "AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName", "BillingAccountType",
    "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "CapacityReservationId", "CapacityReservationStatus",
    "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart",
    "CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountQuantity",
    "CommitmentDiscountStatus", "CommitmentDiscountType", "CommitmentDiscountUnit",
    "CommitmentProgramEligibilityDetails", "ConsumedQuantity", "ConsumedUnit", "ContractApplied", "ContractedCost",
    "ContractedUnitPrice", "EffectiveCost", "HostProviderName", "InvoiceDetailId", "InvoiceId", "InvoiceIssuerName",
    "ListCost", "ListUnitPrice", "PricingCategory", "PricingCurrency", "PricingCurrencyContractedUnitPrice",
    "PricingCurrencyEffectiveCost", "PricingCurrencyListUnitPrice", "PricingQuantity", "PricingUnit", "RegionId",
    "RegionName", "ResourceId", "ResourceName", "ResourceType", "ServiceCategory", "ServiceName",
    "ServiceProviderName", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceDetails", "SkuPriceId", "SubAccountId",
    "SubAccountName", "SubAccountType", "Tags", x_charge_id, x_cost_part, x_holder, x_charge_origin, x_charge_scope,
    x_waste_kind, x_bearer, x_cluster, x_node, x_namespace, x_pod, x_team, x_workload_kind, x_owner_team,
    x_instance_type, x_gpu_model, x_gpu_count, x_price_share_method, x_allocated_ratio, x_gpu_ratio,
    x_gpu_seconds_allocated, x_gpu_seconds_utilized, x_gpu_seconds_stranded, x_gpu_seconds_unobserved,
    x_gpu_seconds_unallocated, x_gpu_seconds_unavailable, x_cost_utilized, x_cost_stranded, x_cost_unobserved,
    x_flags, statement_id as x_statement_id
from told
