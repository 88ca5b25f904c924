-- Every charge divided among who held what it paid for, and what nobody used. A node's charge is split in the ratios of
-- core.cost_shares; every other charge is one part. Quantities are dealt in units of 1e-9, billed and effective cost in
-- 1e-10 (largest remainder, ties by part, holder; negative amounts by their absolute value); list and contracted cost
-- are the origin's unit price x the part's quantity. An origin that breaks this by more than 1e-10, or has no price, is
-- dealt directly in units of 1e-18 and flagged.
-- A holder's effective cost divides into utilized, stranded and unobserved by its ledger seconds; what it holds of CPU
-- and memory is unobserved. Seconds and energy stand on the first charge of a node-hour (by charge_id): they add up.
-- grain: hour, origin charge, part, holder
-- key: date, charge_id, cost_part, holder
-- inputs: core.charges, core.cost_shares, raw.settings
-- invariant: over the parts of a charge every cost and quantity adds up to the charge's, allocated_ratio to 1
with settings as (
    select
        coalesce(max(case when setting = 'unused_policy' then value end), 'central') as unused_policy,
        coalesce(max(case when setting = 'price_share_method' then value end), 'whole_node') as method
    from raw.settings
),
numbered as (
    select
        date, hour, charge_id, charge_origin, charge_scope, cluster, node, resource_id, provider, billing_account_id,
        region, instance_type, accelerator, charge_category, pricing_category, commitment_id, owner_team,
        pricing_quantity, pricing_unit, consumed_quantity, commitment_quantity, billing_currency, list_unit_price,
        contracted_unit_price, list_cost, contracted_cost, billed_cost, effective_cost, flags,
        row_number() over (order by date, charge_id) as charge_no,
        row_number() over (partition by date, hour, cluster, node, charge_scope order by charge_id) as place_in_hour,
        list_unit_price * pricing_quantity as list_product,
        contracted_unit_price * pricing_quantity as contracted_product
    from core.charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- An origin off by a last digit keeps price x quantity on its parts, and the largest of them takes the difference.
judged as (
    select
        n.*,
        coalesce(
            abs(list_cost - list_product) <= 0.0000000001
            and (list_cost = list_product or abs(list_cost) >= 0.000001),
            false
        ) as is_list_priced,
        coalesce(
            abs(contracted_cost - contracted_product) <= 0.0000000001
            and (contracted_cost = contracted_product or abs(contracted_cost) >= 0.000001),
            false
        ) as is_contracted_priced,
        case
            when k.method like 'fixed:%' then 'strandline-fixed-1'
            else 'strandline-' || replace(k.method, '_', '-') || '-1'
        end as method_id,
        case
            when k.unused_policy = 'proportional' then 'team'
            when k.unused_policy = 'owner' and n.owner_team is not null then 'owner'
            else 'central'
        end as bearer_of_unused
    from numbered as n
    cross join settings as k
),
shares as (
    select
        *,
        cast(cast(allocated_ratio as decimal(38, 12)) * 1000000000000 as hugeint) as units,
        cast(cast(gpu_ratio as decimal(38, 12)) * 1000000000000 as hugeint) as gpu_units,
        cast(cast(allocated_gpu_seconds as decimal(38, 6)) * 1000000 as hugeint) as held_us,
        cast(cast(utilized_gpu_seconds as decimal(38, 6)) * 1000000 as hugeint) as utilized_us,
        cast(cast(stranded_gpu_seconds as decimal(38, 6)) * 1000000 as hugeint) as stranded_us,
        cast(cast(unobserved_gpu_seconds as decimal(38, 6)) * 1000000 as hugeint) as unobserved_us,
        row_number() over (partition by date, hour, cluster, node order by cost_part, holder) as place,
        row_number() over (partition by date, hour, cluster, node order by allocated_ratio desc, cost_part, holder)
            as size_place
    from core.cost_shares
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- Without shares, because it is not a node's or nothing is known of the node's hour, a charge is one part.
parts as (
    select
        c.charge_no, c.date, coalesce(s.place, 1) as place, coalesce(s.size_place, 1) as size_place,
        coalesce(s.units, 1000000000000) as units, coalesce(s.gpu_units, 0) as gpu_units,
        case
            when s.cost_part is not null then s.cost_part
            when c.charge_scope = 'node' then 'unledgered'
            when c.charge_scope <> 'commitment' then c.charge_scope
            when c.charge_category = 'Purchase' then 'commitment_purchase'
            when c.charge_category = 'Credit' then 'credit'
            when c.charge_category = 'Tax' then 'tax'
            else 'committed_unused'
        end as cost_part,
        s.holder, s.namespace, s.pod, s.team, s.workload_kind, s.accelerator,
        coalesce(s.held_us, 0) as held_us, coalesce(s.utilized_us, 0) as utilized_us,
        coalesce(s.stranded_us, 0) as stranded_us, coalesce(s.unobserved_us, 0) as unobserved_us,
        case when c.place_in_hour = 1 then s.allocated_gpu_seconds end as allocated_gpu_seconds,
        case when c.place_in_hour = 1 then s.utilized_gpu_seconds end as utilized_gpu_seconds,
        case when c.place_in_hour = 1 then s.stranded_gpu_seconds end as stranded_gpu_seconds,
        case when c.place_in_hour = 1 then s.unobserved_gpu_seconds end as unobserved_gpu_seconds,
        case when c.place_in_hour = 1 then s.unallocated_gpu_seconds end as unallocated_gpu_seconds,
        case when c.place_in_hour = 1 then s.unavailable_gpu_seconds end as unavailable_gpu_seconds,
        case when c.place_in_hour = 1 then s.metered_energy_j end as metered_energy_j,
        case when c.place_in_hour = 1 then s.metered_gpu_seconds end as metered_gpu_seconds
    from judged as c
    left join shares as s
        on c.charge_scope = 'node' and s.date = c.date and s.hour = c.hour and s.cluster = c.cluster
        and s.node = c.node
),
-- Amounts to deal, as integers in the units of their kind.
amounts as (
    select
        charge_no, cast(cast(pricing_quantity as decimal(38, 9)) * 1000000000 as hugeint) as pricing,
        cast(cast(consumed_quantity as decimal(38, 9)) * 1000000000 as hugeint) as consumed,
        cast(cast(commitment_quantity as decimal(38, 9)) * 1000000000 as hugeint) as commitment,
        cast(cast(billed_cost as decimal(38, 10)) * 10000000000 as hugeint) as billed,
        cast(cast(effective_cost as decimal(38, 10)) * 10000000000 as hugeint) as effective,
        -- Whole and fraction apart: a cost times 1e18 does not fit a decimal.
        case
            when not is_list_priced
                then cast(floor(list_cost) as hugeint) * 1000000000000000000
                    + cast((list_cost - floor(list_cost)) * 1000000000000000000 as hugeint)
        end as listed,
        case
            when not is_contracted_priced
                then cast(floor(contracted_cost) as hugeint) * 1000000000000000000
                    + cast((contracted_cost - floor(contracted_cost)) * 1000000000000000000 as hugeint)
        end as negotiated
    from judged
),
-- Equal amounts of a charge are dealt alike, so once; often quantities are equal, and billed and effective cost.
distinct_amounts as (
    select charge_no, abs(pricing) as amount from amounts where pricing <> 0
    union
    select charge_no, abs(consumed) from amounts where consumed <> 0
    union
    select charge_no, abs(commitment) from amounts where commitment <> 0
    union
    select charge_no, abs(billed) from amounts where billed <> 0
    union
    select charge_no, abs(effective) from amounts where effective <> 0
    union
    select charge_no, abs(listed) from amounts where listed <> 0
    union
    select charge_no, abs(negotiated) from amounts where negotiated <> 0
),
-- amount x units // 1e12, by whole and rest of amount // 1e12, so that no product outgrows HUGEINT.
products as (
    select
        a.charge_no, a.amount, p.place, (a.amount // 1000000000000) * p.units as whole,
        (a.amount % 1000000000000) * p.units as product
    from distinct_amounts as a
    inner join parts as p on p.charge_no = a.charge_no
),
floors as (
    select *, product // 1000000000000 as quotient from products
),
ranks as (
    select
        charge_no, amount, place, whole + quotient as dealt,
        amount - sum(whole + quotient) over (partition by charge_no, amount) as missing,
        row_number() over (
            partition by charge_no, amount order by product - quotient * 1000000000000 desc, place
        ) as rest_place
    from floors
),
portions as (
    select charge_no, amount, place, case when rest_place <= missing then dealt + 1 else dealt end as portion from ranks
),
dealt as (
    select
        p.charge_no, p.place,
        sum(case when a.pricing = p.amount then portion when -a.pricing = p.amount then -portion end) as pricing,
        sum(case when a.consumed = p.amount then portion when -a.consumed = p.amount then -portion end) as consumed,
        sum(case when a.commitment = p.amount then portion when -a.commitment = p.amount then -portion end)
            as commitment,
        sum(case when a.billed = p.amount then portion when -a.billed = p.amount then -portion end) as billed,
        sum(case when a.effective = p.amount then portion when -a.effective = p.amount then -portion end) as effective,
        sum(case when a.listed = p.amount then portion when -a.listed = p.amount then -portion end) as listed,
        sum(case when a.negotiated = p.amount then portion when -a.negotiated = p.amount then -portion end)
            as negotiated
    from portions as p
    inner join amounts as a on a.charge_no = p.charge_no
    group by p.charge_no, p.place
),
-- A holder's effective cost: first its accelerators against its CPU and memory (ties to these), then by the seconds.
valued as (
    select
        p.*, d.pricing, d.consumed, d.commitment, d.billed, d.listed, d.negotiated,
        coalesce(d.effective, 0) as effective,
        case
            when p.cost_part <> 'holder' or p.held_us = 0 or p.units = 0 then 0
            else (2 * abs(coalesce(d.effective, 0)) * p.gpu_units + p.units - 1) // (2 * nullif(p.units, 0))
        end as gpu_effective
    from parts as p
    left join dealt as d on d.charge_no = p.charge_no and d.place = p.place
),
thirds as (
    select
        *, (gpu_effective * stranded_us) // nullif(held_us, 0) as stranded,
        (gpu_effective * stranded_us) % nullif(held_us, 0) as stranded_rest,
        (gpu_effective * unobserved_us) // nullif(held_us, 0) as unobserved,
        (gpu_effective * unobserved_us) % nullif(held_us, 0) as unobserved_rest,
        (gpu_effective * utilized_us) // nullif(held_us, 0) as utilized,
        (gpu_effective * utilized_us) % nullif(held_us, 0) as utilized_rest
    from valued
),
-- Ties in the order stranded, unobserved, utilized; utilized and stranded are made, unobserved is what is left.
judged_thirds as (
    select
        *,
        coalesce(
            utilized + case
                when gpu_effective - stranded - unobserved - utilized
                    > case when stranded_rest >= utilized_rest then 1 else 0 end
                    + case when unobserved_rest >= utilized_rest then 1 else 0 end
                    then 1
                else 0
            end,
            0
        ) * case when effective < 0 then -1 else 1 end as utilized_units,
        coalesce(
            stranded + case
                when gpu_effective - stranded - unobserved - utilized
                    > case when unobserved_rest > stranded_rest then 1 else 0 end
                    + case when utilized_rest > stranded_rest then 1 else 0 end
                    then 1
                else 0
            end,
            0
        ) * case when effective < 0 then -1 else 1 end as stranded_units
    from thirds
),
quantified as (
    select
        *, cast(cast(coalesce(pricing, 0) as decimal(27, 0)) * 0.000000001 as decimal(18, 9)) as quantity,
        cast(cast(coalesce(consumed, 0) as decimal(27, 0)) * 0.000000001 as decimal(18, 9)) as consumed_amount,
        cast(cast(coalesce(commitment, 0) as decimal(27, 0)) * 0.000000001 as decimal(18, 9)) as commitment_amount
    from judged_thirds
)
select
    c.date, c.hour, c.charge_id, p.cost_part, p.holder, p.namespace, p.pod, p.team, p.workload_kind, c.charge_origin,
    c.charge_scope, c.cluster, c.node, c.resource_id, c.provider, c.billing_account_id, c.region, c.instance_type,
    coalesce(p.accelerator, c.accelerator) as accelerator, c.charge_category, c.pricing_category, c.commitment_id,
    c.owner_team,
    case
        when p.cost_part = 'holder' then 'team'
        when p.cost_part in ('unallocated', 'unavailable', 'committed_unused', 'node_overhead', 'unledgered')
            then c.bearer_of_unused
        else 'central'
    end as bearer,
    c.method_id,
    cast(cast(p.units as decimal(18, 0)) * 0.000000000001 as decimal(18, 12)) as allocated_ratio,
    cast(cast(p.gpu_units as decimal(18, 0)) * 0.000000000001 as decimal(18, 12)) as gpu_ratio,
    case when c.pricing_quantity is not null then p.quantity end as pricing_quantity, c.pricing_unit,
    case when c.consumed_quantity is not null then p.consumed_amount end as consumed_quantity,
    case when c.commitment_quantity is not null then p.commitment_amount end as commitment_quantity,
    c.billing_currency,
    case
        when c.is_list_priced
            then c.list_unit_price * p.quantity
            + case when p.size_place = 1 then c.list_cost - c.list_product else 0 end
        when c.list_cost is not null
            then cast(coalesce(p.listed, 0) as decimal(38, 0)) * 0.000000000000000001
    end as list_cost,
    case
        when c.is_contracted_priced
            then c.contracted_unit_price * p.quantity
            + case when p.size_place = 1 then c.contracted_cost - c.contracted_product else 0 end
        when c.contracted_cost is not null
            then cast(coalesce(p.negotiated, 0) as decimal(38, 0)) * 0.000000000000000001
    end as contracted_cost,
    case
        when c.billed_cost is not null
            then cast(cast(coalesce(p.billed, 0) as decimal(28, 0)) * 0.0000000001 as decimal(28, 10))
    end as billed_cost,
    case
        when c.effective_cost is not null
            then cast(cast(p.effective as decimal(28, 0)) * 0.0000000001 as decimal(28, 10))
    end as effective_cost,
    cast(cast(p.utilized_units as decimal(28, 0)) * 0.0000000001 as decimal(28, 10)) as utilized_cost,
    cast(cast(p.stranded_units as decimal(28, 0)) * 0.0000000001 as decimal(28, 10)) as stranded_cost,
    case
        when p.cost_part = 'holder'
            then cast(
                cast(p.effective - p.utilized_units - p.stranded_units as decimal(28, 0)) * 0.0000000001
                as decimal(28, 10)
            )
        else 0
    end as unobserved_cost,
    coalesce(p.allocated_gpu_seconds, 0) as allocated_gpu_seconds,
    coalesce(p.utilized_gpu_seconds, 0) as utilized_gpu_seconds,
    coalesce(p.stranded_gpu_seconds, 0) as stranded_gpu_seconds,
    coalesce(p.unobserved_gpu_seconds, 0) as unobserved_gpu_seconds,
    coalesce(p.unallocated_gpu_seconds, 0) as unallocated_gpu_seconds,
    coalesce(p.unavailable_gpu_seconds, 0) as unavailable_gpu_seconds,
    coalesce(p.metered_energy_j, 0) as metered_energy_j, coalesce(p.metered_gpu_seconds, 0) as metered_gpu_seconds,
    case
        when (not c.is_list_priced and c.list_cost <> 0) or (not c.is_contracted_priced and c.contracted_cost <> 0)
            then coalesce(c.flags || ',', '') || 'cost_not_price_times_quantity'
        else c.flags
    end as flags
from judged as c
inner join quantified as p on p.charge_no = c.charge_no
