"""Size classes by which waits and estimates are told apart: one GPU, 2 to 7, and 8 or more.

Belongs here: the classes alone.
"""

from __future__ import annotations

from scheduler.model import MILLI, Job

CLASSES = ("1", "2-7", "8+")


def size_class(job: Job) -> str:
    """ "1" (one GPU, a share of one, or none), "2-7" or "8+"."""
    return CLASSES[0] if job.gpu_milli <= MILLI else CLASSES[1] if job.gpu_milli < 8 * MILLI else CLASSES[2]
