"""What the simulated fleet's DCGM exporter writes beside the numbers: help texts and labels.

Names, types, number formats and factors stand in `fleet.exported`, which the history face shares; how text is rendered
stands in `exporters.dcgm`. Help texts are those of dcgm-exporter's counter files and of the scrapes captured from it
(knowledge/telemetry.md §1.1).
"""

from __future__ import annotations

HELP: dict[str, str] = {
    "DCGM_FI_DEV_SM_CLOCK": "SM clock frequency (in MHz).",
    "DCGM_FI_DEV_MEM_CLOCK": "Memory clock frequency (in MHz).",
    "DCGM_FI_DEV_MEMORY_TEMP": "Memory temperature (in C).",
    "DCGM_FI_DEV_GPU_TEMP": "GPU temperature (in C).",
    "DCGM_FI_DEV_POWER_USAGE": "Power draw (in W).",
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": "Total energy consumption since boot (in mJ).",
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": "Total number of PCIe retries.",
    "DCGM_FI_DEV_GPU_UTIL": "GPU utilization (in %).",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "Memory utilization (in %).",
    "DCGM_FI_DEV_ENC_UTIL": "Encoder utilization (in %).",
    "DCGM_FI_DEV_DEC_UTIL": "Decoder utilization (in %).",
    "DCGM_FI_DEV_XID_ERRORS": "Value of the last XID error encountered.",
    "DCGM_FI_DEV_FB_FREE": "Framebuffer memory free (in MiB).",
    "DCGM_FI_DEV_FB_USED": "Framebuffer memory used (in MiB).",
    "DCGM_FI_DEV_FB_RESERVED": "Framebuffer memory reserved (in MiB).",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": "Total number of NVLink bandwidth counters for all lanes",
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": "vGPU License status",
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": "Number of remapped rows for uncorrectable errors",
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": "Number of remapped rows for correctable errors",
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": "Whether remapping of rows has failed",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": "Total number of single-bit volatile ECC errors.",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": "Total number of double-bit volatile ECC errors.",
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": "Total number of single-bit persistent ECC errors.",
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": "Total number of double-bit persistent ECC errors.",
    "DCGM_FI_DEV_POWER_VIOLATION": "Throttling duration due to power constraints (in ns).",
    "DCGM_FI_DEV_THERMAL_VIOLATION": "Throttling duration due to thermal constraints (in ns).",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": "Ratio of time the graphics engine is active.",
    "DCGM_FI_PROF_SM_ACTIVE": "The ratio of cycles an SM has at least 1 warp assigned",
    "DCGM_FI_PROF_SM_OCCUPANCY": "The fraction of resident warps on a multiprocessor",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": "Ratio of cycles the tensor (HMMA) pipe is active.",
    "DCGM_FI_PROF_DRAM_ACTIVE": "Ratio of cycles the device memory interface is active sending or receiving data.",
    "DCGM_FI_PROF_PCIE_TX_BYTES": "The rate of data transmitted over the PCIe bus - including both protocol headers "
    "and data payloads - in bytes per second.",
    "DCGM_FI_PROF_PCIE_RX_BYTES": "The rate of data received over the PCIe bus - including both protocol headers "
    "and data payloads - in bytes per second.",
}

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
