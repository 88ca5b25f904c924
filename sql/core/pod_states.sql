-- What the lists of one date said of each pod that asks for accelerators: the day's digest, the newest state first.
-- grain: date, pod_uid, resource
-- key: date, cluster, pod_uid, resource
-- inputs: raw.kube_pods, raw.kube_pod_resources
-- invariant: first_seen_at <= last_seen_at, both on the date
with listed as (
    select
        p.date, p.cluster, p.pod_uid, r.resource, r.quantity, p.snapshot_at, p.namespace, p.pod, p.node, p.phase,
        p.reason, p.created_at, p.scheduled_at, p.pod_started_at, p.pod_finished_at, p.deletion_requested_at,
        p.priority, p.priority_class, p.owner_kind, p.owner_name, p.labels, p.cpu_milli, p.memory_bytes,
        p.phase in ('Succeeded', 'Failed') as is_over
    from raw.kube_pods as p
    inner join raw.kube_pod_resources as r
        on r.cluster = p.cluster and r.snapshot_at = p.snapshot_at and r.pod_uid = p.pod_uid
        and r.date >= cast($start_at as date) and r.date < cast($end_at as date)
    where p.date >= cast($start_at as date) and p.date < cast($end_at as date) and r.quantity > 0
),
digests as (
    select
        date, cluster, pod_uid, resource, min(snapshot_at) as first_seen_at, max(snapshot_at) as last_seen_at,
        max(case when not is_over then snapshot_at end) as last_active_at,
        min(case when is_over then snapshot_at end) as first_over_at,
        max(node) as any_node, min(scheduled_at) as first_scheduled_at
    from listed
    group by date, cluster, pod_uid, resource
),
newest as (
    select *
    from listed
    qualify row_number() over (partition by date, cluster, pod_uid, resource order by snapshot_at desc) = 1
)
select
    n.date, n.cluster, n.pod_uid, n.resource, n.quantity, n.namespace, n.pod, coalesce(n.node, d.any_node) as node,
    n.phase, n.reason, n.created_at, coalesce(n.scheduled_at, d.first_scheduled_at) as scheduled_at, n.pod_started_at,
    n.pod_finished_at, n.deletion_requested_at, n.priority, n.priority_class, n.owner_kind, n.owner_name, n.labels,
    n.cpu_milli, n.memory_bytes, n.is_over, d.first_seen_at, d.last_seen_at, d.last_active_at,
    d.first_over_at
from newest as n
inner join digests as d
    on d.date = n.date and d.cluster = n.cluster and d.pod_uid = n.pod_uid and d.resource = n.resource
