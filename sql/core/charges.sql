-- The charges that count: those of bills, and the computed ones that no bill covers. An account is a bill: provider,
-- billing account, billing period. It covers the hours in which it has Usage of compute or of a commitment of up to 25
-- hours (a day of any time zone), for resources that have no shorter lines there: a line for a day does not stand for a
-- node that is billed by the hour, and storage stands for no node. Longer Usage covers only the hours of its own
-- resource, and only where the account has nothing shorter of it, so a bill up to today with a charge for the whole month
-- covers no hour to come. An account of which a line was refused covers only what its own lines say of each resource.
-- Corrections cover and name nothing.
-- Usage computed for a node (a commitment) gives way in hours covered by an account that names the resource (the
-- commitment) in any row. A computed purchase gives way to an account of its provider and, where known, billing account
-- that has a purchase for the commitment in the billing period (a purchase of up to 25 hours: at that time), a computed
-- credit to one that has a credit in the billing period, both to one that covers their whole period, a purchase only where
-- that one names the commitment: else its fee would go and its amortized cost stay. All else stays.
-- What a commitment covered of a node that gave way is given back to the commitment as unused, unless a bill that stands
-- there names the commitment: its fee was computed, and all of it is amortized, used or not.
-- grain: charge
-- key: date, charge_id
-- inputs: core.bill_resources, core.billed_charges, core.commitment_terms_daily, core.computed_charges, raw.bills,
--   raw.rejected_bill_lines
-- invariant: every billed charge is here, and every computed one unless it gave way; effective cost of commitments that
--   no bill names is what was computed
with computed as (
    select * from core.computed_charges
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- Bills of which a line touches the window, or a period of what was computed for it.
spans as (
    select
        least($start_at, min(charge_period_start_at)) as from_at,
        greatest($end_at, max(case when charge_category <> 'Usage' then charge_period_end_at end)) as to_at
    from computed
),
lines as (
    select
        b.bill_id, b.provider, b.billing_account_id, b.billing_period_start_at, b.billing_period_end_at, b.charge_category,
        b.resource_id, b.commitment_id, b.charge_period_start_at, b.charge_period_end_at,
        date_diff('second', b.charge_period_start_at, b.charge_period_end_at) as seconds,
        b.charge_period_end_at <= b.charge_period_start_at + interval 25 hour as is_short,
        b.commitment_id is not null or coalesce(b.service_category in ('Compute', 'AI and Machine Learning'), true)
            as is_compute,
        r.source_sha256 is not null as is_incomplete
    from raw.bills as b
    left join (select distinct source_sha256 from raw.rejected_bill_lines) as r on r.source_sha256 = b.source_sha256
    where b.charge_class is distinct from 'Correction'
),
incomplete as (
    select distinct bill_id from lines where is_incomplete
),
-- The longest of a resource's lines of up to 25 hours.
habits as (
    select bill_id, resource_id, max(seconds) as seconds
    from lines
    where charge_category = 'Usage' and is_short and is_compute and resource_id is not null
    group by bill_id, resource_id
),
-- Hours that an account covers, wherever its resources are.
periods as (
    select distinct l.bill_id, l.charge_period_start_at as from_at, l.charge_period_end_at as to_at, l.seconds
    from lines as l
    cross join spans as s
    left join incomplete as i on i.bill_id = l.bill_id
    where
        l.charge_category = 'Usage' and l.is_short and l.is_compute and i.bill_id is null and l.charge_period_start_at < s.to_at and l.charge_period_end_at > s.from_at
        and l.charge_period_end_at > l.charge_period_start_at
),
covered as (
    select p.bill_id, cast(u.hour_at as timestamp) as hour, min(p.seconds) as seconds
    from periods as p
    cross join unnest(generate_series(
        date_trunc('hour', p.from_at), p.to_at - interval 1 microsecond, interval 1 hour
    )) as u(hour_at)
    group by p.bill_id, u.hour_at
),
-- Resources for which only their own lines stand: an account has nothing but long usage of them, or is incomplete.
own_resources as (
    select l.bill_id, l.resource_id
    from lines as l
    left join incomplete as i on i.bill_id = l.bill_id
    where l.charge_category = 'Usage' and l.is_compute and l.resource_id is not null
    group by l.bill_id, l.resource_id
    having max(case when l.is_short and i.bill_id is null then 1 else 0 end) = 0
),
own_periods as (
    select distinct l.bill_id, l.resource_id, l.charge_period_start_at as from_at, l.charge_period_end_at as to_at
    from lines as l
    inner join own_resources as r on r.bill_id = l.bill_id and r.resource_id = l.resource_id
    where
        l.charge_category = 'Usage' and l.is_compute and l.charge_period_start_at < $end_at
        and l.charge_period_end_at > $start_at
),
names as (
    select date, bill_id, resource_id, billed_resource_id
    from core.bill_resources
    where date >= cast($start_at as date) and date < cast($end_at as date) and is_named
),
commitments as (
    select distinct bill_id, commitment_id from lines where commitment_id is not null
    union
    select distinct bill_id, resource_id from lines where resource_id is not null
),
-- Charges of nodes and the bills that take their place.
replaced as (
    select c.date, c.charge_id, c.commitment_id, n.bill_id
    from computed as c
    inner join names as n on n.date = c.date and n.resource_id = c.resource_id
    inner join covered as k on k.bill_id = n.bill_id and k.hour = c.hour
    left join habits as h on h.bill_id = n.bill_id and h.resource_id = n.billed_resource_id
    where c.charge_category = 'Usage' and c.charge_scope <> 'commitment' and k.seconds <= coalesce(h.seconds, k.seconds)
    union
    select c.date, c.charge_id, c.commitment_id, n.bill_id
    from computed as c
    inner join names as n on n.date = c.date and n.resource_id = c.resource_id
    inner join own_periods as p
        on p.bill_id = n.bill_id and p.resource_id = n.billed_resource_id and p.from_at < c.hour + interval 1 hour
        and p.to_at > c.hour
    where c.charge_category = 'Usage' and c.charge_scope <> 'commitment'
),
-- Charges of commitments and of what they cover, where a bill stands for the commitment.
told as (
    select c.date, c.charge_id, c.charge_scope
    from computed as c
    inner join commitments as n on n.commitment_id = coalesce(c.commitment_id, c.resource_id)
    inner join covered as k on k.bill_id = n.bill_id and k.hour = c.hour
    left join habits as h on h.bill_id = n.bill_id and h.resource_id = n.commitment_id
    where
        c.charge_category = 'Usage' and (c.charge_scope = 'commitment' or c.commitment_id is not null)
        and k.seconds <= coalesce(h.seconds, k.seconds)
    union
    select c.date, c.charge_id, c.charge_scope
    from computed as c
    inner join commitments as n on n.commitment_id = coalesce(c.commitment_id, c.resource_id)
    inner join own_periods as p
        on p.bill_id = n.bill_id and p.resource_id = n.commitment_id and p.from_at < c.hour + interval 1 hour
        and p.to_at > c.hour
    where c.charge_category = 'Usage' and (c.charge_scope = 'commitment' or c.commitment_id is not null)
),
-- What a commitment covered of nodes that are billed now, without the commitment.
given_back as (
    select r.date, r.charge_id
    from replaced as r
    left join commitments as n on n.bill_id = r.bill_id and n.commitment_id = r.commitment_id
    left join told as t on t.date = r.date and t.charge_id = r.charge_id
    where r.commitment_id is not null
    group by r.date, r.charge_id
    having count(n.bill_id) = 0 and count(t.charge_id) = 0
),
gone as (
    select date, charge_id from replaced
    union
    select date, charge_id from told where charge_scope = 'commitment'
    union
    select c.date, c.charge_id
    from computed as c
    inner join lines as l
        on l.charge_category = c.charge_category and lower(l.provider) = lower(c.provider)
        and coalesce(c.billing_account_id, l.billing_account_id) = l.billing_account_id
        and c.charge_period_start_at >= l.billing_period_start_at and c.charge_period_start_at < l.billing_period_end_at
    where
        c.charge_category = 'Credit'
        or (
            c.charge_category = 'Purchase'
            and coalesce(c.commitment_id, c.resource_id) in (l.commitment_id, l.resource_id)
            and (
                c.charge_period_end_at > c.charge_period_start_at + interval 25 hour
                or (
                    l.charge_period_start_at < c.charge_period_end_at and l.charge_period_end_at > c.charge_period_start_at
                )
            )
        )
    union
    select c.date, c.charge_id
    from computed as c
    inner join (select distinct bill_id, provider, billing_account_id from lines) as a
        on lower(a.provider) = lower(c.provider)
        and coalesce(c.billing_account_id, a.billing_account_id) = a.billing_account_id
    inner join covered as k
        on k.bill_id = a.bill_id and k.hour >= date_trunc('hour', c.charge_period_start_at) and k.hour < c.charge_period_end_at
    left join commitments as n on n.bill_id = a.bill_id and n.commitment_id = coalesce(c.commitment_id, c.resource_id)
    where
        c.charge_category <> 'Usage' and c.charge_period_end_at > c.charge_period_start_at
        and (c.charge_category <> 'Purchase' or n.commitment_id is not null)
    group by c.date, c.charge_id, a.bill_id, c.charge_period_start_at, c.charge_period_end_at
    having
        count(*) * 3600
        >= date_diff('second', date_trunc('hour', c.charge_period_start_at), c.charge_period_end_at)
)
select
    c.date, c.hour, c.charge_id, 'computed' as charge_origin,
    c.charge_scope, c.cluster, c.node, c.resource_id, c.resource_name, c.resource_type, c.provider,
    c.billing_account_id, c.sub_account_id, c.invoice_id, c.invoice_issuer, c.service_provider, c.host_provider,
    c.region, c.zone, c.instance_type, c.accelerator, c.gpu_count, c.charge_category, c.charge_class,
    c.charge_description, c.charge_frequency, c.charge_period_start_at, c.charge_period_end_at,
    c.billing_period_start_at, c.billing_period_end_at, c.service_category, c.service_subcategory,
    c.service_name, c.sku_id, c.sku_price_id, c.sku_meter, c.sku_price_details, c.pricing_category,
    c.pricing_quantity, c.pricing_unit, c.consumed_quantity, c.consumed_unit, c.list_unit_price,
    c.contracted_unit_price, c.billing_currency, c.pricing_currency, c.pricing_currency_list_unit_price,
    c.pricing_currency_contracted_unit_price, c.pricing_currency_effective_cost, c.commitment_id,
    c.commitment_name, c.commitment_type, c.commitment_category, c.commitment_discount_status,
    c.commitment_quantity, c.commitment_unit, c.capacity_reservation_id, c.capacity_reservation_status,
    c.owner_team, c.tags, c.list_cost, c.contracted_cost, c.billed_cost, c.effective_cost, c.flags
from computed as c
left join gone as g on g.date = c.date and g.charge_id = c.charge_id
where g.charge_id is null
union all
select
    c.date, c.hour, c.charge_id || '/given-back', 'computed', 'commitment', cast(null as varchar), cast(null as varchar),
    c.commitment_id, c.commitment_name, 'Commitment', c.provider, coalesce(t.billing_account_id, c.billing_account_id),
    c.sub_account_id, c.invoice_id, c.invoice_issuer, c.service_provider, c.host_provider, t.region, cast(null as varchar),
    cast(null as varchar), cast(null as varchar), cast(null as smallint), c.charge_category, c.charge_class,
    'Unused part of ' || coalesce(c.commitment_name, c.commitment_id) || ': a bill charges '
    || coalesce(c.resource_name, c.resource_id) || ', which it covered, and does not name it',
    c.charge_frequency, c.charge_period_start_at, c.charge_period_end_at, c.billing_period_start_at,
    c.billing_period_end_at, c.service_category, c.service_subcategory, c.service_name, c.sku_id, c.sku_price_id,
    'Commitment', cast(null as varchar), c.pricing_category, c.pricing_quantity, c.pricing_unit,
    cast(null as decimal(18, 9)), cast(null as varchar), c.list_unit_price, c.contracted_unit_price, c.billing_currency,
    c.pricing_currency, c.pricing_currency_list_unit_price, c.pricing_currency_contracted_unit_price,
    c.pricing_currency_effective_cost, c.commitment_id, c.commitment_name, c.commitment_type, c.commitment_category,
    'Unused', c.commitment_quantity, c.commitment_unit, c.capacity_reservation_id,
    case when c.capacity_reservation_id is not null then 'Unused' end, t.owner_team, c.tags, c.list_cost,
    c.contracted_cost, cast(0 as decimal(28, 10)), c.effective_cost, c.flags
from computed as c
inner join given_back as g on g.date = c.date and g.charge_id = c.charge_id
left join core.commitment_terms_daily as t
    on t.date = c.date and t.provider = c.provider and t.commitment_id = c.commitment_id
    and t.date >= cast($start_at as date) and t.date < cast($end_at as date)
union all
select
    b.date, b.hour, b.charge_id, 'bill' as charge_origin,
    b.charge_scope, b.cluster, b.node, b.resource_id, b.resource_name, b.resource_type, b.provider,
    b.billing_account_id, b.sub_account_id, b.invoice_id, b.invoice_issuer, b.service_provider, b.host_provider,
    b.region, b.zone, b.instance_type, b.accelerator, b.gpu_count, b.charge_category, b.charge_class,
    b.charge_description, b.charge_frequency, b.charge_period_start_at, b.charge_period_end_at,
    b.billing_period_start_at, b.billing_period_end_at, b.service_category, b.service_subcategory,
    b.service_name, b.sku_id, b.sku_price_id, b.sku_meter, b.sku_price_details, b.pricing_category,
    b.pricing_quantity, b.pricing_unit, b.consumed_quantity, b.consumed_unit, b.list_unit_price,
    b.contracted_unit_price, b.billing_currency, b.pricing_currency, b.pricing_currency_list_unit_price,
    b.pricing_currency_contracted_unit_price, b.pricing_currency_effective_cost, b.commitment_id,
    b.commitment_name, b.commitment_type, b.commitment_category, b.commitment_discount_status,
    b.commitment_quantity, b.commitment_unit, b.capacity_reservation_id, b.capacity_reservation_status,
    b.owner_team, b.tags, b.list_cost, b.contracted_cost, b.billed_cost, b.effective_cost, b.flags
from core.billed_charges as b
where b.date >= cast($start_at as date) and b.date < cast($end_at as date)
