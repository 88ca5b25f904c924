"""Contracts of the raw layer: what the exporters, the API server and the settings said, as it came.

Raw values keep sentinels and values out of range (in the unit of their column); core nulls them.
"""

from __future__ import annotations

from warehouse.contracts.fields import pick
from warehouse.contracts.model import Table

DCGM_METRICS = """
gpu_util_ratio mem_copy_ratio enc_ratio dec_ratio sm_active_ratio sm_occupancy_ratio gr_engine_ratio
tensor_ratio dram_ratio fp64_ratio fp32_ratio fp16_ratio power_w energy_j fb_used_bytes fb_free_bytes
fb_reserved_bytes fb_total_bytes sm_clock_hz mem_clock_hz gpu_temp_c mem_temp_c xid_last
nvlink_bytes_per_second pcie_tx_bytes_per_second pcie_rx_bytes_per_second pcie_replay_total
ecc_sbe_volatile_total ecc_dbe_volatile_total ecc_sbe_aggregate_total ecc_dbe_aggregate_total
row_remap_failure uncorrectable_remapped_rows_total correctable_remapped_rows_total
power_violation_ns_total thermal_violation_ns_total vgpu_license_status
"""

TABLES = (
    Table(
        "raw.scrapes", "scrape_at, target", ("cluster", "scrape_at", "target"),
        pick("cluster scrape_at target node is_up http_status duration_s samples rejected_lines duplicate_lines "
             "body_bytes body_sha256 error hour date"),
        "hour", "Every scrape attempted, failed ones too: a gap is known from here, not guessed.",
    ),
    Table(
        "raw.rejected_lines", "scrape_at, target, line", ("cluster", "scrape_at", "target", "line_number"),
        pick("cluster scrape_at target line_number reason line hour date"),
        "hour", "Lines of scrape bodies that could not be read.",
    ),
    Table(
        "raw.field_maps", "hour, target, column", ("cluster", "hour", "target", "column_name", "source_name"),
        pick("cluster hour target column_name source_name factor verdict date"),
        "hour", "Which metric filled which column and with what factor, so that a wrong verdict can be redone.",
    ),
    Table(
        "raw.dcgm_samples", "sampled_at, target, gpu_uuid, gi_id, copy",
        ("cluster", "sampled_at", "target", "gpu_uuid", "gi_id", "copy"),
        pick("cluster sampled_at target node gpu_uuid gi_id copy gpu_index pci_bus_id device mig_profile model driver "
             "hint_namespace hint_pod hint_container hint_pod_uid vgpu " + DCGM_METRICS + " hour date"),
        "hour", "One row per GPU or MIG instance and scrape, every DCGM field a column.",
        nullable_key=("gi_id",),
    ),
    Table(
        "raw.kube_snapshots", "snapshot_at, kind", ("cluster", "snapshot_at", "kind"),
        pick("cluster snapshot_at kind objects is_complete body_bytes body_sha256 error hour date"),
        "hour", "Every list taken from the API server; only complete ones prove that an object is gone.",
    ),
    Table(
        "raw.kube_nodes", "snapshot_at, node", ("cluster", "snapshot_at", "node"),
        pick("cluster snapshot_at node node_uid created_at provider_id labels annotations taints "
             "is_unschedulable ready_status ready_changed_at cpu_milli memory_bytes hour date"),
        "hour", "Nodes as listed.",
    ),
    Table(
        "raw.kube_node_resources", "snapshot_at, node, resource", ("cluster", "snapshot_at", "node", "resource"),
        pick("cluster snapshot_at node resource capacity allocatable hour date"),
        "hour", "Extended resources of nodes (names with a slash).",
    ),
    Table(
        "raw.kube_pods", "snapshot_at, pod_uid", ("cluster", "snapshot_at", "pod_uid"),
        pick("cluster snapshot_at pod_uid namespace pod node phase reason created_at scheduled_at pod_started_at "
             "pod_finished_at deletion_requested_at priority priority_class scheduler_name owner_kind owner_name "
             "owner_uid labels annotations cpu_milli memory_bytes restarts hour date"),
        "hour", "Pods as listed.",
    ),
    Table(
        "raw.kube_pod_resources", "snapshot_at, pod_uid, resource", ("cluster", "snapshot_at", "pod_uid", "resource"),
        pick("cluster snapshot_at pod_uid resource quantity hour date"),
        "hour", "Extended resources that pods request (names with a slash).",
    ),
    Table(
        "raw.kube_namespaces", "snapshot_at, namespace", ("cluster", "snapshot_at", "namespace"),
        pick("cluster snapshot_at namespace labels annotations hour date"),
        "hour", "Namespaces as listed.",
    ),
    Table(
        "raw.kube_devices", "snapshot_at, pod, device",
        ("cluster", "snapshot_at", "node", "namespace", "pod", "container", "device_id"),
        pick("cluster snapshot_at node namespace pod pod_uid container resource device_id gpu_uuid pci_bus_id "
             "gi_id mig_profile method hour date"),
        "hour", "Pod to device, from pod-resources or DRA.",
        nullable_key=("container",),
    ),
    Table(
        "raw.allocation_history", "pod_uid, resource", ("cluster", "pod_uid", "resource"),
        pick("cluster pod_uid resource quantity namespace pod node team workload_kind accelerator provider "
             "region created_at started_at finished_at source hour date"),
        "hour", "Intervals imported whole (older history without snapshots); hour and date are those of started_at.",
    ),
    Table(
        "raw.fleet_truth", "date, pod_uid", ("cluster", "date", "pod_uid"),
        pick("cluster date pod_uid namespace pod node team shape devices started_at finished_at held_gpu_seconds "
             "true_utilized_gpu_seconds hidden_gpu_seconds"),
        "date", "Ground truth of the simulated fleet; tests compare with it, no model reads it.",
    ),
    Table(
        "raw.fleet_faults", "fault_id", ("cluster", "fault_id"),
        pick("cluster date fault_id fault node pci_bus_id pod_uid started_at finished_at"),
        "date", "Faults injected into the simulated fleet (date of started_at); no model reads it.",
    ),
    Table(
        "raw.team_rules", "rank", ("rank",), pick("rank source key"),
        "whole", "The chain that names a pod's team: pod_label, namespace_label, namespace_annotation, mapping.",
    ),
    Table(
        "raw.team_map", "cluster, namespace", ("cluster", "namespace"), pick("cluster namespace team"),
        "whole", "Namespace to team where no label says; cluster * means every cluster.",
    ),
    Table(
        "raw.settings", "setting", ("setting",), pick("setting value"),
        "whole", "Settings that models read: scrape_interval_s, staleness_s.",
    ),
)  # fmt: skip
