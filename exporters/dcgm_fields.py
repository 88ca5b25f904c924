"""The metrics that the simulated fleet's DCGM exporter publishes: name, type, help text, unit and number format.

The table of fields belongs here, nothing else. Names, types and help texts are those of dcgm-exporter's
`etc/default-counters.csv` and of the scrapes captured from it (knowledge/telemetry.md §1.1); what is commented out
there (SM activity, pipes, ECC, violations) is what sites usually switch on.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DcgmField:
    """One exported metric and the column of `raw.dcgm_samples` it fills.

    `factor` is what a reader multiplies the exported number by to reach the unit of the column. `decimals` is 0 for
    fields that the exporter prints as whole numbers (`%d`) and 6 for the others (`%f`).
    """

    name: str
    kind: str
    help: str
    column: str
    factor: float = 1.0
    decimals: int = 0


_MIB = 1048576.0

FIELDS: tuple[DcgmField, ...] = (
    DcgmField("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", "sm_clock_hz", 1e6),
    DcgmField("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", "mem_clock_hz", 1e6),
    DcgmField("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (in C).", "mem_temp_c"),
    DcgmField("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", "gpu_temp_c"),
    DcgmField("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", "power_w", decimals=6),
    DcgmField(
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "counter",
        "Total energy consumption since boot (in mJ).",
        "energy_j",
        0.001,
    ),
    DcgmField("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries.", "pcie_replay_total"),
    DcgmField("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", "gpu_util_ratio", 0.01),
    DcgmField("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %).", "mem_copy_ratio", 0.01),
    DcgmField("DCGM_FI_DEV_ENC_UTIL", "gauge", "Encoder utilization (in %).", "enc_ratio", 0.01),
    DcgmField("DCGM_FI_DEV_DEC_UTIL", "gauge", "Decoder utilization (in %).", "dec_ratio", 0.01),
    DcgmField("DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered.", "xid_last"),
    DcgmField(
        "DCGM_FI_DEV_POWER_VIOLATION",
        "counter",
        "Throttling duration due to power constraints (in ns).",
        "power_violation_ns_total",
    ),
    DcgmField(
        "DCGM_FI_DEV_THERMAL_VIOLATION",
        "counter",
        "Throttling duration due to thermal constraints (in ns).",
        "thermal_violation_ns_total",
    ),
    DcgmField("DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", "fb_free_bytes", _MIB),
    DcgmField("DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", "fb_used_bytes", _MIB),
    DcgmField("DCGM_FI_DEV_FB_RESERVED", "gauge", "Framebuffer memory reserved (in MiB).", "fb_reserved_bytes", _MIB),
    DcgmField("DCGM_FI_DEV_FB_TOTAL", "gauge", "Framebuffer memory total (in MiB).", "fb_total_bytes", _MIB),
    DcgmField(
        "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
        "counter",
        "Total number of single-bit volatile ECC errors.",
        "ecc_sbe_volatile_total",
    ),
    DcgmField(
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "counter",
        "Total number of double-bit volatile ECC errors.",
        "ecc_dbe_volatile_total",
    ),
    DcgmField(
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
        "counter",
        "Total number of single-bit persistent ECC errors.",
        "ecc_sbe_aggregate_total",
    ),
    DcgmField(
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
        "counter",
        "Total number of double-bit persistent ECC errors.",
        "ecc_dbe_aggregate_total",
    ),
    DcgmField(
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for uncorrectable errors",
        "uncorrectable_remapped_rows_total",
    ),
    DcgmField(
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
        "counter",
        "Number of remapped rows for correctable errors",
        "correctable_remapped_rows_total",
    ),
    DcgmField("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether remapping of rows has failed", "row_remap_failure"),
    # Typed counter by dcgm-exporter although it is a rate in MB/s (knowledge/telemetry.md §1.1).
    DcgmField(
        "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
        "counter",
        "Total number of NVLink bandwidth counters for all lanes",
        "nvlink_bytes_per_second",
        1e6,
    ),
    DcgmField("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "gauge", "vGPU License status", "vgpu_license_status"),
    DcgmField(
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "gauge",
        "Ratio of time the graphics engine is active.",
        "gr_engine_ratio",
        decimals=6,
    ),
    DcgmField(
        "DCGM_FI_PROF_SM_ACTIVE",
        "gauge",
        "The ratio of cycles an SM has at least 1 warp assigned",
        "sm_active_ratio",
        decimals=6,
    ),
    DcgmField(
        "DCGM_FI_PROF_SM_OCCUPANCY",
        "gauge",
        "The fraction of resident warps on a multiprocessor",
        "sm_occupancy_ratio",
        decimals=6,
    ),
    DcgmField(
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "gauge",
        "Ratio of cycles the tensor (HMMA) pipe is active.",
        "tensor_ratio",
        decimals=6,
    ),
    DcgmField(
        "DCGM_FI_PROF_DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
        "dram_ratio",
        decimals=6,
    ),
    DcgmField(
        "DCGM_FI_PROF_PIPE_FP64_ACTIVE",
        "gauge",
        "Ratio of cycles the fp64 pipes are active.",
        "fp64_ratio",
        decimals=6,
    ),
    DcgmField(
        "DCGM_FI_PROF_PIPE_FP32_ACTIVE",
        "gauge",
        "Ratio of cycles the fp32 pipes are active.",
        "fp32_ratio",
        decimals=6,
    ),
    DcgmField(
        "DCGM_FI_PROF_PIPE_FP16_ACTIVE",
        "gauge",
        "Ratio of cycles the fp16 pipes are active.",
        "fp16_ratio",
        decimals=6,
    ),
    DcgmField(
        "DCGM_FI_PROF_PCIE_TX_BYTES",
        "gauge",
        "The rate of data transmitted over the PCIe bus - including both protocol headers and data payloads - "
        "in bytes per second.",
        "pcie_tx_bytes_per_second",
    ),
    DcgmField(
        "DCGM_FI_PROF_PCIE_RX_BYTES",
        "gauge",
        "The rate of data received over the PCIe bus - including both protocol headers and data payloads - "
        "in bytes per second.",
        "pcie_rx_bytes_per_second",
    ),
)

FIELD_BY_NAME: dict[str, DcgmField] = {field.name: field for field in FIELDS}

# Label name and the column it is read from, in the order dcgm-exporter writes them. The pod labels come last
# because they are attributes, added after the labels that the counter file asks for.
DEVICE_LABELS: tuple[tuple[str, str], ...] = (
    ("gpu", "gpu_index"),
    ("UUID", "gpu_uuid"),
    ("pci_bus_id", "pci_bus_id"),
    ("device", "device"),
    ("modelName", "model"),
    ("GPU_I_PROFILE", "mig_profile"),
    ("GPU_I_ID", "gi_id"),
    ("Hostname", "node"),
    ("DCGM_FI_DRIVER_VERSION", "driver"),
)
POD_LABELS: tuple[tuple[str, str], ...] = (
    ("container", "hint_container"),
    ("namespace", "hint_namespace"),
    ("pod", "hint_pod"),
    ("pod_uid", "hint_pod_uid"),
    ("vgpu", "vgpu"),
)
