"""The hardware catalogue: what a model of accelerator is and does when idle and busy.

Constants only; which nodes carry which accelerators stands in `topology.py`. Idle and busy watts are
those seen in published scrapes (L4 16, V100 24-31, L40S 34-36, A100 65-67, H100 69-73 idle; A100 410,
V100 302, H100 572-602 busy); memory, limits and clocks are from the vendors' data sheets.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Accelerator:
    """One model of accelerator.

    `model` is the modelName that DCGM prints, `product` the label that GPU feature discovery sets.
    Memory is in MiB and clocks are in MHz. `context_w` is what a process adds that only holds a
    context. `nvlink_mb` is the busiest NVLink rate in MB/s, None without NVLink. `pci` are the slots
    of a full board, in NVML order.
    """

    key: str
    model: str
    product: str
    memory_mib: int
    reserved_mib: int
    tdp_w: float
    idle_w: float
    context_w: float
    sm_clock_idle: int
    sm_clock_max: int
    mem_clock_idle: int
    mem_clock_max: int
    hbm: bool
    nvlink_mb: float | None
    pcie_bytes: float
    has_row_remap: bool
    pci: tuple[str, ...]
    resource: str = "nvidia.com/gpu"
    has_exporter: bool = True

    @property
    def plain_name(self) -> str:
        """The product without its vendor, e.g. H100-80GB-HBM3: what a price list calls it."""
        return self.product.removeprefix("NVIDIA-").removeprefix("Tesla-").replace("tpu-", "TPU-")


_HGX_A = ("07", "0F", "47", "4E", "87", "90", "B7", "BD")
_HGX_H = ("1B", "43", "52", "61", "9D", "C3", "D1", "DF")
_DGX_1 = ("06", "07", "0A", "0B", "85", "86", "89", "8A")
_PCIE8 = ("01", "25", "41", "61", "81", "A1", "C1", "E1")

ACCELERATORS: dict[str, Accelerator] = {
    a.key: a
    for a in (
        Accelerator("h100", "NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3", 81559, 551, 700.0, 70.5, 42.0,
                    345, 1980, 2619, 2619, True, 380_000.0, 24e9, True, _HGX_H),
        Accelerator("a100-80", "NVIDIA A100-SXM4-80GB", "NVIDIA-A100-SXM4-80GB", 81920, 624, 400.0, 66.0, 18.0,
                    210, 1410, 1593, 1593, True, 230_000.0, 12e9, True, _HGX_A),
        Accelerator("a100-40", "NVIDIA A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB", 40960, 425, 400.0, 65.0, 18.0,
                    210, 1410, 1215, 1215, True, 230_000.0, 12e9, True, _HGX_A),
        Accelerator("l40s", "NVIDIA L40S", "NVIDIA-L40S", 46068, 566, 350.0, 35.0, 45.0,
                    210, 2520, 405, 9001, False, None, 12e9, True, _PCIE8),
        Accelerator("l4", "NVIDIA L4", "NVIDIA-L4", 23034, 470, 72.0, 16.3, 11.0,
                    210, 2040, 405, 6251, False, None, 6e9, True, ("31", "4B", "B1", "CA", "35", "4F", "B5", "CE")),
        Accelerator("v100", "Tesla V100-SXM2-16GB", "Tesla-V100-SXM2-16GB", 16384, 224, 300.0, 28.0, 26.0,
                    135, 1530, 877, 877, True, 110_000.0, 6e9, False, _DGX_1),
        Accelerator("tpu-v5e", "TPU v5e", "tpu-v5-lite-podslice", 16384, 0, 200.0, 60.0, 10.0,
                    1500, 1500, 1600, 1600, True, None, 6e9, False, tuple(f"0{i}" for i in range(1, 9)),
                    "google.com/tpu", False),
    )
}  # fmt: skip

# Compute slices of one A100 and of each of its profiles, and the instance's memory in MiB (A100-40GB).
MIG_MAX_SLICES = 7
MIG_PROFILES: dict[str, tuple[int, int]] = {
    "1g.5gb": (1, 4864),
    "2g.10gb": (2, 9856),
    "3g.20gb": (3, 19968),
    "4g.20gb": (4, 19968),
    "7g.40gb": (7, 40192),
}
# Highest GR_ENGINE_ACTIVE seen on an instance that is wholly busy (published report, DCGM issue 138:
# one graphics engine runs per instance, so a 2g or 3g instance reads 1/2 or 1/3).
MIG_GR_CEILING: dict[int, float] = {1: 1.0, 2: 0.5, 3: 1.0 / 3.0, 4: 0.25, 7: 1.0}
# Layouts in use, as (gi_id, profile): gi_ids are those the driver gives (7-13 for 1g, 3-5 for 2g, 1-2 for 3g).
MIG_LAYOUTS: dict[str, tuple[tuple[int, str], ...]] = {
    "all-1g.5gb": tuple((i, "1g.5gb") for i in range(7, 14)),
    "all-2g.10gb": ((3, "2g.10gb"), (4, "2g.10gb"), (5, "2g.10gb")),
    "all-3g.20gb": ((1, "3g.20gb"), (2, "3g.20gb")),
    "balanced": ((1, "3g.20gb"), (5, "2g.10gb"), (13, "1g.5gb")),
}


@dataclass(frozen=True)
class Host:
    """A kind of node: `count` accelerators of a model, with the host's CPU and memory.

    `owner` is the team that answers for such nodes, None where nobody in particular does; spot nodes may be taken
    back by their provider at any time and are priced by the market.
    """

    instance_type: str
    accelerator: str
    count: int
    cpu: int
    memory_gib: int
    mig: str | None = None
    owner: str | None = None
    is_spot: bool = False
