"""What kubelets would do with pods that clients create: start them when bound, end them, remove them when deleted.

Only pods made through the API pass here; the world's own pods live by the world. No telemetry follows from them: the
world's work is decided when it is built.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from fleet.kubeapi.objects import rfc3339
from fleet.kubeapi.store import Object, Store

START_DELAY = timedelta(seconds=2)  # image present, sandbox made: what a warm node takes
STOP_DELAY = timedelta(seconds=1)
RUN_SECONDS = "strandline.io/run-seconds"  # annotation: the pod succeeds after that long; without it, it runs on


def parse_time(text: str | None) -> datetime | None:
    """metav1.Time to a naive UTC datetime."""
    return None if not text else datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


class Kubelets:
    """Moves clients' pods along with the clock; a hook of `Store.on_sync`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.on_sync.append(self.step)

    def step(self, at: datetime) -> None:
        """Brings every pod that a client made to its state at `at`."""
        for key, pod in self._store.owned("pods"):
            deleted_at = parse_time(pod["metadata"].get("deletionTimestamp"))
            if deleted_at is not None:
                if at >= deleted_at:
                    self._store.remove("pods", key)
                continue
            patch = self._next(pod, at)
            if patch is not None:
                self._store.change("pods", key, patch)

    def _next(self, pod: Object, at: datetime) -> Object | None:
        phase = pod["status"].get("phase")
        if "nodeName" not in pod["spec"]:
            return None
        scheduled = next((c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"), None)
        bound_at = parse_time(scheduled["lastTransitionTime"]) if scheduled else None
        start_at = (bound_at or at) + START_DELAY
        if phase == "Pending" and at >= start_at:
            return {"status": running_status(pod, start_at)}
        seconds = (pod["metadata"].get("annotations") or {}).get(RUN_SECONDS)
        started_at = parse_time(pod["status"].get("startTime"))
        if phase == "Running" and seconds is not None and started_at is not None:
            end_at = started_at + timedelta(seconds=float(seconds))
            if at >= end_at:
                return {"status": ended_status(pod, started_at, end_at)}
        return None


def _conditions(pod: Object, ready: bool, at: datetime, reason: str | None = None) -> list[dict[str, Any]]:
    kept = [c for c in pod["status"].get("conditions", ()) if c["type"] in {"PodScheduled"}]
    stamp = rfc3339(at)
    new: list[dict[str, Any]] = [{"type": "Initialized", "status": "True", "lastTransitionTime": stamp}]
    for kind in ("Ready", "ContainersReady"):
        condition = {"type": kind, "status": "True" if ready else "False", "lastTransitionTime": stamp}
        new.append(condition | ({"reason": reason} if reason else {}))
    return new + kept


def _containers(pod: Object, ready: bool, state: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": container["name"],
            "image": container.get("image", ""),
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": state,
            "lastState": {},
        }
        for container in pod["spec"]["containers"]
    ]


def running_status(pod: Object, at: datetime) -> dict[str, Any]:
    """Status of a pod whose containers started at `at`."""
    return {
        "phase": "Running",
        "startTime": rfc3339(at),
        "conditions": _conditions(pod, True, at),
        "containerStatuses": _containers(pod, True, {"running": {"startedAt": rfc3339(at)}}),
    }


def ended_status(pod: Object, started_at: datetime, at: datetime) -> dict[str, Any]:
    """Status of a pod whose containers ended well at `at`."""
    ended = {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": rfc3339(started_at),
        "finishedAt": rfc3339(at),
    }
    return {
        "phase": "Succeeded",
        "conditions": _conditions(pod, False, at, "PodCompleted"),
        "containerStatuses": _containers(pod, False, {"terminated": ended}),
    }
