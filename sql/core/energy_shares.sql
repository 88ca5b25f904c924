-- Who drew the energy of each node's accelerators: a device's energy of an hour is dealt over those who had it by the
-- ledger's microseconds (largest remainder, ties by part, holder). What nobody held carries the idle power.
-- grain: hour, node, part, holder
-- key: date, hour, cluster, node, cost_part, holder
-- inputs: core.gpu_energy_hourly, mart.gpu_ledger_hourly
-- invariant: adds up to core.gpu_energy_hourly over the devices that the ledger knows in the hour
with ledger as (
    select
        date, hour, cluster, node, pci_bus_id, holder,
        cast(allocated_gpu_seconds * 1000000 as bigint) as allocated_us,
        cast(unallocated_gpu_seconds * 1000000 as bigint) as unallocated_us,
        cast(unavailable_gpu_seconds * 1000000 as bigint) as unavailable_us
    from mart.gpu_ledger_hourly
    where date >= cast($start_at as date) and date < cast($end_at as date)
),
-- The instances of a cut device have its energy together: it is metered at the device.
device_parts as (
    select date, hour, cluster, node, pci_bus_id, 'holder' as cost_part, holder, sum(allocated_us) as part_us
    from ledger
    where allocated_us > 0
    group by date, hour, cluster, node, pci_bus_id, holder
    union all
    select date, hour, cluster, node, pci_bus_id, 'unallocated', cast(null as varchar), sum(unallocated_us)
    from ledger
    where unallocated_us > 0
    group by date, hour, cluster, node, pci_bus_id
    union all
    select date, hour, cluster, node, pci_bus_id, 'unavailable', cast(null as varchar), sum(unavailable_us)
    from ledger
    where unavailable_us > 0
    group by date, hour, cluster, node, pci_bus_id
),
devices as (
    select date, hour, cluster, node, pci_bus_id, count(*) as parts, sum(part_us) as device_us
    from device_parts
    group by date, hour, cluster, node, pci_bus_id
),
-- In millionths of a joule and of a second; HUGEINT, since such a number times microseconds does not fit 64 bits.
metered as (
    select
        m.date, m.hour, m.cluster, m.node, m.pci_bus_id, d.parts, d.device_us,
        cast(cast(m.metered_energy_j as decimal(38, 6)) * 1000000 as hugeint) as energy,
        cast(cast(m.metered_gpu_seconds as decimal(38, 6)) * 1000000 as hugeint) as seconds
    from core.gpu_energy_hourly as m
    inner join devices as d
        on d.date = m.date and d.hour = m.hour and d.cluster = m.cluster and d.node = m.node
        and d.pci_bus_id = m.pci_bus_id
    where m.date >= cast($start_at as date) and m.date < cast($end_at as date)
),
bids as (
    select d.*, m.parts, m.device_us, m.energy, m.seconds
    from device_parts as d
    inner join metered as m
        on m.date = d.date and m.hour = d.hour and m.cluster = d.cluster and m.node = d.node
        and m.pci_bus_id = d.pci_bus_id
),
floors as (
    select
        *, (energy * part_us) // nullif(device_us, 0) as energy_units,
        (energy * part_us) % nullif(device_us, 0) as energy_rest,
        (seconds * part_us) // nullif(device_us, 0) as second_units,
        (seconds * part_us) % nullif(device_us, 0) as second_rest
    from bids
    where parts > 1
),
ranks as (
    select
        date, hour, cluster, node, pci_bus_id, cost_part, holder, energy_units, second_units,
        energy - sum(energy_units) over (partition by date, hour, cluster, node, pci_bus_id) as energy_missing,
        seconds - sum(second_units) over (partition by date, hour, cluster, node, pci_bus_id) as second_missing,
        row_number() over (
            partition by date, hour, cluster, node, pci_bus_id order by energy_rest desc, cost_part, holder
        ) as energy_place,
        row_number() over (
            partition by date, hour, cluster, node, pci_bus_id order by second_rest desc, cost_part, holder
        ) as second_place
    from floors
),
-- Most devices have one holder for the whole hour and need no dealing.
shares as (
    select
        date, hour, cluster, node, cost_part, holder,
        case when energy_place <= energy_missing then energy_units + 1 else energy_units end as energy_units,
        case when second_place <= second_missing then second_units + 1 else second_units end as second_units
    from ranks
    union all
    select date, hour, cluster, node, cost_part, holder, energy, seconds from bids where parts = 1
),
summed as (
    select
        date, hour, cluster, node, cost_part, holder, sum(energy_units) as energy_units,
        sum(second_units) as second_units
    from shares
    group by date, hour, cluster, node, cost_part, holder
)
select
    date, hour, cluster, node, cost_part, holder,
    cast(cast(energy_units as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as metered_energy_j,
    cast(cast(second_units as decimal(18, 0)) * 0.000001 as decimal(18, 6)) as metered_gpu_seconds
from summed
