-- Times in which a GPU was lost (ledger rule 2): its target went on showing other GPUs for more than five minutes
-- without it. A device that no scrape ever shows beside others on its node counts as lost from the first such scrape.
-- grain: date, slot (node, pci_bus_id), interval
-- key: date, cluster, node, pci_bus_id, interval_start_at
-- inputs: core.gpu_gaps, core.gpu_sightings, core.gpu_inventory
-- invariant: no sample of the slot lies inside an interval
with evidence as (
    select cluster, node, pci_bus_id, max(interval_end_at) as last_evidence_at
    from core.gpu_inventory
    group by cluster, node, pci_bus_id
),
gaps as (
    select * from core.gpu_gaps where date < cast($end_at as date)
),
-- A gap still open at the end of its day's reading ends with the first sighting of a later day.
returns as (
    select g.cluster, g.node, g.pci_bus_id, g.last_seen_at, min(s.first_seen_at) as next_seen_at
    from gaps as g
    inner join core.gpu_sightings as s
        on s.cluster = g.cluster and s.node = g.node and s.pci_bus_id = g.pci_bus_id and s.date > g.date
    where g.next_seen_at is null
    group by g.cluster, g.node, g.pci_bus_id, g.last_seen_at
),
lost as (
    select
        g.cluster, g.node, g.pci_bus_id, g.covers_until_at as from_at,
        coalesce(g.next_seen_at, r.next_seen_at) as to_at
    from gaps as g
    left join returns as r
        on r.cluster = g.cluster and r.node = g.node and r.pci_bus_id = g.pci_bus_id
        and r.last_seen_at = g.last_seen_at
    left join evidence as e on e.cluster = g.cluster and e.node = g.node and e.pci_bus_id = g.pci_bus_id
    where
        date_diff(
            'microsecond', g.missing_from_at, coalesce(g.next_seen_at, r.next_seen_at, e.last_evidence_at)
        ) > 300000000
    union all
    select u.cluster, u.node, u.pci_bus_id, min(s.first_seen_at), cast(null as timestamp)
    from (
        select distinct cluster, node, pci_bus_id, started_at, finished_at
        from core.gpu_inventory
        where is_unseen
    ) as u
    inner join core.gpu_sightings as s
        on s.cluster = u.cluster and s.node = u.node and s.last_seen_at >= u.started_at
        and (u.finished_at is null or s.first_seen_at < u.finished_at)
    inner join evidence as e on e.cluster = u.cluster and e.node = u.node and e.pci_bus_id = u.pci_bus_id
    group by u.cluster, u.node, u.pci_bus_id, u.started_at
    having date_diff('microsecond', min(s.first_seen_at), max(e.last_evidence_at)) > 300000000
),
days as (
    select cast(day_at as timestamp) as day_at
    from unnest(generate_series($start_at, $end_at - interval 1 day, interval 1 day)) as d(day_at)
)
select
    cast(d.day_at as date) as date, l.cluster, l.node, l.pci_bus_id,
    greatest(l.from_at, d.day_at) as interval_start_at,
    least(coalesce(l.to_at, d.day_at + interval 1 day), d.day_at + interval 1 day) as interval_end_at
from lost as l
inner join days as d on l.from_at < d.day_at + interval 1 day and (l.to_at is null or l.to_at > d.day_at)
where l.to_at is null or l.to_at > l.from_at
