-- No charge is lost, changed or counted twice when bills take the place of computed charges: every billed charge is there,
-- every computed one is there or its resource is in a bill, none is from elsewhere, and no node has both in an hour
-- (beside corrections and charges of more than a day, which take no place of another). What is given back to a commitment
-- is what it had covered of a charge that is not there.
-- table: core.charges
with charges as (
    select
        *,
        case
            when charge_id like '%/given-back' then substr(charge_id, 1, length(charge_id) - length('/given-back')) else charge_id
        end as source_id
    from core.charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
sources as (
    select date, charge_id, 'bill' as charge_origin, list_cost, contracted_cost, billed_cost, effective_cost, pricing_quantity
    from core.billed_charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
    union all
    select date, charge_id, 'computed', list_cost, contracted_cost, billed_cost, effective_cost, pricing_quantity
    from core.computed_charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
gone as (
    select c.date, c.charge_id, c.charge_scope, c.charge_category, c.resource_id, c.commitment_id, c.provider
    from core.computed_charges as c
    left join charges as k on k.date = c.date and k.charge_id = c.charge_id and k.charge_origin = 'computed'
    where c.date >= cast($start_at as date) and c.date < cast($end_at as date) and k.charge_id is null
),
named as (
    select distinct date, resource_id
    from core.bill_resources
    where date >= cast($start_at as date) and date < cast($end_at as date) and is_named
),
told as (
    select commitment_id as name from raw.bills where commitment_id is not null
    union
    select resource_id from raw.bills where resource_id is not null
),
daily as (
    select bill_id, source_line
    from raw.bills
    where
        charge_category = 'Usage' and charge_class is distinct from 'Correction'
        and charge_period_end_at > charge_period_start_at
        and charge_period_end_at <= charge_period_start_at + interval 25 hour
)
select 'a billed charge is missing' as what, s.date, s.charge_id
from sources as s
left join charges as c on c.date = s.date and c.charge_id = s.charge_id and c.charge_origin = 'bill'
where s.charge_origin = 'bill' and c.charge_id is null
union all
select 'a charge is not what it was made from', c.date, c.charge_id
from charges as c
left join sources as s on s.date = c.date and s.charge_id = c.source_id and s.charge_origin = c.charge_origin
where
    s.charge_id is null or c.list_cost <> s.list_cost or c.contracted_cost <> s.contracted_cost
    or c.billed_cost <> s.billed_cost or c.effective_cost <> s.effective_cost
    or c.pricing_quantity is distinct from s.pricing_quantity
union all
select 'what a charge has is given back too', c.date, c.charge_id
from charges as c
inner join charges as k on k.date = c.date and k.charge_id = c.source_id and k.charge_origin = c.charge_origin
where c.charge_id <> c.source_id
union all
select 'a computed charge gave way to no bill', g.date, g.charge_id
from gone as g
left join named as n on n.date = g.date and n.resource_id = g.resource_id
left join told as t on t.name = coalesce(g.commitment_id, g.resource_id)
left join (select distinct lower(provider) as provider from raw.bills) as p on p.provider = lower(g.provider)
where
    case
        when g.charge_category <> 'Usage' then p.provider is null
        when g.charge_scope = 'commitment' then t.name is null
        else n.resource_id is null
    end
union all
select distinct 'a node-hour is both computed and billed', c.date, c.charge_id
from charges as c
inner join charges as b
    on b.date = c.date and b.hour = c.hour and b.resource_id = c.resource_id and b.charge_origin = 'bill'
    and b.charge_scope = 'node' and b.charge_category = 'Usage'
inner join daily as d
    on d.bill_id = split_part(b.charge_id, '/', 2) and d.source_line = try_cast(split_part(b.charge_id, '/', 3) as bigint)
where c.charge_origin = 'computed' and c.charge_category = 'Usage' and c.charge_scope = 'node'
