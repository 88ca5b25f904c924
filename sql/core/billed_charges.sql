-- Charges of imported bills in the reporting currency, matched to nodes and spread over hours.
-- A line is converted as a whole, by the rate of the date on which its charge period begins, and then dealt: prices are
-- rounded half up at 1e-9, billed and effective cost at 1e-10; list and contracted cost are made anew from the converted
-- price where the bill keeps cost = price x quantity to 1e-10, else converted themselves. Without a rate costs are zero
-- and flags say no_rate. What the bill says stays in the pricing currency's columns. Effective cost of a commitment that
-- was paid whole in advance is worth what it was on the day of payment, where a rate card tells that day, so that its
-- hours add up to the fee.
-- Usage of a node (of compute or of no service category; its traffic and storage are other services) is spread over the
-- node's running time in the charge period, over the hours alone where it did not run in it, unused commitments over the
-- hours; usage that is no node's has a row a date. Over dates shares are differences of cumulated shares (core.bill_spreads), in a date by largest remainder, ties by hour, cluster, node;
-- negative amounts by their absolute value. Purchases, credits, taxes and adjustments are not spread.
-- grain: line of a bill, hour (hour and node, where one resource was two nodes)
-- key: date, charge_id
-- inputs: core.bill_resources, core.bill_spreads, core.node_hours, raw.bills, raw.commitments, raw.exchange_rates, raw.settings
-- invariant: over the rows of a line every quantity and cost adds up to the converted line's
with setting as (
    select coalesce(max(value), 'USD') as currency from raw.settings where setting = 'currency'
),
prepaid as (
    select commitment_id, cast(starts_at as date) as paid_on, payment_model
    from raw.commitments
    qualify row_number() over (partition by commitment_id order by as_of desc, provider) = 1
),
lines as (
    select
        b.*,
        case when charge_category = 'Usage' then charge_period_end_at - interval 1 microsecond else charge_period_start_at end
            as last_instant_at,
        coalesce(commitment_discount_status = 'Unused' or capacity_reservation_status = 'Unused', false) as is_unused,
        p.paid_on
    from raw.bills as b
    left join prepaid as p
        on p.commitment_id = b.commitment_id and p.payment_model = 'All Upfront' and b.charge_category = 'Usage'
        and b.commitment_discount_status is not null
    where
        charge_period_start_at < $end_at
        and (charge_period_start_at >= $start_at or (charge_category = 'Usage' and charge_period_end_at > $start_at))
),
-- The part of each line that belongs to a date of the window.
portions as (
    select
        bill_id, source_line, cast(charge_period_start_at as date) as date, charge_period_start_at as from_at,
        greatest(charge_period_end_at, charge_period_start_at + interval 1 microsecond) as to_at, 1 as weight_us, 0 as weight_before_us, 1 as weight_total_us
    from lines
    where charge_period_start_at >= $start_at and cast(last_instant_at as date) <= cast(charge_period_start_at as date)
    union all
    select
        s.bill_id, s.source_line, s.date, greatest(s.started_at, cast(s.date as timestamp)),
        least(s.finished_at, cast(s.date as timestamp) + interval 1 day), s.weight_us, s.weight_before_us,
        s.weight_total_us
    from core.bill_spreads as s
    where s.date >= cast($start_at as date) and s.date < cast($end_at as date)
),
needed as (
    select distinct billing_currency, cast(charge_period_start_at as date) as charged_on from lines
    union
    select distinct billing_currency, paid_on from lines where paid_on is not null
),
given as (
    select from_currency, to_currency, rate_date, cast(cast(exchange_rate as decimal(38, 9)) * 1000000000 as hugeint) as rate
    from raw.exchange_rates
    where exchange_rate > 0
),
quotes as (
    select n.billing_currency, n.charged_on, g.rate_date, 1 as is_inverse, cast(1000000000 as hugeint) as times, g.rate as divisor
    from needed as n
    cross join setting as s
    inner join given as g
        on g.from_currency = s.currency and g.to_currency = n.billing_currency and g.rate_date <= n.charged_on
    union all
    select n.billing_currency, n.charged_on, g.rate_date, 0, g.rate, cast(1000000000 as hugeint)
    from needed as n
    cross join setting as s
    inner join given as g
        on g.from_currency = n.billing_currency and g.to_currency = s.currency and g.rate_date <= n.charged_on
),
rates as (
    select billing_currency, charged_on, times, divisor
    from quotes
    qualify row_number() over (partition by billing_currency, charged_on order by is_inverse, rate_date desc) = 1
),
-- Whole units: prices 1e-9, billed and effective cost 1e-10, list and contracted cost 1e-18. Half up means away from
-- zero. A fraction is taken of quotient and rest apart, because the product may not fit 128 bits.
counted as (
    select
        l.*, s.currency,
        case when l.billing_currency = s.currency then 1 else r.times end as times,
        case when l.billing_currency = s.currency then 1 else r.divisor end as divisor,
        case
            when l.billing_currency = s.currency then 1
            when r.times is not null then coalesce(p.times, r.times)
        end as paid_times,
        case
            when l.billing_currency = s.currency then 1
            when r.times is not null then coalesce(p.divisor, r.divisor)
        end as paid_divisor,
        l.billing_currency = s.currency or r.times is not null as has_rate,
        cast(cast(l.list_unit_price as decimal(38, 9)) * 1000000000 as hugeint) as list_price_units,
        cast(cast(l.contracted_unit_price as decimal(38, 9)) * 1000000000 as hugeint) as contracted_price_units,
        cast(cast(l.pricing_quantity as decimal(38, 9)) * 1000000000 as hugeint) as pricing_units,
        cast(cast(l.consumed_quantity as decimal(38, 9)) * 1000000000 as hugeint) as consumed_units,
        cast(cast(l.commitment_quantity as decimal(38, 9)) * 1000000000 as hugeint) as commitment_units,
        cast(cast(coalesce(l.billed_cost, 0) as decimal(38, 10)) * 10000000000 as hugeint) as billed_units,
        cast(cast(coalesce(l.effective_cost, 0) as decimal(38, 10)) * 10000000000 as hugeint) as effective_units,
        cast(cast(coalesce(l.pricing_currency_effective_cost, l.effective_cost) as decimal(38, 10)) * 10000000000 as hugeint)
            as own_effective_units,
        cast(floor(coalesce(l.list_cost, 0)) as hugeint) * 1000000000000000000
        + cast(
            cast(coalesce(l.list_cost, 0) - floor(coalesce(l.list_cost, 0)) as decimal(19, 18)) * 1000000000000000000 as hugeint
        ) as list_units,
        cast(floor(coalesce(l.contracted_cost, 0)) as hugeint) * 1000000000000000000
        + cast(
            cast(coalesce(l.contracted_cost, 0) - floor(coalesce(l.contracted_cost, 0)) as decimal(19, 18)) * 1000000000000000000
            as hugeint
        ) as contracted_units
    from lines as l
    cross join setting as s
    left join rates as r
        on r.billing_currency = l.billing_currency and r.charged_on = cast(l.charge_period_start_at as date)
    left join rates as p on p.billing_currency = l.billing_currency and p.charged_on = l.paid_on
),
judged as (
    select
        *,
        coalesce(abs(list_units - list_price_units * pricing_units) <= 100000000, false) as is_list_priced,
        coalesce(abs(contracted_units - contracted_price_units * pricing_units) <= 100000000, false) as is_contracted_priced
    from counted
),
priced as (
    select
        *,
        case
            when times = divisor then list_price_units
            else (list_price_units * times * 2 + divisor) // nullif(divisor * 2, 0)
        end as list_price,
        case
            when times = divisor then contracted_price_units
            else (contracted_price_units * times * 2 + divisor) // nullif(divisor * 2, 0)
        end as contracted_price,
        case
            when times = divisor then billed_units
            else sign(billed_units) * ((abs(billed_units) * times * 2 + divisor) // nullif(divisor * 2, 0))
        end as billed,
        case
            when paid_times = paid_divisor then effective_units
            else sign(effective_units) * (
                (abs(effective_units) * paid_times * 2 + paid_divisor) // nullif(paid_divisor * 2, 0)
            )
        end as effective
    from judged
),
converted as (
    select
        *,
        case
            when times = divisor then list_units
            when is_list_priced then list_price * pricing_units
            else sign(list_units) * (
                abs(list_units) // nullif(divisor, 0) * times
                + (abs(list_units) % nullif(divisor, 0) * times * 2 + divisor) // nullif(divisor * 2, 0)
            )
        end as listed,
        case
            when times = divisor then contracted_units
            when is_contracted_priced then contracted_price * pricing_units
            else sign(contracted_units) * (
                abs(contracted_units) // nullif(divisor, 0) * times
                + (abs(contracted_units) % nullif(divisor, 0) * times * 2 + divisor) // nullif(divisor * 2, 0)
            )
        end as contracted
    from priced
),
node_hours as (
    select *
    from core.node_hours
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- What a resource was on a date; of two nodes the one that ran longer comes first.
node_days as (
    select
        date, resource_id, cluster, node, max(provider) as provider, max(region) as region, max(zone) as zone,
        max(instance_type) as instance_type, max(accelerator) as accelerator, max(gpu_count) as gpu_count,
        max(owner_team) as owner_team,
        row_number() over (partition by date, resource_id order by sum(running_us) desc, cluster, node) as place
    from node_hours
    group by date, resource_id, cluster, node
),
scoped as (
    select
        p.date, p.from_at, p.to_at, p.weight_us, p.weight_before_us, p.weight_total_us, l.bill_id, l.source_line, m.resource_id,
        l.is_list_priced, l.is_contracted_priced,
        case
            when l.charge_category = 'Tax' then 'tax'
            when l.charge_category = 'Credit' then 'credit'
            when l.is_unused then 'commitment'
            when l.charge_category = 'Purchase' and coalesce(l.commitment_id, l.capacity_reservation_id) is not null
                then 'commitment'
            when
                l.charge_category = 'Usage' and m.resource_id is not null
                and (l.service_category is null or l.service_category in ('Compute', 'AI and Machine Learning'))
                then 'node'
            when l.charge_category = 'Usage' and l.service_category in ('Compute', 'AI and Machine Learning')
                then 'not_in_cluster'
            else 'other_services'
        end as charge_scope,
        l.charge_category, l.list_price, l.contracted_price, l.pricing_units, l.consumed_units, l.commitment_units,
        l.billed, l.effective, l.own_effective_units, l.listed, l.contracted,
        row_number() over (order by l.bill_id, l.source_line, p.date) as portion
    from portions as p
    inner join converted as l on l.bill_id = p.bill_id and l.source_line = p.source_line
    left join core.bill_resources as m
        on m.bill_id = l.bill_id and m.billed_resource_id = l.resource_id and m.date = p.date
        and m.date >= cast($start_at as date) and m.date < cast($end_at as date)
),
-- The hours of a portion, and how long its node ran in each.
hours as (
    select hour_at from unnest(generate_series($start_at, $end_at - interval 1 hour, interval 1 hour)) as h(hour_at)
),
running as (
    select s.portion, h.hour, h.cluster, h.node, least(sum(h.running_us), max(date_diff(
        'microsecond', greatest(s.from_at, h.hour), least(s.to_at, h.hour + interval 1 hour)
    ))) as part_us
    from scoped as s
    inner join node_hours as h
        on h.date = s.date and h.resource_id = s.resource_id and h.hour < s.to_at and h.hour + interval 1 hour > s.from_at
    where s.charge_scope = 'node'
    group by s.portion, h.hour, h.cluster, h.node
),
waiting as (
    select s.portion, s.from_at, s.to_at, d.cluster, d.node
    from scoped as s
    left join node_days as d
        on d.date = s.date and d.resource_id = s.resource_id and d.place = 1 and s.charge_scope = 'node'
    left join (select distinct portion from running) as r on r.portion = s.portion
    where (s.charge_scope = 'node' and r.portion is null) or (s.charge_scope = 'commitment' and s.charge_category = 'Usage')
),
pieces as (
    select * from running
    union all
    select
        w.portion, h.hour_at, w.cluster, w.node,
        date_diff('microsecond', greatest(w.from_at, h.hour_at), least(w.to_at, h.hour_at + interval 1 hour))
    from waiting as w
    inner join hours as h on h.hour_at < w.to_at and h.hour_at + interval 1 hour > w.from_at
    union all
    select portion, date_trunc('hour', from_at), cast(null as varchar), cast(null as varchar), 1
    from scoped
    where charge_scope <> 'node' and not (charge_scope = 'commitment' and charge_category = 'Usage')
),
parts as (
    select
        portion, hour, cluster, node, part_us, sum(part_us) over (partition by portion) as all_us,
        row_number() over (partition by portion order by hour, cluster, node) as place,
        row_number() over (partition by portion, hour order by cluster, node) as place_in_hour,
        count(*) over (partition by portion) as places
    from pieces
),
-- What is dealt, metric by metric: the date's part, then its hours'.
metrics as (
    select 'pricing' as metric
    union all select 'consumed' union all select 'commitment' union all select 'billed' union all select 'effective'
    union all select 'own_effective' union all select 'listed' union all select 'contracted'
),
amounts as (
    select
        s.portion, m.metric, s.weight_us, s.weight_before_us, s.weight_total_us,
        case m.metric
            when 'pricing' then pricing_units
            when 'consumed' then consumed_units
            when 'commitment' then commitment_units
            when 'billed' then billed
            when 'effective' then effective
            when 'own_effective' then own_effective_units
            when 'listed' then case when not is_list_priced then listed end
            else case when not is_contracted_priced then contracted end
        end as total
    from scoped as s
    cross join metrics as m
    where
        s.weight_us <> s.weight_total_us
        or s.portion in (select portion from parts where places > 1)
),
dated as (
    select
        portion, metric, case when total < 0 then -1 else 1 end as signum,
        abs(total) // nullif(weight_total_us, 0) * weight_us
        + abs(total) % nullif(weight_total_us, 0) * (weight_before_us + weight_us) // nullif(weight_total_us, 0)
        - abs(total) % nullif(weight_total_us, 0) * weight_before_us // nullif(weight_total_us, 0) as amount
    from amounts
    where total is not null
),
floors as (
    select
        d.portion, p.place, d.metric, d.signum, d.amount,
        d.amount // nullif(p.all_us, 0) * p.part_us + d.amount % nullif(p.all_us, 0) * p.part_us // nullif(p.all_us, 0) as part,
        d.amount % nullif(p.all_us, 0) * p.part_us % nullif(p.all_us, 0) as rest
    from dated as d
    inner join parts as p on p.portion = d.portion
),
ranked as (
    select
        *,
        amount - sum(part) over (partition by portion, metric) as missing,
        row_number() over (partition by portion, metric order by rest desc, place) as rest_place
    from floors
),
dealt as (
    select
        portion, place,
        max(case when metric = 'pricing' then amount end) as pricing, max(case when metric = 'consumed' then amount end) as consumed,
        max(case when metric = 'commitment' then amount end) as commitment,
        max(case when metric = 'billed' then amount end) as billed, max(case when metric = 'effective' then amount end) as effective,
        max(case when metric = 'own_effective' then amount end) as own_effective,
        max(case when metric = 'listed' then amount end) as listed,
        max(case when metric = 'contracted' then amount end) as contracted
    from (
        select portion, place, metric, signum * (part + case when rest_place <= missing then 1 else 0 end) as amount
        from ranked
    ) as shares
    group by portion, place
),
-- A line off by a last digit keeps price x quantity; its first row has the difference.
given_out as (
    select
        s.portion, s.date, s.bill_id, s.source_line, s.resource_id, s.charge_scope, s.from_at, s.to_at,
        p.hour, p.cluster, p.node, p.place_in_hour,
        s.charge_scope = 'node' or (s.charge_scope = 'commitment' and s.charge_category = 'Usage') as is_hourly,
        case when d.portion is null then s.pricing_units else d.pricing end as pricing,
        case when d.portion is null then s.consumed_units else d.consumed end as consumed,
        case when d.portion is null then s.commitment_units else d.commitment end as commitment,
        case when d.portion is null then s.billed else d.billed end as billed,
        case when d.portion is null then s.effective else d.effective end as effective,
        case when d.portion is null then s.own_effective_units else d.own_effective end as own_effective,
        case
            when d.portion is null then s.listed
            when s.is_list_priced
                then s.list_price * d.pricing
                + case when p.place = 1 and s.weight_before_us = 0 then s.listed - s.list_price * s.pricing_units else 0 end
            else d.listed
        end as listed,
        case
            when d.portion is null then s.contracted
            when s.is_contracted_priced
                then s.contracted_price * d.pricing
                + case
                    when p.place = 1 and s.weight_before_us = 0 then s.contracted - s.contracted_price * s.pricing_units
                    else 0
                end
            else d.contracted
        end as contracted
    from scoped as s
    inner join parts as p on p.portion = s.portion
    left join dealt as d on d.portion = p.portion and d.place = p.place
),
owners as (
    select commitment_id, commitment_name, owner_team
    from raw.commitments
    qualify row_number() over (partition by commitment_id order by as_of desc, provider) = 1
)
select
    g.date, g.hour,
    'bill/' || g.bill_id || '/' || cast(g.source_line as varchar) || '/'
    || replace(replace(substr(cast(g.hour as varchar), 1, 13), '-', ''), ' ', 'T')
    || case when g.place_in_hour > 1 then '/' || cast(g.place_in_hour as varchar) else '' end as charge_id,
    g.charge_scope, g.cluster, g.node,
    case
        when g.charge_scope = 'node' then g.resource_id
        when g.charge_scope = 'commitment' then coalesce(l.commitment_id, l.capacity_reservation_id, l.resource_id)
        else l.resource_id
    end as resource_id,
    coalesce(l.resource_name, g.node) as resource_name, l.resource_type, coalesce(d.provider, l.provider) as provider,
    l.billing_account_id, l.sub_account_id, l.invoice_id, l.invoice_issuer, l.service_provider, l.host_provider,
    coalesce(l.region, d.region) as region, coalesce(l.zone, d.zone) as zone, d.instance_type, d.accelerator, d.gpu_count,
    l.charge_category, l.charge_class, l.charge_description, l.charge_frequency,
    case when g.is_hourly then greatest(g.from_at, g.hour) else g.from_at end as charge_period_start_at,
    case when g.is_hourly then least(g.to_at, g.hour + interval 1 hour, l.charge_period_end_at) else least(g.to_at, l.charge_period_end_at) end
        as charge_period_end_at,
    l.billing_period_start_at, l.billing_period_end_at, l.service_category, l.service_subcategory, l.service_name,
    l.sku_id, l.sku_price_id, l.sku_meter, l.sku_price_details, l.pricing_category,
    cast(cast(g.pricing as decimal(18, 0)) * 0.000000001 as decimal(18, 9)) as pricing_quantity, l.pricing_unit,
    cast(cast(g.consumed as decimal(18, 0)) * 0.000000001 as decimal(18, 9)) as consumed_quantity, l.consumed_unit,
    cast(cast(l.list_price as decimal(20, 0)) * 0.000000001 as decimal(20, 9)) as list_unit_price,
    cast(cast(l.contracted_price as decimal(20, 0)) * 0.000000001 as decimal(20, 9)) as contracted_unit_price,
    l.currency as billing_currency,
    coalesce(l.pricing_currency, l.billing_currency) as pricing_currency,
    case when l.pricing_currency is null then l.list_unit_price else l.pricing_currency_list_unit_price end
        as pricing_currency_list_unit_price,
    case when l.pricing_currency is null then l.contracted_unit_price else l.pricing_currency_contracted_unit_price end
        as pricing_currency_contracted_unit_price,
    cast(cast(g.own_effective as decimal(28, 0)) * 0.0000000001 as decimal(28, 10)) as pricing_currency_effective_cost,
    l.commitment_id, coalesce(l.commitment_name, o.commitment_name) as commitment_name, l.commitment_type, l.commitment_category,
    l.commitment_discount_status,
    cast(cast(g.commitment as decimal(18, 0)) * 0.000000001 as decimal(18, 9)) as commitment_quantity, l.commitment_unit,
    l.capacity_reservation_id, l.capacity_reservation_status,
    case when g.charge_scope = 'commitment' then o.owner_team else d.owner_team end as owner_team, l.tags,
    cast(coalesce(g.listed, 0) as decimal(38, 0)) * 0.000000000000000001 as list_cost,
    cast(coalesce(g.contracted, 0) as decimal(38, 0)) * 0.000000000000000001 as contracted_cost,
    cast(cast(coalesce(g.billed, 0) as decimal(28, 0)) * 0.0000000001 as decimal(28, 10)) as billed_cost,
    cast(cast(coalesce(g.effective, 0) as decimal(28, 0)) * 0.0000000001 as decimal(28, 10)) as effective_cost,
    case when not l.has_rate then 'no_rate' end as flags, g.bill_id
from given_out as g
inner join converted as l on l.bill_id = g.bill_id and l.source_line = g.source_line
left join node_days as d
    on d.date = g.date and d.resource_id = g.resource_id and d.cluster = g.cluster and d.node = g.node
left join owners as o on o.commitment_id = l.commitment_id
