-- Charges of bills that are longer than a date: what part of each belongs to which date. Usage of a node follows the
-- node's running time inside the charge period, hour by hour; anything else, other services of the node's resource too,
-- usage of a node that did not run at all and charges of more than 62 days follow time alone.
-- grain: date, line of a bill that is longer than a date
-- key: date, bill_id, source_line
-- inputs: core.bill_resources, core.node_hours, raw.bills
-- invariant: weight_us > 0; over the dates of a line weight_us adds up to weight_total_us
with lines as (
    select
        bill_id, source_line, resource_id, charge_period_start_at as started_at, charge_period_end_at as finished_at,
        commitment_discount_status is not distinct from 'Unused'
            or capacity_reservation_status is not distinct from 'Unused'
            or charge_period_end_at > charge_period_start_at + interval 62 day
            or coalesce(service_category not in ('Compute', 'AI and Machine Learning'), false) as is_by_time
    from raw.bills
    where
        charge_category = 'Usage' and charge_period_start_at < $end_at and charge_period_end_at > $start_at
        and cast(charge_period_end_at - interval 1 microsecond as date) > cast(charge_period_start_at as date)
),
hours as (
    select date, hour, resource_id, sum(running_us) as running_us
    from core.node_hours
    where date >= cast($start_at - interval 62 day as date) and date <= cast($end_at + interval 62 day as date)
    group by date, hour, resource_id
),
resources as (
    select date, bill_id, billed_resource_id, resource_id
    from core.bill_resources
    where date >= cast($start_at - interval 62 day as date) and date <= cast($end_at + interval 62 day as date)
),
-- Every date on which the node ran inside the charge period, in the window or not.
running as (
    select
        l.bill_id, l.source_line, h.date,
        sum(least(h.running_us, date_diff(
            'microsecond', greatest(l.started_at, h.hour), least(l.finished_at, h.hour + interval 1 hour)
        ))) as weight_us
    from lines as l
    inner join resources as r
        on r.bill_id = l.bill_id and r.billed_resource_id = l.resource_id
        and r.date >= cast(l.started_at as date) and r.date <= cast(l.finished_at as date)
    inner join hours as h
        on h.date = r.date and h.resource_id = r.resource_id and h.hour < l.finished_at
        and h.hour + interval 1 hour > l.started_at
    where not l.is_by_time
    group by l.bill_id, l.source_line, h.date
),
by_running as (
    select
        bill_id, source_line, date, weight_us,
        sum(weight_us) over (
            partition by bill_id, source_line order by date rows between unbounded preceding and current row
        ) - weight_us as weight_before_us,
        sum(weight_us) over (partition by bill_id, source_line) as weight_total_us
    from running
),
days as (
    select cast(day_at as timestamp) as day_at
    from unnest(generate_series($start_at, $end_at - interval 1 day, interval 1 day)) as d(day_at)
),
by_time as (
    select
        l.bill_id, l.source_line, cast(d.day_at as date) as date,
        date_diff(
            'microsecond', greatest(l.started_at, d.day_at), least(l.finished_at, d.day_at + interval 1 day)
        ) as weight_us,
        date_diff('microsecond', l.started_at, greatest(l.started_at, d.day_at)) as weight_before_us,
        date_diff('microsecond', l.started_at, l.finished_at) as weight_total_us
    from lines as l
    inner join days as d on l.started_at < d.day_at + interval 1 day and l.finished_at > d.day_at
    left join (select distinct bill_id, source_line from running) as r
        on r.bill_id = l.bill_id and r.source_line = l.source_line
    where r.bill_id is null
)
select
    w.date, w.bill_id, w.source_line, l.started_at, l.finished_at, cast(w.weight_us as bigint) as weight_us,
    cast(w.weight_before_us as bigint) as weight_before_us, cast(w.weight_total_us as bigint) as weight_total_us
from (select * from by_running union all select * from by_time) as w
inner join lines as l on l.bill_id = w.bill_id and l.source_line = w.source_line
where w.date >= cast($start_at as date) and w.date < cast($end_at as date)
