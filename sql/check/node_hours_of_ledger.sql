-- Every node-hour of the ledger that lies inside a run of node lists with the node has its node-hour, so that what the
-- ledger divides can have a price. Nodes that only scrapes know have none.
-- table: core.cost_shares
with ledger as (
    select distinct date, hour, cluster, node
    from mart.gpu_ledger_hourly
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
listed as (
    select distinct l.date, l.hour, l.cluster, l.node
    from ledger as l
    inner join core.node_listings as s
        on s.date = l.date and s.cluster = l.cluster and s.node = l.node and s.first_seen_at < l.hour + interval 1 hour
        and s.last_seen_at > l.hour
)
select l.date, l.hour, l.cluster, l.node
from listed as l
anti join core.node_hours as n on n.date = l.date and n.hour = l.hour and n.cluster = l.cluster and n.node = l.node
