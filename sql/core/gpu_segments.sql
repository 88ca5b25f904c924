-- The timeline of every unit, cut wherever something changes (the hour, the unit, its holders, its node, its health):
-- within a segment all of it is constant. The ledger and the capacity models stand on it.
-- grain: unit (node, pci_bus_id, gi_id), segment, holder (null: the part nobody holds)
-- key: date, cluster, node, pci_bus_id, gi_id, segment_start_at, holder
-- inputs: core.gpu_units, core.device_assignments, core.node_outages, core.gpu_outages
-- invariant: the segments of a unit cover its interval once; the parts of a segment add up to it to the microsecond
with units as (
    select * from core.gpu_units where date >= cast($start_at as date) and date < cast($end_at as date)
),
holds as (
    select * from core.device_assignments where date >= cast($start_at as date) and date < cast($end_at as date)
),
node_outages as (
    select * from core.node_outages where date >= cast($start_at as date) and date < cast($end_at as date)
),
gpu_outages as (
    select * from core.gpu_outages where date >= cast($start_at as date) and date < cast($end_at as date)
),
unit_keys as (
    select distinct date, cluster, node, pci_bus_id, gi_id, resource from units
),
hours as (
    select hour_at from unnest(generate_series($start_at, $end_at, interval 1 hour)) as h(hour_at)
),
-- Where a node allocates less than it has, which of its units are meant is decided at one instant for all of them:
-- there every unit is cut where any of the node's units is.
short_nodes as (
    select distinct date, cluster, node, resource from node_outages where kind = 'unallocatable'
),
own_bounds as (
    select date, cluster, node, pci_bus_id, gi_id, interval_start_at as bound_at from units
    union
    select date, cluster, node, pci_bus_id, gi_id, interval_end_at from units
    union
    select date, cluster, node, pci_bus_id, gi_id, interval_start_at from holds
    union
    select date, cluster, node, pci_bus_id, gi_id, interval_end_at from holds
    union
    select u.date, u.cluster, u.node, u.pci_bus_id, u.gi_id, h.hour_at
    from unit_keys as u
    inner join hours as h
        on h.hour_at >= cast(u.date as timestamp) and h.hour_at <= cast(u.date as timestamp) + interval 1 day
    union
    select u.date, u.cluster, u.node, u.pci_bus_id, u.gi_id, o.interval_start_at
    from unit_keys as u
    inner join node_outages as o on o.date = u.date and o.cluster = u.cluster and o.node = u.node
    union
    select u.date, u.cluster, u.node, u.pci_bus_id, u.gi_id, o.interval_end_at
    from unit_keys as u
    inner join node_outages as o on o.date = u.date and o.cluster = u.cluster and o.node = u.node
    union
    select u.date, u.cluster, u.node, u.pci_bus_id, u.gi_id, o.interval_start_at
    from unit_keys as u
    inner join gpu_outages as o
        on o.date = u.date and o.cluster = u.cluster and o.node = u.node and o.pci_bus_id = u.pci_bus_id
    union
    select u.date, u.cluster, u.node, u.pci_bus_id, u.gi_id, o.interval_end_at
    from unit_keys as u
    inner join gpu_outages as o
        on o.date = u.date and o.cluster = u.cluster and o.node = u.node and o.pci_bus_id = u.pci_bus_id
),
shared_bounds as (
    select distinct k.date, k.cluster, k.node, k.pci_bus_id, k.gi_id, b.bound_at
    from unit_keys as k
    inner join short_nodes as s
        on s.date = k.date and s.cluster = k.cluster and s.node = k.node and s.resource = k.resource
    inner join unit_keys as o
        on o.date = k.date and o.cluster = k.cluster and o.node = k.node and o.resource = k.resource
    inner join own_bounds as b
        on b.date = o.date and b.cluster = o.cluster and b.node = o.node and b.pci_bus_id = o.pci_bus_id
        and b.gi_id is not distinct from o.gi_id
),
bounds as (
    select * from own_bounds
    union
    select * from shared_bounds
),
steps as (
    select
        date, cluster, node, pci_bus_id, gi_id, bound_at as from_at,
        lead(bound_at) over (partition by date, cluster, node, pci_bus_id, gi_id order by bound_at) as to_at
    from bounds
),
segments as (
    select
        u.date, u.cluster, u.node, u.pci_bus_id, u.gi_id, u.is_uncarved, u.resource, u.replicas,
        u.share_start, u.share_end, u.share_parts, s.from_at, s.to_at
    from steps as s
    inner join units as u
        on u.date = s.date and u.cluster = s.cluster and u.node = s.node and u.pci_bus_id = s.pci_bus_id
        and u.gi_id is not distinct from s.gi_id
        and u.interval_start_at <= s.from_at and u.interval_end_at >= s.to_at
    where s.to_at is not null
),
conditions as (
    select
        s.date, s.cluster, s.node, s.pci_bus_id, s.gi_id, s.from_at,
        max(case when o.kind = 'not_ready' then 1 else 0 end) = 1 as is_not_ready,
        max(case when o.kind = 'cordoned' then 1 else 0 end) = 1 as is_cordoned,
        max(case when o.kind = 'unallocatable' and o.resource = s.resource then o.devices else 0 end) as short_devices
    from segments as s
    inner join node_outages as o
        on o.date = s.date and o.cluster = s.cluster and o.node = s.node
        and o.interval_start_at <= s.from_at and o.interval_end_at >= s.to_at
    group by s.date, s.cluster, s.node, s.pci_bus_id, s.gi_id, s.from_at
),
losses as (
    select distinct s.date, s.cluster, s.node, s.pci_bus_id, s.gi_id, s.from_at
    from segments as s
    inner join gpu_outages as o
        on o.date = s.date and o.cluster = s.cluster and o.node = s.node and o.pci_bus_id = s.pci_bus_id
        and o.interval_start_at <= s.from_at and o.interval_end_at >= s.to_at
),
held as (
    select
        s.date, s.cluster, s.node, s.pci_bus_id, s.gi_id, s.from_at, h.pod_uid, h.method, h.parts, h.of_parts,
        sum(h.parts) over (
            partition by s.date, s.cluster, s.node, s.pci_bus_id, s.gi_id, s.from_at order by h.pod_uid
            rows between unbounded preceding and current row
        ) as parts_until
    from segments as s
    inner join holds as h
        on h.date = s.date and h.cluster = s.cluster and h.node = s.node and h.pci_bus_id = s.pci_bus_id
        and h.gi_id is not distinct from s.gi_id
        and h.interval_start_at <= s.from_at and h.interval_end_at >= s.to_at
),
held_sums as (
    select date, cluster, node, pci_bus_id, gi_id, from_at, max(parts_until) as held_parts, max(of_parts) as of_parts
    from held
    group by date, cluster, node, pci_bus_id, gi_id, from_at
),
described as (
    select
        s.*,
        coalesce(c.is_not_ready, false) as is_not_ready, coalesce(c.is_cordoned, false) as is_cordoned,
        l.from_at is not null as is_lost, coalesce(c.short_devices, 0) as short_devices,
        coalesce(h.held_parts, 0) as held_parts, coalesce(h.of_parts, 1) as of_parts
    from segments as s
    left join conditions as c
        on c.date = s.date and c.cluster = s.cluster and c.node = s.node and c.pci_bus_id = s.pci_bus_id
        and c.gi_id is not distinct from s.gi_id and c.from_at = s.from_at
    left join losses as l
        on l.date = s.date and l.cluster = s.cluster and l.node = s.node and l.pci_bus_id = s.pci_bus_id
        and l.gi_id is not distinct from s.gi_id and l.from_at = s.from_at
    left join held_sums as h
        on h.date = s.date and h.cluster = s.cluster and h.node = s.node and h.pci_bus_id = s.pci_bus_id
        and h.gi_id is not distinct from s.gi_id and h.from_at = s.from_at
),
-- A device's microseconds are dealt to its units by running sums over units and over time since midnight, so that they
-- add up to the device exactly, also where its units are cut into segments at different instants.
clocked as (
    select
        *,
        date_diff('microsecond', cast(date as timestamp), from_at) as from_us,
        date_diff('microsecond', cast(date as timestamp), to_at) as to_us
    from described
),
dealt as (
    select
        *,
        (to_us * share_end) // share_parts - (to_us * share_start) // share_parts
        - (from_us * share_end) // share_parts + (from_us * share_start) // share_parts as unit_us
    from clocked
),
parts as (
    select
        d.*, h.pod_uid as holder, h.method,
        least(h.parts_until - h.parts, h.of_parts) as hold_start, least(h.parts_until, h.of_parts) as hold_end,
        h.of_parts as hold_parts
    from dealt as d
    inner join held as h
        on h.date = d.date and h.cluster = d.cluster and h.node = d.node and h.pci_bus_id = d.pci_bus_id
        and h.gi_id is not distinct from d.gi_id and h.from_at = d.from_at
    union all
    select
        d.*, cast(null as varchar), cast(null as varchar), least(d.held_parts, d.of_parts), d.of_parts, d.of_parts
    from dealt as d
    where d.held_parts < d.of_parts
),
sized as (
    select
        *,
        (unit_us * hold_end) // nullif(hold_parts, 0) - (unit_us * hold_start) // nullif(hold_parts, 0) as part_us,
        greatest(replicas, 1) * cast(hold_end - hold_start as double) / nullif(hold_parts, 0) as devices
    from parts
    where hold_end > hold_start
),
-- What a node cannot allocate comes first from what is out of work already, then from what is free, then from what is
-- held, in devices as it advertises them; a part may be taken in part.
shorted as (
    select
        *,
        case
            when short_devices = 0 or is_uncarved then 0.0
            else greatest(
                0.0,
                least(
                    1.0,
                    (
                        short_devices + devices - sum(devices) over (
                            partition by date, cluster, node, resource, is_uncarved, from_at
                            order by
                                case when is_not_ready or is_lost then 0 when holder is null then 1 else 2 end,
                                pci_bus_id desc, gi_id desc, holder desc
                            rows between unbounded preceding and current row
                        )
                    ) / nullif(devices, 0)
                )
            )
        end as short_share
    from sized
)
select
    date, cluster, node, pci_bus_id, gi_id, is_uncarved, date_trunc('hour', from_at) as hour,
    from_at as segment_start_at, to_at as segment_end_at, holder, method, is_not_ready, is_lost, is_cordoned,
    share_start, share_end, share_parts,
    cast(hold_start as bigint) as hold_start, cast(hold_end as bigint) as hold_end, cast(hold_parts as bigint) as hold_parts,
    part_us,
    case
        when is_not_ready or is_lost or (holder is null and is_cordoned) then part_us
        else cast(floor(part_us * short_share + 0.5) as bigint)
    end as unavailable_us
from shorted
