"""What-if: what would become of a job that were submitted now. Nothing is changed.

Belongs here: the question over a decider's present snapshot. Not here: how a request says it (`views.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler import order
from scheduler.model import Job, Placement
from scheduler.pending import Waiting
from scheduler.service.deciding import Decider


@dataclass(frozen=True)
class WhatIf:
    """Whether a job would start now, else its place in the queue; `why` where it could never start."""

    starts_now: bool
    nodes: tuple[str, ...] = ()
    position: int | None = None
    reason: str = ""
    why: str | None = None


def what_if(decider: Decider, job: Job) -> WhatIf:
    """What would become of the job, by the snapshot of the last tick. Call it under the queue's lock."""
    if decider.room is None:
        return WhatIf(False, reason="not_seen", why="the nodes have not been seen yet")
    scheduler, policy, now = decider.room.scheduler, decider.policy, decider.now()
    if (why := decider.never(job)) is not None:
        return WhatIf(False, reason="impossible", why=why)
    waiting = Waiting(job, max(decider.journal.records.predictor.predict(job), 1))
    found = scheduler.find(waiting, now)
    in_line = policy.backfill == "none" and len(scheduler.pending) > 0
    if isinstance(found, Placement) and not in_line:
        return WhatIf(True, tuple(sorted({scheduler.cluster.nodes[p.node].name for p in found.pods})))
    # Its id comes after all others that are equal.
    mine = order.key(waiting, scheduler.usage, policy, now)[:-1]
    keys = (order.key(w, scheduler.usage, policy, now)[:-1] for w in scheduler.pending.oldest())
    before = sum(key <= mine for key in keys)
    ahead = before + sum(1 for _ in scheduler.holds)
    return WhatIf(False, (), ahead + 1, "behind_head" if isinstance(found, Placement) else found)
