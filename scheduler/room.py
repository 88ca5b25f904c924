"""How much of a cluster a gang may use: by node, less what reservations keep from it.

Placement reads it and nothing else about time. Belongs here: the record, and the one vector in which devices, CPU and
memory of all nodes are summed together. Not here: how much is kept (`reservations.py`), where a gang goes
(`placement/`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Room:
    """Bounds by node n: `whole[n]` untouched devices, `cpu[n]` milli, `memory[n]` MiB.

    A share on a device d that is used already may keep that device from a reservation for longer. It costs nothing
    where `is_costless[n, d]`; else it counts as a device of `spare[n]`, what the reservations of the node leave beside
    untouched devices too. None: no device costs anything.
    """

    whole: np.ndarray
    cpu: np.ndarray
    memory: np.ndarray
    spare: np.ndarray | None = None
    is_costless: np.ndarray | None = None


def vector(whole: np.ndarray, cpu: np.ndarray, memory: np.ndarray, *, has_hosts: bool) -> np.ndarray:
    """Devices of all nodes and, if `has_hosts`, CPU and memory of all nodes after them: N or 3 N entries."""
    return np.concatenate([whole, cpu, memory]) if has_hosts else whole
