"""Who holds which device when: pods from the API server's lists, their devices from labels or node share.

Belongs here: holding intervals, GPU requests, teams, and the choice of devices (rule 4 and core.device_assignments).
Does not belong here: samples, availability and sums (ledger.py), parsing (reader.py).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
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
    devices: dict[Device, int] = field(default_factory=dict)


@dataclass
class Part:
    """A device of a node as holders see it: whole GPU or MIG instance, with the replicas it is advertised as."""

    device: Device
    profile: str | None
    replicas: int
    known: bool  # the exporter has shown it; a device known from the node's capacity alone sorts last


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
            return str(labels["team"])  # type: ignore[index]
    return "(unmapped)"


def read_pods(case: Case) -> list[Pod]:
    """Every pod UID that was bound and asks for GPUs, with its holding interval."""
    latest: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
    first_end: dict[tuple[str, str], int] = {}
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
    pods = []
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
    _hold_gone_pods_to_their_last_label(case, pods)
    return [pod for pod in pods if pod.end > pod.start]


def _labels(case: Case) -> dict[tuple[str, str, str, str], list[tuple[int, Device]]]:
    """(cluster, node, namespace, pod) -> instants and devices of the rows that carry the label."""
    found: dict[tuple[str, str, str, str], list[tuple[int, Device]]] = defaultdict(list)
    for scrape in case.scrapes:
        for device, row in scrape.rows.items():
            for space, name, _ in row.pods:
                found[scrape.cluster, scrape.node, space, name].append((scrape.at, device))
    return found


def _hold_gone_pods_to_their_last_label(case: Case, pods: list[Pod]) -> None:
    labels = _labels(case)
    for pod in pods:
        if pod.gone:
            namesakes = [
                other.start
                for other in pods
                if (other.cluster, other.space, other.name) == (pod.cluster, pod.space, pod.name)
                and other.start > pod.start
            ]
            until = min(namesakes, default=FOREVER)
            for at, _ in labels[pod.cluster, pod.node, pod.space, pod.name]:
                if pod.start <= at < until:
                    pod.end = max(pod.end, at)
            pod.end = min(pod.end, until)


def assign(case: Case, pods: list[Pod], parts: dict[tuple[str, str], list[Part]]) -> None:
    """Give every pod its devices: those its labels name inside its interval, then the lowest free ones.

    ``parts`` are the devices of each (cluster, node). A pod for which nothing is free goes without.
    """
    labels = _labels(case)
    order = sorted(pods, key=lambda p: (p.start, p.uid))
    missing: dict[tuple[str, str], dict[str, int]] = {}
    for pod in order:
        here = parts.get((pod.cluster, pod.node), [])
        seen: Counter[Device] = Counter()
        for at, device in labels[pod.cluster, pod.node, pod.space, pod.name]:
            if pod.start <= at < pod.end:
                seen[device] += 1
        missing[pod.cluster, pod.uid] = {}
        for resource, count in pod.requests.items():
            fitting = {p.device: p for p in _fitting(here, resource)}
            named = sorted((d for d in seen if d in fitting), key=lambda d: (-seen[d], d[0], d[1] or ""))[:count]
            for device in named:
                pod.devices[device] = 1
            left = count - len(named)
            for device in sorted(named):
                more = min(left, fitting[device].replicas - 1)
                pod.devices[device] += more
                left -= more
            missing[pod.cluster, pod.uid][resource] = left
    for pod in order:
        for resource, count in missing[pod.cluster, pod.uid].items():
            left = count
            here = _fitting(parts.get((pod.cluster, pod.node), []), resource)
            for part in sorted(here, key=lambda p: (not p.known, p.device[0], p.device[1] or "")):
                take = min(left, _free(part, pod, pods))
                if take > 0:
                    pod.devices[part.device] = pod.devices.get(part.device, 0) + take
                    left -= take


def _fitting(parts: list[Part], resource: str) -> list[Part]:
    """Devices that a resource name can mean: instances of its profile, or uncut GPUs."""
    if resource.startswith("nvidia.com/mig-"):
        profile = resource.removeprefix("nvidia.com/mig-")
        return [p for p in parts if p.profile is not None and p.profile.replace("+", ".") == profile]
    return [p for p in parts if p.profile is None]


def _free(part: Part, pod: Pod, pods: list[Pod]) -> int:
    """Replicas of a device that nobody holds at any moment of the pod's interval."""
    here = [
        p for p in pods if (p.cluster, p.node) == (pod.cluster, pod.node) and p.start < pod.end and p.end > pod.start
    ]
    moments = {pod.start} | {p.start for p in here if pod.start < p.start < pod.end}
    most = max(sum(p.devices.get(part.device, 0) for p in here if p.start <= m < p.end) for m in moments)
    return part.replicas - most
