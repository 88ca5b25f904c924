-- Bills against what the rate cards say they should be, per date, account and resource. What was computed is counted
-- where a bill took its place; verdict says the rest:
-- match, differs: billed and effective cost of the date are within 0.01 of each other, or not;
-- missing_in_bill: an account that names the resource covers the hours and charges nothing for it;
-- not_billed_yet, not_in_bill: what was computed stands, a bill names the resource at other times, or none does;
-- not_computed: a bill charges a node (or commitment) for which no rate card gives a charge;
-- no_price, no_rate: a computed charge without a price, a charge in a currency without a rate: both count as zero;
-- not_in_cluster, other_services, tax, credit: what bills have beside nodes, other than the first without resources.
-- Hours are node-hours as charged: priced quantities in hours or GPU-hours, of several SKUs the largest.
-- grain: date, account, kind of charge, resource
-- key: date, provider, billing_account_id, charge_scope, resource_id
-- inputs: core.bill_resources, core.billed_charges, core.charges, core.computed_charges, raw.bills
-- invariant: bill costs add up to those of core.billed_charges; differences are bill less computed
with kept as (
    select distinct date, charge_id
    from core.charges
    where date >= cast($start_at as date) and date < cast($end_at as date) and charge_origin = 'computed'
),
computed as (
    select
        c.date, c.hour, c.charge_scope, coalesce(c.provider, '(unknown)') as provider, c.billing_account_id,
        case when c.charge_scope in ('node', 'commitment') then c.resource_id end as resource_id, c.cluster, c.node, c.sku_id,
        c.pricing_quantity, lower(c.pricing_unit) as unit, c.gpu_count, c.billed_cost, c.effective_cost, c.billing_currency,
        k.charge_id is not null as is_kept, coalesce(c.flags like '%no_%', false) as is_unpriced,
        coalesce(c.flags like '%no_rate%', false) as is_unconverted
    from core.computed_charges as c
    left join kept as k on k.date = c.date and k.charge_id = c.charge_id
    where c.date >= cast($start_at as date) and c.date < cast($end_at as date)
),
billed as (
    select
        date, hour, charge_scope, coalesce(provider, '(unknown)') as provider, billing_account_id,
        case when charge_scope in ('node', 'commitment', 'not_in_cluster') then resource_id end as resource_id, cluster, node,
        sku_id, pricing_quantity, lower(pricing_unit) as unit, gpu_count, billed_cost, effective_cost, billing_currency,
        coalesce(flags like '%no_rate%', false) as is_unconverted
    from core.billed_charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- Quantities in hours, in units of 1e-9: parts of one SKU add up, several SKUs of one hour do not.
quantities as (
    select
        'computed' as origin, is_kept, date, hour, charge_scope, provider, billing_account_id, resource_id, sku_id,
        pricing_quantity, unit, gpu_count
    from computed
    union all
    select
        'bill', false, date, hour, charge_scope, provider, billing_account_id, resource_id, sku_id, pricing_quantity, unit,
        gpu_count
    from billed
),
sku_hours as (
    select
        origin, is_kept, date, hour, charge_scope, provider, billing_account_id, resource_id, sku_id,
        sum(cast(cast(pricing_quantity as decimal(38, 9)) * 1000000000 as hugeint)
            // nullif(case when unit like 'gpu%' then gpu_count else 1 end, 0)) as units
    from quantities
    where
        charge_scope in ('node', 'not_in_cluster')
        and unit in ('hours', 'hour', 'hrs', 'hr', 'h', 'gpu-hours', 'gpu-hour', 'gpu hours')
    group by origin, is_kept, date, hour, charge_scope, provider, billing_account_id, resource_id, sku_id
),
hours as (
    select
        origin, is_kept, date, charge_scope, provider, billing_account_id, resource_id,
        cast(cast(sum(units) as decimal(18, 0)) * 0.000000001 as decimal(18, 9)) as hours
    from (
        select origin, is_kept, date, hour, charge_scope, provider, billing_account_id, resource_id, max(units) as units
        from sku_hours
        group by origin, is_kept, date, hour, charge_scope, provider, billing_account_id, resource_id
    ) as largest
    group by origin, is_kept, date, charge_scope, provider, billing_account_id, resource_id
),
bill_totals as (
    select
        date, charge_scope, provider, billing_account_id, resource_id, max(cluster) as cluster, max(node) as node,
        max(billing_currency) as billing_currency, cast(sum(billed_cost) as decimal(28, 10)) as billed_cost,
        cast(sum(effective_cost) as decimal(28, 10)) as effective_cost,
        max(case when is_unconverted then 1 else 0 end) = 1 as is_unconverted
    from billed
    group by date, charge_scope, provider, billing_account_id, resource_id
),
computed_totals as (
    select
        date, charge_scope, provider, billing_account_id, resource_id, is_kept, max(cluster) as cluster, max(node) as node,
        max(billing_currency) as billing_currency, cast(sum(billed_cost) as decimal(28, 10)) as billed_cost,
        cast(sum(effective_cost) as decimal(28, 10)) as effective_cost,
        min(case when is_unpriced then 1 else 0 end) = 1 as is_unpriced,
        max(case when is_unconverted then 1 else 0 end) = 1 as is_unconverted
    from computed
    group by date, charge_scope, provider, billing_account_id, resource_id, is_kept
),
-- The account that names a resource.
naming as (
    select r.date, r.resource_id, min(b.billing_account_id) as billing_account_id
    from core.bill_resources as r
    inner join (select distinct bill_id, billing_account_id from raw.bills) as b on b.bill_id = r.bill_id
    where r.date >= cast($start_at as date) and r.date < cast($end_at as date) and r.is_named
    group by r.date, r.resource_id
),
named_commitments as (
    select distinct commitment_id
    from raw.bills
    where commitment_id is not null and charge_class is distinct from 'Correction'
),
-- What gave way to bills is compared with the largest account of the resource.
replaced as (
    select
        date, charge_scope, resource_id, provider, max(billing_account_id) as billing_account_id,
        max(cluster) as cluster, max(node) as node, max(billing_currency) as billing_currency,
        cast(sum(billed_cost) as decimal(28, 10)) as billed_cost, cast(sum(effective_cost) as decimal(28, 10)) as effective_cost,
        min(case when is_unpriced then 1 else 0 end) = 1 as is_unpriced
    from computed_totals
    where not is_kept
    group by date, charge_scope, resource_id, provider
),
replaced_hours as (
    select date, charge_scope, resource_id, provider, sum(hours) as hours
    from hours
    where origin = 'computed' and not is_kept
    group by date, charge_scope, resource_id, provider
),
ranked as (
    select
        *,
        row_number() over (
            partition by date, charge_scope, resource_id, provider order by abs(effective_cost) desc, billing_account_id
        ) as place
    from bill_totals
),
compared as (
    select
        coalesce(b.date, r.date) as date, coalesce(b.charge_scope, r.charge_scope) as charge_scope,
        coalesce(b.provider, r.provider) as provider,
        case when b.date is null then coalesce(n.billing_account_id, r.billing_account_id) else b.billing_account_id end
            as billing_account_id,
        coalesce(b.resource_id, r.resource_id) as resource_id, coalesce(b.cluster, r.cluster) as cluster,
        coalesce(b.node, r.node) as node, coalesce(b.billing_currency, r.billing_currency) as billing_currency,
        coalesce(q.hours, 0) as computed_hours, coalesce(h.hours, 0) as bill_hours,
        coalesce(r.billed_cost, 0) as computed_billed_cost, coalesce(b.billed_cost, 0) as bill_billed_cost,
        coalesce(r.effective_cost, 0) as computed_effective_cost, coalesce(b.effective_cost, 0) as bill_effective_cost,
        b.date is not null as is_billed, coalesce(r.is_unpriced, s.date is null) as is_unpriced,
        coalesce(b.is_unconverted, false) as is_unconverted
    from ranked as b
    full outer join replaced as r
        on b.date = r.date and b.charge_scope = r.charge_scope and b.resource_id is not distinct from r.resource_id
        and b.provider = r.provider and b.place = 1
    left join replaced_hours as q
        on q.date = r.date and q.charge_scope = r.charge_scope and q.resource_id is not distinct from r.resource_id
        and q.provider = r.provider
    left join hours as h
        on h.origin = 'bill' and h.date = b.date and h.charge_scope = b.charge_scope and h.provider = b.provider
        and h.billing_account_id is not distinct from b.billing_account_id and h.resource_id is not distinct from b.resource_id
    left join naming as n on n.date = r.date and n.resource_id = r.resource_id
    -- Corrections stand beside what was computed.
    left join (select distinct date, charge_scope, resource_id from computed where is_kept) as s
        on s.date = b.date and s.charge_scope = b.charge_scope and s.resource_id = b.resource_id
),
judged as (
    select
        *,
        case
            when charge_scope in ('not_in_cluster', 'other_services', 'tax', 'credit') then charge_scope
            when not is_billed then 'missing_in_bill'
            when is_unconverted then 'no_rate'
            when is_unpriced then 'not_computed'
            when
                abs(bill_billed_cost - computed_billed_cost) <= 0.01
                and abs(bill_effective_cost - computed_effective_cost) <= 0.01
                then 'match'
            else 'differs'
        end as verdict
    from compared
    union all
    -- What stands as computed, where nothing of the same account, kind and resource was billed on the date.
    select
        t.date, t.charge_scope, t.provider, t.billing_account_id, t.resource_id, t.cluster, t.node, t.billing_currency,
        coalesce(h.hours, 0), 0, t.billed_cost, 0, t.effective_cost, 0, false, t.is_unpriced, t.is_unconverted,
        case
            when t.is_unconverted then 'no_rate'
            when t.is_unpriced then 'no_price'
            when n.resource_id is not null or m.commitment_id is not null then 'not_billed_yet'
            else 'not_in_bill'
        end
    from computed_totals as t
    left join compared as c
        on c.date = t.date and c.charge_scope = t.charge_scope and c.resource_id is not distinct from t.resource_id
        and c.provider = t.provider
    left join hours as h
        on h.origin = 'computed' and h.is_kept and h.date = t.date and h.charge_scope = t.charge_scope and h.provider = t.provider
        and h.billing_account_id is not distinct from t.billing_account_id and h.resource_id is not distinct from t.resource_id
    left join naming as n on n.date = t.date and n.resource_id = t.resource_id
    left join named_commitments as m on m.commitment_id = t.resource_id and t.charge_scope = 'commitment'
    where t.is_kept and c.date is null
)
select
    date, provider, billing_account_id, resource_id, cluster, node, charge_scope, billing_currency, computed_hours, bill_hours,
    computed_billed_cost, bill_billed_cost, bill_billed_cost - computed_billed_cost as billed_difference,
    computed_effective_cost, bill_effective_cost, bill_effective_cost - computed_effective_cost as effective_difference, verdict
from judged
