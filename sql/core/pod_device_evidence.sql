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
-- Per date, device and name: first, last and how many. Where the name means one pod and all of it lies within that
-- pod's interval, nothing more has to be asked of the samples.
label_days as (
    select
        r.date, r.cluster, r.node, r.gpu_uuid, r.pci_bus_id, r.gi_id, r.hint_namespace as namespace, r.hint_pod as pod,
        r.hint_pod_uid as hint_pod_uid, min(r.sampled_at) as first_seen_at, max(r.sampled_at) as last_seen_at,
        count(*) as samples
    from raw.dcgm_samples as r
    where r.date >= cast($start_at as date) and r.date < cast($end_at as date) and r.hint_pod is not null
    group by r.date, r.cluster, r.node, r.gpu_uuid, r.pci_bus_id, r.gi_id, r.hint_namespace, r.hint_pod, r.hint_pod_uid
),
names as (
    select cluster, node, namespace, pod, count(*) as pods from pods group by cluster, node, namespace, pod
),
plain as (
    select d.*, p.pod_uid
    from label_days as d
    inner join names as n
        on n.cluster = d.cluster and n.node = d.node and n.namespace = d.namespace and n.pod = d.pod and n.pods = 1
    inner join pods as p on p.cluster = d.cluster and p.node = d.node and p.namespace = d.namespace and p.pod = d.pod
    where
        p.scheduled_at <= d.first_seen_at and (p.finished_at is null or p.finished_at > d.last_seen_at)
        and (d.hint_pod_uid is null or d.hint_pod_uid = p.pod_uid)
),
unclear as (
    select d.*
    from label_days as d
    inner join names as n on n.cluster = d.cluster and n.node = d.node and n.namespace = d.namespace and n.pod = d.pod
    anti join plain as p
        on p.date = d.date and p.cluster = d.cluster and p.node = d.node and p.gpu_uuid = d.gpu_uuid
        and p.pci_bus_id is not distinct from d.pci_bus_id and p.gi_id is not distinct from d.gi_id
        and p.namespace = d.namespace and p.pod = d.pod and p.hint_pod_uid is not distinct from d.hint_pod_uid
),
seen as (
    select
        r.date, r.cluster, r.node, r.gpu_uuid, r.pci_bus_id, r.gi_id, r.hint_namespace as namespace, r.hint_pod as pod,
        r.hint_pod_uid as hint_pod_uid, r.sampled_at as seen_at, 'exporter_labels' as method
    from raw.dcgm_samples as r
    semi join unclear as u
        on u.date = r.date and u.cluster = r.cluster and u.node = r.node and u.gpu_uuid = r.gpu_uuid
        and u.gi_id is not distinct from r.gi_id and u.namespace = r.hint_namespace and u.pod = r.hint_pod
    where r.date >= cast($start_at as date) and r.date < cast($end_at as date) and r.hint_pod is not null
    union all
    select
        date, cluster, node, gpu_uuid, pci_bus_id, gi_id, namespace, pod, pod_uid, snapshot_at, method
    from raw.kube_devices
    where
        date >= cast($start_at as date) and date < cast($end_at as date)
        and coalesce(pci_bus_id, gpu_uuid) is not null
),
resolved as (
    select
        n.date, n.cluster, n.node, n.gpu_uuid, n.pci_bus_id, n.gi_id, n.method, n.seen_at, p.pod_uid
    from seen as n
    inner join pods as p
        on p.cluster = n.cluster and p.node = n.node and p.namespace = n.namespace and p.pod = n.pod
        and (n.hint_pod_uid is null or n.hint_pod_uid = p.pod_uid)
        and p.scheduled_at <= n.seen_at and (p.finished_at is null or p.finished_at > n.seen_at)
    -- Of two pods of one name without a known end, the later one is meant.
    qualify row_number() over (
        partition by n.date, n.cluster, n.node, n.gpu_uuid, n.pci_bus_id, n.gi_id, n.method, n.seen_at, n.namespace, n.pod
        order by p.scheduled_at desc, p.pod_uid
    ) = 1
),
evidence as (
    select
        date, cluster, node, gpu_uuid, pci_bus_id, gi_id, pod_uid, 'exporter_labels' as method, first_seen_at,
        last_seen_at, samples
    from plain
    union all
    select
        date, cluster, node, gpu_uuid, pci_bus_id, gi_id, pod_uid, method, min(seen_at), max(seen_at), count(*)
    from resolved
    group by date, cluster, node, gpu_uuid, pci_bus_id, gi_id, pod_uid, method
)
select
    e.date, e.cluster, e.pod_uid, e.node, coalesce(s.pci_bus_id, e.pci_bus_id, e.gpu_uuid) as pci_bus_id, e.gi_id,
    e.method, min(e.first_seen_at) as first_seen_at, max(e.last_seen_at) as last_seen_at, cast(sum(e.samples) as bigint) as samples
from evidence as e
left join slots as s on s.date = e.date and s.cluster = e.cluster and s.node = e.node and s.gpu_uuid = e.gpu_uuid
group by e.date, e.cluster, e.pod_uid, e.node, coalesce(s.pci_bus_id, e.pci_bus_id, e.gpu_uuid), e.gi_id, e.method
