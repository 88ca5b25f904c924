"""Who holds which device when: pods from the API server's lists, their devices from labels or node share.

Belongs here: holding intervals, GPU requests, teams, and the choice of devices (rule 4 and core.device_assignments).
Does not belong here: samples, availability and sums (ledger.py), parsing (reader.py).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from .reader import Case, micros

FOREVER = 1 << 62
Device = tuple[str, str | None]  # slot, gi


@dataclass
class Pod:
    """One pod UID: where, when, how much, whose, and in the end on which devices (device -> replicas)."""

    uid: str
    cluster: str
    space: str
    name: str
    node: str
    start: int
    end: int
    requests: dict[str, int]
    team: str
    gone: bool = False
    named_until: int = 0  # names at or after this instant are not its own
    holds: list[Hold] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)  # resource -> units that nothing names


@dataclass
class Hold:
    """Replicas of a device that labels or pod-resources name for a pod, and when it has them."""

    pod: Pod
    device: Device
    start: int
    end: int
    replicas: int = 1


@dataclass
class Layout:
    """How a node advertises its devices: replicas of each, and whether nvidia.com/gpu means MIG instances too."""

    replicas: int = 1
    single: bool = False

    def means(self, resource: str, profile: str | None) -> bool:
        """Whether a resource name can mean an instance of that profile (None: an uncut GPU)."""
        if resource.startswith("nvidia.com/mig-"):
            return profile is not None and profile.replace("+", ".") == resource.removeprefix("nvidia.com/mig-")
        return profile is None or self.single


def gpu_requests(spec: dict[str, Any]) -> dict[str, int]:
    """nvidia.com/* per pod: the larger of the largest init container and containers plus restartable init ones."""

    def ask(container: dict[str, Any]) -> dict[str, int]:
        resources = container.get("resources") or {}
        both = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        return {k: int(v) for k, v in both.items() if k.startswith("nvidia.com/")}

    running: Counter[str] = Counter()
    largest: Counter[str] = Counter()
    for container in spec.get("containers", []):
        running.update(ask(container))
    for container in spec.get("initContainers") or []:
        if container.get("restartPolicy") == "Always":
            running.update(ask(container))
        else:
            largest |= Counter(ask(container))
    return dict(running | largest)


def _ended_at(status: dict[str, Any]) -> int | None:
    """End of the last container of a finished pod."""
    ends = []
    for group in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container in status.get(group) or []:
            done = (container.get("state") or {}).get("terminated") or {}
            if done.get("finishedAt"):
                ends.append(micros(done["finishedAt"]))
    return max(ends, default=None)


def _team(pod: dict[str, Any], namespaces: dict[str, dict[str, Any]]) -> str:
    meta = namespaces.get(pod["metadata"]["namespace"], {}).get("metadata", {})
    for labels in (pod["metadata"].get("labels"), meta.get("labels"), meta.get("annotations")):
        if (labels or {}).get("team"):
            return str(labels["team"])
    return "(unmapped)"


def read_pods(case: Case) -> list[Pod]:
    """Every pod UID that was bound and asks for GPUs, with its holding interval."""
    latest: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
    first_end: dict[tuple[str, str], int] = {}
    last_live: dict[tuple[str, str], int] = {}
    last_list: dict[str, int] = {}
    namespaces: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for kube in case.lists:
        if kube.kind == "Namespace":
            namespaces[kube.cluster].update(kube.items)
        if kube.kind == "Pod":
            last_list[kube.cluster] = max(kube.at, last_list.get(kube.cluster, kube.at))
            for uid, item in kube.items.items():
                latest[kube.cluster, uid] = (kube.at, item)
                if item["status"].get("phase") in {"Succeeded", "Failed"}:
                    first_end.setdefault((kube.cluster, uid), kube.at)
                elif (kube.cluster, uid) not in first_end:
                    last_live[kube.cluster, uid] = kube.at
    pods: list[Pod] = []
    shown_ended: dict[tuple[str, str], int] = {}
    for (cluster, uid), (seen, item) in latest.items():
        status, requests = item["status"], gpu_requests(item["spec"])
        bound = [
            micros(c["lastTransitionTime"])
            for c in status.get("conditions") or []
            if c["type"] == "PodScheduled" and c["status"] == "True"
        ]
        if not item["spec"].get("nodeName") or not any(requests.values()):
            continue
        start = bound[0] if bound else micros(status.get("startTime") or item["metadata"]["creationTimestamp"])
        end, gone = FOREVER, False
        if (cluster, uid) in first_end:
            end = _ended_at(status) or first_end[cluster, uid]
            if _ended_at(status) is None:
                shown_ended[cluster, uid] = end
                end = last_live.get((cluster, uid), start)
        elif seen < last_list[cluster]:
            end, gone = seen, True
        meta = item["metadata"]
        team = _team(item, namespaces[cluster])
        pods.append(
            Pod(
                uid,
                cluster,
                meta["namespace"],
                meta["name"],
                item["spec"]["nodeName"],
                start,
                end,
                requests,
                team,
                gone,
            )
        )
    _end_by_last_evidence(case, pods, shown_ended)
    return [pod for pod in pods if pod.end > pod.start]


def _labels(case: Case) -> dict[tuple[str, str, str, str], list[tuple[int, Device, str | None]]]:
    """(cluster, node, namespace, pod) -> instants, devices and profiles of the rows that carry the label."""
    found: dict[tuple[str, str, str, str], list[tuple[int, Device, str | None]]] = defaultdict(list)
    for scrape in case.scrapes:
        for device, row in scrape.rows.items():
            for space, name, _ in row.pods:
                profile = row.profile or "7g" if device[1] else None
                found[scrape.cluster, scrape.node, space, name].append((scrape.at, device, profile))
    return found


def _end_by_last_evidence(case: Case, pods: list[Pod], shown_ended: dict[tuple[str, str], int]) -> None:
    """Ends of pods that went, or that ended at no told time: the later of last list and last label."""
    labels, named = _labels(case), _named_by_kubelet(case)
    for pod in pods:
        bound = shown_ended.get((pod.cluster, pod.uid))
        pod.named_until = pod.end
        if not pod.gone and bound is None:
            continue
        namesakes = [
            other.start
            for other in pods
            if (other.cluster, other.space, other.name) == (pod.cluster, pod.space, pod.name)
            and other.start > pod.start
        ]
        until = min(namesakes, default=FOREVER)
        key = (pod.cluster, pod.node, pod.space, pod.name)
        for at, _, _ in labels[key] + named[key]:
            if pod.start <= at < until and (bound is None or at <= bound):
                pod.end = max(pod.end, at)
        if bound is not None and pod.end <= pod.start:
            pod.end = bound  # no evidence of it alive
        pod.end = min(pod.end, until if bound is None else bound)
        # The last name stands at the end itself, and is the pod's.
        pod.named_until = min(pod.end + 1, until, FOREVER if bound is None else bound)


def assign(case: Case, pods: list[Pod], layouts: dict[tuple[str, str], Layout]) -> None:
    """Give every pod the devices named for it inside its interval; what it misses beside them is its node share."""
    labels = _labels(case)
    named = _named_by_kubelet(case)
    for pod in pods:
        layout = layouts.get((pod.cluster, pod.node), Layout())
        key = (pod.cluster, pod.node, pod.space, pod.name)
        for resource, count in pod.requests.items():
            left = count
            for source in (named, labels):
                seen: Counter[Device] = Counter()
                for at, device, profile in source[key]:
                    taken = any(hold.device == device for hold in pod.holds)
                    if pod.start <= at < pod.named_until and layout.means(resource, profile) and not taken:
                        seen[device] += 1
                order = sorted(seen, key=lambda d: (-seen[d], d[0], d[1] or ""))[:left]
                if layout.replicas == 1:
                    pod.holds += [Hold(pod, device, pod.start, pod.end) for device in order]
                    left -= len(order)
                elif order:
                    for rank, device in enumerate(order):
                        each = left // len(order) + (rank < left % len(order))
                        pod.holds.append(Hold(pod, device, pod.start, pod.end, each))
                    left = 0
            pod.missing[resource] = left
    for place, layout in layouts.items():
        if layout.replicas == 1:
            _part_overlaps([h for p in pods if (p.cluster, p.node) == place for h in p.holds])


def _part_overlaps(holds: list[Hold]) -> None:
    """One holder at a time on an exclusive unit."""
    by_device: dict[Device, list[Hold]] = defaultdict(list)
    for hold in sorted(holds, key=lambda h: (h.start, h.pod.uid)):
        by_device[hold.device].append(hold)
    for line in by_device.values():
        for one, following in pairwise(line):
            if one.pod.gone:
                one.end = min(one.end, following.start)
        held_to = -FOREVER
        for hold in line:
            hold.start = max(hold.start, held_to)
            hold.end = max(hold.end, hold.start)
            held_to = max(held_to, hold.end)


def _named_by_kubelet(case: Case) -> dict[tuple[str, str, str, str], list[tuple[int, Device, str | None]]]:
    """As ``_labels``, from pod-resources lists: device ids are GPU uuids, found by the rows of the exporter."""
    found: dict[tuple[str, str, str, str], list[tuple[int, Device, str | None]]] = defaultdict(list)
    slots: dict[tuple[str, str, str], str] = {}
    for scrape in case.scrapes:
        for (slot, _), row in scrape.rows.items():
            if row.uuid:
                slots[scrape.cluster, scrape.node, row.uuid] = slot
    for listed in case.kubelets:
        for space, name, uuid in listed.devices:
            slot = slots.get((listed.cluster, listed.node, uuid))
            if slot:
                found[listed.cluster, listed.node, space, name].append((listed.at, (slot, None), None))
    return found
