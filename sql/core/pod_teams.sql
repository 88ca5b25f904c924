-- Which team answers for each pod, by the first link of the chain that names one: its labels as last listed on the
-- date, those of its namespace (as it was then, else as it was first seen after), or the mapping.
-- grain: date, pod_uid
-- key: date, cluster, pod_uid
-- inputs: core.namespace_states, raw.kube_pods, raw.team_map, raw.team_rules
-- invariant: every pod listed on the date has one row; team is (unmapped) where no link answers
with newest as (
    select date, cluster, pod_uid, max(snapshot_at) as snapshot_at
    from raw.kube_pods
    where date >= cast($start_at as date) and date < cast($end_at as date)
    group by date, cluster, pod_uid
),
pods as (
    select p.date, p.cluster, p.pod_uid, p.namespace, p.labels
    from raw.kube_pods as p
    inner join newest as n
        on n.date = p.date and n.cluster = p.cluster and n.pod_uid = p.pod_uid and n.snapshot_at = p.snapshot_at
    where p.date >= cast($start_at as date) and p.date < cast($end_at as date)
),
places as (
    select distinct date, cluster, namespace from pods
),
namespace_dates as (
    select p.date, p.cluster, p.namespace, s.labels, s.annotations
    from places as p
    inner join core.namespace_states as s on s.cluster = p.cluster and s.namespace = p.namespace
    qualify row_number() over (
        partition by p.date, p.cluster, p.namespace
        order by case when s.date <= p.date then 0 else 1 end, case when s.date <= p.date then s.date end desc, s.date
    ) = 1
),
mapped as (
    select p.date, p.cluster, p.namespace, m.team
    from places as p
    inner join raw.team_map as m on m.namespace = p.namespace and (m.cluster = p.cluster or m.cluster = '*')
    qualify row_number() over (
        partition by p.date, p.cluster, p.namespace order by case when m.cluster = '*' then 1 else 0 end, m.team
    ) = 1
),
answers as (
    select
        p.date, p.cluster, p.pod_uid, r.rank, r.source, r.key,
        nullif(
            case
                when r.source = 'pod_label' then p.labels[r.key]
                when r.source = 'namespace_label' then n.labels[r.key]
                when r.source = 'namespace_annotation' then n.annotations[r.key]
                when r.source = 'mapping' then m.team
            end,
            ''
        ) as team
    from pods as p
    cross join raw.team_rules as r
    left join namespace_dates as n on n.date = p.date and n.cluster = p.cluster and n.namespace = p.namespace
    left join mapped as m on m.date = p.date and m.cluster = p.cluster and m.namespace = p.namespace
),
teams as (
    select *
    from answers
    where team is not null
    qualify row_number() over (partition by date, cluster, pod_uid order by rank) = 1
)
select
    p.date, p.cluster, p.pod_uid, coalesce(t.team, '(unmapped)') as team,
    case
        when t.team is null then 'none'
        when t.key is null or t.key = '' then t.source
        else t.source || ':' || t.key
    end as team_source
from pods as p
left join teams as t on t.date = p.date and t.cluster = p.cluster and t.pod_uid = p.pod_uid
