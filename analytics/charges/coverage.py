"""Commitments against usage, hour by hour: who is covered by what, and what stays unused.

A commitment balances inside one hour over all nodes of its scope; nothing is carried over. Commitments apply in the
order of `Commitment.order`, each to what those before it left, so nothing is covered twice.
Belongs here: the loop over hours and dealing each hour's amortized cost. Not here: how one commitment chooses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from analytics.charges import spend, usage
from analytics.charges.amortize import Plan
from analytics.charges.money import deal
from analytics.charges.pieces import Hour, Row, Taken, Usage
from analytics.charges.records import date_of


@dataclass(frozen=True)
class Unused:
    """What a commitment did not use of an hour: 1e-9 of its unit, and the 1e-10 of cost that fall on it."""

    plan: int
    hour: int
    quantity: int
    cost: int
    cost_in_own: int
    is_unconverted: bool


class Part(NamedTuple):
    """What a piece is to the commitment that covers it."""

    plan: int
    used: int
    cost: int
    cost_in_own: int
    is_unconverted: bool


@dataclass
class Settlement:
    """Pieces of rows by column, and unused rests. Rows that no commitment touched have no piece.

    `plan` is the number of the commitment, None for what is left on demand; `used` in 1e-9 of its unit, costs in
    1e-10 of the reporting and of the commitment's own currency.
    """

    row_id: list[int] = field(default_factory=list)
    piece: list[int] = field(default_factory=list)
    quantity: list[int] = field(default_factory=list)
    plan: list[int | None] = field(default_factory=list)
    used: list[int | None] = field(default_factory=list)
    effective: list[int | None] = field(default_factory=list)
    effective_in_own: list[int | None] = field(default_factory=list)
    is_unconverted: list[bool] = field(default_factory=list)
    unused: list[Unused] = field(default_factory=list)

    def add(self, row_id: int, piece: int, quantity: int, by: Part | None) -> None:
        """Piece number `piece` of a row; `by`: the commitment's part in it, None for what is left on demand."""
        self.row_id.append(row_id)
        self.piece.append(piece)
        self.quantity.append(quantity)
        self.plan.append(by.plan if by else None)
        self.used.append(by.used if by else None)
        self.effective.append(by.cost if by else None)
        self.effective_in_own.append(by.cost_in_own if by else None)
        self.is_unconverted.append(by.is_unconverted if by else False)


class Settling:
    """Commitments, classes of usage and the market they meet in."""

    def __init__(self, plans: Sequence[Plan], usages: Sequence[Usage], market: spend.Market) -> None:
        self._plans, self._usages, self._market = plans, usages, market
        self._ratios = [
            {u: usage.ratio(p.commitment, of) for u, of in enumerate(usages)} if _is_usage(p) else {} for p in plans
        ]
        # classes of usage that any commitment may cover
        self.coverable = frozenset(
            u for u, of in enumerate(usages) if any(usage.in_scope(p.commitment, of) for p in plans)
        )
        self._eligible = {u: usages[u] for u in sorted(self.coverable)}
        self._offers: dict[Any, dict[int, spend.Offer]] = {}

    def settle(self, rows: Mapping[int, Sequence[Row]], start: int, end: int) -> Settlement:
        """Settle the hours [start, end). `rows`: hour to its rows in the order of resources."""
        result = Settlement()
        terms = [(i, p.commitment.start, p.commitment.end) for i, p in enumerate(self._plans)]
        for number in range(start, end):
            active = [i for i, first, last in terms if first <= number < last]
            if active:
                self._settle_hour(Hour(number, rows.get(number, ())), active, result)
        return result

    def _settle_hour(self, hour: Hour, active: Sequence[int], result: Settlement) -> None:
        pieces: defaultdict[int, int] = defaultdict(int)
        for i in active:
            plan = self._plans[i]
            taken = self._take(i, hour) if hour.rows else Taken()
            unused = plan.commitment.quantity - sum(taken.used)
            cost = plan.cost(hour.number)
            weights = [*taken.used, unused]
            costs, own = deal(cost or 0, weights), deal(plan.cost_in_own(hour.number), weights)
            for place, quantity, used, part, own_part in zip(
                taken.rows, taken.quantities, taken.used, costs, own, strict=False
            ):
                by = Part(i, used, part, own_part, cost is None)
                result.add(hour.rows[place].row_id, pieces[place], quantity, by)
                pieces[place] += 1
            if unused:
                result.unused.append(Unused(i, hour.number, unused, costs[-1], own[-1], cost is None))
        for place, count in pieces.items():
            if hour.left[place]:
                result.add(hour.rows[place].row_id, count, hour.left[place], None)

    def _take(self, i: int, hour: Hour) -> Taken:
        commitment = self._plans[i].commitment
        if _is_usage(self._plans[i]):
            return usage.cover(commitment, hour, self._ratios[i])
        day = date_of(hour.number)
        key = (i, self._market.card.era_of_coverable(hour.number), day)
        if key not in self._offers:
            self._offers[key] = self._market.offers(commitment, self._eligible, hour.number, day)
        return spend.cover(commitment, hour, self._offers[key])


def _is_usage(plan: Plan) -> bool:
    return plan.commitment.category == "Usage"
