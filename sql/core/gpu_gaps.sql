-- Samples of a slot after which its target was scraped, carried rows of other GPUs and not the slot's own.
-- Candidates for a lost GPU (ledger rule 2); most slots of a day have none.
-- grain: last sample of the slot before the gap
-- key: date, cluster, node, pci_bus_id, last_seen_at
-- inputs: core.gpu_samples
-- invariant: last_seen_at < missing_from_at; next_seen_at, where known, comes after missing_from_at
with instants as (
    select cluster, node, pci_bus_id, sampled_at, max(target) as target, max(covers_until_at) as covers_until_at
    from core.gpu_samples
    where
        date >= cast($start_at as date) and date < cast($end_at + interval 1 day as date)
        and sampled_at < $end_at + interval 1 hour
    group by cluster, node, pci_bus_id, sampled_at
),
carrying as (
    select
        cluster, target, sampled_at,
        lead(sampled_at) over (partition by cluster, target order by sampled_at) as next_carrying_at
    from (select distinct cluster, target, sampled_at from instants) as scrapes
),
followed as (
    select
        i.cluster, i.node, i.pci_bus_id, i.sampled_at, i.target, i.covers_until_at, c.next_carrying_at,
        lead(i.sampled_at) over (partition by i.cluster, i.node, i.pci_bus_id order by i.sampled_at) as next_seen_at
    from instants as i
    inner join carrying as c on c.cluster = i.cluster and c.target = i.target and c.sampled_at = i.sampled_at
)
select
    cast(sampled_at as date) as date, cluster, node, pci_bus_id, target, sampled_at as last_seen_at, covers_until_at,
    next_carrying_at as missing_from_at, next_seen_at
from followed
where
    sampled_at >= $start_at and sampled_at < $end_at
    and next_carrying_at is not null and (next_seen_at is null or next_carrying_at < next_seen_at)
