-- What pods asked of CPU and memory of each node, over time; pods without accelerators too. A pod asks from its
-- PodScheduled (else its start, else the first list that shows it bound) to the end of its last container; gone
-- without an end, to the first complete list without it; still there, one usual spacing beyond the newest list. Requests
-- that change in place hold from the list that first shows them. Lists of two days on either side of the window count.
-- Pods that ask for nothing have no row.
-- grain: hour, node, pod
-- key: date, hour, cluster, node, pod_uid
-- inputs: core.pod_teams, raw.kube_pods, raw.kube_snapshots
-- invariant: cpu_milli_seconds and memory_mib_seconds are at most the request times 3600
with lists as (
    select
        cluster, snapshot_at, lead(snapshot_at) over (partition by cluster order by snapshot_at) as next_at
    from raw.kube_snapshots
    where
        date >= cast($start_at - interval 2 day as date) and date < cast($end_at + interval 2 day as date)
        and kind = 'Pod' and is_complete
),
spacings as (
    select cluster, median(date_diff('microsecond', snapshot_at, next_at)) as usual_us
    from lists
    where next_at is not null
    group by cluster
),
digests as (
    select
        p.date, p.cluster, p.pod_uid, p.cpu_milli, p.memory_bytes, min(p.snapshot_at) as first_seen_at,
        max(case when p.phase not in ('Succeeded', 'Failed') then p.snapshot_at end) as last_active_at,
        min(case when p.phase in ('Succeeded', 'Failed') then p.snapshot_at end) as first_over_at,
        max(case when p.phase in ('Succeeded', 'Failed') then p.pod_finished_at end) as finished_at,
        min(p.scheduled_at) as scheduled_at, min(p.pod_started_at) as pod_started_at, max(p.node) as node,
        max(p.namespace) as namespace, max(p.pod) as pod, max(p.owner_kind) as owner_kind
    from raw.kube_pods as p
    inner join lists as l on l.cluster = p.cluster and l.snapshot_at = p.snapshot_at
    where
        p.date >= cast($start_at - interval 2 day as date) and p.date < cast($end_at + interval 2 day as date)
        and p.node is not null
    group by p.date, p.cluster, p.pod_uid, p.cpu_milli, p.memory_bytes
),
lives as (
    select
        cluster, pod_uid, max(node) as node, max(namespace) as namespace, max(pod) as pod,
        coalesce(max(owner_kind), 'Pod') as workload_kind, max(last_active_at) as last_active_at,
        coalesce(min(scheduled_at), min(pod_started_at), min(first_seen_at)) as started_at,
        coalesce(max(finished_at), min(first_over_at)) as over_at
    from digests
    group by cluster, pod_uid
),
bounded as (
    select
        v.*,
        coalesce(
            v.over_at, l.next_at,
            v.last_active_at + interval 1 microsecond * cast(floor(coalesce(s.usual_us, 0) + 0.5) as bigint)
        ) as finished_at
    from lives as v
    left join lists as l on l.cluster = v.cluster and l.snapshot_at = v.last_active_at
    left join spacings as s on s.cluster = v.cluster
),
-- Each set of requests stands until the next one is listed.
ordered as (
    select
        cluster, pod_uid, coalesce(cpu_milli, 0) as cpu_milli, coalesce(memory_bytes, 0) as memory_bytes, first_seen_at,
        row_number() over (
            partition by cluster, pod_uid order by first_seen_at, cpu_milli, memory_bytes
        ) as place,
        lead(first_seen_at) over (
            partition by cluster, pod_uid order by first_seen_at, cpu_milli, memory_bytes
        ) as next_seen_at
    from digests
),
spans as (
    select
        b.cluster, b.node, b.pod_uid, o.cpu_milli, o.memory_bytes,
        greatest(case when o.place = 1 then b.started_at else greatest(o.first_seen_at, b.started_at) end, $start_at)
            as from_at,
        least(coalesce(o.next_seen_at, b.finished_at), b.finished_at, $end_at) as to_at
    from bounded as b
    inner join ordered as o on o.cluster = b.cluster and o.pod_uid = b.pod_uid
    where b.started_at < $end_at and b.finished_at > $start_at and o.cpu_milli + o.memory_bytes > 0
),
teams as (
    select cluster, pod_uid, team
    from core.pod_teams
    where date >= cast($start_at - interval 2 day as date) and date < cast($end_at + interval 2 day as date)
    qualify row_number() over (partition by cluster, pod_uid order by date desc) = 1
),
hours as (
    select hour_at from unnest(generate_series($start_at, $end_at - interval 1 hour, interval 1 hour)) as h(hour_at)
),
-- Sums of whole units times microseconds, rounded once.
sums as (
    select
        h.hour_at as hour, s.cluster, s.node, s.pod_uid,
        sum(
            cast(s.cpu_milli as hugeint)
            * date_diff('microsecond', greatest(s.from_at, h.hour_at), least(s.to_at, h.hour_at + interval 1 hour))
        ) as cpu_us,
        sum(
            cast(s.memory_bytes as hugeint)
            * date_diff('microsecond', greatest(s.from_at, h.hour_at), least(s.to_at, h.hour_at + interval 1 hour))
        ) as memory_us
    from spans as s
    inner join hours as h on s.from_at < h.hour_at + interval 1 hour and s.to_at > h.hour_at
    where s.from_at < s.to_at
    group by h.hour_at, s.cluster, s.node, s.pod_uid
)
select
    cast(s.hour as date) as date, s.hour, s.cluster, s.node, s.pod_uid, b.namespace, b.pod,
    coalesce(t.team, '(unmapped)') as team, b.workload_kind,
    cast((s.cpu_us + 500000) // 1000000 as bigint) as cpu_milli_seconds,
    cast((s.memory_us + 524288000000) // 1048576000000 as bigint) as memory_mib_seconds
from sums as s
inner join bounded as b on b.cluster = s.cluster and b.pod_uid = s.pod_uid
left join teams as t on t.cluster = s.cluster and t.pod_uid = s.pod_uid
