"""Where a gang goes: the seam that placement stands behind, and plain best-fit.

A placer gets a cluster, what a gang asks for and the free capacity it may use (never more than the cluster has), and
returns places for the whole gang or None. It changes nothing.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from scheduler.cluster import Cluster
from scheduler.model import Ask, Placement


class Placer(Protocol):
    """The seam: places for the whole ask, within `whole[n]` untouched devices of each node n."""

    def __call__(self, cluster: Cluster, ask: Ask, whole: np.ndarray) -> Placement | None: ...
