"""What was held, asked for and idle over time, as means over equal steps: what a picture of a replay shows.

Means are exact: a step's is the integral over it. Belongs here: series over time. Not here: figures (`metrics.py`),
the drawing (`picture.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.model import MILLI
from scheduler.replay.metrics import times_of
from scheduler.replay.outcome import Outcome, TraceRun
from scheduler.sizes import CLASSES, size_class

# Held by a gang that lacks pods it needs: it does no work.
PARTIAL = "partial"
_NOBODY = np.iinfo(np.int64).max

# (begin, end, milli-GPU)
Stretch = tuple[int, int, int]


@dataclass(frozen=True)
class Timeline:
    """GPUs by step: `held` by size class of the job and `PARTIAL`, `waiting` (asked for) by size class.

    `wanted` is idle while the smallest waiting demand would have fitted all that was idle. `edges_us` has one instant
    more than there are steps.
    """

    edges_us: np.ndarray
    capacity: float
    held: dict[str, np.ndarray]
    waiting: dict[str, np.ndarray]
    wanted: np.ndarray


def timeline(
    runs: Sequence[TraceRun], out: Outcome, capacity_milli: int, window_us: tuple[int, int], steps: int
) -> Timeline:
    """The series over a window of time (first instant, last). `runs` as they were replayed, arrivals shaken or not.

    Where the replay ended before with jobs that wait for ever, what they held and asked for goes on.
    """
    first_us, last_us = window_us
    edges = np.linspace(first_us, last_us, steps + 1)
    sizes = {r.job.job_id: size_class(r.job) for r in runs}
    held: dict[str, list[Stretch]] = {name: [] for name in (*CLASSES, PARTIAL)}
    for span in out.spans:
        end = last_us if span.ending == "cut" else span.ended_us
        held[sizes[span.job_id] if span.is_whole else PARTIAL].append((span.begun_us, end, span.milli))
    asked: dict[str, list[Stretch]] = {name: [] for name in CLASSES}
    least: dict[int, list[Stretch]] = {}
    stuck = frozenset(out.stuck)
    for times in times_of(runs, out):
        job = times.job
        for k, (begin, end) in enumerate(times.waits, 1):
            until = last_us if k == len(times.waits) and job.job_id in stuck else end
            asked[size_class(job)].append((begin, until, job.gpu_milli))
            if job.least_gpu_milli:
                least.setdefault(job.least_gpu_milli, []).append((begin, until, 1))
    return Timeline(
        edges,
        capacity_milli / MILLI,
        {name: _mean(at := _instants(part), _levels(at, part), edges) for name, part in held.items()},
        {name: _mean(at := _instants(part), _levels(at, part), edges) for name, part in asked.items()},
        _wanted([s for part in held.values() for s in part], least, capacity_milli, edges),
    )


def _instants(*parts: Iterable[Stretch]) -> np.ndarray:
    return np.unique(np.array([at for part in parts for s in part for at in s[:2]], dtype=np.int64))


def _levels(instants: np.ndarray, part: Sequence[Stretch]) -> np.ndarray:
    """What holds from each instant on."""
    change = np.zeros(len(instants), dtype=np.int64)
    if part:
        begun, ended, amount = np.array(part, dtype=np.int64).T
        np.add.at(change, np.searchsorted(instants, begun), amount)
        np.add.at(change, np.searchsorted(instants, ended), -amount)
    return np.cumsum(change)


def _mean(instants: np.ndarray, levels: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """GPUs by step of milli-GPU that hold from each instant to the next."""
    if len(instants) < 2:
        return np.zeros(len(edges) - 1)
    so_far = np.concatenate([[0.0], np.cumsum(levels[:-1] * np.diff(instants).astype(np.float64))])
    # differences of large sums: what is left of the noise would be seen as hairs
    return np.round(np.diff(np.interp(edges, instants, so_far)) / np.diff(edges) / MILLI, 6)


def _wanted(held: Sequence[Stretch], least: dict[int, list[Stretch]], capacity: int, edges: np.ndarray) -> np.ndarray:
    instants = _instants(held, *least.values())
    idle = np.maximum(capacity - _levels(instants, held), 0)
    smallest = np.full(len(instants), _NOBODY)
    for size in sorted(least, reverse=True):
        smallest[_levels(instants, least[size]) > 0] = size
    return _mean(instants, np.where(smallest <= idle, idle, 0), edges)
