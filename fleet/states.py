"""What the API server shows at an instant: node and pod states with faults in them.

Objects in Kubernetes' own JSON are made in `kubeapi/`, table rows in `lists.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from fleet.model import Fault, Node, NodeState, Pod, PodState

_UNREACHABLE = (
    {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
)
_UNSCHEDULABLE = ({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},)


def node_state(node: Node, faults: Sequence[Fault], at: datetime) -> NodeState:
    """The node at `at`; `faults` are those of this node."""
    ready, changed, cordoned = "True", node.created_at, False
    allocatable = dict(node.capacity)
    taints: tuple[dict[str, str], ...] = ()
    for f in faults:
        on = f.started_at <= at < f.finished_at
        if f.kind == "node_reboot":
            if on:
                ready, changed, taints = "Unknown", f.started_at, (*taints, *_UNREACHABLE)
            elif at >= f.finished_at and ready == "True":
                changed = max(changed, f.finished_at)
        elif f.kind == "cordon" and on:
            cordoned, taints = True, (*taints, *_UNSCHEDULABLE)
        elif f.kind == "gpu_lost" and on:
            allocatable["nvidia.com/gpu"] -= 1
    return NodeState(node, ready, changed, cordoned, allocatable, taints)  # type: ignore[arg-type]


def pod_state(pod: Pod, at: datetime) -> PodState | None:
    """The pod at `at`, None while it is not listed."""
    if at < pod.created_at or at >= pod.listed_until or (pod.gone_at is not None and at >= pod.gone_at):
        return None
    scheduled = pod.scheduled_at if at >= pod.scheduled_at else None
    started = pod.started_at if at >= pod.started_at else None
    finished = pod.finished_at if at >= pod.finished_at else None
    phase = pod.end_phase if finished else ("Running" if started else "Pending")
    restarts = sum(1 for r in pod.restarts_at if r <= at)
    return PodState(pod, phase, pod.node if scheduled else None, scheduled, started, finished, None, restarts)


def changes(node_faults: Sequence[Fault]) -> list[datetime]:
    """Instants at which a node's state changes because of faults, sorted."""
    kinds = ("node_reboot", "cordon", "gpu_lost")
    return sorted({at for f in node_faults if f.kind in kinds for at in (f.started_at, f.finished_at)})
