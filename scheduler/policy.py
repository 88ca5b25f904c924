"""What a queue may be told to do: the switches of the cycle, and the named sets of them that are compared.

Each mechanism has a switch of its own, so that a replay can show what it is worth. Belongs here: switches and limits.
Not here: what they switch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from scheduler.budgets import Budget
from scheduler.model import HOUR_US, MILLI, SECOND_US, Job

Backfill = Literal["none", "easy", "conservative"]


@dataclass(frozen=True)
class Policy:
    """Switches of one cycle.

    `backfill`: none (the first job that does not fit blocks all behind it), easy (it gets a reservation that others may
    not delay), conservative (every waiting job gets one, up to `depth`). `age_limit_us`: a job that has waited longer
    comes before all but critical ones, in the order of submission, and gets a reservation of its own; a job of at least
    `wide_milli` GPUs, which nothing but a reservation ever lets start on a busy fleet, after `wide_age_limit_us`.
    `caution`: reservations believe that what runs takes so many times as long as predicted, for half of all runs take
    longer than their median; 1 where run times are known.

    Order switches: `by_priority`, `by_share`, `by_duration`; without any, the order is that of submission. Shares are
    compared in steps of `share_step_ppm`: within one the run time decides (1,000,000: whether a queue holds less than
    its part, less than two, and so on).

    `with_preemption`: jobs of higher rank and owners may have others evicted, none before it has run `min_run_us`,
    within `budgets`. A gang that has lost pods it needs is stopped after `gang_patience_us`.
    """

    name: str
    backfill: Backfill = "easy"
    by_priority: bool = True
    by_share: bool = True
    by_duration: bool = True
    age_limit_us: int | None = 24 * HOUR_US
    wide_age_limit_us: int | None = 8 * HOUR_US
    wide_milli: int = 8 * MILLI
    caution: int = 1
    half_life_us: int | None = None
    share_step_ppm: int = 1_000_000
    depth: int = 500
    is_sticky: bool = True
    with_preemption: bool = True
    min_run_us: int = HOUR_US
    gang_patience_us: int = 60 * SECOND_US
    budgets: tuple[Budget, ...] = ()

    def age_us(self, job: Job) -> int | None:
        """How long the job waits until it has aged; None: it never does."""
        if self.age_limit_us is None or self.wide_age_limit_us is None or job.gpu_milli < self.wide_milli:
            return self.age_limit_us
        return self.wide_age_limit_us

    @property
    def is_by_submission(self) -> bool:
        """Whether nothing but submission and id orders the queue."""
        return not (self.by_priority or self.by_share or self.by_duration or self.age_limit_us is not None)

    def without(self, **changes: object) -> Policy:
        """The policy with some switches set otherwise."""
        return replace(self, **changes)  # type: ignore[arg-type]


_PLAIN = Policy(
    "plain", by_priority=False, by_share=False, by_duration=False, age_limit_us=None, with_preemption=False,
)  # fmt: skip
POLICIES: dict[str, Policy] = {
    p.name: p
    for p in (
        _PLAIN.without(name="fifo", backfill="none"),
        _PLAIN.without(name="easy", backfill="easy"),
        _PLAIN.without(name="conservative", backfill="conservative"),
        Policy("strandline", caution=4),
    )
}

# What takes each mechanism out of a policy, by the name that a user gives it.
MECHANISMS: dict[str, dict[str, object]] = {
    "priority": {"by_priority": False},
    "share": {"by_share": False},
    "duration": {"by_duration": False},
    "ageing": {"age_limit_us": None},
    "wide ageing": {"wide_age_limit_us": None},
    "caution": {"caution": 1},
    "decay": {"half_life_us": None},
    "backfill": {"backfill": "none"},
    "stickiness": {"is_sticky": False},
    "preemption": {"with_preemption": False},
}
