-- A node object is there for some of an hour and for no more than all of it, within its life; a name stands for one object
-- at a time.
-- table: core.node_hours
with hours as (
    select date, hour, cluster, node, node_uid, running_us, created_at, node_finished_at
    from core.node_hours
    where date >= cast($start_at as date) and date < cast($end_at as date)
)
select 'running time out of bounds' as what, date, hour, cluster, node, node_uid, running_us
from hours
where running_us is null or running_us < 1 or running_us > 3600000000
union all
select 'an hour that is none of the date', date, hour, cluster, node, node_uid, running_us
from hours
where hour <> date_trunc('hour', hour) or cast(hour as date) <> date
union all
select 'an hour outside of the life', date, hour, cluster, node, node_uid, running_us
from hours
where node_finished_at <= hour
union all
select 'two objects at a time', date, hour, cluster, node, max(node_uid), sum(running_us)
from hours
group by date, hour, cluster, node
having sum(running_us) > 3600000000
