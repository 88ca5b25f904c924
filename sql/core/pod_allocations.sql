-- Who held how many accelerators and when, from the API server alone (ledger rule 4): from PodScheduled to the end of
-- the last container. A pod gone from the lists without an end is held to its last evidence and says so.
-- grain: date, pod_uid, resource
-- key: date, cluster, pod_uid, resource
-- inputs: core.pod_states, core.pod_device_evidence, core.pod_teams, raw.kube_snapshots, raw.scrapes, raw.allocation_history
-- invariant: interval_start_at < interval_end_at, both within the date
-- Since the last list before the window: a pod that it showed and none has denied since still holds.
with states as (
    select *
    from core.pod_states
    where date >= (
        select coalesce(max(date), cast($start_at - interval 1 day as date))
        from raw.kube_snapshots
        where date < cast($start_at as date) and kind = 'Pod' and is_complete
    )
),
newest as (
    select *
    from states
    qualify row_number() over (partition by cluster, pod_uid, resource order by date desc) = 1
),
lives as (
    select
        cluster, pod_uid, resource, max(last_seen_at) as last_seen_at, max(last_active_at) as last_active_at,
        min(first_over_at) as first_over_at,
        max(node) as node, min(coalesce(scheduled_at, pod_started_at, case when node is not null then created_at end)) as scheduled_at
    from states
    group by cluster, pod_uid, resource
),
last_lists as (
    select cluster, max(snapshot_at) as last_list_at
    from raw.kube_snapshots
    where kind = 'Pod' and is_complete
    group by cluster
),
labels_seen as (
    select cluster, pod_uid, max(last_seen_at) as last_label_at
    from core.pod_device_evidence
    where date >= cast($start_at - interval 1 day as date)
    group by cluster, pod_uid
),
pods as (
    select
        n.cluster, n.pod_uid, n.resource, n.quantity, n.namespace, n.pod, l.node, n.owner_kind, n.owner_name,
        n.created_at, n.priority, n.priority_class, n.cpu_milli, n.memory_bytes, n.date as newest_date,
        l.scheduled_at as started_at,
        case
            when n.is_over
                then coalesce(
                    n.pod_finished_at,
                    least(l.first_over_at, greatest(l.last_active_at, e.last_label_at)),
                    l.last_active_at, e.last_label_at, l.first_over_at
                )
            when t.last_list_at > l.last_seen_at
                then coalesce(n.pod_finished_at, greatest(l.last_seen_at, coalesce(e.last_label_at, l.last_seen_at)))
        end as finished_at,
        case
            when n.is_over then case when n.pod_finished_at is null then 'gone' else 'finished' end
            when t.last_list_at > l.last_seen_at
                then case when n.pod_finished_at is null then 'gone' else 'finished' end
            else 'open'
        end as end_reason
    from newest as n
    inner join lives as l on l.cluster = n.cluster and l.pod_uid = n.pod_uid and l.resource = n.resource
    left join last_lists as t on t.cluster = n.cluster
    left join labels_seen as e on e.cluster = n.cluster and e.pod_uid = n.pod_uid
    where l.node is not null and l.scheduled_at < $end_at
),
intervals as (
    select
        p.cluster, p.pod_uid, p.resource, p.quantity, p.namespace, p.pod, p.node,
        coalesce(t.team, '(unmapped)') as team, coalesce(t.team_source, 'none') as team_source,
        coalesce(p.owner_kind, 'Pod') as workload_kind, p.owner_name, p.priority, p.priority_class, p.cpu_milli,
        p.memory_bytes, p.created_at, p.started_at, p.finished_at, p.end_reason, 'kubernetes' as source
    from pods as p
    left join core.pod_teams as t on t.date = p.newest_date and t.cluster = p.cluster and t.pod_uid = p.pod_uid
    union all
    -- What the API server said of a pod counts for its whole life, an import only where there is no word from there.
    select
        h.cluster, h.pod_uid, h.resource, h.quantity, h.namespace, h.pod, h.node,
        coalesce(nullif(h.team, ''), '(unmapped)'), 'import', coalesce(h.workload_kind, 'Pod'), cast(null as varchar),
        cast(null as bigint), cast(null as varchar), cast(null as bigint), cast(null as bigint), h.created_at,
        h.started_at, h.finished_at, case when h.finished_at is null then 'open' else 'finished' end, h.source
    from raw.allocation_history as h
    left join pods as p on p.cluster = h.cluster and p.pod_uid = h.pod_uid and p.resource = h.resource
    where h.date < cast($end_at as date) and p.pod_uid is null
),
days as (
    select cast(day_at as timestamp) as day_at
    from unnest(generate_series($start_at, $end_at - interval 1 day, interval 1 day)) as d(day_at)
),
newest_evidence as (
    select max(seen_at) as now_at
    from (
        select max(snapshot_at) as seen_at from raw.kube_snapshots
        union all
        select max(scrape_at) from raw.scrapes
    ) as evidence
)
select
    cast(d.day_at as date) as date, i.cluster, i.pod_uid, i.resource, i.quantity, i.namespace, i.pod, i.node, i.team,
    i.team_source, i.workload_kind, i.owner_name, i.priority, i.priority_class, i.cpu_milli, i.memory_bytes,
    i.created_at, i.started_at, i.finished_at, i.end_reason, i.source,
    greatest(i.started_at, d.day_at) as interval_start_at,
    least(coalesce(i.finished_at, d.day_at + interval 1 day), d.day_at + interval 1 day) as interval_end_at
from intervals as i
inner join days as d
    on i.started_at < d.day_at + interval 1 day and (i.finished_at is null or i.finished_at > d.day_at)
cross join newest_evidence as w
where
    (i.finished_at is null or i.finished_at > i.started_at)
    -- A pod still open is not projected past the day of the newest evidence.
    and (i.finished_at is not null or d.day_at <= w.now_at)
