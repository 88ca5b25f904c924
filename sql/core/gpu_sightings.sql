-- What the scrapes of one date showed of each GPU or MIG instance: the day's digest, so that validity, loss and
-- layout are found without reading the samples of other days. A node missing from a list cuts its sightings there.
-- grain: date, slot (node, pci_bus_id), gi_id, mig_profile, gpu_uuid, time in the cluster
-- key: date, cluster, node, pci_bus_id, gi_id, mig_profile, gpu_uuid, first_seen_at
-- inputs: core.gpu_samples, core.node_listings
-- invariant: first_seen_at and last_seen_at lie on the date
with absences as (
    select distinct cluster, node, absent_at
    from core.node_listings
    where
        date >= cast($start_at - interval 2 day as date) and date < cast($end_at as date)
        and absent_at >= $start_at and absent_at < $end_at
),
leavers as (
    select distinct cluster, node from absences
),
samples as (
    select date, cluster, node, pci_bus_id, gi_id, mig_profile, gpu_uuid, model, driver, sampled_at
    from core.gpu_samples
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
cut as (
    select s.*, cast(null as timestamp) as since_at
    from samples as s
    anti join leavers as l on l.cluster = s.cluster and l.node = s.node
    union all
    select
        s.date, s.cluster, s.node, s.pci_bus_id, s.gi_id, s.mig_profile, s.gpu_uuid, s.model, s.driver, s.sampled_at,
        max(a.absent_at) as since_at
    from samples as s
    semi join leavers as l on l.cluster = s.cluster and l.node = s.node
    left join absences as a on a.cluster = s.cluster and a.node = s.node and a.absent_at <= s.sampled_at
    group by
        s.date, s.cluster, s.node, s.pci_bus_id, s.gi_id, s.mig_profile, s.gpu_uuid, s.model, s.driver, s.sampled_at
)
select
    date, cluster, node, pci_bus_id, gi_id, mig_profile, gpu_uuid,
    min(sampled_at) as first_seen_at, max(sampled_at) as last_seen_at, count(*) as samples,
    max(model) as model, max(driver) as driver
from cut
group by date, cluster, node, pci_bus_id, gi_id, mig_profile, gpu_uuid, since_at
