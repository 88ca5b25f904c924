-- Which pod held which unit, per date (ledger rule 4): devices that pod-resources, DRA or the exporter's labels name
-- are held for the whole of the pod's interval; what a pod asked for and nobody names is its share of the node's
-- devices that nobody else is named on. A share is parts of of_parts.
-- grain: date, unit (node, pci_bus_id, gi_id), pod_uid, interval
-- key: date, cluster, node, pci_bus_id, gi_id, pod_uid, interval_start_at
-- inputs: core.pod_allocations, core.pod_device_evidence, core.gpu_units, core.gpu_outages
-- invariant: at any instant the shares of one unit add up to at most one
with pods as (
    select *
    from core.pod_allocations
    where date >= cast($start_at as date) and date < cast($end_at as date) and source = 'kubernetes'
),
units as (
    select * from core.gpu_units where date >= cast($start_at as date) and date < cast($end_at as date)
),
node_sizes as (
    select date, cluster, node, resource, max(replicas) as replicas, count(distinct pci_bus_id || coalesce(cast(gi_id as varchar), '')) as units
    from units
    where resource is not null
    group by date, cluster, node, resource
),
unit_kinds as (
    select distinct date, cluster, node, pci_bus_id, gi_id, resource from units where resource is not null
),
evidence as (
    select
        cluster, pod_uid, node, pci_bus_id, gi_id,
        min(case method when 'pod_resources' then 1 when 'dra' then 2 else 3 end) as method_rank,
        sum(samples) as samples
    from core.pod_device_evidence
    group by cluster, pod_uid, node, pci_bus_id, gi_id
),
-- A pod holds no more devices than it asked for: those of the best method that it was seen on most. A label that
-- strays to another device for a scrape loses here.
claims as (
    select
        p.date, p.cluster, p.pod_uid, p.resource, p.quantity, p.node, p.started_at, p.finished_at, p.end_reason,
        k.pci_bus_id, k.gi_id, e.method_rank, z.replicas,
        row_number() over (
            partition by p.date, p.cluster, p.pod_uid, p.resource
            order by e.method_rank, e.samples desc, k.pci_bus_id, k.gi_id
        ) as position
    from pods as p
    inner join evidence as e on e.cluster = p.cluster and e.pod_uid = p.pod_uid and e.node = p.node
    inner join unit_kinds as k
        on k.date = p.date and k.cluster = p.cluster and k.node = p.node and k.resource = p.resource
        and k.pci_bus_id = e.pci_bus_id and k.gi_id is not distinct from e.gi_id
    inner join node_sizes as z
        on z.date = p.date and z.cluster = p.cluster and z.node = p.node and z.resource = p.resource
    qualify row_number() over (
        partition by p.date, p.cluster, p.pod_uid, p.resource
        order by e.method_rank, e.samples desc, k.pci_bus_id, k.gi_id
    ) <= p.quantity
),
found as (
    select date, cluster, pod_uid, resource, count(*) as devices
    from claims
    group by date, cluster, pod_uid, resource
),
-- Exclusive devices: a hold without a known end stops where the next pod's begins, and of two holds that still
-- overlap the earlier one stands.
ordered as (
    select
        c.*,
        case
            when c.end_reason = 'gone' then least(
                c.finished_at,
                coalesce(
                    lead(c.started_at) over (
                        partition by c.date, c.cluster, c.node, c.pci_bus_id, c.gi_id order by c.started_at, c.pod_uid
                    ),
                    c.finished_at
                )
            )
            else coalesce(c.finished_at, cast('9999-12-31' as timestamp))
        end as held_to_at
    from claims as c
    where c.replicas = 1
),
exclusive as (
    select
        date, cluster, pod_uid, resource, node, pci_bus_id, gi_id, method_rank, held_to_at,
        greatest(
            started_at,
            coalesce(
                max(held_to_at) over (
                    partition by date, cluster, node, pci_bus_id, gi_id order by started_at, pod_uid
                    rows between unbounded preceding and 1 preceding
                ),
                started_at
            )
        ) as held_from_at
    from ordered
),
-- Shared devices: the pod's replicas are spread over the devices it was seen on, in parts of replicas x units so
-- that they add up with the replicas of pods that were seen on none.
shared as (
    select
        c.date, c.cluster, c.pod_uid, c.resource, c.node, c.pci_bus_id, c.gi_id, c.method_rank, c.started_at as held_from_at,
        coalesce(c.finished_at, cast('9999-12-31' as timestamp)) as held_to_at,
        (c.quantity // nullif(f.devices, 0) + case when c.position <= c.quantity % nullif(f.devices, 0) then 1 else 0 end) * z.units as parts,
        z.replicas * z.units as of_parts
    from claims as c
    inner join found as f
        on f.date = c.date and f.cluster = c.cluster and f.pod_uid = c.pod_uid and f.resource = c.resource
    inner join node_sizes as z
        on z.date = c.date and z.cluster = c.cluster and z.node = c.node and z.resource = c.resource
    where c.replicas > 1
),
named as (
    select
        date, cluster, pod_uid, resource, node, pci_bus_id, gi_id, method_rank, held_from_at, held_to_at,
        cast(1 as bigint) as parts, cast(1 as bigint) as of_parts
    from exclusive
    where held_from_at < held_to_at
    union all
    select
        date, cluster, pod_uid, resource, node, pci_bus_id, gi_id, method_rank, held_from_at, held_to_at, parts, of_parts
    from shared
),
-- What nobody names.
unnamed as (
    select
        p.date, p.cluster, p.pod_uid, p.resource, p.node, p.interval_start_at, p.interval_end_at, z.replicas, z.units,
        case when z.replicas > 1 then case when f.devices > 0 then 0 else p.quantity end else p.quantity - coalesce(f.devices, 0) end as missing
    from pods as p
    inner join node_sizes as z
        on z.date = p.date and z.cluster = p.cluster and z.node = p.node and z.resource = p.resource
    left join found as f
        on f.date = p.date and f.cluster = p.cluster and f.pod_uid = p.pod_uid and f.resource = p.resource
),
lacking as (
    select * from unnamed where missing > 0
),
lacking_nodes as (
    select distinct date, cluster, node, resource, replicas, units as node_units from lacking
),
node_units as (
    select u.date, u.cluster, u.node, u.resource, u.pci_bus_id, u.gi_id, u.interval_start_at, u.interval_end_at, l.replicas, l.node_units
    from units as u
    inner join lacking_nodes as l
        on l.date = u.date and l.cluster = u.cluster and l.node = u.node and l.resource = u.resource
),
day_named as (
    select
        n.date, n.cluster, n.node, n.resource, n.pci_bus_id, n.gi_id,
        greatest(n.held_from_at, cast(n.date as timestamp)) as from_at,
        least(n.held_to_at, cast(n.date as timestamp) + interval 1 day) as to_at
    from named as n
    inner join lacking_nodes as l
        on l.date = n.date and l.cluster = n.cluster and l.node = n.node and l.resource = n.resource
),
lost as (
    select o.date, o.cluster, o.node, l.resource, o.pci_bus_id, o.interval_start_at, o.interval_end_at
    from core.gpu_outages as o
    inner join lacking_nodes as l on l.date = o.date and l.cluster = o.cluster and l.node = o.node
    where o.date >= cast($start_at as date) and o.date < cast($end_at as date)
),
bounds as (
    select date, cluster, node, resource, interval_start_at as bound_at from lacking
    union
    select date, cluster, node, resource, interval_end_at from lacking
    union
    select date, cluster, node, resource, interval_start_at from node_units
    union
    select date, cluster, node, resource, interval_end_at from node_units
    union
    select date, cluster, node, resource, from_at from day_named
    union
    select date, cluster, node, resource, to_at from day_named
    union
    select date, cluster, node, resource, interval_start_at from lost
    union
    select date, cluster, node, resource, interval_end_at from lost
),
pieces as (
    select
        date, cluster, node, resource, bound_at as from_at,
        lead(bound_at) over (partition by date, cluster, node, resource order by bound_at) as to_at
    from bounds
),
free_units as (
    select
        p.date, p.cluster, p.node, p.resource, p.from_at, p.to_at, u.pci_bus_id, u.gi_id, u.replicas, u.node_units,
        x.pci_bus_id is not null as is_lost
    from pieces as p
    inner join node_units as u
        on u.date = p.date and u.cluster = p.cluster and u.node = p.node and u.resource = p.resource
        and u.interval_start_at <= p.from_at and u.interval_end_at >= p.to_at
    left join day_named as n
        on n.date = p.date and n.cluster = p.cluster and n.node = p.node and n.resource = p.resource
        and n.pci_bus_id = u.pci_bus_id and n.gi_id is not distinct from u.gi_id
        and n.from_at <= p.from_at and n.to_at >= p.to_at and u.replicas = 1
    left join lost as x
        on x.date = p.date and x.cluster = p.cluster and x.node = p.node and x.resource = p.resource
        and x.pci_bus_id = u.pci_bus_id and x.interval_start_at <= p.from_at and x.interval_end_at >= p.to_at
    where p.to_at is not null and n.pci_bus_id is null
),
askers as (
    select p.date, p.cluster, p.node, p.resource, p.from_at, l.pod_uid, l.missing
    from pieces as p
    inner join lacking as l
        on l.date = p.date and l.cluster = p.cluster and l.node = p.node and l.resource = p.resource
        and l.interval_start_at <= p.from_at and l.interval_end_at >= p.to_at
    where p.to_at is not null
),
sizes as (
    select
        f.date, f.cluster, f.node, f.resource, f.from_at, f.working >= a.asked as spares_lost,
        case
            when f.replicas > 1 then f.replicas * f.node_units
            when f.working >= a.asked then f.working
            else greatest(f.free, a.asked)
        end as of_parts
    from (
        select
            date, cluster, node, resource, from_at, count(*) as free,
            sum(case when is_lost then 0 else 1 end) as working, max(replicas) as replicas, max(node_units) as node_units
        from free_units
        group by date, cluster, node, resource, from_at
    ) as f
    inner join (
        select date, cluster, node, resource, from_at, sum(missing) as asked
        from askers
        group by date, cluster, node, resource, from_at
    ) as a on a.date = f.date and a.cluster = f.cluster and a.node = f.node and a.resource = f.resource and a.from_at = f.from_at
),
guessed as (
    select
        u.date, u.cluster, a.pod_uid, u.resource, u.node, u.pci_bus_id, u.gi_id, u.from_at, u.to_at,
        cast(a.missing as bigint) as parts, cast(s.of_parts as bigint) as of_parts
    from free_units as u
    inner join askers as a
        on a.date = u.date and a.cluster = u.cluster and a.node = u.node and a.resource = u.resource and a.from_at = u.from_at
    inner join sizes as s
        on s.date = u.date and s.cluster = u.cluster and s.node = u.node and s.resource = u.resource and s.from_at = u.from_at
    -- The kubelet hands out no lost device while working ones are free.
    where not u.is_lost or not s.spares_lost or u.replicas > 1
),
-- A named hold is cut to the times in which its unit exists.
placed as (
    select
        n.date, n.cluster, n.node, n.pci_bus_id, n.gi_id, n.pod_uid, n.resource,
        greatest(n.held_from_at, u.interval_start_at) as interval_start_at,
        least(n.held_to_at, u.interval_end_at) as interval_end_at,
        n.parts, n.of_parts,
        case n.method_rank when 1 then 'pod_resources' when 2 then 'dra' else 'exporter_labels' end as method
    from named as n
    inner join units as u
        on u.date = n.date and u.cluster = n.cluster and u.node = n.node and u.resource = n.resource
        and u.pci_bus_id = n.pci_bus_id and u.gi_id is not distinct from n.gi_id
        and u.interval_start_at < n.held_to_at and u.interval_end_at > n.held_from_at
    union all
    select
        date, cluster, node, pci_bus_id, gi_id, pod_uid, resource, from_at, to_at, parts, of_parts, 'node_share'
    from guessed
)
select
    a.date, a.cluster, a.node, a.pci_bus_id, a.gi_id, a.pod_uid, a.resource, a.interval_start_at, a.interval_end_at,
    a.parts, a.of_parts, cast(a.parts as double) / nullif(cast(a.of_parts as double), 0) as share_ratio, a.method,
    p.started_at, p.finished_at
from placed as a
inner join pods as p
    on p.date = a.date and p.cluster = a.cluster and p.pod_uid = a.pod_uid and p.resource = a.resource
where a.interval_start_at < a.interval_end_at
