"""What the simulated DCGM exporter prints: metric, column, number format and factor.

The one list that the history face, the HTTP exporter and the tests share. HELP texts and
rendering are in `exporters/`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Exported:
    """A metric of the exporter.

    `column` is the column of raw.dcgm_samples; stored value = printed number * `factor`.
    `format` is how the exporter prints it: `int` with %d, `float` with %f (six decimals).
    `level` is the finest entity that reports it: `gpu`, `ci` (MIG instances too).
    """

    metric: str
    column: str
    format: Literal["int", "float"]
    factor: float
    type: Literal["gauge", "counter"]
    level: Literal["gpu", "ci"] = "gpu"


MIB = 1048576.0

EXPORTED: tuple[Exported, ...] = (
    Exported("DCGM_FI_DEV_SM_CLOCK", "sm_clock_hz", "int", 1e6, "gauge"),
    Exported("DCGM_FI_DEV_MEM_CLOCK", "mem_clock_hz", "int", 1e6, "gauge"),
    Exported("DCGM_FI_DEV_MEMORY_TEMP", "mem_temp_c", "int", 1.0, "gauge"),
    Exported("DCGM_FI_DEV_GPU_TEMP", "gpu_temp_c", "int", 1.0, "gauge"),
    Exported("DCGM_FI_DEV_POWER_USAGE", "power_w", "float", 1.0, "gauge"),
    Exported("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "energy_j", "int", 0.001, "counter"),
    Exported("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "pcie_replay_total", "int", 1.0, "counter"),
    Exported("DCGM_FI_DEV_GPU_UTIL", "gpu_util_ratio", "int", 0.01, "gauge"),
    Exported("DCGM_FI_DEV_MEM_COPY_UTIL", "mem_copy_ratio", "int", 0.01, "gauge"),
    Exported("DCGM_FI_DEV_ENC_UTIL", "enc_ratio", "int", 0.01, "gauge"),
    Exported("DCGM_FI_DEV_DEC_UTIL", "dec_ratio", "int", 0.01, "gauge"),
    Exported("DCGM_FI_DEV_XID_ERRORS", "xid_last", "int", 1.0, "gauge", "ci"),
    Exported("DCGM_FI_DEV_FB_FREE", "fb_free_bytes", "int", MIB, "gauge", "ci"),
    Exported("DCGM_FI_DEV_FB_USED", "fb_used_bytes", "int", MIB, "gauge", "ci"),
    Exported("DCGM_FI_DEV_FB_RESERVED", "fb_reserved_bytes", "int", MIB, "gauge", "ci"),
    Exported("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "nvlink_bytes_per_second", "int", 1e6, "counter"),
    Exported("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "vgpu_license_status", "int", 1.0, "gauge"),
    Exported("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "uncorrectable_remapped_rows_total", "int", 1.0, "counter"),
    Exported("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "correctable_remapped_rows_total", "int", 1.0, "counter"),
    Exported("DCGM_FI_DEV_ROW_REMAP_FAILURE", "row_remap_failure", "int", 1.0, "gauge"),
    Exported("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "ecc_sbe_volatile_total", "int", 1.0, "counter"),
    Exported("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "ecc_dbe_volatile_total", "int", 1.0, "counter"),
    Exported("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "ecc_sbe_aggregate_total", "int", 1.0, "counter"),
    Exported("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "ecc_dbe_aggregate_total", "int", 1.0, "counter"),
    Exported("DCGM_FI_DEV_POWER_VIOLATION", "power_violation_ns_total", "int", 1.0, "counter"),
    Exported("DCGM_FI_DEV_THERMAL_VIOLATION", "thermal_violation_ns_total", "int", 1.0, "counter"),
    Exported("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gr_engine_ratio", "float", 1.0, "gauge", "ci"),
    Exported("DCGM_FI_PROF_SM_ACTIVE", "sm_active_ratio", "float", 1.0, "gauge", "ci"),
    Exported("DCGM_FI_PROF_SM_OCCUPANCY", "sm_occupancy_ratio", "float", 1.0, "gauge", "ci"),
    Exported("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor_ratio", "float", 1.0, "gauge", "ci"),
    Exported("DCGM_FI_PROF_DRAM_ACTIVE", "dram_ratio", "float", 1.0, "gauge", "ci"),
    Exported("DCGM_FI_PROF_PCIE_TX_BYTES", "pcie_tx_bytes_per_second", "int", 1.0, "gauge"),
    Exported("DCGM_FI_PROF_PCIE_RX_BYTES", "pcie_rx_bytes_per_second", "int", 1.0, "gauge"),
)
