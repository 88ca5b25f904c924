-- No overlap: at any instant the shares of one unit that pods hold add up to at most one, so no second is counted twice.
-- table: core.device_assignments
with held as (
    select date, cluster, node, pci_bus_id, coalesce(gi_id, -1) as gi_id, interval_start_at, interval_end_at, share_ratio
    from core.device_assignments
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
moments as (
    select distinct date, cluster, node, pci_bus_id, gi_id, interval_start_at as at
    from held
)
select m.date, m.cluster, m.node, m.pci_bus_id, m.gi_id, m.at, sum(h.share_ratio) as shares
from moments as m
inner join held as h
    on h.date = m.date and h.cluster = m.cluster and h.node = m.node and h.pci_bus_id = m.pci_bus_id
    and h.gi_id = m.gi_id and h.interval_start_at <= m.at and h.interval_end_at > m.at
group by m.date, m.cluster, m.node, m.pci_bus_id, m.gi_id, m.at
having sum(h.share_ratio) > 1 + 1e-9
