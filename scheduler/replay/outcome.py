"""What became of the jobs of a replay: who held what from when to when.

Every figure is computed from it afterwards (`metrics.py`), so that a replay records only starts and ends. Belongs here:
the record. Not here: how it comes about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from scheduler.decisions import Withdrawn
from scheduler.model import Job, Placement

Ending = Literal["finished", "evicted", "lost", "cut", "resized"]
What = Literal["notice", "checkpoint", "kill", "shrink", "called_off", "requeue", "loss", "failed"]


@dataclass(frozen=True)
class TraceRun:
    """A job and how long it really runs (us), which no decision may see unless the predictor is exact."""

    job: Job
    duration_us: int


@dataclass(frozen=True)
class Span:
    """A time in which a job held GPUs: `milli` in all, `nodes` (node index, milli) where nodes are known.

    `is_whole`: the gang had what it needs and worked; else it only held. `lost_us` is the run time that an ending
    before its time undid: what had not been saved. "cut": the replay ended with it; "resized": the next span of the job
    follows at once.
    """

    job_id: str
    begun_us: int
    ended_us: int
    milli: int
    nodes: tuple[tuple[int, int], ...] = ()
    is_whole: bool = True
    ending: Ending = "finished"
    lost_us: int = 0


@dataclass(frozen=True)
class Step:
    """A step of the life of a job that does not simply run to its end: an eviction's, or a loss and what follows it."""

    at_us: int
    job_id: str
    what: What
    for_job: str = ""


@dataclass
class Outcome:
    """First start and last end by job id (us), all spans in the order of their ends, and why some never could start.

    `failed`: jobs that were stopped for good, with the reason. `trail`: evictions and losses step by step. `stuck`:
    jobs that still waited when nothing more could happen, in the order of submission.
    """

    started_us: dict[str, int] = field(default_factory=dict)
    ended_us: dict[str, int] = field(default_factory=dict)
    impossible: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    promised_us: dict[str, int] = field(default_factory=dict)
    trail: list[Step] = field(default_factory=list)
    withdrawn: list[Withdrawn] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    stuck: tuple[str, ...] = ()
    finished_us: int = 0
    cycles: int = 0


def span_of(
    job: Job, placement: Placement, begun_us: int, ended_us: int, *, ending: Ending = "finished", lost_us: int = 0
) -> Span:
    """The span of a gang that had these places; not whole where a role has fewer pods than it needs."""
    milli: dict[int, int] = {}
    for pod in placement.pods:
        for _, amount in pod.devices:
            milli[pod.node] = milli.get(pod.node, 0) + amount
    is_whole = all(n >= role.least for n, role in zip(placement.counts(job), job.roles, strict=True))
    total = sum(milli.values())
    return Span(job.job_id, begun_us, ended_us, total, tuple(milli.items()), is_whole, ending, lost_us)
