-- Runs of complete node lists that show a node, per date: who was in the cluster, and from which list on it was gone.
-- grain: date, node, run of lists
-- key: date, cluster, node, first_seen_at
-- inputs: raw.kube_nodes, raw.kube_node_resources, raw.kube_snapshots
-- invariant: first_seen_at <= last_seen_at < absent_at
with lists as (
    select cluster, snapshot_at, row_number() over (partition by cluster order by snapshot_at) as position
    from raw.kube_snapshots
    where
        date >= cast($start_at as date) and date < cast($end_at + interval 2 day as date)
        and kind = 'Node' and is_complete
),
devices as (
    select
        cluster, snapshot_at, node,
        max(case when resource not like '%/mig-%' then capacity end) as whole_devices,
        max(case when resource like '%/mig-%' and capacity > 0 then 1 else 0 end) as has_mig,
        max(case when resource not like '%/mig-%' and capacity > 0 then resource end) as resource
    from raw.kube_node_resources
    where date >= cast($start_at as date) and date < cast($end_at as date)
    group by cluster, snapshot_at, node
),
listed as (
    select
        n.date, n.cluster, n.node, n.snapshot_at, n.labels, n.provider_id, n.created_at, l.position,
        d.whole_devices, d.has_mig, d.resource,
        l.position - row_number() over (partition by n.cluster, n.node order by n.snapshot_at) as run
    from raw.kube_nodes as n
    inner join lists as l on l.cluster = n.cluster and l.snapshot_at = n.snapshot_at
    left join devices as d on d.cluster = n.cluster and d.node = n.node and d.snapshot_at = n.snapshot_at
    where n.date >= cast($start_at as date) and n.date < cast($end_at as date)
),
marked as (
    select
        *,
        row_number() over (partition by date, cluster, node, run order by snapshot_at desc) as newest
    from listed
),
runs as (
    select
        date, cluster, node, run,
        min(snapshot_at) as first_seen_at, max(snapshot_at) as last_seen_at, max(position) as last_position,
        max(case when newest = 1 then labels['nvidia.com/gpu.product'] end) as gpu_product,
        max(case when newest = 1 then labels['cloud.google.com/gke-tpu-accelerator'] end) as tpu_product,
        max(case when newest = 1 then labels['nvidia.com/gpu.count'] end) as gpu_count_label,
        max(case when newest = 1 then labels['nvidia.com/gpu.replicas'] end) as replicas_label,
        max(case when newest = 1 then labels['nvidia.com/mig.strategy'] end) as mig_strategy,
        max(case when newest = 1 then labels['strandline.io/provider'] end) as provider_label,
        max(case when newest = 1 then labels['topology.kubernetes.io/region'] end) as region,
        max(case when newest = 1 then labels['topology.kubernetes.io/zone'] end) as zone,
        max(case when newest = 1 then labels['node.kubernetes.io/instance-type'] end) as instance_type,
        max(case when newest = 1 then provider_id end) as provider_id,
        max(whole_devices) as whole_devices, max(has_mig) as has_mig, max(resource) as resource
    from marked
    group by date, cluster, node, run
),
counted as (
    select
        *,
        case when mig_strategy is distinct from 'single' then try_cast(gpu_count_label as bigint) end
            as labelled_devices,
        try_cast(replicas_label as bigint) as labelled_replicas
    from runs
)
select
    c.date, c.cluster, c.node, c.first_seen_at, c.last_seen_at, case when n.node is null then l.snapshot_at end as absent_at,
    case
        when labelled_devices > 0 then labelled_devices
        when has_mig = 1 or mig_strategy = 'single' then 0
        when labelled_replicas > 1 then whole_devices // nullif(labelled_replicas, 0)
        else coalesce(whole_devices, 0)
    end as devices,
    case
        when has_mig = 1 or mig_strategy = 'single' then 1
        when labelled_devices > 0 and whole_devices > labelled_devices and whole_devices % nullif(labelled_devices, 0) = 0
            then whole_devices // nullif(labelled_devices, 0)
        when labelled_devices is null and labelled_replicas > 1 then labelled_replicas
        else 1
    end as replicas,
    c.resource, c.has_mig = 1 as has_mig_resources,
    c.has_mig = 1 or c.mig_strategy is not distinct from 'single' as is_cut,
    coalesce(c.gpu_product, c.tpu_product) as model,
    coalesce(c.provider_label, nullif(split_part(c.provider_id, ':', 1), '')) as provider,
    c.region, c.zone, c.instance_type
from counted as c
left join lists as l on l.cluster = c.cluster and l.position = c.last_position + 1
left join raw.kube_nodes as n
    on n.cluster = c.cluster and n.node = c.node and n.snapshot_at = l.snapshot_at
    and n.date >= cast($start_at as date) and n.date < cast($end_at + interval 2 day as date)
where coalesce(c.whole_devices, 0) > 0 or c.has_mig = 1 or coalesce(c.labelled_devices, 0) > 0
