-- Which resources of bills are which nodes, per date: by the id itself, else by the same path in any letter case and
-- without the scheme (azure:///subscriptions/… and /subscriptions/…), else by the last segment of the path (aws:///eu-1a/i-0a
-- and arn:aws:ec2:…:instance/i-0a), where it means one node and one resource of the bill. A number is no such segment,
-- nor do two paths of the same three or more segments mean the same where they differ. Only what a bill has compute of may
-- be a node: a disk and a database may be called like one. Another provider's resource is a node by the id itself alone.
-- grain: date, resource of a bill
-- key: date, bill_id, billed_resource_id
-- inputs: core.node_hours, raw.bills
-- invariant: a resource of a bill is at most one node resource, and has a line of compute or of no service category
with bills as (
    select
        bill_id,
        least(
            min(case when charge_category = 'Usage' then charge_period_start_at end), min(billing_period_start_at)
        ) as first_at,
        greatest(
            max(case when charge_category = 'Usage' then charge_period_end_at end), max(billing_period_end_at)
        ) as last_at
    from raw.bills
    group by bill_id
),
-- Dates of its billing period and of its usage concern a bill.
extents as (
    select bill_id, first_at, last_at - interval 1 microsecond as last_at
    from bills
    where first_at < $end_at and last_at > $start_at
),
billed as (
    select
        b.bill_id, b.resource_id, min(e.first_at) as first_at, max(e.last_at) as last_at,
        max(case when b.charge_class = 'Correction' then 0 else 1 end) = 1 as is_named, min(lower(b.provider)) as name
    from raw.bills as b
    inner join extents as e on e.bill_id = b.bill_id
    where
        b.resource_id is not null
        and (b.service_category is null or b.service_category in ('Compute', 'AI and Machine Learning'))
    group by b.bill_id, b.resource_id
),
spelled as (
    select
        *,
        case when name in ('gcp', 'google') then 'gce' when name = 'microsoft' then 'azure' else name end as provider,
        ltrim(
            lower(case when resource_id like '%://%' then split_part(resource_id, '://', 2) else resource_id end), '/'
        ) as path
    from billed
),
resources as (
    select
        *, split_part(path, '/', -1) as segment, length(path) - length(replace(path, '/', '')) as depth
    from spelled
),
-- Another spelling of one resource has another depth; two of one depth are two resources.
meant as (
    select
        r.bill_id, r.resource_id, r.provider, r.first_at, r.last_at, r.is_named, r.path, r.segment, r.depth,
        u.paths = 1 and r.segment <> '' and try_cast(r.segment as bigint) is null as is_segment_unique
    from resources as r
    inner join (
        select bill_id, segment, depth, count(distinct path) as paths from resources group by bill_id, segment, depth
    ) as u on u.bill_id = r.bill_id and u.segment = r.segment and u.depth = r.depth
),
nodes as (
    select
        date, resource_id, min(lower(provider)) as name,
        ltrim(
            lower(case when resource_id like '%://%' then split_part(resource_id, '://', 2) else resource_id end), '/'
        ) as path
    from core.node_hours
    where date >= cast($start_at as date) and date < cast($end_at as date)
    group by date, resource_id
),
known as (
    select
        n.date, n.resource_id, n.path, split_part(n.path, '/', -1) as segment,
        case when n.name in ('gcp', 'google') then 'gce' when n.name = 'microsoft' then 'azure' else n.name end as provider,
        length(n.path) - length(replace(n.path, '/', '')) as depth,
        count(*) over (partition by n.date, n.path) = 1 as is_path_unique,
        count(*) over (partition by n.date, split_part(n.path, '/', -1)) = 1 as is_segment_unique
    from nodes as n
),
matches as (
    select n.date, m.bill_id, m.resource_id as billed_resource_id, n.resource_id, m.is_named, 1 as level
    from meant as m
    inner join known as n on n.resource_id = m.resource_id
    where cast(m.first_at as date) <= n.date and cast(m.last_at as date) >= n.date
    union all
    select n.date, m.bill_id, m.resource_id, n.resource_id, m.is_named, 2
    from meant as m
    inner join known as n
        on n.path = m.path and n.is_path_unique
        and coalesce(n.provider, m.provider, '') = coalesce(m.provider, n.provider, '')
    where cast(m.first_at as date) <= n.date and cast(m.last_at as date) >= n.date
    union all
    select n.date, m.bill_id, m.resource_id, n.resource_id, m.is_named, 3
    from meant as m
    inner join known as n
        on n.segment = m.segment and n.is_segment_unique and m.is_segment_unique and (n.depth <> m.depth or n.depth < 2)
        and coalesce(n.provider, m.provider, '') = coalesce(m.provider, n.provider, '')
    where cast(m.first_at as date) <= n.date and cast(m.last_at as date) >= n.date
)
select date, bill_id, billed_resource_id, resource_id, is_named
from matches
qualify row_number() over (partition by date, bill_id, billed_resource_id order by level) = 1
