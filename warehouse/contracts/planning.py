"""Contracts of planning: what runs peaked at, and what their templates should ask for."""

from __future__ import annotations

from dataclasses import replace

from warehouse.contracts.fields import FIELDS, pick
from warehouse.contracts.model import Table

VERDICTS = ("keep", "shrink", "share", "smaller_model", "fix_input", "stop", "abstain")

CORE = (
    Table(
        "core.pod_unit_days", "date, pod_uid, unit (node, pci_bus_id, gi_id)",
        ("date", "cluster", "pod_uid", "node", "pci_bus_id", "gi_id"),
        pick("date cluster pod_uid node pci_bus_id gi_id mig_profile share_ratio samples cover_us known_samples "
             "active_samples util_only_samples over_1_of_7_samples over_2_of_7_samples over_3_of_7_samples "
             "over_4_of_7_samples activity_max activity_micros resident_samples resident_micros occupancy_samples "
             "occupancy_micros tensor_max pcie_samples pcie_rx_kilobytes fb_used_max_bytes fb_total_bytes "
             "peak_busy_devices"),
        "date", "What each device of a pod did on a date, and how many of them worked at once.",
        nullable_key=("gi_id",),
    ),
    Table(
        "core.run_peaks", "pod run of the last 28 days", ("cluster", "pod_uid"),
        pick("cluster pod_uid team namespace owner_kind template role rightsizing_run is_long_lived accelerator "
             "resource asked_devices started_at finished_at end_reason is_failed date shape activity_mean "
             "sm_active_p95 tensor_p95 dram_p95 fb_used_bytes_p95 allocated_gpu_seconds stranded_gpu_seconds "
             "unobserved_gpu_seconds mig_profile share_ratio observed_devices samples known_samples "
             "util_only_samples sampling_interval_s known_ratio active_ratio over_1_of_7_ratio over_2_of_7_ratio "
             "over_3_of_7_ratio over_4_of_7_ratio activity_max resident_mean occupancy_mean tensor_max "
             "pcie_rx_mean_bytes_per_second memory_peak_bytes memory_sum_bytes memory_total_bytes "
             "peak_busy_devices busy_devices dark_devices"),
        "whole", "Which template each run is of, and the peaks of what it used.",
    ),
)  # fmt: skip

MART = (
    Table(
        "mart.rightsizing", "team, namespace, owner template, accelerator, role, resource, devices asked for",
        ("team", "namespace", "owner_kind", "template", "accelerator", "role", "resource", "asked_devices"),
        (
            *pick("team namespace owner_kind template accelerator role resource asked_devices"),
            replace(FIELDS["verdict"], values=VERDICTS),
            *pick("reason confidence suggested_devices suggested_placement suggested_memory_bytes runs judged_runs "
                  "failed_runs unjudged_runs pods gang_pods judged_hours window_from_at first_run_at last_run_at "
                  "sampling_interval_s known_ratio peak_busy_devices peak_busy_devices_p95 peak_busy_devices_mean "
                  "needed_devices ever_busy_devices active_ratio over_1_of_7_ratio over_3_of_7_ratio activity_peak "
                  "sm_active_p95 activity_mean tensor_peak tensor_p95 dram_p95 resident_mean occupancy_mean "
                  "pcie_rx_ratio starved_runs_ratio memory_peak_bytes fb_used_bytes_p95 memory_total_bytes mig_profile "
                  "is_out_of_memory allocated_gpu_hours stranded_gpu_hours"),
        ),
        "whole", "What each owner template asks for, what its runs used at most, and what it should ask for.",
    ),
)  # fmt: skip
