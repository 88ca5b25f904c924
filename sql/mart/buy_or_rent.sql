-- What owning an accelerator costs against renting the same one, by every offer that holds in the newest hour of the lake.
-- Owned, a year of one node: (capex - residual) / years + opex + power x PUE x tariff x 8,760 h. Rent is the contracted
-- price of a node divided by its accelerators, or the sum of its components (GPU, vCPU, GiB) where it is priced so.
-- break_even_ratio = owned cost of a year / (accelerators x 8,760 h x rent): from that share of hours on owning pays.
-- Rent is paid while something is held, used or not, so the verdict compares it with the share that was allocated:
-- own or rent where that is more than a tenth above or below, too close to call between, unknown where either is unknown.
-- Amounts in the reporting currency at the newest rate. How many accelerators a node has is known from nodes of the lake,
-- else from the rate card; where neither says it, there is no rent to compare.
-- grain: owned instance type, rental offer
-- key: provider, region, instance_type, rental_provider, rental_region, rental_instance_type, rental_billing_model, commitment_type
-- inputs: core.node_hours, mart.gpu_ledger_hourly, raw.exchange_rates, raw.owned_hardware, raw.prices, raw.settings
-- invariant: break_even_ratio x rental_cost_per_gpu_hour = owned_cost_per_gpu_hour
with reporting as (
    select coalesce(max(value), 'USD') as currency from raw.settings where setting = 'currency'
),
clock as (
    select
        coalesce((select max(hour) from core.node_hours), (select max(valid_from_at) from raw.prices)) as newest_at
),
-- units of the reporting currency for one of each currency, as a fraction
given_rates as (
    select
        from_currency as currency, to_currency, rate_date, 1 as preference,
        cast(exchange_rate * 1000000000 as hugeint) as numerator, cast(1000000000 as hugeint) as denominator
    from raw.exchange_rates
    union all
    select
        to_currency, from_currency, rate_date, 2, cast(1000000000 as hugeint),
        cast(exchange_rate * 1000000000 as hugeint)
    from raw.exchange_rates
),
rates as (
    select g.currency, g.numerator, g.denominator
    from given_rates as g
    inner join reporting as r on r.currency = g.to_currency
    cross join clock as c
    where g.rate_date <= cast(c.newest_at as date) and g.currency <> r.currency
    qualify row_number() over (partition by g.currency order by g.preference, g.rate_date desc) = 1
    union all
    select currency, 1, 1 from reporting
),
owned as (
    select h.*
    from raw.owned_hardware as h
    cross join clock as c
    where h.valid_from_at <= c.newest_at and (h.valid_to_at is null or h.valid_to_at > c.newest_at)
    qualify row_number() over (
        partition by h.provider, h.region, h.instance_type order by h.as_of desc, h.valid_from_at desc
    ) = 1
),
-- integers: money in 1e-10, unit prices in 1e-9
yearly as (
    select
        o.provider, o.region, o.instance_type, o.accelerator, o.gpu_count, r.numerator, r.denominator,
        (
            2 * cast((o.capex - coalesce(o.residual, 0)) * 10000000000 as hugeint) * 1000000000
            + cast(o.years * 1000000000 as hugeint)
        ) // nullif(2 * cast(o.years * 1000000000 as hugeint), 0)
        + cast(coalesce(o.opex_per_year, 0) * 10000000000 as hugeint)
        + (
            cast(coalesce(o.power_kw, 0) * 1000000000 as hugeint) * cast(coalesce(o.pue, 1) * 1000000000 as hugeint)
            * cast(coalesce(o.tariff_per_kwh, 0) * 1000000000 as hugeint) * 8760 + 50000000000000000
        ) // 100000000000000000 as own_units
    from owned as o
    left join rates as r on r.currency = o.currency
),
costs as (
    select
        provider, region, instance_type, accelerator, gpu_count,
        (2 * own_units * numerator + denominator) // nullif(2 * denominator, 0) as year_units
    from yearly
),
nodes as (
    select provider, instance_type, accelerator, gpu_count, cpu_milli, memory_bytes
    from core.node_hours
    where gpu_count > 0
    qualify row_number() over (partition by provider, instance_type order by hour desc, cluster, node, node_uid) = 1
),
offers as (
    select p.*
    from raw.prices as p
    cross join clock as c
    where
        p.billing_model in ('on_demand', 'spot', 'committed')
        and p.valid_from_at <= c.newest_at and (p.valid_to_at is null or p.valid_to_at > c.newest_at)
    qualify row_number() over (
        partition by
            p.provider, p.region, p.instance_type, p.accelerator, p.billing_model, p.commitment_type, p.pricing_unit
        order by p.as_of desc, p.valid_from_at desc, p.sku_price_id
    ) = 1
),
-- price of each component for one accelerator, in 1e-9 of the offer's currency
components as (
    select
        p.provider, p.region, p.instance_type, coalesce(p.accelerator, n.accelerator) as accelerator, p.billing_model,
        p.commitment_type, p.currency, p.pricing_unit,
        case p.pricing_unit
            when 'GPU-Hours' then cast(p.contracted_unit_price * 1000000000 as hugeint)
            when 'Hours'
                then (2 * cast(p.contracted_unit_price * 1000000000 as hugeint) + coalesce(n.gpu_count, p.gpu_count))
                    // nullif(2 * coalesce(n.gpu_count, p.gpu_count), 0)
            when 'vCPU-Hours'
                then (
                    2 * cast(p.contracted_unit_price * 1000000000 as hugeint) * n.cpu_milli + 1000 * n.gpu_count
                ) // nullif(2000 * n.gpu_count, 0)
            when 'GiB-Hours'
                then (
                    2 * cast(p.contracted_unit_price * 1000000000 as hugeint) * n.memory_bytes + 1073741824 * n.gpu_count
                ) // nullif(2147483648 * n.gpu_count, 0)
        end as units
    from offers as p
    left join nodes as n on n.provider = p.provider and n.instance_type = p.instance_type
),
rents as (
    select
        c.provider, c.region, c.instance_type, c.accelerator, c.billing_model, c.commitment_type,
        min(r.numerator) as numerator, min(r.denominator) as denominator,
        -- one price of the node, if there is one; else its components, all of which must be known
        case
            when count(*) filter (where c.pricing_unit = 'Hours') > 0
                then max(c.units) filter (where c.pricing_unit = 'Hours')
            when count(c.units) = count(*) and count(*) filter (where c.pricing_unit = 'GPU-Hours') > 0 then sum(c.units)
        end as units
    from components as c
    left join rates as r on r.currency = c.currency
    group by c.provider, c.region, c.instance_type, c.accelerator, c.billing_model, c.commitment_type
),
measured as (
    select
        provider, region, instance_type,
        cast(sum(utilized_gpu_seconds) as double) / nullif(cast(sum(capacity_gpu_seconds) as double), 0) as utilization,
        cast(sum(allocated_gpu_seconds) as double) / nullif(cast(sum(capacity_gpu_seconds) as double), 0) as allocation
    from mart.gpu_ledger_hourly
    group by provider, region, instance_type
),
compared as (
    select
        o.provider, o.region, o.instance_type, o.accelerator, o.gpu_count, o.year_units,
        (o.year_units + 5 * o.gpu_count * 8760) // nullif(10 * o.gpu_count * 8760, 0) as own_hour_units,
        p.provider as rental_provider, p.region as rental_region, p.instance_type as rental_instance_type,
        p.billing_model, p.commitment_type,
        (2 * p.units * p.numerator + p.denominator) // nullif(2 * p.denominator, 0) as rent_units,
        m.utilization, m.allocation
    from costs as o
    inner join rents as p on p.accelerator = o.accelerator and p.provider <> o.provider
    left join measured as m
        on m.provider = o.provider and m.region is not distinct from o.region
        and m.instance_type is not distinct from o.instance_type
),
ratios as (
    select
        *, cast(year_units as double) / nullif(10.0 * cast(gpu_count as double) * 8760 * cast(rent_units as double), 0)
            as break_even
    from compared
)
select
    a.provider, a.region, a.instance_type, a.accelerator, a.gpu_count,
    cast(a.year_units as decimal(28, 0)) * 0.0000000001 as owned_cost_per_year,
    cast(a.own_hour_units as decimal(18, 0)) * 0.000000001 as owned_cost_per_gpu_hour,
    a.rental_provider, a.rental_region, a.rental_instance_type, a.billing_model as rental_billing_model,
    a.commitment_type, cast(a.rent_units as decimal(18, 0)) * 0.000000001 as rental_cost_per_gpu_hour, q.currency,
    a.break_even as break_even_ratio, a.utilization as utilization_measured_ratio,
    a.allocation as allocation_measured_ratio,
    case
        when a.break_even is null or a.allocation is null then 'unknown'
        when a.allocation > a.break_even * 1.1 then 'own'
        when a.allocation < a.break_even * 0.9 then 'rent'
        else 'too close to call'
    end as verdict
from ratios as a
cross join reporting as q
