-- Nothing is suggested above what is asked for, nor devices or memory below what a run was seen to use; an abstention
-- suggests nothing, and every verdict has its reason.
-- table: mart.rightsizing
select
    team, namespace, owner_kind, template, accelerator, role, asked_devices, verdict, reason, suggested_devices,
    suggested_placement, needed_devices, suggested_memory_bytes, memory_peak_bytes
from mart.rightsizing
where
    verdict is null or reason is null or reason = ''
    or suggested_devices > asked_devices
    or (verdict = 'shrink' and (suggested_devices >= asked_devices or suggested_devices < needed_devices))
    or (verdict = 'stop' and suggested_devices <> 0)
    or (verdict in ('keep', 'share', 'smaller_model', 'fix_input') and suggested_devices is distinct from asked_devices)
    or (verdict = 'abstain') <> (suggested_devices is null)
    or (verdict in ('share', 'smaller_model')) <> (suggested_placement is not null)
    or (verdict = 'abstain' and (suggested_memory_bytes is not null or confidence is not null))
    or suggested_memory_bytes < memory_peak_bytes
