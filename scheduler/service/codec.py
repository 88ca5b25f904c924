"""Jobs and placements as JSON objects of the event log, and back.

A placement names nodes, not their index, which may be another after a restart. Belongs here: the form. Not here: what a
user may ask for (`models.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from scheduler.decisions import Eviction
from scheduler.model import Job, Placement, PodPlace, Role, Shape, Topology


@dataclass(frozen=True)
class Template:
    """What a job's pods run; nothing decides by it."""

    image: str = ""
    command: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Places:
    """Pods of a gang on nodes by name: `pods[i]` is (role, index, node name, ((device, milli), ...))."""

    flavor: str
    pods: tuple[tuple[int, int, str, tuple[tuple[int, int], ...]], ...]

    @property
    def gpu_milli(self) -> int:
        """GPUs of all its pods."""
        return sum(milli for *_, devices in self.pods for _, milli in devices)

    def counts(self, job: Job) -> tuple[int, ...]:
        """Pods of each role."""
        return tuple(sum(p[0] == r for p in self.pods) for r in range(len(job.roles)))

    def placed(self, index: Mapping[str, int]) -> Placement:
        """The placement on a cluster whose nodes have this index."""
        return Placement(self.flavor, tuple(PodPlace(r, i, index[node], devices) for r, i, node, devices in self.pods))


def places_of(placement: Placement, names: list[str]) -> Places:
    """A placement by names of nodes."""
    return Places(placement.flavor, tuple((p.role, p.index, names[p.node], p.devices) for p in placement.pods))


def job_json(job: Job, template: Template) -> dict[str, Any]:
    """A job and what its pods run."""
    return {"job": asdict(job), "template": asdict(template)}


def read_job(payload: Mapping[str, Any]) -> tuple[Job, Template]:
    """What `job_json` wrote."""
    given, template = dict(payload["job"]), payload["template"]
    given["roles"] = tuple(_role(r) for r in given["roles"])
    given["topology"] = Topology(**given["topology"]) if given["topology"] else None
    given["labels"] = tuple((k, v) for k, v in given["labels"])
    return Job(**given), Template(template["image"], tuple(template["command"]), template["annotations"])


def _role(given: Mapping[str, Any]) -> Role:
    shape = given["shape"] | {"accelerators": tuple(given["shape"]["accelerators"])}
    return Role(given["name"], Shape(**shape), given["count"], given["min_count"])


def places_json(places: Places) -> dict[str, Any]:
    """Places of a gang."""
    return {"flavor": places.flavor, "pods": [[r, i, node, list(devices)] for r, i, node, devices in places.pods]}


def read_places(payload: Mapping[str, Any]) -> Places:
    """What `places_json` wrote."""
    return Places(
        payload["flavor"],
        tuple((r, i, node, tuple((d, m) for d, m in devices)) for r, i, node, devices in payload["pods"]),
    )


def notice_json(eviction: Eviction, keep: Places | None) -> dict[str, Any]:
    """A notice: why, for whom, and when."""
    return {
        "for_job": eviction.for_job,
        "signal_us": eviction.signal_us,
        "kill_us": eviction.kill_us,
        "keep": places_json(keep) if keep is not None else None,
    }
