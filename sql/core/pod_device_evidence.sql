-- Which devices each pod was seen on, per date: pod-resources and DRA where they are known, and the exporter's pod
-- labels. A label names a pod; the UID is that of the pod of this name whose interval contains the sample.
-- grain: date, pod_uid, unit (node, pci_bus_id, gi_id), method
-- key: date, cluster, pod_uid, node, pci_bus_id, gi_id, method
-- inputs: raw.dcgm_samples, raw.kube_devices, raw.kube_snapshots, core.pod_states, core.gpu_sightings
-- invariant: first_seen_at >= scheduled_at of the pod
with pods as (
    select
        cluster, pod_uid, max(namespace) as namespace, max(pod) as pod, max(node) as node,
        min(coalesce(scheduled_at, pod_started_at)) as scheduled_at,
        max(case when is_over then coalesce(pod_finished_at, first_over_at) end) as finished_at
    from core.pod_states
    where date >= (
        select coalesce(max(date), cast($start_at - interval 1 day as date))
        from raw.kube_snapshots
        where date < cast($start_at as date) and kind = 'Pod' and is_complete
    )
    group by cluster, pod_uid
    having max(node) is not null
),
slots as (
    select date, cluster, node, gpu_uuid, max(pci_bus_id) as pci_bus_id
    from core.gpu_sightings
    where date >= cast($start_at as date) and date < cast($end_at as date)
    group by date, cluster, node, gpu_uuid
),
labelled as (
    select
        r.date, r.cluster, r.node, coalesce(s.pci_bus_id, r.pci_bus_id, r.gpu_uuid) as pci_bus_id, r.gi_id,
        r.hint_namespace as namespace, r.hint_pod as pod, r.hint_pod_uid as pod_uid, r.sampled_at as seen_at,
        'exporter_labels' as method
    from raw.dcgm_samples as r
    left join slots as s on s.date = r.date and s.cluster = r.cluster and s.node = r.node and s.gpu_uuid = r.gpu_uuid
    where r.date >= cast($start_at as date) and r.date < cast($end_at as date) and r.hint_pod is not null
    union all
    select
        k.date, k.cluster, k.node, coalesce(s.pci_bus_id, k.pci_bus_id, k.gpu_uuid), k.gi_id,
        k.namespace, k.pod, k.pod_uid, k.snapshot_at, k.method
    from raw.kube_devices as k
    left join slots as s on s.date = k.date and s.cluster = k.cluster and s.node = k.node and s.gpu_uuid = k.gpu_uuid
    where
        k.date >= cast($start_at as date) and k.date < cast($end_at as date)
        and coalesce(s.pci_bus_id, k.pci_bus_id, k.gpu_uuid) is not null
),
-- One row per name, device and hour is enough to count by; names are resolved where their intervals need it.
named as (
    select
        date, cluster, node, pci_bus_id, gi_id, namespace, pod, pod_uid, method, seen_at, count(*) as copies
    from labelled
    group by date, cluster, node, pci_bus_id, gi_id, namespace, pod, pod_uid, method, seen_at
),
resolved as (
    select
        n.date, n.cluster, n.node, n.pci_bus_id, n.gi_id, n.method, n.seen_at, p.pod_uid
    from named as n
    inner join pods as p
        on p.cluster = n.cluster and p.node = n.node and p.namespace = n.namespace and p.pod = n.pod
        and (n.pod_uid is null or n.pod_uid = p.pod_uid)
        and p.scheduled_at <= n.seen_at and (p.finished_at is null or p.finished_at > n.seen_at)
    -- Of two pods of one name without a known end, the later one is meant.
    qualify row_number() over (
        partition by n.date, n.cluster, n.node, n.pci_bus_id, n.gi_id, n.method, n.seen_at, n.namespace, n.pod
        order by p.scheduled_at desc, p.pod_uid
    ) = 1
)
select
    date, cluster, pod_uid, node, pci_bus_id, gi_id, method, min(seen_at) as first_seen_at,
    max(seen_at) as last_seen_at, count(*) as samples
from resolved
group by date, cluster, pod_uid, node, pci_bus_id, gi_id, method
