-- The labels and annotations that each namespace last showed on a date.
-- grain: date, namespace
-- key: date, cluster, namespace
-- inputs: raw.kube_namespaces
-- invariant: one row per namespace and date
select date, cluster, namespace, labels, annotations, snapshot_at as last_seen_at
from raw.kube_namespaces
where date >= cast($start_at as date) and date < cast($end_at as date)
qualify row_number() over (partition by date, cluster, namespace order by snapshot_at desc) = 1
