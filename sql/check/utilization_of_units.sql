-- Both definitions of utilization lie within 0 and 1 of what is held: utilized (SM) and resident (GPU_UTIL).
-- table: mart.gpu_ledger_hourly
select hour, cluster, node, pci_bus_id, gi_id, holder, allocated_gpu_seconds, utilized_gpu_seconds, resident_gpu_seconds
from mart.gpu_ledger_hourly
where
    date >= cast($start_at as date) and date < cast($end_at as date)
    and (
        utilized_gpu_seconds < 0 or utilized_gpu_seconds > allocated_gpu_seconds
        or resident_gpu_seconds < 0 or resident_gpu_seconds > allocated_gpu_seconds
    )
