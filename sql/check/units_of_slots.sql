-- No overlap: at any instant the units of one slot (the device, or its MIG instances and the uncarved rest) are at most
-- the whole of it.
-- table: core.gpu_units
with units as (
    select date, cluster, node, pci_bus_id, interval_start_at, interval_end_at, share_start, share_end, share_parts
    from core.gpu_units
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
moments as (
    select distinct date, cluster, node, pci_bus_id, interval_start_at as at
    from units
)
select
    m.date, m.cluster, m.node, m.pci_bus_id, m.at,
    sum(cast(u.share_end - u.share_start as double) / u.share_parts) as shares
from moments as m
inner join units as u
    on u.date = m.date and u.cluster = m.cluster and u.node = m.node and u.pci_bus_id = m.pci_bus_id
    and u.interval_start_at <= m.at and u.interval_end_at > m.at
group by m.date, m.cluster, m.node, m.pci_bus_id, m.at
having sum(cast(u.share_end - u.share_start as double) / u.share_parts) > 1 + 1e-9
