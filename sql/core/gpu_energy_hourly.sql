-- Energy of every accelerator: its power readings over the time they cover, clipped to the hour. A cut device is read
-- once, at the parent where it has a row of its own, else at the instance that reads most: instances repeat the board's
-- power. What no reading covers is not filled up: metered_gpu_seconds says how much of the hour was.
-- grain: hour, slot
-- key: date, hour, cluster, node, pci_bus_id
-- inputs: core.gpu_samples
-- invariant: metered_gpu_seconds is at most the hour's
with readings as (
    select
        cluster, node, pci_bus_id, sampled_at,
        coalesce(max(case when gi_id is null then power_w end), max(power_w)) as power_w,
        max(covers_until_at) as covers_until_at, max(resumes_at) as resumes_at,
        max(resumes_until_at) as resumes_until_at
    from core.gpu_samples
    where
        -- A sample of the day before may stand into the window.
        date >= cast($start_at - interval 1 day as date) and date < cast($end_at as date)
        and greatest(covers_until_at, resumes_until_at) > $start_at
        and power_w is not null
    group by cluster, node, pci_bus_id, sampled_at
),
-- Instances of one device read at different instants do not add up: the next reading ends the one before.
ordered as (
    select
        *,
        lead(sampled_at) over (partition by cluster, node, pci_bus_id order by sampled_at) as next_at,
        lead(sampled_at, 2) over (partition by cluster, node, pci_bus_id order by sampled_at) as second_next_at
    from readings
),
spans as (
    select
        cluster, node, pci_bus_id, power_w, sampled_at as from_at,
        least(covers_until_at, coalesce(next_at, covers_until_at)) as to_at
    from ordered
    union all
    select
        cluster, node, pci_bus_id, power_w, resumes_at,
        least(resumes_until_at, coalesce(second_next_at, resumes_until_at))
    from ordered
    where resumes_at is not null
),
-- A reading stands over the turn of one hour at most.
hourly as (
    select
        cluster, node, pci_bus_id, power_w, date_trunc('hour', from_at) as hour, from_at,
        least(to_at, date_trunc('hour', from_at) + interval 1 hour) as to_at
    from spans
    where to_at > from_at
    union all
    select
        cluster, node, pci_bus_id, power_w, date_trunc('hour', from_at) + interval 1 hour,
        date_trunc('hour', from_at) + interval 1 hour, least(to_at, date_trunc('hour', from_at) + interval 2 hour)
    from spans
    where to_at > date_trunc('hour', from_at) + interval 1 hour
),
-- In whole milliwatts times microseconds: a sum of integers does not depend on the order it is made in.
sums as (
    select
        hour, cluster, node, pci_bus_id,
        sum(
            cast(cast(floor(power_w * 1000 + 0.5) as bigint) as hugeint) * date_diff('microsecond', from_at, to_at)
        ) as nanojoules,
        sum(date_diff('microsecond', from_at, to_at)) as metered_us
    from hourly
    where hour >= $start_at and hour < $end_at
    group by hour, cluster, node, pci_bus_id
)
select
    hour, cluster, node, pci_bus_id,
    cast(cast((nanojoules + 500) // 1000 as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as metered_energy_j,
    cast(cast(metered_us as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as metered_gpu_seconds,
    cast(hour as date) as date
from sums
