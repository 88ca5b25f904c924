"""The latest run forward, and what it tells of jobs that have come since.

Who joins a bucket (`scheduler.pending`) stands behind a job that the run has followed, and starts about when that one
does. So one run serves a whole burst, whose jobs come seconds apart. Belongs here: whose starts a newcomer is told.
Not here: the run (`forward.py`), the correction of what it says (`calibrate.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping

import numpy as np

from scheduler.estimates.forward import NEVER
from scheduler.pending import BucketKey, Place, Waiting, bucket_key

# So many more may come to a bucket at least, before the run is too old for it.
_FEW = 4


class Latest:
    """A run made at `at_us`: starts (us) of `targets`, and of others that started in all of its futures."""

    def __init__(
        self, at_us: int, waiting: Iterable[Waiting], starts: Mapping[str, np.ndarray], targets: Collection[str]
    ) -> None:
        self.at_us, self._starts = at_us, starts
        self._places: dict[BucketKey, list[Place]] = {}
        self._come: dict[BucketKey, int] = {}
        for w in waiting:
            job_id = w.job.job_id
            if job_id in starts and (job_id in targets or starts[job_id].max() < NEVER):
                self._places.setdefault(bucket_key(w.job), []).append(_place(w))
        for places in self._places.values():
            places.sort()

    def of_one_alike(self, waiting: Waiting, now: int) -> np.ndarray | None:
        """Starts of the job that it stands behind, else before, as far as they are to come.

        None where there is no such job, where as many have come since as were followed, or where most futures believed
        that it would have started by now.
        """
        key = bucket_key(waiting.job)
        places = self._places.get(key)
        if not places or self._come.get(key, 0) >= max(len(places), _FEW):
            return None
        starts = self._starts[places[max(bisect_right(places, _place(waiting)) - 1, 0)][2]]
        coming = starts[starts > now]
        if 2 * len(coming) <= len(starts):
            return None
        self._come[key] = self._come.get(key, 0) + 1
        return coming


def _place(waiting: Waiting) -> Place:
    return (waiting.predicted_us, waiting.job.submit_us, waiting.job.job_id)
