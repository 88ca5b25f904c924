"""The nodes whose bills are tested: one for three days of March, and one that leaves on the first."""

from __future__ import annotations

from pathlib import Path

from small_cloud import Node, at, put_lists, times

from warehouse.lake import Lake

N = "aws:///eu-1a/i-n"


def three_days(root: Path) -> Lake:
    """One node for three days and one that leaves on the first at 10:20."""
    lake = Lake(root)
    labels = {
        "topology.kubernetes.io/region": "eu-1",
        "node.kubernetes.io/instance-type": "p5",
        "strandline.io/owner": "o",
    }
    put_lists(lake, [Node("n", labels=labels), Node("m", gone_at=at(1, 10, 20))], times(at(1), at(4)))
    return lake
