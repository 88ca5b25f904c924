-- How each node-hour divides among who held it and what nobody used, in units of 1e-12. Every charge of the node-hour
-- is split in these ratios. The accelerators' part of the price follows the ledger's microseconds; the parts for CPU
-- and memory follow the pods' requests, relative to the node's size over time (to the requests, where they exceed it).
-- Parts of the price by setting price_share_method: whole_node; aws_weights, 9 a GPU, 0.9 a vCPU, 0.1 a GiB (AWS split
-- cost allocation data); opencost_ratios, 0.95, 0.031611, 0.004237 (OpenCost's default prices); fixed:g:c:m. A node
-- without accelerators is divided as its method says of CPU and memory; where that says nothing, as OpenCost does.
-- Largest remainder everywhere, ties by name of component, part, holder. HUGEINT, because 1e12 x microseconds x MiB do
-- not fit 64 bits.
-- grain: hour, node, part, holder
-- key: date, hour, cluster, node, cost_part, holder
-- inputs: core.energy_shares, core.node_hours, core.pod_request_hours, mart.gpu_ledger_hourly, raw.settings
-- invariant: allocated_ratio adds up to 1 over a node-hour; seconds add up to the ledger's
with setting as (
    select coalesce(max(value), 'whole_node') as method from raw.settings where setting = 'price_share_method'
),
-- Prices of a GPU, a vCPU and a GiB in millionths, or fixed shares of the node in billionths.
methods as (
    select
        method, method like 'fixed:%' as is_fixed, method = 'whole_node' as is_whole,
        case
            when method like 'fixed:%' then 'strandline-fixed-1'
            else 'strandline-' || replace(method, '_', '-') || '-1'
        end as method_id,
        case when method = 'aws_weights' then 9000000 else 950000 end as gpu_price,
        case when method = 'aws_weights' then 900000 else 31611 end as cpu_price,
        case when method = 'aws_weights' then 100000 else 4237 end as memory_price,
        cast(try_cast(split_part(method, ':', 2) as decimal(28, 9)) * 1000000000 as hugeint) as gpu_fixed,
        cast(try_cast(split_part(method, ':', 3) as decimal(28, 9)) * 1000000000 as hugeint) as cpu_fixed,
        cast(try_cast(split_part(method, ':', 4) as decimal(28, 9)) * 1000000000 as hugeint) as memory_fixed
    from setting
),
ledger as (
    select
        date, hour, cluster, node, holder, namespace, pod, team, workload_kind, accelerator,
        cast(allocated_gpu_seconds * 1000000 as bigint) as allocated_us,
        cast(utilized_gpu_seconds * 1000000 as bigint) as utilized_us,
        cast(stranded_gpu_seconds * 1000000 as bigint) as stranded_us,
        cast(unobserved_gpu_seconds * 1000000 as bigint) as unobserved_us,
        cast(unallocated_gpu_seconds * 1000000 as bigint) as unallocated_us,
        cast(unavailable_gpu_seconds * 1000000 as bigint) as unavailable_us
    from mart.gpu_ledger_hourly
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- What became of a node-hour's GPU time. A holder's unavailable time is not allocated to it.
gpu_parts as (
    select
        date, hour, cluster, node, 'holder' as cost_part, holder, max(namespace) as namespace, max(pod) as pod,
        max(team) as team, max(workload_kind) as workload_kind, max(accelerator) as accelerator,
        sum(allocated_us) as weight, sum(utilized_us) as utilized_us, sum(stranded_us) as stranded_us,
        sum(unobserved_us) as unobserved_us
    from ledger
    where allocated_us > 0
    group by date, hour, cluster, node, holder
    union all
    select
        date, hour, cluster, node, 'unallocated', null, null, null, null, null, null, sum(unallocated_us), 0, 0, 0
    from ledger
    where unallocated_us > 0
    group by date, hour, cluster, node
    union all
    select
        date, hour, cluster, node, 'unavailable', null, null, null, null, null, null, sum(unavailable_us), 0, 0, 0
    from ledger
    where unavailable_us > 0
    group by date, hour, cluster, node
),
requests as (
    select
        date, hour, cluster, node, pod_uid as holder, namespace, pod, team, workload_kind,
        cast(cpu_milli_seconds as hugeint) * 1000000 as cpu_weight,
        cast(memory_mib_seconds as hugeint) * 1000000 as memory_weight
    from core.pod_request_hours
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- Two node objects of one name in one hour are one node-hour; sizes are sums over the time they were there.
sized as (
    select
        date, hour, cluster, node, sum(cast(running_us as hugeint) * coalesce(gpu_count, 0)) as gpu_us,
        sum(cast(running_us as hugeint) * coalesce(cpu_milli, 0)) as cpu_us,
        sum(cast(running_us as hugeint) * (coalesce(memory_bytes, 0) // 1048576)) as memory_us, 0 as ledger_us
    from core.node_hours
    where date >= cast($start_at as date) and date < cast($end_at as date)
    group by date, hour, cluster, node
    union all
    select date, hour, cluster, node, 0, 0, 0, sum(weight) from gpu_parts group by date, hour, cluster, node
),
-- A count of accelerators that is not known is what the ledger saw: never none where one was held.
node_sizes as (
    select
        date, hour, cluster, node, case when sum(gpu_us) > 0 then sum(gpu_us) else sum(ledger_us) end as gpu_us,
        sum(cpu_us) as cpu_us, sum(memory_us) as memory_us
    from sized
    group by date, hour, cluster, node
),
weighed as (
    select
        n.*, m.method_id,
        case
            when n.gpu_us = 0 then 0
            when m.is_whole then 1
            when m.is_fixed then m.gpu_fixed
            else n.gpu_us * m.gpu_price * 1024000
        end as gpu_weight,
        case
            when m.is_whole and n.gpu_us > 0 then 0
            when m.is_fixed and (n.gpu_us > 0 or m.cpu_fixed + m.memory_fixed > 0) then m.cpu_fixed
            else n.cpu_us * m.cpu_price * 1024
        end as cpu_weight,
        case
            when m.is_whole and n.gpu_us > 0 then 0
            when m.is_fixed and (n.gpu_us > 0 or m.cpu_fixed + m.memory_fixed > 0) then m.memory_fixed
            else n.memory_us * m.memory_price * 1000
        end as memory_weight
    from node_sizes as n
    cross join methods as m
),
-- A node of unknown size is all CPU: its requests divide it, or it is overhead.
components as (
    select date, hour, cluster, node, 'gpu' as component, gpu_weight as weight from weighed where gpu_weight > 0
    union all
    select
        date, hour, cluster, node, 'cpu',
        case when gpu_weight + cpu_weight + memory_weight = 0 then 1 else cpu_weight end
    from weighed
    where cpu_weight > 0 or gpu_weight + memory_weight = 0
    union all
    select date, hour, cluster, node, 'memory', memory_weight from weighed where memory_weight > 0
),
component_floors as (
    select
        date, hour, cluster, node, component,
        (weight * 1000000000000) // nullif(sum(weight) over (partition by date, hour, cluster, node), 0) as units,
        (weight * 1000000000000) % nullif(sum(weight) over (partition by date, hour, cluster, node), 0) as rest
    from components
),
component_ranks as (
    select
        *, 1000000000000 - sum(units) over (partition by date, hour, cluster, node) as missing,
        row_number() over (partition by date, hour, cluster, node order by rest desc, component) as place
    from component_floors
),
component_units as (
    select
        date, hour, cluster, node, component, units + case when place <= missing then 1 else 0 end as units
    from component_ranks
),
-- What each component is dealt over.
claims as (
    select date, hour, cluster, node, 'gpu' as component, cost_part, holder, weight from gpu_parts
    union all
    select date, hour, cluster, node, 'cpu', 'holder', holder, cpu_weight from requests where cpu_weight > 0
    union all
    select date, hour, cluster, node, 'memory', 'holder', holder, memory_weight from requests where memory_weight > 0
),
claimed as (
    select date, hour, cluster, node, component, sum(weight) as weight
    from claims
    group by date, hour, cluster, node, component
),
rests as (
    select
        u.date, u.hour, u.cluster, u.node, u.component,
        case when u.component = 'gpu' then 'unledgered' else 'node_overhead' end as cost_part,
        case
            when u.component = 'gpu' then case when c.weight is null then 1 else 0 end
            when coalesce(c.weight, 0) = 0
                then greatest(case when u.component = 'cpu' then n.cpu_us else n.memory_us end, 1)
            else case when u.component = 'cpu' then n.cpu_us else n.memory_us end - c.weight
        end as weight
    from component_units as u
    inner join node_sizes as n on n.date = u.date and n.hour = u.hour and n.cluster = u.cluster and n.node = u.node
    left join claimed as c
        on c.date = u.date and c.hour = u.hour and c.cluster = u.cluster and c.node = u.node
        and c.component = u.component
),
bids as (
    select c.*, u.units as component_units
    from (
        select date, hour, cluster, node, component, cost_part, holder, weight from claims
        union all
        select date, hour, cluster, node, component, cost_part, cast(null as varchar), weight
        from rests
        where weight > 0
    ) as c
    inner join component_units as u
        on u.date = c.date and u.hour = c.hour and u.cluster = c.cluster and u.node = c.node
        and u.component = c.component and u.units > 0
),
bid_floors as (
    select
        date, hour, cluster, node, component, cost_part, holder, component_units,
        (component_units * weight) // nullif(sum(weight) over (partition by date, hour, cluster, node, component), 0)
            as units,
        (component_units * weight) % nullif(sum(weight) over (partition by date, hour, cluster, node, component), 0)
            as rest
    from bids
),
bid_ranks as (
    select
        *, component_units - sum(units) over (partition by date, hour, cluster, node, component) as missing,
        row_number() over (
            partition by date, hour, cluster, node, component order by rest desc, cost_part, holder
        ) as place
    from bid_floors
),
-- Who a holder is, the ledger says before the requests do.
parts as (
    select
        date, hour, cluster, node, cost_part, holder, case when place <= missing then units + 1 else units end as units,
        case when component <> 'gpu' then 0 when place <= missing then units + 1 else units end as gpu_units,
        0 as held_us, 0 as utilized_us, 0 as stranded_us, 0 as unobserved_us, 0 as free_us, 0 as broken_us,
        0 as energy_j, 0 as metered_s
    from bid_ranks
    union all
    select
        date, hour, cluster, node, cost_part, holder, 0, 0, case when cost_part = 'holder' then weight else 0 end,
        utilized_us, stranded_us, unobserved_us, case when cost_part = 'unallocated' then weight else 0 end,
        case when cost_part = 'unavailable' then weight else 0 end, 0, 0
    from gpu_parts
    union all
    select
        date, hour, cluster, node, cost_part, holder, 0, 0, 0, 0, 0, 0, 0, 0, metered_energy_j, metered_gpu_seconds
    from core.energy_shares
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
summed as (
    select
        date, hour, cluster, node, cost_part, holder, sum(units) as units, sum(gpu_units) as gpu_units,
        sum(held_us) as held_us, sum(utilized_us) as utilized_us, sum(stranded_us) as stranded_us,
        sum(unobserved_us) as unobserved_us, sum(free_us) as free_us, sum(broken_us) as broken_us,
        sum(energy_j) as energy_j, sum(metered_s) as metered_s
    from parts
    group by date, hour, cluster, node, cost_part, holder
    -- A request too small for one unit has no part.
    having sum(units) > 0 or sum(held_us) > 0 or sum(free_us) > 0 or sum(broken_us) > 0
)
select
    s.date, s.hour, s.cluster, s.node, s.cost_part, s.holder, coalesce(g.namespace, r.namespace) as namespace,
    coalesce(g.pod, r.pod) as pod, coalesce(g.team, r.team) as team,
    coalesce(g.workload_kind, r.workload_kind) as workload_kind, g.accelerator, m.method_id,
    cast(cast(s.units as decimal(18, 0)) * 0.000000000001 as decimal(18, 12)) as allocated_ratio,
    cast(cast(s.gpu_units as decimal(18, 0)) * 0.000000000001 as decimal(18, 12)) as gpu_ratio,
    cast(cast(s.held_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as allocated_gpu_seconds,
    cast(cast(s.utilized_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as utilized_gpu_seconds,
    cast(cast(s.stranded_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as stranded_gpu_seconds,
    cast(cast(s.unobserved_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as unobserved_gpu_seconds,
    cast(cast(s.free_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as unallocated_gpu_seconds,
    cast(cast(s.broken_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as unavailable_gpu_seconds,
    cast(s.energy_j as decimal(18, 6)) as metered_energy_j, cast(s.metered_s as decimal(18, 6)) as metered_gpu_seconds
from summed as s
cross join methods as m
left join gpu_parts as g
    on g.date = s.date and g.hour = s.hour and g.cluster = s.cluster and g.node = s.node and g.holder = s.holder
left join requests as r
    on r.date = s.date and r.hour = s.hour and r.cluster = s.cluster and r.node = s.node and r.holder = s.holder
