"""The eviction contract: who may be stopped for whom, with what notice, and what that costs. One table, `TABLE`.

The code reads its rules from the table and `docs/scheduler/eviction-contract.md` shows it; a test holds both together.
An eviction is a notice, then a signal to save, then a time of grace, then the kill. Belongs here: rules and what a run
loses under them. Not here: budgets (`budgets.py`), which victims are chosen (`preemption.py`), who carries it out
(`lifecycle.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scheduler.model import HOUR_US, SECOND_US, Job

Kind = Literal["preempt", "reclaim", "loss"]
CLASSES = ("low", "normal", "high", "critical")
# Starting again takes this long (images, data, compilation); it is part of what an eviction is taken to cost.
RESTART_US = 120 * SECOND_US
_HIGH_FROM, _LOW_BELOW = 100, 0


@dataclass(frozen=True)
class Rule:
    """One row: a gang of class `victim` ("any": of every class) that is stopped for a reason of this kind.

    `by`: classes of the jobs that may have it stopped; empty: none ever may. `notice_us` passes between notice and
    signal, `grace_us` between signal and kill. `is_signalled`: it is told to save. `has_min_run`: not before it has run
    for the policy's minimum, and so at most once in that time. `in_budget`: budgets bind. `counts`: it counts towards
    the job's backoff limit.
    """

    victim: str
    kind: Kind
    by: tuple[str, ...]
    notice_us: int
    is_signalled: bool
    grace_us: int
    has_min_run: bool = True
    in_budget: bool = True
    counts: bool = False

    @property
    def lead_us(self) -> int:
        """From notice to kill."""
        return self.notice_us + self.grace_us


def _evicted(victim: str, kind: Kind, by: tuple[str, ...], notice_s: int, grace_s: int) -> Rule:
    return Rule(victim, kind, by, notice_s * SECOND_US, True, grace_s * SECOND_US)


TABLE: tuple[Rule, ...] = (
    _evicted("low", "preempt", CLASSES, 0, 30),
    _evicted("low", "reclaim", CLASSES, 0, 30),
    _evicted("normal", "preempt", CLASSES[1:], 60, 120),
    _evicted("normal", "reclaim", CLASSES, 60, 120),
    _evicted("high", "preempt", CLASSES[2:], 300, 300),
    _evicted("high", "reclaim", CLASSES, 300, 300),
    Rule("critical", "preempt", (), 0, False, 0),
    Rule("critical", "reclaim", (), 0, False, 0),
    Rule("any", "loss", (), 0, False, 0, has_min_run=False, in_budget=False, counts=True),
)
_ROWS = {(r.victim, r.kind): r for r in TABLE}


def class_of(job: Job) -> str:
    """The class whose rows hold for a job: by its name, else by its priority (from 100 high, below 0 low)."""
    if job.is_critical or job.priority_class == "critical":
        return "critical"
    if job.priority_class in CLASSES:
        return job.priority_class
    return "high" if job.priority >= _HIGH_FROM else "low" if job.priority < _LOW_BELOW else "normal"


def rule(job: Job, kind: Kind) -> Rule:
    """The row that holds for a job that would be stopped."""
    return _ROWS["any" if kind == "loss" else class_of(job), kind]


def rank(job: Job) -> tuple[bool, int]:
    """What priority preempts by: critical first, then the priority."""
    return (class_of(job) == "critical", job.priority)


def is_evictable(job: Job) -> bool:
    """Whether a job may ever be stopped for another; one that may not holds only what its queue is guaranteed."""
    return job.is_preemptible and class_of(job) != "critical"


def may_evict(by: Job, victim: Job, kind: Kind) -> bool:
    """Whether the contract lets `by` have `victim` stopped: by rank in its own queue, or as owner in another."""
    if not victim.is_preemptible or class_of(by) not in rule(victim, kind).by:
        return False
    if kind == "preempt":
        return by.queue == victim.queue and rank(by) > rank(victim)
    return kind == "reclaim" and by.queue != victim.queue


def saved_us(job: Job, worked_us: int, signalled_us: int | None = None, grace_us: int = 0) -> int:
    """Work that is safe when a run is stopped after `worked_us` of it; the rest is lost.

    `signalled_us` of work were done at the signal to save, `grace_us` were left then; it helps a job that answers it
    (`save_us`) within the grace.
    """
    periodic = worked_us // job.checkpoint_us * job.checkpoint_us if job.checkpoint_us else 0
    if signalled_us is None or job.save_us is None or job.save_us > grace_us:
        return periodic
    return max(periodic, min(signalled_us, worked_us))


def lost_us(job: Job, kind: Kind, run_us: int) -> int:
    """Work lost when a run gets notice after `run_us` and works until it is killed."""
    row = rule(job, kind)
    worked = run_us + row.lead_us
    return worked - saved_us(job, worked, run_us + row.notice_us if row.is_signalled else None, row.grace_us)


def most_lost_us(job: Job, kind: Kind, run_us: int = 12 * HOUR_US) -> int:
    """The most that a run of about `run_us` loses, whenever within its checkpoint interval the notice comes."""
    row = rule(job, kind)
    if kind != "loss" and (not row.by or not job.is_preemptible):
        return 0
    worked = run_us + row.lead_us
    periodic = min(job.checkpoint_us, worked) if job.checkpoint_us else worked
    answers = row.is_signalled and job.save_us is not None and job.save_us <= row.grace_us
    return min(periodic, row.grace_us) if answers else periodic
