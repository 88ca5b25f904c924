-- One row per sample of a GPU or MIG instance: deduplicated, sentinels and values out of range null with a
-- reason, the activity by ledger rule 5 and the time the sample stands by ledger rule 3.
-- grain: sampled_at, slot (node, pci_bus_id), gi_id
-- key: cluster, node, pci_bus_id, gi_id, sampled_at
-- inputs: raw.dcgm_samples, raw.scrapes, raw.settings
-- invariant: covers of one unit never overlap; every ratio is null or within 0 to 1
with settings as (
    select
        max(case when setting = 'scrape_interval_s' then cast(value as double) end) as interval_s,
        max(case when setting = 'staleness_s' then cast(value as double) end) as staleness_s
    from raw.settings
),
-- A day on either side: scrapes before and after the window take part in covers and in the usual spacing.
scrape_times as (
    select
        cluster, target, scrape_at, samples,
        lead(scrape_at) over (partition by cluster, target order by scrape_at) as next_scrape_at
    from raw.scrapes
    where date >= cast($start_at - interval 1 day as date) and date < cast($end_at + interval 1 day as date)
),
spacings as (
    select
        cluster, target, cast(scrape_at as date) as date,
        median(date_diff('microsecond', scrape_at, next_scrape_at)) as median_us
    from scrape_times
    where next_scrape_at is not null
    group by cluster, target, cast(scrape_at as date)
),
rules as (
    select
        t.cluster, t.target, t.scrape_at, t.next_scrape_at,
        coalesce(s.interval_s * 1000000.0, p.median_us, 60000000.0) as usual_us,
        s.staleness_s
    from scrape_times as t
    cross join settings as s
    left join spacings as p on p.cluster = t.cluster and p.target = t.target and p.date = cast(t.scrape_at as date)
),
limits as (
    select
        cluster, target, scrape_at, next_scrape_at, usual_us,
        case when staleness_s is null then least(3.0 * usual_us, 300000000.0) else staleness_s * 1000000.0 end
            as limit_us
    from rules
),
covers as (
    select
        cluster, target, scrape_at,
        lag(scrape_at) over (partition by cluster, target order by scrape_at) as previous_scrape_at,
        case
            when next_scrape_at is not null and date_diff('microsecond', scrape_at, next_scrape_at) <= limit_us
                then next_scrape_at
            else scrape_at + interval 1 microsecond * cast(floor(least(usual_us, limit_us) + 0.5) as bigint)
        end as covers_until_at
    from limits
),
-- What is known of each card before its samples are read: the slot, where another row of it tells the bus id; and
-- whether rows have to be put together, because it has copies or more than one exporter, or because another card
-- claims its slot: a card was replaced, or two machines go by one node name.
cards as (
    select
        cluster, node, gpu_uuid, max(pci_bus_id) as pci_bus_id,
        max(copy) > 0 or min(target) <> max(target) or coalesce(min(pci_bus_id) <> max(pci_bus_id), false)
        or count(*) over (partition by cluster, node, coalesce(max(pci_bus_id), gpu_uuid)) > 1 as is_repeated
    from raw.dcgm_samples
    where
        date >= cast($start_at - interval 1 day as date) and date < cast($end_at + interval 1 day as date)
        and sampled_at >= $start_at - interval 15 minute and sampled_at < $end_at + interval 15 minute
    group by cluster, node, gpu_uuid
),
ranked as (
    select
        r.* exclude (pci_bus_id), coalesce(r.pci_bus_id, c.pci_bus_id, r.gpu_uuid) as pci_bus_id,
        row_number() over (
            partition by r.cluster, r.node, coalesce(r.pci_bus_id, c.pci_bus_id, r.gpu_uuid), r.gi_id, r.sampled_at
            order by r.target, r.copy
        ) as place
    from raw.dcgm_samples as r
    inner join cards as c on c.cluster = r.cluster and c.node = r.node and c.gpu_uuid = r.gpu_uuid and c.is_repeated
    where
        r.date >= cast($start_at - interval 1 day as date) and r.date < cast($end_at + interval 1 day as date)
        and r.sampled_at >= $start_at and r.sampled_at < $end_at + interval 15 minute
),
-- Rows of a shared GPU repeat the device's values, or hold per-process parts of two of them beside the device's own
-- row, which comes first (copy 0); and where only some fields carry pod labels, one device's fields lie on two rows.
-- So each field is the first row's where it has one (a sentinel there stays one: parts are not the device's value), else
-- the largest of the others that is within range.
repeated as (
    select
        cluster, node, pci_bus_id, gi_id, sampled_at, min(target) as target, min(gpu_uuid) as gpu_uuid,
        min(gpu_index) as gpu_index, min(model) as model, min(mig_profile) as mig_profile, min(driver) as driver,
        coalesce(max(case when place = 1 then gpu_util_ratio end), max(case when gpu_util_ratio <= 1.1 then gpu_util_ratio end), max(gpu_util_ratio)) as gpu_util_ratio,
        coalesce(max(case when place = 1 then mem_copy_ratio end), max(case when mem_copy_ratio <= 1.1 then mem_copy_ratio end), max(mem_copy_ratio)) as mem_copy_ratio,
        coalesce(max(case when place = 1 then sm_active_ratio end), max(case when sm_active_ratio <= 1.1 then sm_active_ratio end), max(sm_active_ratio)) as sm_active_ratio,
        coalesce(max(case when place = 1 then sm_occupancy_ratio end), max(case when sm_occupancy_ratio <= 1.1 then sm_occupancy_ratio end), max(sm_occupancy_ratio)) as sm_occupancy_ratio,
        coalesce(max(case when place = 1 then gr_engine_ratio end), max(case when gr_engine_ratio <= 1.1 then gr_engine_ratio end), max(gr_engine_ratio)) as gr_engine_ratio,
        coalesce(max(case when place = 1 then tensor_ratio end), max(case when tensor_ratio <= 1.1 then tensor_ratio end), max(tensor_ratio)) as tensor_ratio,
        coalesce(max(case when place = 1 then dram_ratio end), max(case when dram_ratio <= 1.1 then dram_ratio end), max(dram_ratio)) as dram_ratio,
        coalesce(max(case when place = 1 then power_w end), max(case when power_w <= 3000 then power_w end), max(power_w)) as power_w,
        coalesce(max(case when place = 1 then energy_j end), max(case when energy_j <= 9.2e15 then energy_j end), max(energy_j)) as energy_j,
        coalesce(max(case when place = 1 then fb_used_bytes end), max(case when fb_used_bytes <= 1099511627776 then fb_used_bytes end), max(fb_used_bytes)) as fb_used_bytes,
        coalesce(max(case when place = 1 then fb_free_bytes end), max(case when fb_free_bytes <= 1099511627776 then fb_free_bytes end), max(fb_free_bytes)) as fb_free_bytes,
        coalesce(max(case when place = 1 then fb_reserved_bytes end), max(case when fb_reserved_bytes <= 1099511627776 then fb_reserved_bytes end), max(fb_reserved_bytes)) as fb_reserved_bytes,
        coalesce(max(case when place = 1 then sm_clock_hz end), max(case when sm_clock_hz <= 10000000000 then sm_clock_hz end), max(sm_clock_hz)) as sm_clock_hz,
        coalesce(max(case when place = 1 then gpu_temp_c end), max(case when gpu_temp_c <= 150 then gpu_temp_c end), max(gpu_temp_c)) as gpu_temp_c,
        coalesce(max(case when place = 1 then mem_temp_c end), max(case when mem_temp_c <= 150 then mem_temp_c end), max(mem_temp_c)) as mem_temp_c,
        coalesce(max(case when place = 1 then xid_last end), max(case when xid_last <= 999 then xid_last end), max(xid_last)) as xid_last,
        coalesce(max(case when place = 1 then nvlink_bytes_per_second end), max(case when nvlink_bytes_per_second <= 1e14 then nvlink_bytes_per_second end), max(nvlink_bytes_per_second)) as nvlink_bytes_per_second,
        coalesce(max(case when place = 1 then pcie_tx_bytes_per_second end), max(case when pcie_tx_bytes_per_second <= 1e13 then pcie_tx_bytes_per_second end), max(pcie_tx_bytes_per_second)) as pcie_tx_bytes_per_second,
        coalesce(max(case when place = 1 then pcie_rx_bytes_per_second end), max(case when pcie_rx_bytes_per_second <= 1e13 then pcie_rx_bytes_per_second end), max(pcie_rx_bytes_per_second)) as pcie_rx_bytes_per_second
    from ranked
    group by cluster, node, pci_bus_id, gi_id, sampled_at
),
-- Of two exporters the newer sample stands; where its cover ends before the older one's does, the older one resumes.
watched_twice as (
    select
        r.*, coalesce(v.covers_until_at, n.covers_until_at) as own_end_at,
        lead(r.sampled_at) over (partition by r.cluster, r.node, r.pci_bus_id, r.gi_id order by r.sampled_at) as next_at,
        lead(coalesce(v.covers_until_at, n.covers_until_at)) over (
            partition by r.cluster, r.node, r.pci_bus_id, r.gi_id order by r.sampled_at
        ) as next_end_at,
        lead(r.sampled_at, 2) over (
            partition by r.cluster, r.node, r.pci_bus_id, r.gi_id order by r.sampled_at
        ) as second_next_at
    from repeated as r
    left join covers as v on v.cluster = r.cluster and v.target = r.target and v.scrape_at = r.sampled_at
    left join covers as n
        on n.cluster = r.cluster and n.target = case when v.scrape_at is null then r.target end
        and n.scrape_at > r.sampled_at and coalesce(n.previous_scrape_at < r.sampled_at, true)
    where coalesce(v.covers_until_at, n.covers_until_at) is not null
),
devices as (
    select
        r.cluster, r.node, coalesce(r.pci_bus_id, c.pci_bus_id, r.gpu_uuid) as pci_bus_id, r.gi_id, r.sampled_at,
        r.target, r.gpu_uuid, r.gpu_index, r.model, r.mig_profile, r.driver,
        r.gpu_util_ratio, r.mem_copy_ratio, r.sm_active_ratio, r.sm_occupancy_ratio, r.gr_engine_ratio,
        r.tensor_ratio, r.dram_ratio, r.power_w, r.energy_j, r.fb_used_bytes, r.fb_free_bytes, r.fb_reserved_bytes,
        r.sm_clock_hz, r.gpu_temp_c, r.mem_temp_c, r.xid_last, r.nvlink_bytes_per_second,
        r.pcie_tx_bytes_per_second, r.pcie_rx_bytes_per_second, coalesce(v.covers_until_at, n.covers_until_at) as covers_until_at,
        cast(null as timestamp) as resumes_at, cast(null as timestamp) as resumes_until_at
    from raw.dcgm_samples as r
    inner join cards as c on c.cluster = r.cluster and c.node = r.node and c.gpu_uuid = r.gpu_uuid and not c.is_repeated
    left join covers as v on v.cluster = r.cluster and v.target = r.target and v.scrape_at = r.sampled_at
    -- A sample that carried a time of its own belongs to the first scrape after it.
    left join covers as n
        on n.cluster = r.cluster and n.target = case when v.scrape_at is null then r.target end
        and n.scrape_at > r.sampled_at and coalesce(n.previous_scrape_at < r.sampled_at, true)
    where
        r.date >= cast($start_at as date) and r.date < cast($end_at as date)
        and coalesce(v.covers_until_at, n.covers_until_at) is not null
    union all
    select
        * exclude (own_end_at, next_at, next_end_at, second_next_at),
        least(own_end_at, coalesce(next_at, own_end_at)) as covers_until_at,
        case when next_end_at < least(own_end_at, coalesce(second_next_at, own_end_at)) then next_end_at end as resumes_at,
        case
            when next_end_at < least(own_end_at, coalesce(second_next_at, own_end_at))
                then least(own_end_at, coalesce(second_next_at, own_end_at))
        end as resumes_until_at
    from watched_twice
    where sampled_at < $end_at
),
-- Profiling counters that read exactly zero for ten minutes while kernels run are frozen, not idle. A quarter of an
-- hour on either side of the window shows how long such a run lasts.
zero_cards as (
    select cluster, node, gpu_uuid, gi_id
    from raw.dcgm_samples
    where
        date >= cast($start_at - interval 1 day as date) and date < cast($end_at + interval 1 day as date)
        and sampled_at >= $start_at - interval 15 minute and sampled_at < $end_at + interval 15 minute
        and gpu_util_ratio > 0.5 and gpu_util_ratio <= 1.1 and coalesce(sm_active_ratio, gr_engine_ratio) = 0
    group by cluster, node, gpu_uuid, gi_id
    having count(*) > 1
),
zeros as (
    select
        r.cluster, r.node, r.gpu_uuid, r.gi_id, r.sampled_at,
        coalesce(
            max(case when r.gpu_util_ratio <= 1.1 then r.gpu_util_ratio end) > 0.5
            and coalesce(
                max(case when r.sm_active_ratio <= 1.1 then r.sm_active_ratio end),
                max(case when r.gr_engine_ratio <= 1.1 then r.gr_engine_ratio end)
            ) = 0
            and coalesce(max(case when r.gr_engine_ratio <= 1.1 then r.gr_engine_ratio end), 0) = 0
            and coalesce(max(case when r.tensor_ratio <= 1.1 then r.tensor_ratio end), 0) = 0
            and coalesce(max(case when r.dram_ratio <= 1.1 then r.dram_ratio end), 0) = 0,
            false
        ) as is_zero
    from raw.dcgm_samples as r
    semi join zero_cards as c
        on c.cluster = r.cluster and c.node = r.node and c.gpu_uuid = r.gpu_uuid and c.gi_id is not distinct from r.gi_id
    where
        r.date >= cast($start_at - interval 1 day as date) and r.date < cast($end_at + interval 1 day as date)
        and r.sampled_at >= $start_at - interval 15 minute and r.sampled_at < $end_at + interval 15 minute
    group by r.cluster, r.node, r.gpu_uuid, r.gi_id, r.sampled_at
),
zero_runs as (
    select
        *,
        row_number() over (partition by cluster, node, gpu_uuid, gi_id order by sampled_at)
        - row_number() over (partition by cluster, node, gpu_uuid, gi_id, is_zero order by sampled_at) as run
    from zeros
),
frozen as (
    select cluster, node, gpu_uuid, gi_id, min(sampled_at) as from_at, max(sampled_at) as to_at
    from zero_runs
    where is_zero
    group by cluster, node, gpu_uuid, gi_id, run
    having date_diff('microsecond', min(sampled_at), max(sampled_at)) >= 600000000
),
-- GR_ENGINE_ACTIVE of an instance is a lower bound. It is scaled by the largest value its profile showed on the day
-- or a day beside it, but by no less than one engine's share of the instance, the most that real cards ever showed:
-- where no instance was ever busy, the largest value says nothing.
day_maxima as (
    select cluster, model, mig_profile, date, max(gr_engine_ratio) as largest_gr
    from raw.dcgm_samples
    where
        date >= cast($start_at - interval 1 day as date) and date < cast($end_at + interval 1 day as date)
        and gi_id is not null and gr_engine_ratio between 0 and 1
    group by cluster, model, mig_profile, date
),
profile_maxima as (
    select
        d.cluster, d.model, d.mig_profile, d.date,
        greatest(
            max(n.largest_gr),
            case
                when d.mig_profile like '2g%' then 0.5
                when d.mig_profile like '3g%' then 0.333333
                when d.mig_profile like '4g%' then 0.25
                else 1.0
            end
        ) as largest_gr
    from day_maxima as d
    inner join day_maxima as n
        on n.cluster = d.cluster and n.model is not distinct from d.model
        and n.mig_profile is not distinct from d.mig_profile
        and n.date between d.date - interval 1 day and d.date + interval 1 day
    group by d.cluster, d.model, d.mig_profile, d.date
),
checked as (
    select
        d.*,
        case when gpu_util_ratio between 0 and 1 then gpu_util_ratio when gpu_util_ratio > 1 and gpu_util_ratio <= 1.1 then 1.0 end as gpu_util_ok,
        case when mem_copy_ratio between 0 and 1 then mem_copy_ratio when mem_copy_ratio > 1 and mem_copy_ratio <= 1.1 then 1.0 end as mem_copy_ok,
        case when sm_active_ratio between 0 and 1 then sm_active_ratio when sm_active_ratio > 1 and sm_active_ratio <= 1.1 then 1.0 end as sm_active_ok,
        case when sm_occupancy_ratio between 0 and 1 then sm_occupancy_ratio when sm_occupancy_ratio > 1 and sm_occupancy_ratio <= 1.1 then 1.0 end as sm_occupancy_ok,
        case when gr_engine_ratio between 0 and 1 then gr_engine_ratio when gr_engine_ratio > 1 and gr_engine_ratio <= 1.1 then 1.0 end as gr_engine_ok,
        case when tensor_ratio between 0 and 1 then tensor_ratio when tensor_ratio > 1 and tensor_ratio <= 1.1 then 1.0 end as tensor_ok,
        case when dram_ratio between 0 and 1 then dram_ratio when dram_ratio > 1 and dram_ratio <= 1.1 then 1.0 end as dram_ok,
        case when power_w between 0 and 3000 then power_w end as power_ok,
        case when energy_j >= 0 and energy_j < 9.2e15 then energy_j end as energy_ok,
        case when fb_used_bytes between 0 and 1099511627776 then fb_used_bytes end as fb_used_ok,
        case when fb_free_bytes between 0 and 1099511627776 then fb_free_bytes end as fb_free_ok,
        case when fb_reserved_bytes between 0 and 1099511627776 then fb_reserved_bytes end as fb_reserved_ok,
        case when sm_clock_hz between 0 and 10000000000 then sm_clock_hz end as sm_clock_ok,
        case when gpu_temp_c between 1 and 150 then gpu_temp_c end as gpu_temp_ok,
        case when mem_temp_c between 1 and 150 then mem_temp_c end as mem_temp_ok,
        case when xid_last between 0 and 999 then xid_last end as xid_ok,
        case when nvlink_bytes_per_second between 0 and 1e14 then nvlink_bytes_per_second end as nvlink_ok,
        case when pcie_tx_bytes_per_second between 0 and 1e13 then pcie_tx_bytes_per_second end as pcie_tx_ok,
        case when pcie_rx_bytes_per_second between 0 and 1e13 then pcie_rx_bytes_per_second end as pcie_rx_ok
    from devices as d
),
usable as (
    select
        c.*,
        f.from_at is not null as is_frozen,
        case when f.from_at is null then c.sm_active_ok end as sm_active_used,
        case when f.from_at is null then c.gr_engine_ok end as gr_engine_used,
        m.largest_gr
    from checked as c
    left join frozen as f
        on f.cluster = c.cluster and f.node = c.node and f.gpu_uuid = c.gpu_uuid
        and f.gi_id is not distinct from c.gi_id and c.sampled_at between f.from_at and f.to_at
    left join profile_maxima as m
        on m.cluster = c.cluster and m.model is not distinct from c.model
        and m.mig_profile is not distinct from c.mig_profile and m.date = cast(c.sampled_at as date)
        and c.gi_id is not null
)
select
    u.cluster, u.node, u.pci_bus_id, u.gi_id, u.sampled_at,
    u.covers_until_at, u.resumes_at, u.resumes_until_at,
    case
        when u.sm_active_used is not null then u.sm_active_used
        when u.gr_engine_used is not null and u.gi_id is null then u.gr_engine_used
        when u.gr_engine_used is not null then least(1.0, u.gr_engine_used / nullif(u.largest_gr, 0))
        else u.gpu_util_ok
    end as util_ratio,
    case
        when u.sm_active_used is not null then 'sm_active'
        when u.gr_engine_used is not null and u.gi_id is null then 'gr_engine'
        when u.gr_engine_used is not null then 'gr_engine_scaled'
        when u.gpu_util_ok is not null then 'gpu_util'
    end as util_source,
    u.target, u.gpu_uuid, u.gpu_index, u.model, u.mig_profile, u.driver,
    u.gpu_util_ok as gpu_util_ratio, u.mem_copy_ok as mem_copy_ratio, u.sm_active_used as sm_active_ratio,
    u.sm_occupancy_ok as sm_occupancy_ratio, u.gr_engine_used as gr_engine_ratio, u.tensor_ok as tensor_ratio,
    u.dram_ok as dram_ratio, u.power_ok as power_w, u.energy_ok as energy_j, u.fb_used_ok as fb_used_bytes,
    u.fb_free_ok as fb_free_bytes, u.fb_reserved_ok as fb_reserved_bytes, u.sm_clock_ok as sm_clock_hz,
    u.gpu_temp_ok as gpu_temp_c, u.mem_temp_ok as mem_temp_c, u.xid_ok as xid_last,
    u.nvlink_ok as nvlink_bytes_per_second, u.pcie_tx_ok as pcie_tx_bytes_per_second,
    u.pcie_rx_ok as pcie_rx_bytes_per_second,
    (
        (u.gpu_util_ratio > 1 and u.gpu_util_ok = 1) or (u.sm_active_ratio > 1 and u.sm_active_ok = 1)
        or (u.gr_engine_ratio > 1 and u.gr_engine_ok = 1) or (u.tensor_ratio > 1 and u.tensor_ok = 1)
        or (u.dram_ratio > 1 and u.dram_ok = 1) or (u.sm_occupancy_ratio > 1 and u.sm_occupancy_ok = 1)
    ) is true as is_clamped,
    nullif(
        case when u.is_frozen then 'sm_active_ratio:frozen;gr_engine_ratio:frozen;' else '' end
        || case when u.gpu_util_ratio is not null and u.gpu_util_ok is null then 'gpu_util_ratio:' || case when u.gpu_util_ratio >= 21474836.32 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.mem_copy_ratio is not null and u.mem_copy_ok is null then 'mem_copy_ratio:' || case when u.mem_copy_ratio >= 21474836.32 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.sm_active_ratio is not null and u.sm_active_ok is null then 'sm_active_ratio:' || case when u.sm_active_ratio >= 140737488355328 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.sm_occupancy_ratio is not null and u.sm_occupancy_ok is null then 'sm_occupancy_ratio:' || case when u.sm_occupancy_ratio >= 140737488355328 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.gr_engine_ratio is not null and u.gr_engine_ok is null then 'gr_engine_ratio:' || case when u.gr_engine_ratio >= 140737488355328 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.tensor_ratio is not null and u.tensor_ok is null then 'tensor_ratio:' || case when u.tensor_ratio >= 140737488355328 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.dram_ratio is not null and u.dram_ok is null then 'dram_ratio:' || case when u.dram_ratio >= 140737488355328 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.power_w is not null and u.power_ok is null then 'power_w:' || case when u.power_w >= 140737488355328 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.energy_j is not null and u.energy_ok is null then 'energy_j:' || case when u.energy_j >= 9.2e15 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.fb_used_bytes is not null and u.fb_used_ok is null then 'fb_used_bytes:' || case when u.fb_used_bytes >= 2251799796744192 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.fb_free_bytes is not null and u.fb_free_ok is null then 'fb_free_bytes:' || case when u.fb_free_bytes >= 2251799796744192 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.fb_reserved_bytes is not null and u.fb_reserved_ok is null then 'fb_reserved_bytes:' || case when u.fb_reserved_bytes >= 2251799796744192 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.sm_clock_hz is not null and u.sm_clock_ok is null then 'sm_clock_hz:' || case when u.sm_clock_hz >= 2147483632000000 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.gpu_temp_c is not null and u.gpu_temp_ok is null then 'gpu_temp_c:' || case when u.gpu_temp_c >= 2147483632 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.mem_temp_c is not null and u.mem_temp_ok is null then 'mem_temp_c:' || case when u.mem_temp_c >= 2147483632 then 'sentinel;' when u.mem_temp_c = 0 then 'not_available;' else 'out_of_range;' end else '' end
        || case when u.xid_last is not null and u.xid_ok is null then 'xid_last:' || case when u.xid_last >= 2147483632 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.nvlink_bytes_per_second is not null and u.nvlink_ok is null then 'nvlink_bytes_per_second:' || case when u.nvlink_bytes_per_second >= 9.2e18 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.pcie_tx_bytes_per_second is not null and u.pcie_tx_ok is null then 'pcie_tx_bytes_per_second:' || case when u.pcie_tx_bytes_per_second >= 9.2e18 then 'sentinel;' else 'out_of_range;' end else '' end
        || case when u.pcie_rx_bytes_per_second is not null and u.pcie_rx_ok is null then 'pcie_rx_bytes_per_second:' || case when u.pcie_rx_bytes_per_second >= 9.2e18 then 'sentinel;' else 'out_of_range;' end else '' end,
        ''
    ) as nulled,
    cast(u.sampled_at as date) as date
from usable as u
