"""The search for one final victim set: fewest GPU-hours lost, the same for the same snapshot.

A set must free enough (room and quota: more victims never free less) and keep the rules (`legality`: fewer victims
never break one). So sets are grown along several orders until they free enough, then every victim that is not needed is
let off again, dearest first; few candidates are searched through. Belongs here: the search. Not here: who may be
evicted (`victims.py`), what a cycle does with a plan (`evicting.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import nsmallest

import numpy as np

from scheduler.cluster import Cluster
from scheduler.fitting import may_fit
from scheduler.legality import Rules, Tally
from scheduler.model import Ask, Placement
from scheduler.victims import Candidates, Chosen, Unit

# Up to so many victims all sets are looked at, within so many placements tried.
_FEW = 12
_MOST_TRIES = 300
# Victims that are looked at along an order that knows nothing of nodes.
_MOST_BLIND = 64
# On so many nodes, with so many victims each, the cheapest that clear it are found exactly.
_NODES_EXACT, _NODE_FEW = 16, 8

# Whether quota allows the job once the chosen have gone; where it goes then, or None.
Allows = Callable[[Chosen], bool]
Places = Callable[[Chosen], Placement | None]


@dataclass(frozen=True)
class Plan:
    """Victims that leave, and where the job starts when they have."""

    units: tuple[Unit, ...]
    placement: Placement

    @property
    def cost(self) -> int:
        """Milli-GPU x us of work lost."""
        return sum(u.cost for u in self.units)

    @property
    def key(self) -> tuple[int, int, tuple[str, ...]]:
        """Less is better: work lost, victims, ids."""
        return (self.cost, len(self.units), tuple(u.job_id for u in self.units))


class Search:
    """For one ask. `room` is a copy of the cluster from which all that is leaving has left already."""

    def __init__(self, ask: Ask, room: Cluster, found: Candidates, rules: Rules, tests: tuple[Allows, Places]) -> None:
        self.ask, self.room, self.rules = ask, room, rules
        self.allows, self.places = tests
        self.units = {job_id: found.units[job_id] for job_id in sorted(found.units)}
        self.tries = 0

    def best(self) -> Plan | None:
        """The cheapest plan that was found; exact for few candidates."""
        if not self._could():
            return None
        plans = [plan for order in self._orders() if (plan := self._grow(order))]
        best = min(plans, key=lambda p: p.key, default=None)
        if best is not None and len(self.units) <= _FEW:
            best = self._through(best)
        return best

    def _try(self, chosen: Chosen) -> Plan | None:
        """The plan with these victims; None where they do not free enough."""
        if not self.allows(chosen):
            return None
        placement = self.places(chosen)
        if placement is None:
            return None
        return Plan(tuple(chosen[k] for k in sorted(chosen)), placement)

    def _could(self) -> bool:
        """Whether it would fit if all of them went, as far as counting devices can tell."""
        free = self.room.whole.copy()
        for units in self.units.values():
            for node, devices in units[-1].devices.items():
                free[node] += devices
        usable = self.room.is_schedulable & self.room.of_flavor[self.ask.flavor]
        return bool(may_fit(self.ask, np.where(usable, free, 0)[None, :])[0])

    def _orders(self) -> list[list[Unit]]:
        """Orders to grow along: what shrinks before all that goes whole."""
        shrink = [us[0] for us in self.units.values() if us[0].keep is not None]
        whole = [us[-1] for us in self.units.values()]
        keys: list[Callable[[Unit], tuple[int, int, str]]] = [
            lambda u: (u.cost, -u.milli, u.job_id),
            lambda u: (u.cost // max(u.milli, 1), u.cost, u.job_id),
            lambda u: (-u.milli, u.cost, u.job_id),
        ]
        shrink.sort(key=keys[0])
        blind = [shrink[:_MOST_BLIND] + nsmallest(_MOST_BLIND, whole, key=key) for key in keys]
        return [*blind, shrink + self._by_node(whole)]

    def _by_node(self, whole: Sequence[Unit]) -> list[Unit]:
        """Node by node, the cheapest to clear for one pod first, and on each the cheapest victims that clear it; then
        some of the rest by cost.
        """
        size = max((r.shape.gpus or bool(r.shape.gpu_milli) for r in self.ask.job.roles), default=0)
        on_node: dict[int, list[tuple[Unit, int]]] = {}
        for u in whole:
            for node, devices in u.devices.items():
                on_node.setdefault(node, []).append((u, devices))
        ranked = []
        for node, there in sorted(on_node.items()):
            there.sort(key=lambda p: (p[0].cost // p[1], p[0].cost, p[0].job_id))
            subset = _first(there, size - int(self.room.whole[node]))
            if subset is not None:
                ranked.append((sum(u.cost for u in subset), node, subset))
        ranked.sort(key=lambda r: r[:2])
        for i, (_, node, _) in enumerate(ranked[:_NODES_EXACT]):
            subset = _cheapest(on_node[node], size - int(self.room.whole[node]))
            ranked[i] = (sum(u.cost for u in subset), node, subset)
        ordered: dict[str, Unit] = {}
        for _, _, subset in sorted(ranked, key=lambda r: r[:2]):
            ordered |= {u.job_id: u for u in subset if u.job_id not in ordered}
        rest = nsmallest(_MOST_BLIND, (u for u in whole if u.job_id not in ordered), key=lambda u: (u.cost, u.job_id))
        return [*ordered.values(), *rest]

    def _grow(self, order: Sequence[Unit]) -> Plan | None:
        """Victims in order, as far as rules permit, until they free enough; then without those not needed."""
        tally = Tally(self.rules)
        taken: list[Unit] = []
        is_enough = False
        for u in order:
            if tally.add(u):
                taken.append(u)
                if len(taken) & (len(taken) - 1) == 0 and (is_enough := self._try(_set(taken)) is not None):
                    break
        if not is_enough and self._try(_set(taken)) is None:
            return None
        low, high = 0, len(taken)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._try(_set(taken[:middle])) else (middle + 1, high)
        return self._let_off(_set(taken[:low]))

    def _let_off(self, chosen: dict[str, Unit]) -> Plan | None:
        """The plan without any victim that it does not need; what need not go whole may shrink."""
        for u in sorted(chosen.values(), key=lambda u: (-u.cost, u.job_id)):
            fewer = {k: v for k, v in chosen.items() if k != u.job_id}
            shrunk = {**fewer, u.job_id: self.units[u.job_id][0]}
            for less in (fewer, shrunk):
                if self.rules.permit(less) and self._try(less):
                    chosen = less
                    break
        return self._try(chosen)

    def _through(self, best: Plan) -> Plan:
        """The best of all sets of few candidates."""
        ids = sorted(self.units, key=lambda k: (self.units[k][-1].cost, k))

        def visit(i: int, chosen: dict[str, Unit], cost: int) -> None:
            nonlocal best
            if self.tries >= _MOST_TRIES or (cost, len(chosen)) > best.key[:2]:
                return
            if i == len(ids):
                self.tries += 1
                if self.rules.permit(chosen) and (plan := self._try(chosen)) and plan.key < best.key:
                    best = plan
                return
            visit(i + 1, chosen, cost)
            for u in self.units[ids[i]]:
                visit(i + 1, {**chosen, u.job_id: u}, cost + u.cost)

        visit(0, {}, 0)
        return best


def _set(units: Sequence[Unit]) -> dict[str, Unit]:
    """By victim; what shrinks and then goes, goes."""
    return {u.job_id: u for u in units}


def _first(by_price: Sequence[tuple[Unit, int]], missing: int) -> list[Unit] | None:
    """The first units that give back `missing` devices; None where all do not."""
    found = []
    for u, devices in by_price:
        if missing <= 0:
            break
        found.append(u)
        missing -= devices
    return found if missing <= 0 else None


def _cheapest(by_price: Sequence[tuple[Unit, int]], missing: int) -> list[Unit]:
    """The cheapest units of a node that give back `missing` devices, which all together do: exact for few."""
    if missing <= 0 or len(by_price) > _NODE_FEW:
        return _first(by_price, missing) or []
    best: tuple[int, int, list[Unit]] | None = None
    for mask in range(1, 1 << len(by_price)):
        part = [p for i, p in enumerate(by_price) if mask >> i & 1]
        if sum(n for _, n in part) >= missing:
            key = (sum(u.cost for u, _ in part), mask)
            if best is None or key < best[:2]:
                best = (*key, [u for u, _ in part])
    return best[2] if best else []
