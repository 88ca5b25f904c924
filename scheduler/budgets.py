"""Disruption budgets: how many gangs of a team or label may be down at once because they were evicted.

The semantics are those of Kubernetes' PodDisruptionBudget (policy/v1), counted in gangs, since a gang is up or down as
a whole: allowed = healthy - wanted, where wanted is `min_available`, or expected - `max_unavailable`; a percentage is
of the expected and rounded up. Evictions respect budgets, losses do not ask. Belongs here: the arithmetic. Not here:
who is evicted (`preemption.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduler.model import Job


@dataclass(frozen=True)
class Budget:
    """Bounds the evicted gangs of a team and with some labels (None and empty: all). Exactly one bound is set."""

    name: str
    team: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    min_available: int | str | None = None
    max_unavailable: int | str | None = None

    def __post_init__(self) -> None:
        if (self.min_available is None) == (self.max_unavailable is None):
            raise ValueError(f"budget {self.name}: exactly one of min available and max unavailable is set")
        bound = self.min_available if self.max_unavailable is None else self.max_unavailable
        if isinstance(bound, str) and not (bound.endswith("%") and bound[:-1].isdigit()):
            raise ValueError(f"budget {self.name}: {bound!r} is neither a number nor a percentage")
        if isinstance(bound, int) and bound < 0:
            raise ValueError(f"budget {self.name}: {bound} is negative")

    def covers(self, job: Job) -> bool:
        """Whether the job is one of those that the budget protects."""
        return self.team in (None, job.team) and set(self.labels) <= set(job.labels)

    def allowed(self, healthy: int, expected: int) -> int:
        """Gangs that may still be evicted, of `healthy` that run undisturbed and `expected` that should run."""
        if self.min_available is not None:
            wanted = _of(self.min_available, expected)
        else:
            assert self.max_unavailable is not None
            wanted = expected - _of(self.max_unavailable, expected)
        return max(healthy - max(wanted, 0), 0)


def _of(bound: int | str, expected: int) -> int:
    return bound if isinstance(bound, int) else -(-int(bound[:-1]) * expected // 100)


class Allowance:
    """What all budgets still allow, given gangs that run undisturbed and those leaving or evicted."""

    def __init__(self, budgets: Sequence[Budget], healthy: Iterable[Job], down: Iterable[Job]) -> None:
        self._budgets = budgets
        self._left: list[int] = []
        if budgets:
            up, gone = list(healthy), list(down)
            for budget in budgets:
                n = sum(map(budget.covers, up))
                self._left.append(budget.allowed(n, n + sum(map(budget.covers, gone))))

    @property
    def is_bound(self) -> bool:
        """Whether there is any budget."""
        return bool(self._budgets)

    def permits(self, victims: Iterable[Job]) -> bool:
        """Whether all of the victims may be evicted together."""
        if not self._budgets:
            return True
        chosen = list(victims)
        return all(sum(map(b.covers, chosen)) <= left for b, left in zip(self._budgets, self._left, strict=True))
