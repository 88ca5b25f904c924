"""Where a gang goes: the seam that placement stands behind, and plain best-fit.

A placer gets a cluster, what a gang asks for and the room it may use (`room.Room`, never more than the cluster has),
and returns places for the whole gang or None. It changes nothing.
"""

from __future__ import annotations

from typing import Protocol

from scheduler.cluster import Cluster
from scheduler.model import Ask, Placement
from scheduler.room import Room


class Placer(Protocol):
    """The seam: places for the whole ask within the room."""

    def __call__(self, cluster: Cluster, ask: Ask, room: Room) -> Placement | None: ...
