"""Which metric fills which canonical column, and by what factor: every spelling of 2018 to 2026.

Covers the default and optional counters of dcgm-exporter, the lower-case names of its 1.x
compatibility list, the renames of DCGM 4.6 to exporter 4.9 and the suffixes that relays add on the way.
Sources: dcgm-exporter `etc/default-counters.csv`, `etc/1.x-compatibility-metrics.csv`, DCGM
`dcgm_fields.h` (4.6.0, 4.6.1) and the exporter's release notes. TYPE lines are never asked: they are
missing or wrong too often.

A metric that is not here is read and counted but not stored: the windowed DCGM_EXP_* counts, per-lane
NVLink counters, the exporter's own go_* and process_* metrics, and anything unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

RATIO, PERCENT, MILLI, MIB, MEGA, KILO = 1.0, 0.01, 0.001, 1048576.0, 1e6, 1000.0


@dataclass(frozen=True)
class Alias:
    """Target column, factor to its unit (None: percent or ratio, decided from data) and preference.

    Of several metrics that fill one column in one scrape the one with the smallest `rank` counts.
    """

    column: str
    factor: float | None
    rank: int


# column | factor | names, the preferred one first. Prefixes: D_ = DCGM_FI_DEV_, P_ = DCGM_FI_PROF_.
_TABLE: tuple[tuple[str, float | None, str], ...] = (
    ("gpu_util_ratio", PERCENT, "D_GPU_UTIL dcgm_gpu_utilization"),
    # DCGM 4.6 gave the percent field the name that 4.7 gives to a ratio: one name, factor 100 apart.
    ("gpu_util_ratio", None, "D_GPU_UTIL_RATIO"),
    ("mem_copy_ratio", PERCENT, "D_MEM_COPY_UTIL dcgm_mem_copy_utilization"),
    ("mem_copy_ratio", None, "D_MEMORY_UTIL_RATIO D_MEM_COPY_UTIL_RATIO"),
    ("enc_ratio", PERCENT, "D_ENC_UTIL dcgm_enc_utilization"),
    ("enc_ratio", None, "D_ENC_UTIL_RATIO"),
    ("dec_ratio", PERCENT, "D_DEC_UTIL dcgm_dec_utilization"),
    ("dec_ratio", None, "D_DEC_UTIL_RATIO"),
    ("sm_active_ratio", RATIO, "P_SM_ACTIVE P_SM_UTIL_RATIO"),
    ("sm_occupancy_ratio", RATIO, "P_SM_OCCUPANCY P_SM_OCCUPANCY_RATIO"),
    ("gr_engine_ratio", RATIO, "P_GR_ENGINE_ACTIVE P_GR_ENGINE_UTIL_RATIO"),
    ("tensor_ratio", RATIO, "P_PIPE_TENSOR_ACTIVE P_TENSOR_UTIL_RATIO P_PIPE_TENSOR_UTIL_RATIO"),
    ("dram_ratio", RATIO, "P_DRAM_ACTIVE P_DRAM_UTIL_RATIO"),
    ("fp64_ratio", RATIO, "P_PIPE_FP64_ACTIVE P_FP64_UTIL_RATIO P_PIPE_FP64_UTIL_RATIO"),
    ("fp32_ratio", RATIO, "P_PIPE_FP32_ACTIVE P_FP32_UTIL_RATIO P_PIPE_FP32_UTIL_RATIO"),
    ("fp16_ratio", RATIO, "P_PIPE_FP16_ACTIVE P_FP16_UTIL_RATIO P_PIPE_FP16_UTIL_RATIO"),
    ("power_w", 1.0, "D_POWER_USAGE D_BOARD_POWER_WATTS dcgm_power_usage"),
    ("energy_j", 1.0, "D_GPU_ENERGY_JOULES_TOTAL"),
    ("energy_j", MILLI, "D_TOTAL_ENERGY_CONSUMPTION dcgm_total_energy_consumption"),
    ("fb_used_bytes", 1.0, "D_FB_USED_BYTES"),
    ("fb_used_bytes", MIB, "D_FB_USED dcgm_fb_used"),
    ("fb_free_bytes", 1.0, "D_FB_FREE_BYTES"),
    ("fb_free_bytes", MIB, "D_FB_FREE dcgm_fb_free"),
    ("fb_reserved_bytes", 1.0, "D_FB_RESERVED_BYTES"),
    ("fb_reserved_bytes", MIB, "D_FB_RESERVED dcgm_fb_reserved"),
    ("fb_total_bytes", 1.0, "D_FB_CAPACITY_BYTES D_FB_TOTAL_BYTES"),
    ("fb_total_bytes", MIB, "D_FB_TOTAL dcgm_fb_total"),
    ("sm_clock_hz", 1.0, "D_SM_CLOCK_HERTZ"),
    ("sm_clock_hz", MEGA, "D_SM_CLOCK dcgm_sm_clock"),
    ("mem_clock_hz", 1.0, "D_MEMORY_CLOCK_HERTZ D_MEM_CLOCK_HERTZ"),
    ("mem_clock_hz", MEGA, "D_MEM_CLOCK dcgm_memory_clock dcgm_mem_clock"),
    ("gpu_temp_c", 1.0, "D_GPU_TEMP D_GPU_TEMP_CELSIUS dcgm_gpu_temp"),
    ("mem_temp_c", 1.0, "D_MEMORY_TEMP D_MEMORY_TEMP_CELSIUS D_MEM_TEMP_CELSIUS dcgm_memory_temp"),
    ("xid_last", 1.0, "D_XID_ERRORS D_XID_ERROR dcgm_xid_errors"),
    ("nvlink_bytes_per_second", 1.0, "D_NVLINK_THROUGHPUT_BYTES_PER_SECOND"),
    ("nvlink_bytes_per_second", MEGA,
     "D_NVLINK_BANDWIDTH_TOTAL D_NVLINK_THROUGHPUT_TOTAL dcgm_nvlink_bandwidth_total"),
    ("pcie_tx_bytes_per_second", 1.0, "P_PCIE_TX_BYTES P_PCIE_TX_BYTES_PER_SECOND D_PCIE_TX_BYTES_PER_SECOND"),
    ("pcie_tx_bytes_per_second", KILO, "D_PCIE_TX_THROUGHPUT dcgm_pcie_tx_throughput"),
    ("pcie_rx_bytes_per_second", 1.0, "P_PCIE_RX_BYTES P_PCIE_RX_BYTES_PER_SECOND D_PCIE_RX_BYTES_PER_SECOND"),
    ("pcie_rx_bytes_per_second", KILO, "D_PCIE_RX_THROUGHPUT dcgm_pcie_rx_throughput"),
    ("pcie_replay_total", 1.0, "D_PCIE_REPLAY_COUNTER D_PCIE_REPLAY_TOTAL dcgm_pcie_replay_counter"),
    ("ecc_sbe_volatile_total", 1.0, "D_ECC_SBE_VOL_TOTAL dcgm_ecc_sbe_volatile_total"),
    ("ecc_dbe_volatile_total", 1.0, "D_ECC_DBE_VOL_TOTAL dcgm_ecc_dbe_volatile_total"),
    ("ecc_sbe_aggregate_total", 1.0, "D_ECC_SBE_AGG_TOTAL dcgm_ecc_sbe_aggregate_total"),
    ("ecc_dbe_aggregate_total", 1.0, "D_ECC_DBE_AGG_TOTAL dcgm_ecc_dbe_aggregate_total"),
    ("row_remap_failure", 1.0, "D_ROW_REMAP_FAILURE D_ROW_REMAP_FAILED"),
    ("uncorrectable_remapped_rows_total", 1.0,
     "D_UNCORRECTABLE_REMAPPED_ROWS D_ROW_REMAP_UNCORRECTABLE_TOTAL"),
    ("correctable_remapped_rows_total", 1.0, "D_CORRECTABLE_REMAPPED_ROWS D_ROW_REMAP_CORRECTABLE_TOTAL"),
    ("power_violation_ns_total", 1.0, "D_POWER_VIOLATION dcgm_power_violation"),
    ("power_violation_ns_total", 1e9, "D_GPU_POWER_THROTTLE_SECONDS_TOTAL"),
    ("thermal_violation_ns_total", 1.0, "D_THERMAL_VIOLATION dcgm_thermal_violation"),
    ("vgpu_license_status", 1.0, "D_VGPU_LICENSE_STATUS dcgm_vgpu_license_status"),
)  # fmt: skip

# What OpenTelemetry and similar relays append; always lower case, and without changing the value.
_SUFFIXES = (
    "_total", "_ratio", "_percent", "_celsius", "_watts", "_joules", "_millijoules", "_bytes", "_mebibytes",
    "_megabytes", "_hertz", "_megahertz", "_seconds", "_nanoseconds", "_microseconds", "_bytes_per_second",
    "_megabytes_per_second", "_mbpers", "_count",
)  # fmt: skip


def _expand() -> dict[str, Alias]:
    aliases: dict[str, Alias] = {}
    for column, factor, names in _TABLE:
        for name in names.split():
            full = name.replace("D_", "DCGM_FI_DEV_", 1) if name.startswith("D_") else name
            full = full.replace("P_", "DCGM_FI_PROF_", 1) if full.startswith("P_") else full
            aliases[full] = Alias(column, factor, len(aliases))
    return aliases


ALIASES: dict[str, Alias] = _expand()


@lru_cache(maxsize=65536)
def resolve(name: str) -> Alias | None:
    """The alias of an exported metric name, or None if it fills no column.

    The exact name first, then its upper-case form (some relays lower everything), then both again
    without one relay suffix after the other.
    """
    found = ALIASES.get(name) or ALIASES.get(name.upper())
    if found is None:
        for suffix in _SUFFIXES:
            if name.endswith(suffix) and (found := resolve(name.removesuffix(suffix))):
                break
    return found
