-- What a bill charges arrives to the last digit: over the hours that a line is spread to, every quantity and, in the
-- reporting currency, every cost adds up to the line's. Lines are judged of which all dates are built.
-- table: core.billed_charges
with setting as (
    select coalesce(max(value), 'USD') as currency from raw.settings where setting = 'currency'
),
built as (
    select date
    from core.billed_charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
    union
    select date
    from core.node_hours
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
inside as (
    select
        b.*, b.billing_currency = s.currency as is_reported, cast(b.charge_period_start_at as date) as first_date,
        case
            when b.charge_category = 'Usage' and b.charge_period_end_at > b.charge_period_start_at
                then cast(b.charge_period_end_at - interval 1 microsecond as date)
            else cast(b.charge_period_start_at as date)
        end as last_date
    from raw.bills as b
    cross join setting as s
    where
        b.charge_period_start_at >= $start_at and b.charge_period_start_at < $end_at
        and (b.charge_category <> 'Usage' or b.charge_period_end_at <= $end_at)
),
whole as (
    select p.first_date, p.last_date
    from (select distinct first_date, last_date from inside) as p
    inner join built as d on d.date >= p.first_date and d.date <= p.last_date
    group by p.first_date, p.last_date
    having count(*) = date_diff('second', cast(p.first_date as timestamp), cast(p.last_date as timestamp)) // 86400 + 1
),
lines as (
    select i.*
    from inside as i
    inner join whole as w on w.first_date = i.first_date and w.last_date = i.last_date
),
arrived as (
    select
        bill_id, try_cast(split_part(charge_id, '/', 3) as bigint) as source_line, sum(pricing_quantity) as pricing_quantity,
        sum(consumed_quantity) as consumed_quantity, sum(commitment_quantity) as commitment_quantity,
        sum(list_cost) as list_cost, sum(contracted_cost) as contracted_cost, sum(billed_cost) as billed_cost,
        sum(effective_cost) as effective_cost
    from core.billed_charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
    group by bill_id, try_cast(split_part(charge_id, '/', 3) as bigint)
)
select
    l.bill_id, l.source_line, l.charge_period_start_at, l.charge_period_end_at, l.resource_id, l.billed_cost,
    a.billed_cost as arrived_billed_cost, l.effective_cost, a.effective_cost as arrived_effective_cost, l.pricing_quantity,
    a.pricing_quantity as arrived_pricing_quantity
from lines as l
left join arrived as a on a.bill_id = l.bill_id and a.source_line = l.source_line
where
    a.bill_id is null or a.pricing_quantity is distinct from l.pricing_quantity
    or a.consumed_quantity is distinct from l.consumed_quantity
    or a.commitment_quantity is distinct from l.commitment_quantity
    or (
        l.is_reported
        and (
            a.list_cost <> coalesce(l.list_cost, 0) or a.contracted_cost <> coalesce(l.contracted_cost, 0)
            or a.billed_cost <> coalesce(l.billed_cost, 0) or a.effective_cost <> coalesce(l.effective_cost, 0)
        )
    )
