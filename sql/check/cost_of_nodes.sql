-- What a node cost in an hour is what its parts cost: to the last digit, in every cost.
-- table: mart.cost_hourly
with charged as (
    select
        date, hour, cluster, node, sum(list_cost) as list_cost, sum(contracted_cost) as contracted_cost,
        sum(billed_cost) as billed_cost, sum(effective_cost) as effective_cost
    from core.charges
    where date >= cast($start_at as date) and date < cast($end_at as date) and charge_scope = 'node'
    group by date, hour, cluster, node
),
divided as (
    select
        date, hour, cluster, node, sum(list_cost) as list_cost, sum(contracted_cost) as contracted_cost,
        sum(billed_cost) as billed_cost, sum(effective_cost) as effective_cost
    from mart.cost_hourly
    where
        date >= cast($start_at as date) and date < cast($end_at as date)
        and cost_part in ('holder', 'unallocated', 'unavailable', 'node_overhead', 'unledgered')
    group by date, hour, cluster, node
)
select
    coalesce(c.date, d.date) as date, coalesce(c.hour, d.hour) as hour, coalesce(c.cluster, d.cluster) as cluster,
    coalesce(c.node, d.node) as node, c.list_cost, d.list_cost as parts_list_cost, c.contracted_cost,
    d.contracted_cost as parts_contracted_cost, c.billed_cost, d.billed_cost as parts_billed_cost, c.effective_cost,
    d.effective_cost as parts_effective_cost
from charged as c
full join divided as d
    on d.date = c.date and d.hour = c.hour and d.cluster is not distinct from c.cluster
    and d.node is not distinct from c.node
where
    c.list_cost is distinct from d.list_cost or c.contracted_cost is distinct from d.contracted_cost
    or c.billed_cost is distinct from d.billed_cost or c.effective_cost is distinct from d.effective_cost
