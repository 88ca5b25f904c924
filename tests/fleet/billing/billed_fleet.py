"""A fleet whose bills are tested: its nodes, its two weeks, and nodes of one kind."""

from __future__ import annotations

from datetime import datetime, timedelta

from fleet.billing.calendar import Window
from fleet.topology import SITES, build_nodes

START = datetime(2026, 6, 1)
TWO_WEEKS = Window(START, START + timedelta(days=14))
NODES = build_nodes(7, SITES, 0.2, datetime(2026, 2, 1))


def of_type(instance_type: str, number: int):
    """That many nodes of a kind, in order of their provider ids."""
    found = [n for n in build_nodes(7, SITES, 1.0, datetime(2026, 2, 1)) if n.instance_type == instance_type]
    return sorted(found[:number], key=lambda n: n.provider_id)
