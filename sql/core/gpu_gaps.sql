-- Samples of a slot after which its target was scraped, carried rows of other GPUs and not the slot's own.
-- Candidates for a lost GPU (ledger rule 2); most slots of a day have none.
-- grain: last sample of the slot before the gap
-- key: date, cluster, node, pci_bus_id, last_seen_at
-- inputs: core.gpu_samples, raw.scrapes
-- invariant: last_seen_at < missing_from_at; next_seen_at, where known, comes after missing_from_at
-- A unit with a sample for every scrape of its target that carried any has no gap; few are left to look at.
with counts as (
    select cluster, node, pci_bus_id, gi_id, target, date, count(*) as samples
    from core.gpu_samples
    where
        date >= cast($start_at as date) and date < cast($end_at + interval 1 day as date)
        and sampled_at < $end_at + interval 1 hour
    group by cluster, node, pci_bus_id, gi_id, target, date
),
scrape_counts as (
    select cluster, target, date, count(*) as scrapes
    from raw.scrapes
    where
        date >= cast($start_at as date) and date < cast($end_at + interval 1 day as date)
        and scrape_at < $end_at + interval 1 hour and samples > 0
    group by cluster, target, date
),
slot_targets as (
    select distinct cluster, node, pci_bus_id, target from counts
),
slot_counts as (
    select cluster, node, pci_bus_id, target, date, max(samples) as samples
    from counts
    group by cluster, node, pci_bus_id, target, date
),
suspects as (
    select distinct t.cluster, t.node, t.pci_bus_id
    from slot_targets as t
    inner join scrape_counts as s on s.cluster = t.cluster and s.target = t.target
    left join slot_counts as c
        on c.cluster = t.cluster and c.node = t.node and c.pci_bus_id = t.pci_bus_id and c.target = t.target
        and c.date = s.date
    where coalesce(c.samples, 0) < s.scrapes
),
instants as (
    select
        s.cluster, s.node, s.pci_bus_id, s.sampled_at, max(s.target) as target,
        max(s.covers_until_at) as covers_until_at
    from core.gpu_samples as s
    semi join suspects as x on x.cluster = s.cluster and x.node = s.node and x.pci_bus_id = s.pci_bus_id
    where
        s.date >= cast($start_at as date) and s.date < cast($end_at + interval 1 day as date)
        and s.sampled_at < $end_at + interval 1 hour
    group by s.cluster, s.node, s.pci_bus_id, s.sampled_at
),
watched as (
    select distinct cluster, target from instants
),
carrying as (
    select
        cluster, target, sampled_at,
        lead(sampled_at) over (partition by cluster, target order by sampled_at) as next_carrying_at
    from (
        select distinct s.cluster, s.target, s.sampled_at
        from core.gpu_samples as s
        semi join watched as w on w.cluster = s.cluster and w.target = s.target
        where
            s.date >= cast($start_at as date) and s.date < cast($end_at + interval 1 day as date)
            and s.sampled_at < $end_at + interval 1 hour
    ) as scrapes
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
