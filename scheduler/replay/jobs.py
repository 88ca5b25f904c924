"""Jobs of a trace as gangs of pods, with how long they really ran.

A job that one node can hold is one pod; a larger one is pods that each fill the largest node, and one with the rest. A
single GPU may be a share of one. The group of a trace (virtual cluster, team, class of service) is queue and team.
Belongs here: what a trace's row becomes, and shaking its arrivals. Not here: columns of traces (`sources.traces`),
files of fleets (`fleets.py`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scheduler.model import MILLI, SECOND_US, Job, Node, Role, Shape
from scheduler.replay.outcome import TraceRun
from sources import traces
from warehouse.errors import BadInput

NO_GROUP = "default"


def read_runs(path: Path, nodes: Sequence[Node], pod_gpus: int | None = None) -> list[TraceRun]:
    """The jobs of a trace file in the order of submission, then id, as gangs for these nodes.

    `pod_gpus`: the most GPUs of one pod, where that is to be less than the largest node has.
    A job without a name, or with one that an earlier job has, is named by its place in the trace's order. `BadInput`
    names the file and row of what cannot be read.
    """
    found = traces.read_trace(path)
    if not found:
        raise BadInput(f"{path}: no jobs")
    sizes = _Sizes(nodes)
    names: set[str] = set()
    width = len(str(len(found)))
    runs = []
    for i, job in enumerate(found):
        name = job.name if job.name and job.name not in names else f"{job.name or 'job'}#{i:0{width}}"
        names.add(name)
        team = job.group or NO_GROUP
        submit_us, duration_us = round(job.submit_s * SECOND_US), round(job.duration_s * SECOND_US)
        largest = min(sizes.largest(job.models), pod_gpus or job.num_gpus or 1)
        runs.append(TraceRun(Job(name, team, team, roles(job, largest), submit_us), duration_us))
    return in_order(runs)


class _Sizes:
    """GPUs of the largest node that has one of some models."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = [n for n in nodes if n.is_schedulable]
        self._known: dict[tuple[str, ...], int] = {}

    def largest(self, models: tuple[str, ...]) -> int:
        if models not in self._known:
            fitting = (n.gpus for n in self._nodes if not models or n.flavor in models)
            self._known[models] = max(fitting, default=0) or max((n.gpus for n in self._nodes), default=1)
        return self._known[models]


def roles(job: traces.Job, pod_gpus: int) -> tuple[Role, ...]:
    """Pods of a trace's job, of at most `pod_gpus` GPUs each; CPU and memory are dealt by GPUs, rounded up."""
    share = (job.gpu_milli or MILLI) if job.num_gpus == 1 else MILLI

    def shape(gpus: int) -> Shape:
        of = max(job.num_gpus, 1)
        cpu, memory = (-(-amount * max(gpus, 1) // of) for amount in (job.cpu_milli, job.memory_mib))
        return Shape(gpus * share, cpu, memory, job.models)

    pods, rest = divmod(job.num_gpus, pod_gpus)
    if not pods:
        return (Role("worker", shape(rest), 1),)
    workers = Role("worker", shape(pod_gpus), pods)
    return (workers, Role("rest", shape(rest), 1)) if rest else (workers,)


def in_order(runs: Sequence[TraceRun]) -> list[TraceRun]:
    """By submission, then id."""
    return sorted(runs, key=lambda r: (r.job.submit_us, r.job.job_id))


def shake(runs: Sequence[TraceRun], most_us: int, seed: int) -> list[TraceRun]:
    """The same jobs, each submitted up to `most_us` earlier or later, evenly and by the seed; in order again.

    Small shifts of arrivals change mean waits a lot, so that one replay is one draw (Tsafrir, Ouaknine and Feitelson,
    MASCOTS 2007).
    """
    if most_us == 0:
        return list(runs)
    draw = random.Random(seed)  # noqa: S311  (a simulation)
    moved = [replace(r, job=replace(r.job, submit_us=r.job.submit_us + draw.randint(-most_us, most_us))) for r in runs]
    return in_order(moved)
