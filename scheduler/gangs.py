"""Gangs that run: what each holds, since when, and whether it is being stopped.

Belongs here: the record of running gangs, and of evicted ones until they run again. Not here: free capacity
(`cluster.py`), who is evicted (`preemption.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from scheduler import contract
from scheduler.decisions import Eviction
from scheduler.model import SECOND_US, Job, Kind, Placement, demand

# What is overdue is believed to run for at least so long (as `reservations.Running` does).
LEAST_US = 60 * SECOND_US


@dataclass
class Gang:
    """A running gang. `protected_us`: the last instant from which a minimum run counts (its start or last eviction)."""

    job: Job
    placement: Placement
    begun_us: int
    end_us: int
    protected_us: int
    stop: Eviction | None = None

    @property
    def counts(self) -> tuple[int, ...]:
        """Pods of each role that run."""
        return self.placement.counts(self.job)

    def believed_us(self, now: int) -> int:
        """When it is believed to give back what it holds: at its kill, at its end, or as late again when overdue."""
        if self.stop is not None and self.stop.keep is None:
            return self.stop.kill_us
        return self.end_us if self.end_us > now else now + max(now - self.begun_us, LEAST_US)

    @property
    def amounts(self) -> dict[Kind, int]:
        """What it uses of every kind."""
        return demand(self.job, self.counts, self.placement.flavor)


class Gangs:
    """Running gangs by job id. `evicted`: jobs stopped for others that have not started again, nor ended."""

    def __init__(self) -> None:
        self.by_id: dict[str, Gang] = {}
        self.evicted: dict[str, Job] = {}
        self._ranks: dict[str, Counter[tuple[bool, int]]] = {}
        self._of_queue: dict[str, dict[str, Gang]] = {}

    def __contains__(self, job_id: str) -> bool:
        return job_id in self.by_id

    def __getitem__(self, job_id: str) -> Gang:
        return self.by_id[job_id]

    def __iter__(self) -> Iterator[Gang]:
        return iter(self.by_id.values())

    def add(self, gang: Gang) -> None:
        """A gang has started."""
        job = gang.job
        self.by_id[job.job_id] = gang
        self.evicted.pop(job.job_id, None)
        self._of_queue.setdefault(job.queue, {})[job.job_id] = gang
        if contract.is_evictable(job):
            self._ranks.setdefault(job.queue, Counter())[contract.rank(job)] += 1

    def remove(self, job_id: str) -> Gang:
        """A gang has ended or was killed; `KeyError` where it does not run."""
        gang = self.by_id.pop(job_id)
        job = gang.job
        del self._of_queue[job.queue][job_id]
        if contract.is_evictable(job):
            ranks = self._ranks[job.queue]
            ranks[contract.rank(job)] -= 1
            if not ranks[contract.rank(job)]:
                del ranks[contract.rank(job)]
        return gang

    def lowest(self, queue: str) -> tuple[bool, int] | None:
        """The lowest rank that runs in a queue and may be evicted."""
        ranks = self._ranks.get(queue)
        return min(ranks) if ranks else None

    def of_queue(self, queue: str) -> Iterator[Gang]:
        """Gangs of one queue, in the order in which they started."""
        return iter(self._of_queue.get(queue, {}).values())

    def stopping(self) -> Iterator[Gang]:
        """Gangs under notice."""
        return (g for g in self.by_id.values() if g.stop is not None)
