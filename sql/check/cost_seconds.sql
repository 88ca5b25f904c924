-- Every second of the ledger is priced once: by node, hour and holder, the seconds beside the costs are the ledger's,
-- wherever the node-hour has a charge; and without one there are none.
-- table: mart.cost_hourly
with charged as (
    select distinct date, hour, cluster, node
    from core.charges
    where date >= cast($start_at as date) and date < cast($end_at as date) and charge_scope = 'node'
),
priced as (
    select
        date, hour, cluster, node, holder, sum(allocated_gpu_seconds) as allocated,
        sum(utilized_gpu_seconds) as utilized, sum(stranded_gpu_seconds) as stranded,
        sum(unobserved_gpu_seconds) as unobserved, sum(unallocated_gpu_seconds) as unallocated,
        sum(unavailable_gpu_seconds) as unavailable
    from mart.cost_hourly
    where date >= cast($start_at as date) and date < cast($end_at as date)
    group by date, hour, cluster, node, holder
),
held as (
    select
        l.date, l.hour, l.cluster, l.node, l.holder, sum(l.allocated_gpu_seconds) as allocated,
        sum(l.utilized_gpu_seconds) as utilized, sum(l.stranded_gpu_seconds) as stranded,
        sum(l.unobserved_gpu_seconds) as unobserved
    from mart.gpu_ledger_hourly as l
    semi join charged as c on c.date = l.date and c.hour = l.hour and c.cluster = l.cluster and c.node = l.node
    where l.date >= cast($start_at as date) and l.date < cast($end_at as date) and l.allocated_gpu_seconds > 0
    group by l.date, l.hour, l.cluster, l.node, l.holder
),
free as (
    select
        l.date, l.hour, l.cluster, l.node, sum(l.unallocated_gpu_seconds) as unallocated,
        sum(l.unavailable_gpu_seconds) as unavailable
    from mart.gpu_ledger_hourly as l
    semi join charged as c on c.date = l.date and c.hour = l.hour and c.cluster = l.cluster and c.node = l.node
    where l.date >= cast($start_at as date) and l.date < cast($end_at as date)
    group by l.date, l.hour, l.cluster, l.node
),
ledger as (
    select
        date, hour, cluster, node, holder, allocated, utilized, stranded, unobserved, 0 as unallocated,
        0 as unavailable
    from held
    union all
    select date, hour, cluster, node, null, 0, 0, 0, 0, unallocated, unavailable from free
)
select
    coalesce(p.date, l.date) as date, coalesce(p.hour, l.hour) as hour, coalesce(p.cluster, l.cluster) as cluster,
    coalesce(p.node, l.node) as node, coalesce(p.holder, l.holder) as holder, p.allocated,
    l.allocated as ledger_allocated, p.unallocated, l.unallocated as ledger_unallocated, p.unavailable,
    l.unavailable as ledger_unavailable
from priced as p
full join ledger as l
    on l.date = p.date and l.hour = p.hour and l.cluster = p.cluster and l.node = p.node
    and l.holder is not distinct from p.holder
where
    coalesce(p.allocated, 0) <> coalesce(l.allocated, 0) or coalesce(p.utilized, 0) <> coalesce(l.utilized, 0)
    or coalesce(p.stranded, 0) <> coalesce(l.stranded, 0) or coalesce(p.unobserved, 0) <> coalesce(l.unobserved, 0)
    or coalesce(p.unallocated, 0) <> coalesce(l.unallocated, 0)
    or coalesce(p.unavailable, 0) <> coalesce(l.unavailable, 0)
