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
)  # fmt: skip
