-- Which accelerators existed, per date: slots that scrapes or node lists showed, from their first to their last
-- evidence within the time their node was in the cluster. A lost GPU stays; a device that no exporter ever shows is
-- known from the node list alone.
-- grain: date, slot (node, pci_bus_id), validity
-- key: date, cluster, node, pci_bus_id, started_at
-- inputs: core.gpu_sightings, core.node_listings
-- invariant: intervals of one slot do not overlap
with sightings as (
    select * from core.gpu_sightings
),
listings as (
    select
        *,
        lag(absent_at) over (partition by cluster, node order by first_seen_at) as previous_absent_at
    from core.node_listings
),
-- A node's time in the cluster: from one absence to the next.
epoch_marks as (
    select
        *,
        sum(case when previous_absent_at is not null then 1 else 0 end) over (
            partition by cluster, node order by first_seen_at rows between unbounded preceding and current row
        ) as epoch
    from listings
),
listed_epochs as (
    select
        cluster, node, epoch, min(first_seen_at) as first_seen_at, max(last_seen_at) as last_seen_at,
        max(absent_at) as absent_at
    from epoch_marks
    group by cluster, node, epoch
),
epochs as (
    select
        cluster, node, epoch, first_seen_at as first_listed_at, last_seen_at as last_listed_at, absent_at as epoch_to_at,
        coalesce(
            lag(absent_at) over (partition by cluster, node order by epoch), cast('0001-01-01' as timestamp)
        ) as epoch_from_at
    from listed_epochs
    union all
    -- Nodes that only scrapes know, and scrapes of a node after the lists lost it.
    select
        s.cluster, s.node, coalesce(max(e.epoch), -1) + 1, cast(null as timestamp), cast(null as timestamp),
        cast(null as timestamp), coalesce(max(e.absent_at), cast('0001-01-01' as timestamp))
    from (select distinct cluster, node from sightings) as s
    left join listed_epochs as e on e.cluster = s.cluster and e.node = s.node
    group by s.cluster, s.node
    having count(e.epoch) = count(e.absent_at)
),
counted as (
    select cluster, node, epoch, max(devices) as devices from epoch_marks group by cluster, node, epoch
),
first_listing as (
    select *
    from epoch_marks
    qualify row_number() over (partition by cluster, node, epoch order by first_seen_at) = 1
),
seen as (
    select
        s.cluster, s.node, e.epoch, s.pci_bus_id,
        min(greatest(s.first_seen_at, e.epoch_from_at)) as first_sampled_at,
        max(least(s.last_seen_at, coalesce(e.epoch_to_at, s.last_seen_at))) as last_sampled_at
    from sightings as s
    inner join epochs as e
        on e.cluster = s.cluster and e.node = s.node
        and s.last_seen_at >= e.epoch_from_at and (e.epoch_to_at is null or s.first_seen_at < e.epoch_to_at)
    group by s.cluster, s.node, e.epoch, s.pci_bus_id
),
ranked as (
    select
        *,
        row_number() over (partition by cluster, node, epoch order by first_sampled_at, pci_bus_id) as position,
        count(*) over (partition by cluster, node, epoch) as seen_devices
    from seen
),
-- A list vouches for as many devices as it counts; of those that scrapes show, the first seen come first.
slots as (
    select
        r.cluster, r.node, r.epoch, r.pci_bus_id,
        case when r.position <= f.devices or f.is_cut then least(r.first_sampled_at, e.first_listed_at) else r.first_sampled_at end as first_at,
        case when r.position <= f.devices or f.is_cut or c.devices >= r.seen_devices then greatest(r.last_sampled_at, e.last_listed_at) else r.last_sampled_at end as last_at,
        e.epoch_to_at
    from ranked as r
    inner join epochs as e on e.cluster = r.cluster and e.node = r.node and e.epoch = r.epoch
    left join first_listing as f on f.cluster = r.cluster and f.node = r.node and f.epoch = r.epoch
    left join counted as c on c.cluster = r.cluster and c.node = r.node and c.epoch = r.epoch
    union all
    select
        c.cluster, c.node, c.epoch, 'unseen-' || cast(u.number as varchar), e.first_listed_at, e.last_listed_at,
        e.epoch_to_at
    from counted as c
    inner join epochs as e on e.cluster = c.cluster and e.node = c.node and e.epoch = c.epoch
    cross join unnest(generate_series(cast(1 as bigint), c.devices)) as u(number)
    left join (select cluster, node, epoch, max(seen_devices) as seen_devices from ranked group by cluster, node, epoch) as r
        on r.cluster = c.cluster and r.node = c.node and r.epoch = c.epoch
    where u.number > coalesce(r.seen_devices, 0)
),
days as (
    select cast(day_at as timestamp) as day_at
    from unnest(generate_series($start_at, $end_at - interval 1 day, interval 1 day)) as d(day_at)
),
dated as (
    select
        cast(d.day_at as date) as date, s.cluster, s.node, s.epoch, s.pci_bus_id, s.first_at as started_at,
        s.epoch_to_at as finished_at,
        greatest(s.first_at, d.day_at) as interval_start_at, least(s.last_at, d.day_at + interval 1 day) as interval_end_at
    from slots as s
    inner join days as d on s.first_at < d.day_at + interval 1 day and s.last_at > d.day_at
),
-- What the card was on the date: the day's last sighting, else the last before it.
described as (
    select
        d.date, d.cluster, d.node, d.pci_bus_id, d.started_at, s.gpu_uuid, s.model, s.driver
    from dated as d
    inner join sightings as s
        on s.cluster = d.cluster and s.node = d.node and s.pci_bus_id = d.pci_bus_id and s.date <= d.date
    qualify row_number() over (
        partition by d.date, d.cluster, d.node, d.pci_bus_id, d.started_at order by s.last_seen_at desc, s.gpu_uuid
    ) = 1
),
-- What the node said of itself on the date, else before it, else first after it.
node_dates as (
    select distinct date, cluster, node, epoch from dated
),
node_facts as (
    select
        d.date, d.cluster, d.node, d.epoch, m.resource, m.replicas, m.model, m.provider, m.region, m.zone,
        m.instance_type, m.has_mig_resources
    from node_dates as d
    inner join epoch_marks as m on m.cluster = d.cluster and m.node = d.node and m.epoch = d.epoch
    qualify row_number() over (
        partition by d.date, d.cluster, d.node, d.epoch
        order by
            case when m.date <= d.date then 0 else 1 end,
            case when m.date <= d.date then m.first_seen_at end desc,
            m.first_seen_at
    ) = 1
)
select
    d.date, d.cluster, d.node, d.pci_bus_id, d.started_at, d.finished_at, d.interval_start_at, d.interval_end_at,
    p.gpu_uuid, coalesce(p.model, f.model) as model, p.driver,
    -- One name for a model however the exporter or a node label spells it.
    coalesce(
        nullif(replace(replace(replace(replace(coalesce(p.model, f.model), ' ', '-'), 'NVIDIA-', ''), 'Tesla-', ''), 'tpu-', 'TPU-'), ''),
        '(unknown)'
    ) as accelerator,
    f.resource, coalesce(f.replicas, 1) as replicas, f.provider, f.region, f.zone, f.instance_type,
    coalesce(f.has_mig_resources, false) as has_mig_resources, p.gpu_uuid is null as is_unseen
from dated as d
left join described as p
    on p.date = d.date and p.cluster = d.cluster and p.node = d.node and p.pci_bus_id = d.pci_bus_id
    and p.started_at = d.started_at
left join node_facts as f
    on f.date = d.date and f.cluster = d.cluster and f.node = d.node and f.epoch = d.epoch
where d.interval_end_at > d.interval_start_at
