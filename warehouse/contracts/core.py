"""Contracts of the core layer: cleaned, joined and digested; what the marts stand on."""

from __future__ import annotations

from warehouse.contracts.fields import pick
from warehouse.contracts.model import Table

TABLES = (
    Table(
        "core.gpu_samples", "sampled_at, slot (node, pci_bus_id), gi_id",
        ("cluster", "node", "pci_bus_id", "gi_id", "sampled_at"),
        pick("cluster node pci_bus_id gi_id sampled_at covers_until_at resumes_at resumes_until_at util_ratio "
             "util_source target gpu_uuid gpu_index model mig_profile driver gpu_util_ratio mem_copy_ratio "
             "sm_active_ratio sm_occupancy_ratio gr_engine_ratio tensor_ratio dram_ratio power_w energy_j "
             "fb_used_bytes fb_free_bytes fb_reserved_bytes sm_clock_hz gpu_temp_c mem_temp_c xid_last "
             "nvlink_bytes_per_second pcie_tx_bytes_per_second pcie_rx_bytes_per_second is_clamped nulled date"),
        "date", "Samples, one per unit and scrape, sentinels and values out of range null with the reason.",
        nullable_key=("gi_id",),
    ),
    Table(
        "core.gpu_sightings", "date, slot, gi_id, mig_profile, gpu_uuid, time in the cluster",
        ("date", "cluster", "node", "pci_bus_id", "gi_id", "mig_profile", "gpu_uuid", "first_seen_at"),
        pick("date cluster node pci_bus_id gi_id mig_profile gpu_uuid first_seen_at last_seen_at samples model "
             "driver"),
        "date", "What the scrapes of one date showed of each unit.",
        nullable_key=("gi_id", "mig_profile"),
    ),
    Table(
        "core.gpu_gaps", "last sample of a slot before its target went on without it",
        ("date", "cluster", "node", "pci_bus_id", "last_seen_at"),
        pick("date cluster node pci_bus_id target last_seen_at covers_until_at missing_from_at next_seen_at"),
        "date", "Candidates for a lost GPU.",
    ),
    Table(
        "core.gpu_outages", "date, slot, interval", ("date", "cluster", "node", "pci_bus_id", "interval_start_at"),
        pick("date cluster node pci_bus_id interval_start_at interval_end_at"),
        "date", "Times in which a GPU was lost.",
    ),
    Table(
        "core.node_listings", "date, node, run of node lists", ("date", "cluster", "node", "first_seen_at"),
        pick("date cluster node first_seen_at last_seen_at absent_at devices replicas resource has_mig_resources "
             "is_cut model provider region zone instance_type"),
        "date", "Runs of complete node lists that show a node with accelerators.",
    ),
    Table(
        "core.node_outages", "date, node, kind, resource, interval",
        ("date", "cluster", "node", "kind", "resource", "interval_start_at"),
        pick("date cluster node kind resource devices interval_start_at interval_end_at"),
        "date", "Times in which a node or some of its devices could not work: not_ready, cordoned, unallocatable.",
    ),
    Table(
        "core.gpu_inventory", "date, slot (node, pci_bus_id), validity",
        ("date", "cluster", "node", "pci_bus_id", "started_at"),
        pick("date cluster node pci_bus_id started_at finished_at interval_start_at interval_end_at gpu_uuid "
             "model driver accelerator resource replicas provider region zone instance_type has_mig_resources "
             "is_unseen"),
        "date", "Which accelerators existed: valid from started_at to finished_at (null while valid).",
        spans=True,
    ),
    Table(
        "core.mig_layouts", "date, slot, layout, instance",
        ("date", "cluster", "node", "pci_bus_id", "layout_from_at", "gi_id"),
        pick("date cluster node pci_bus_id layout_from_at layout_to_at gi_id mig_profile slices mig_layout"),
        "date", "How a GPU was cut into MIG instances.",
        nullable_key=("gi_id",),
    ),
    Table(
        "core.gpu_units", "date, unit (node, pci_bus_id, gi_id), interval",
        ("date", "cluster", "node", "pci_bus_id", "gi_id", "interval_start_at"),
        pick("date cluster node pci_bus_id gi_id interval_start_at interval_end_at mig_profile mig_layout slices "
             "share_start share_end share_parts is_uncarved resource replicas gpu_uuid model accelerator "
             "provider region zone instance_type is_unseen"),
        "date", "What can be held: whole devices, MIG instances and the uncarved rest, with their shares.",
        nullable_key=("gi_id",),
    ),
    Table(
        "core.pod_states", "date, pod_uid, resource", ("date", "cluster", "pod_uid", "resource"),
        pick("date cluster pod_uid resource quantity namespace pod node phase reason created_at scheduled_at "
             "pod_started_at pod_finished_at deletion_requested_at priority priority_class owner_kind owner_name "
             "labels cpu_milli memory_bytes is_over first_seen_at last_seen_at last_active_at first_over_at"),
        "date", "What the lists of one date said of each pod that asks for accelerators.",
    ),
    Table(
        "core.namespace_states", "date, namespace", ("date", "cluster", "namespace"),
        pick("date cluster namespace labels annotations last_seen_at"),
        "date", "The labels and annotations that each namespace last showed on a date.",
    ),
    Table(
        "core.pod_teams", "date, pod_uid", ("date", "cluster", "pod_uid"),
        pick("date cluster pod_uid team team_source"),
        "date", "Which team answers for each pod, by the chain of labels, annotations and mapping.",
    ),
    Table(
        "core.pod_device_evidence", "date, pod_uid, unit, method",
        ("date", "cluster", "pod_uid", "node", "pci_bus_id", "gi_id", "method"),
        pick("date cluster pod_uid node pci_bus_id gi_id method first_seen_at last_seen_at samples"),
        "date", "Which devices each pod was seen on.",
        nullable_key=("gi_id",),
    ),
    Table(
        "core.pod_allocations", "date, pod_uid, resource", ("date", "cluster", "pod_uid", "resource"),
        pick("date cluster pod_uid resource quantity namespace pod node team team_source workload_kind "
             "owner_name priority priority_class cpu_milli memory_bytes created_at started_at finished_at "
             "end_reason source interval_start_at interval_end_at"),
        "date", "Who held how many accelerators and when, from the API server alone.",
        spans=True,
    ),
    Table(
        "core.device_assignments", "date, unit, pod_uid, interval",
        ("date", "cluster", "node", "pci_bus_id", "gi_id", "pod_uid", "interval_start_at"),
        pick("date cluster node pci_bus_id gi_id pod_uid resource interval_start_at interval_end_at parts "
             "of_parts share_ratio method started_at finished_at"),
        "date", "Which pod held which unit, by which method, and what share of it.",
        nullable_key=("gi_id",), spans=True,
    ),
    Table(
        "core.pod_metric_days", "date, pod_uid, metric, bucket", ("date", "cluster", "pod_uid", "metric", "bucket"),
        pick("date cluster pod_uid metric bucket samples value_micros"),
        "date", "How the metrics of each pod's devices were distributed on a date.",
    ),
    Table(
        "core.gpu_segments", "date, unit, segment, holder",
        ("date", "cluster", "node", "pci_bus_id", "gi_id", "segment_start_at", "holder"),
        pick("date cluster node pci_bus_id gi_id is_uncarved hour segment_start_at segment_end_at holder method "
             "is_not_ready is_lost is_cordoned share_start share_end share_parts hold_start hold_end hold_parts "
             "part_us unavailable_us"),
        "date", "The timeline of every unit, cut wherever something changes.",
        nullable_key=("gi_id", "holder"),
    ),
)  # fmt: skip
