-- What each team cost in a month, and who bears what nobody used. Rows without a team are the central pool.
-- Attributed columns are sums of mart.cost_daily whatever the setting unused_policy says; the policy only decides on
-- which rows the effective cost of unallocated, unavailable, unledgered, node_overhead and committed_unused stands as
-- borne_waste_cost: central leaves it where it is, owner gives it to the owner of node or commitment, proportional
-- deals it by the teams' own effective cost within provider and accelerator, else provider, else everywhere (largest
-- remainder at 1e-10, ties by key). Energy: kWh = J / 3.6e6 at the card; x PUE of the site on the date; x g CO2e / kWh.
-- A factor that nobody gave makes the product unknown (null), never zero.
-- grain: month, team, accelerator, provider
-- key: month, team, accelerator, provider
-- inputs: mart.cost_daily, raw.energy_factors, raw.settings
-- invariant: sum(total_effective_cost) = sum(effective_cost) = sum(mart.cost_daily.effective_cost) under every policy
with policy as (
    select coalesce(max(value), 'central') as unused_policy
    from raw.settings
    where setting = 'unused_policy'
),
days as (
    select
        d.date, cast(date_trunc('month', d.date) as date) as month, d.accelerator, d.provider, d.region, d.owner_team,
        d.billing_currency, d.cost_part = 'holder' as is_held,
        case when d.cost_part = 'holder' then d.team end as team,
        d.cost_part in ('unallocated', 'unavailable', 'unledgered', 'node_overhead', 'committed_unused') as is_waste,
        d.list_cost, d.contracted_cost, d.billed_cost, d.effective_cost, d.utilized_cost, d.stranded_cost,
        d.unobserved_cost, d.allocated_gpu_seconds, d.utilized_gpu_seconds, d.stranded_gpu_seconds,
        d.unobserved_gpu_seconds, d.unallocated_gpu_seconds, d.unavailable_gpu_seconds,
        coalesce(d.metered_gpu_seconds, 0) as metered_gpu_seconds, cast(coalesce(d.metered_energy_j, 0) as decimal(38, 6)) as energy_j,
        cast(d.effective_cost * 10000000000 as hugeint) as effective_units
    from mart.cost_daily as d
),
places as (
    select distinct date, provider, region from days where energy_j > 0
),
factors as (
    select
        p.date, p.provider, p.region, f.pue, f.carbon_g_per_kwh,
        row_number() over (
            partition by p.date, p.provider, p.region
            order by case when f.region = p.region then 0 else 1 end, f.valid_from_at desc
        ) as place
    from places as p
    inner join raw.energy_factors as f
        on f.provider = p.provider and (f.region = p.region or f.region = '*')
        and f.valid_from_at <= cast(p.date as timestamp)
        and (f.valid_to_at is null or f.valid_to_at > cast(p.date as timestamp))
),
-- integers: energy in 1e-6 J, PUE in 1e-9, PUE x carbon intensity in 1e-9 g / kWh
energy as (
    select
        d.month, d.team, d.accelerator, d.provider,
        sum(cast(d.energy_j * 1000000 as hugeint)) as energy_units,
        sum(cast(d.energy_j * 1000000 as hugeint) * cast(f.pue * 1000000000 as hugeint)) as facility_units,
        sum(
            cast(d.energy_j * 1000000 as hugeint)
            * ((cast(f.pue * 1000000000 as hugeint) * cast(f.carbon_g_per_kwh * 1000000000 as hugeint)) // 1000000000)
        ) as carbon_units,
        count(*) filter (where d.energy_j > 0 and f.pue is null) as without_pue,
        count(*) filter (where d.energy_j > 0 and (f.pue is null or f.carbon_g_per_kwh is null)) as without_carbon
    from days as d
    left join factors as f
        on f.place = 1 and f.date = d.date and f.provider = d.provider and f.region is not distinct from d.region
    where d.metered_gpu_seconds > 0
    group by d.month, d.team, d.accelerator, d.provider
),
attributed as (
    select
        month, team, accelerator, provider, min(billing_currency) as billing_currency,
        sum(list_cost) as list_cost, sum(contracted_cost) as contracted_cost, sum(billed_cost) as billed_cost,
        sum(effective_cost) as effective_cost, sum(utilized_cost) as utilized_cost,
        sum(stranded_cost) as stranded_cost, sum(unobserved_cost) as unobserved_cost,
        sum(allocated_gpu_seconds) as allocated_gpu_seconds, sum(utilized_gpu_seconds) as utilized_gpu_seconds,
        sum(stranded_gpu_seconds) as stranded_gpu_seconds, sum(unobserved_gpu_seconds) as unobserved_gpu_seconds,
        sum(unallocated_gpu_seconds) as unallocated_gpu_seconds,
        sum(unavailable_gpu_seconds) as unavailable_gpu_seconds,
        sum(metered_gpu_seconds) as metered_gpu_seconds,
        coalesce(sum(effective_units) filter (where not is_waste), 0) as own_units
    from days
    group by month, team, accelerator, provider
),
wastes as (
    select
        d.month, d.accelerator, d.provider, case when p.unused_policy = 'owner' then d.owner_team end as owner_team,
        p.unused_policy, sum(d.effective_units) as units, min(d.billing_currency) as billing_currency
    from days as d
    cross join policy as p
    where d.is_waste
    group by d.month, d.accelerator, d.provider, case when p.unused_policy = 'owner' then d.owner_team end, p.unused_policy
),
bearers as (
    select month, team, accelerator, provider, own_units
    from attributed
    where team is not null and own_units > 0
),
-- how near a bearer is to a waste; the nearest that exist share it
near as (
    select
        w.month, w.accelerator as waste_accelerator, w.provider as waste_provider, w.units,
        b.team, b.accelerator, b.provider, b.own_units,
        case
            when b.provider is distinct from w.provider then 3
            when b.accelerator is distinct from w.accelerator then 2
            else 1
        end as distance
    from wastes as w
    inner join bearers as b on b.month = w.month
    where w.unused_policy = 'proportional'
),
chosen as (
    select * from near
    qualify distance = min(distance) over (partition by month, waste_accelerator, waste_provider)
),
floors as (
    select
        *, sum(own_units) over (partition by month, waste_accelerator, waste_provider) as all_units
    from chosen
),
dealt as (
    select
        *, (abs(units) * own_units) // nullif(all_units, 0) as share_units,
        row_number() over (
            partition by month, waste_accelerator, waste_provider
            order by (abs(units) * own_units) % nullif(all_units, 0) desc, team, accelerator nulls first,
                provider nulls first
        ) as place
    from floors
),
rounded as (
    select
        month, team, accelerator, provider, units,
        share_units + case
            when place <= abs(units) - sum(share_units) over (partition by month, waste_accelerator, waste_provider) then 1
            else 0
        end as share_units
    from dealt
),
borne as (
    select month, team, accelerator, provider, case when units < 0 then -share_units else share_units end as units
    from rounded
    union all
    select w.month, w.owner_team, w.accelerator, w.provider, w.units
    from wastes as w
    where
        w.unused_policy <> 'proportional'
        or not exists (select 1 from bearers as b where b.month = w.month)
),
borne_rows as (
    select month, team, accelerator, provider, sum(units) as borne_units from borne
    group by month, team, accelerator, provider
),
currencies as (
    select month, min(billing_currency) as billing_currency from days group by month
),
joined as (
    select
        coalesce(a.month, b.month) as month, case when a.month is null then b.team else a.team end as team,
        case when a.month is null then b.accelerator else a.accelerator end as accelerator,
        case when a.month is null then b.provider else a.provider end as provider,
        a.list_cost, a.contracted_cost, a.billed_cost, a.effective_cost, a.utilized_cost, a.stranded_cost,
        a.unobserved_cost, a.allocated_gpu_seconds, a.utilized_gpu_seconds, a.stranded_gpu_seconds,
        a.unobserved_gpu_seconds, a.unallocated_gpu_seconds, a.unavailable_gpu_seconds, a.metered_gpu_seconds,
        coalesce(a.own_units, 0) as own_units, coalesce(b.borne_units, 0) as borne_units,
        cast(a.effective_cost * 10000000000 as hugeint) as effective_units,
        cast(a.utilized_gpu_seconds * 1000000 as hugeint) as utilized_units
    from attributed as a
    full outer join borne_rows as b
        on b.month = a.month and b.team is not distinct from a.team
        and b.accelerator is not distinct from a.accelerator and b.provider is not distinct from a.provider
)
select
    j.month, j.team, j.accelerator, j.provider, c.billing_currency,
    coalesce(j.list_cost, 0) as list_cost, coalesce(j.contracted_cost, 0) as contracted_cost,
    coalesce(j.billed_cost, 0) as billed_cost, coalesce(j.effective_cost, 0) as effective_cost,
    coalesce(j.utilized_cost, 0) as utilized_cost, coalesce(j.stranded_cost, 0) as stranded_cost,
    coalesce(j.unobserved_cost, 0) as unobserved_cost,
    coalesce(j.allocated_gpu_seconds, 0) as allocated_gpu_seconds,
    coalesce(j.utilized_gpu_seconds, 0) as utilized_gpu_seconds,
    coalesce(j.stranded_gpu_seconds, 0) as stranded_gpu_seconds,
    coalesce(j.unobserved_gpu_seconds, 0) as unobserved_gpu_seconds,
    coalesce(j.unallocated_gpu_seconds, 0) as unallocated_gpu_seconds,
    coalesce(j.unavailable_gpu_seconds, 0) as unavailable_gpu_seconds,
    cast(j.own_units as decimal(28, 0)) * 0.0000000001 as own_effective_cost,
    cast(j.borne_units as decimal(28, 0)) * 0.0000000001 as borne_waste_cost,
    cast(j.own_units + j.borne_units as decimal(28, 0)) * 0.0000000001 as total_effective_cost,
    case
        when j.utilized_units > 0
            then cast(
                case when j.effective_units < 0 then -1 else 1 end
                * ((abs(j.effective_units) * 7200000000 + j.utilized_units) // nullif(2 * j.utilized_units, 0))
                as decimal(28, 0)
            ) * 0.0000000001
    end as cost_per_utilized_gpu_hour,
    cast((2 * e.energy_units + 3600000) // 7200000 as decimal(18, 0)) * 0.000001 as energy_kwh,
    case
        when e.without_pue = 0
            then cast((coalesce(e.facility_units, 0) + 1800000000000000) // 3600000000000000 as decimal(18, 0)) * 0.000001
    end as facility_kwh,
    case
        when e.without_carbon = 0
            then cast(
                (coalesce(e.carbon_units, 0) + 1800000000000000000) // 3600000000000000000 as decimal(18, 0)
            ) * 0.000001
    end as carbon_kg,
    coalesce(j.metered_gpu_seconds, 0) as metered_gpu_seconds
from joined as j
inner join currencies as c on c.month = j.month
left join energy as e
    on e.month = j.month and e.team is not distinct from j.team
    and e.accelerator is not distinct from j.accelerator and e.provider is not distinct from j.provider
