"""Kubernetes state: lists of nodes, pods and namespaces, and which pod holds which device.

`lists` is the record of one list, `parse` turns many of them into raw tables, `read` takes them from an
API server. What a pod requests and when it ended is worked out in `pods.py`, the Kubernetes way.
"""

from __future__ import annotations

from sources.kubernetes.lists import KubeList
from sources.kubernetes.parse import parse_lists

__all__ = ["KubeList", "parse_lists"]
