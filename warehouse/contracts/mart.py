"""Contracts of the mart layer: what people, reports and exports read."""

from __future__ import annotations

from warehouse.contracts.fields import pick
from warehouse.contracts.model import Table

LEDGER = """
capacity_gpu_seconds allocated_gpu_seconds unallocated_gpu_seconds unavailable_gpu_seconds utilized_gpu_seconds
stranded_gpu_seconds unobserved_gpu_seconds resident_gpu_seconds rogue_gpu_seconds
"""

TABLES = (
    Table(
        "mart.gpu_ledger_hourly", "hour, unit (node, pci_bus_id, gi_id), holder",
        ("hour", "cluster", "node", "pci_bus_id", "gi_id", "holder"),
        pick("hour cluster node pci_bus_id gi_id holder namespace pod team workload_kind gpu_uuid model accelerator "
             "mig_profile provider region zone instance_type method util_source " + LEDGER + " flags date"),
        "date", "The GPU-second ledger: what became of every second of every GPU, by who held it.",
        nullable_key=("gi_id", "holder"),
    ),
    Table(
        "mart.stranding_hourly", "hour, team, namespace, accelerator", ("hour", "team", "namespace", "accelerator"),
        pick("hour team namespace accelerator " + LEDGER + " date"),
        "date", "Where GPU-time is stranded, by team; rows without a team are time that nobody held.",
        nullable_key=("team", "namespace", "accelerator"),
    ),
    Table(
        "mart.capacity_hourly", "hour, node, resource", ("hour", "cluster", "node", "resource"),
        pick("hour cluster node resource accelerator capacity_devices allocatable_devices requested_devices "
             "bound_devices free_devices unavailable_devices free_at_end largest_gang_devices "
             "largest_gang_in_pool fragmentation_ratio date"),
        "date", "What each node could give, and the largest gang that could have been placed when the hour ended.",
    ),
    Table(
        "mart.job_efficiency", "pod run, on the last date on which it held anything", ("date", "cluster", "pod_uid"),
        pick("date cluster pod_uid namespace pod node team workload_kind owner_name accelerator resource devices "
             "started_at finished_at end_reason samples allocated_gpu_seconds utilized_gpu_seconds "
             "stranded_gpu_seconds unobserved_gpu_seconds resident_gpu_seconds utilization_ratio activity_mean "
             "sm_active_p50 sm_active_p95 gpu_util_p50 gpu_util_p95 sm_occupancy_p50 sm_occupancy_p95 tensor_p50 "
             "tensor_p95 dram_p50 dram_p95 power_w_p50 power_w_p95 fb_used_bytes_p50 fb_used_bytes_p95 shape "
             "baseline_activity_ratio baseline_runs verdict"),
        "date", "How each pod's run used what it held, what kind of work it was, and a verdict.",
    ),
)  # fmt: skip
