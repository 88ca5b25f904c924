"""Which price holds for a node in an hour.

A price fits by provider, billing model, instance type (or, without one, the same accelerator), region (or any) and
validity. Of several for one pricing unit the first of these decides: its own instance type, its own region, the
newest as_of, the newest validity, the smallest sku_price_id. A node-hour is charged either by one price in Hours or
by its components (GPU-, vCPU- and GiB-Hours), whichever fits better by the first three.
Belongs here: choosing among prices. Not here: quantities, conversion.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from analytics.charges.records import ANYWHERE, PRICING_UNITS, Price


class Kind(NamedTuple):
    """What tells nodes apart to a rate card."""

    provider: str | None
    region: str | None
    instance_type: str | None
    accelerator: str | None
    is_spot: bool


class Card:
    """All prices, asked by kind of node and hour."""

    def __init__(self, prices: Iterable[Price], owned: Iterable[Price] = ()) -> None:
        self._by_model: dict[tuple[str | None, str], list[Price]] = defaultdict(list)
        bounds = set()
        for price in (*prices, *owned):
            self._by_model[price.provider, price.billing_model].append(price)
            bounds |= {price.valid_from, price.valid_to}
        for rows in self._by_model.values():
            rows.sort(key=lambda p: (p.sku_price_id or "", p.billing_account_id or ""))
        self._bounds = sorted(bounds)
        self._found: dict[Any, tuple[Price, ...]] = {}

    def era(self, hour: int) -> int:
        """Number of the stretch of hours between two changes of any validity: within one, the same prices hold."""
        return bisect_right(self._bounds, hour)

    def eras(self, start: int, end: int) -> list[tuple[int, int]]:
        """Hours [start, end) cut where any validity changes."""
        cuts = [start, *(b for b in self._bounds if start < b < end), end]
        return list(pairwise(cuts))

    def of_node(self, kind: Kind, hour: int) -> tuple[Price, ...]:
        """Prices of a node's hour, in the order of `PRICING_UNITS`; empty: none is known. Owned hardware goes first."""
        key = (kind, self.era(hour))
        if key not in self._found:
            owned = self._winners(kind, "owned", hour)
            market = "spot" if kind.is_spot else "on_demand"
            self._found[key] = owned or self._winners(kind, market, hour)
        return self._found[key]

    def committed(self, kind: Kind, pricing_unit: str, commitment_type: str | None, hour: int) -> Price | None:
        """The rate under a Spend commitment of that type for a usage priced in `pricing_unit`."""
        key = (kind, self.era(hour), commitment_type)
        if key not in self._found:
            fitting = self._best(kind, "committed", hour, commitment_type)
            self._found[key] = tuple(fitting.values())
        return next((p for p in self._found[key] if p.pricing_unit == pricing_unit), None)

    def _winners(self, kind: Kind, model: str, hour: int) -> tuple[Price, ...]:
        best = self._best(kind, model, hour)
        whole = best.pop("Hours", None)
        if whole is not None and all(_fit(whole) >= _fit(p) for p in best.values()):
            return (whole,)
        return tuple(best[u] for u in PRICING_UNITS if u in best)

    def _best(self, kind: Kind, model: str, hour: int, commitment_type: str | None = None) -> dict[str, Price]:
        """Pricing unit to the price that holds."""
        best: dict[str, Price] = {}
        for price in self._by_model.get((kind.provider, model), ()):
            if (
                price.valid_from <= hour < price.valid_to
                and (model != "committed" or price.commitment_type == commitment_type)
                and price.region in (ANYWHERE, kind.region)
                and (
                    price.instance_type == kind.instance_type
                    if price.instance_type is not None
                    else price.accelerator == kind.accelerator
                )
            ):
                held = best.get(price.pricing_unit)
                # equal: the first by id stays
                if held is None or _rank(price) > _rank(held):
                    best[price.pricing_unit] = price
        return best


def _fit(price: Price) -> tuple[Any, ...]:
    return (price.instance_type is not None, price.region != ANYWHERE, price.as_of)


def _rank(price: Price) -> tuple[Any, ...]:
    return (*_fit(price), price.valid_from)
