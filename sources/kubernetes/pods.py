"""What a pod requests and when it held its devices, read from the pod object.

Requests follow the scheduler (`k8s.io/component-helpers/resource`): the larger of the running set and
any moment of initialisation, sidecars included. Rows for tables are made in `parse.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

from sources.kubernetes.quantity import MOST_DEVICES, BadObject, instant, is_extended, mapping, objects, quantity, whole

Json = dict[str, Any]
_OVER = ("Succeeded", "Failed")


def effective_requests(spec: Json) -> dict[str, Decimal]:
    """What the scheduler counts for the pod, by resource: requests (limits where absent), pod overhead added."""
    running: Counter[str] = Counter()
    for container in objects(spec.get("containers"), "spec.containers"):
        running.update(_requests(container, "spec.containers"))
    sidecars: Counter[str] = Counter()
    peak: dict[str, Decimal] = {}
    for container in objects(spec.get("initContainers"), "spec.initContainers"):
        wanted = _requests(container, "spec.initContainers")
        if container.get("restartPolicy") == "Always":
            sidecars.update(wanted)
            moment: Counter[str] = Counter(sidecars)
        else:
            moment = Counter(sidecars)
            moment.update(wanted)
        for name, amount in moment.items():
            peak[name] = max(peak.get(name, Decimal(0)), Decimal(amount))
    running.update(sidecars)
    total = {n: max(Decimal(running.get(n, 0)), peak.get(n, Decimal(0))) for n in {**running, **peak}}
    # Pod-level resources replace the sum for what they name (cpu, memory, hugepages; KEP-2837).
    total.update(_requests(spec, "spec"))
    for name, amount in mapping(spec.get("overhead"), "spec.overhead").items():
        total[name] = total.get(name, Decimal(0)) + quantity(amount, f"spec.overhead.{name}")
    return total


def _requests(owner: Json, field: str) -> dict[str, Any]:
    resources = mapping(owner.get("resources"), f"{field}.resources")
    found: dict[str, Any] = {}
    for part in ("limits", "requests"):
        for name, amount in mapping(resources.get(part), f"{field}.resources.{part}").items():
            found[name] = quantity(amount, f"{field}.resources.{part}.{name}")
    return found


def devices(requests: dict[str, Decimal]) -> dict[str, int]:
    """Extended resources requested, by name; zero requests are left out."""
    asked = {name: amount for name, amount in sorted(requests.items()) if amount > 0 and is_extended(name)}
    return {name: whole(amount, name, MOST_DEVICES) for name, amount in asked.items()}


def scheduled_at(status: Json) -> datetime | None:
    """When the pod was bound: the PodScheduled=True transition."""
    return _turned(status, "PodScheduled", "True")


def finished_at(pod: Json) -> datetime | None:
    """When the last container ended, once all have; None while any may run.

    A pod that failed without container statuses (evicted, node gone) ended at its DisruptionTarget
    transition, else when ContainersReady or Ready turned False, else at the deletion time.
    """
    spec, status = mapping(pod.get("spec"), "spec"), mapping(pod.get("status"), "status")
    deleted = instant(mapping(pod.get("metadata"), "metadata").get("deletionTimestamp"), "metadata.deletionTimestamp")
    containers = objects(status.get("containerStatuses"), "status.containerStatuses")
    initial = objects(status.get("initContainerStatuses"), "status.initContainerStatuses")
    if status.get("phase") not in _OVER and not _all_ended(spec, containers, initial, deleted):
        return None
    ends = list(_ends([*containers, *initial]))
    if ends:
        return max(ends)
    for condition, value in (("DisruptionTarget", "True"), ("ContainersReady", "False"), ("Ready", "False")):
        turned = _turned(status, condition, value)
        if turned is not None:
            return turned
    return deleted


def _all_ended(spec: Json, containers: list[Json], initial: list[Json], deleted: datetime | None) -> bool:
    """Whether a pod whose phase lags has ended: every container terminated, and none to be started again."""
    declared = objects(spec.get("containers"), "spec.containers")
    sidecars = {
        c.get("name")
        for c in objects(spec.get("initContainers"), "spec.initContainers")
        if c.get("restartPolicy") == "Always"
    }
    must_end = [*containers, *(s for s in initial if s.get("name") in sidecars)]
    if not containers or len(containers) < len(declared) or not all(_terminated(s) for s in must_end):
        return False
    policy = spec.get("restartPolicy")
    if deleted is not None or policy in ("Never", None):
        return True
    return policy == "OnFailure" and all(_terminated(s).get("exitCode") == 0 for s in containers)


def _terminated(status: Json, state: str = "state") -> Json:
    return mapping(mapping(status.get(state), state).get("terminated"), f"{state}.terminated")


def _ends(statuses: Iterable[Json]) -> Iterable[datetime]:
    for status in statuses:
        ended = _terminated(status) or _terminated(status, "lastState")
        at = instant(ended.get("finishedAt"), "terminated.finishedAt")
        if at is not None and at.year > 1:  # the zero time of Go means unknown
            yield at


def _turned(status: Json, type_: str, value: str) -> datetime | None:
    for condition in objects(status.get("conditions"), "status.conditions"):
        if condition.get("type") == type_ and condition.get("status") == value:
            return instant(condition.get("lastTransitionTime"), f"status.conditions.{type_}.lastTransitionTime")
    return None


def owner(metadata: Json) -> tuple[str | None, str | None, str | None]:
    """Kind, name and UID of the controlling owner."""
    for reference in objects(metadata.get("ownerReferences"), "metadata.ownerReferences"):
        if reference.get("controller") is True:
            return reference.get("kind"), reference.get("name"), reference.get("uid")
    return None, None, None


def restarts(status: Json) -> int:
    """Container restarts, init containers included."""
    count: Callable[[Json], Any] = lambda s: s.get("restartCount") or 0  # noqa: E731
    total = 0
    for part in ("containerStatuses", "initContainerStatuses"):
        for each in objects(status.get(part), f"status.{part}"):
            if not isinstance(count(each), int):
                raise BadObject(f"status.{part}.restartCount: {count(each)!r} is not a number")
            total += count(each)
    return total
