"""What a victim set must keep when it is final: budgets, and the guarantees of the queues that it is taken from.

Every rule is closed downwards: what holds for a set holds for every part of it. So a set may be built up victim by
victim, and victims found unnecessary can be let off without a rule breaking. Belongs here: legality of sets. Not here:
of single victims (`contract.py`, `victims.py`), whether a set is enough (`preemption.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler import quota
from scheduler.budgets import Allowance
from scheduler.model import Kind
from scheduler.victims import Chosen, Standing, Unit


class Rules:
    """Rules for the victims of one ask, which needs `kinds`.

    `may_straddle`: an owner may also have the gang evicted with which a queue passes its guarantee, though the queue is
    left below it; without, every queue keeps at least its guarantee.
    """

    def __init__(self, at: Standing, kinds: Iterable[Kind], *, may_straddle: bool) -> None:
        self.projected = at.projected
        self.kinds = tuple(kinds)
        self.may_straddle = may_straddle
        budgets = at.policy.budgets
        down = [g.job for g in at.gangs.stopping() if g.stop is not None and g.stop.keep is None] if budgets else []
        healthy = [g.job for g in at.gangs if g.stop is None or g.stop.keep is not None] if budgets else []
        self.allowance = Allowance(budgets, healthy, [*down, *at.gangs.evicted.values()])
        self._above: dict[str, dict[Kind, int]] = {}

    def above(self, queue: str) -> dict[Kind, int]:
        """What a queue holds beyond its guarantee, of each needed kind that it borrows."""
        if queue not in self._above:
            found = {k: quota.borrowed(self.projected, queue, k) for k in self.kinds}
            self._above[queue] = {k: n for k, n in found.items() if n}
        return self._above[queue]

    def permit(self, chosen: Chosen) -> bool:
        """Whether the set as a whole keeps them."""
        tally = Tally(self)
        return all(tally.add(chosen[job_id]) for job_id in sorted(chosen))


class Tally:
    """A set that is built up victim by victim, as long as the rules permit."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.chosen: dict[str, Unit] = {}
        self._total: dict[str, dict[Kind, int]] = {}
        self._of_queue: dict[str, dict[str, Unit]] = {}

    def add(self, unit: Unit) -> bool:
        """Take one more, or one that shrinks whole; False, and nothing is taken, where a rule would break."""
        if unit.keep is None and self.rules.allowance.is_bound:
            gone = [u.gang.job for u in self.chosen.values() if u.keep is None and u.job_id != unit.job_id]
            if not self.rules.allowance.permits([*gone, unit.gang.job]):
                return False
        if unit.eviction.kind == "reclaim" and not self._leaves_enough(unit):
            return False
        self.chosen[unit.job_id] = unit
        return True

    def _leaves_enough(self, unit: Unit) -> bool:
        queue = unit.gang.job.queue
        above = self.rules.above(queue)
        before = self._total.get(queue, {})
        known = self.chosen.get(unit.job_id)
        without = {k: before.get(k, 0) - (known.freed.get(k, 0) if known else 0) for k in above}
        total = {k: n + unit.freed.get(k, 0) for k, n in without.items()}
        others = [u for u in self._of_queue.get(queue, {}).values() if u.job_id != unit.job_id]
        if not self.rules.may_straddle:
            is_legal = any(above[k] >= total[k] for k in above)
        else:
            # Without any one of its victims the queue would still borrow: nobody goes but for what is to be returned.
            is_legal = any(above[k] > without[k] for k in above) and (
                any(above[k] > total[k] for k in above)
                or all(any(above[k] > total[k] - u.freed.get(k, 0) for k in above) for u in others)
            )
        if is_legal:
            self._total[queue] = total
            self._of_queue.setdefault(queue, {})[unit.job_id] = unit
        return is_legal
