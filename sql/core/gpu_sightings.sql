-- What the scrapes of one date showed of each GPU or MIG instance: the day's digest, so that validity, loss and
-- layout are found without reading the samples of other days.
-- grain: date, slot (node, pci_bus_id), gi_id, mig_profile, gpu_uuid
-- key: date, cluster, node, pci_bus_id, gi_id, mig_profile, gpu_uuid
-- inputs: core.gpu_samples
-- invariant: first_seen_at and last_seen_at lie on the date
select
    date, cluster, node, pci_bus_id, gi_id, mig_profile, gpu_uuid,
    min(sampled_at) as first_seen_at, max(sampled_at) as last_seen_at, count(*) as samples,
    max(model) as model, max(driver) as driver
from core.gpu_samples
where date >= cast($start_at as date) and date < cast($end_at as date)
group by date, cluster, node, pci_bus_id, gi_id, mig_profile, gpu_uuid
