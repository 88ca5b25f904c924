"""Elastic gangs: the largest counts that fit, and how long a gang runs that is smaller than asked.

Counts of all roles grow together from their least to what was asked, in as many steps as there are pods between, so
that one search finds the largest that fits (Kueue's partial admission does the same). Belongs here: counts. Not here:
whether they fit (the cycle), which elastic gangs shrink for others (`victims.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from scheduler.model import Job

T = TypeVar("T")


def between(job: Job, step: int) -> tuple[int, ...]:
    """Counts at `step` of `steps(job)`: the least of every role and its even part of what it may grow by."""
    most = steps(job)
    return tuple(r.least + (r.count - r.least) * step // most if most else r.count for r in job.roles)


def steps(job: Job) -> int:
    """Pods between the least and what is asked."""
    return sum(r.count - r.least for r in job.roles)


def largest(job: Job, fits: Callable[[tuple[int, ...]], T | None]) -> T | None:
    """What `fits` gives for the largest counts below what is asked for which it gives anything.

    Binary search: where some counts fit, smaller ones are taken to fit too.
    """
    low, high = 0, steps(job) - 1
    if high < 0 or (best := fits(between(job, 0))) is None:
        return None
    while low < high:
        middle = (low + high + 1) // 2
        found = fits(between(job, middle))
        if found is not None:
            low, best = middle, found
        else:
            high = middle - 1
    return best


def stretched_us(job: Job, run_us: int, held_milli: int) -> int:
    """How long a run of `run_us` at full size takes with `held_milli` GPUs; rounded up, the same without GPUs."""
    if not held_milli or held_milli >= job.gpu_milli:
        return run_us
    return -(-run_us * job.gpu_milli // held_milli)
