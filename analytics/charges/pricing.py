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

from analytics.charges.records import ALWAYS, ANYWHERE, NEVER, PRICING_UNITS, Price


class Kind(NamedTuple):
    """What tells nodes apart to a rate card."""

    provider: str | None
    region: str | None
    instance_type: str | None
    accelerator: str | None
    is_spot: bool


class Card:
    """The prices that hold in some of the hours [start, end), asked by kind of node and hour.

    Spot prices change hourly, so prices are kept by era: a stretch of hours within which no validity changes.
    """

    def __init__(
        self, prices: Iterable[Price], owned: Iterable[Price] = (), start: int = ALWAYS, end: int = NEVER
    ) -> None:
        holding = [p for p in (*prices, *owned) if p.valid_from < end and p.valid_to > start]
        bounds = {b for p in holding for b in (p.valid_from, p.valid_to)}
        self._bounds = sorted(b for b in bounds if start < b < end)
        self._coverable = sorted({b for p in holding if p.billing_model != "spot" for b in (p.valid_from, p.valid_to)})
        self._held: defaultdict[Any, defaultdict[int, list[Price]]] = defaultdict(lambda: defaultdict(list))
        for price in sorted(holding, key=lambda p: (p.sku_price_id or "", p.billing_account_id or "")):
            by = (price.instance_type, None) if price.instance_type is not None else (None, price.accelerator)
            eras = self._held[(price.provider, price.billing_model, *by)]
            for era in range(self.era(max(price.valid_from, start)), self.era(min(price.valid_to, end) - 1) + 1):
                eras[era].append(price)
        self._found: dict[Any, tuple[Price, ...]] = {}

    def era(self, hour: int) -> int:
        """Number of the hour's era."""
        return bisect_right(self._bounds, hour)

    def era_of_coverable(self, hour: int) -> int:
        """Number of the stretch of hours within which no price changes but of spot nodes, which are never covered."""
        return bisect_right(self._coverable, hour)

    def eras(self, start: int, end: int) -> list[tuple[int, int]]:
        """Hours [start, end) cut into eras."""
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
        era = self.era(hour)
        own = () if kind.instance_type is None else ((kind.instance_type, None),)
        for by in (*own, (None, kind.accelerator)):
            eras = self._held.get((kind.provider, model, *by))
            for price in () if eras is None else eras.get(era, ()):
                if price.region not in (ANYWHERE, kind.region):
                    continue
                if model == "committed" and price.commitment_type != commitment_type:
                    continue
                held = best.get(price.pricing_unit)
                # equal: the first by id stays
                if held is None or _rank(price) > _rank(held):
                    best[price.pricing_unit] = price
        return best


def _fit(price: Price) -> tuple[Any, ...]:
    return (price.instance_type is not None, price.region != ANYWHERE, price.as_of)


def _rank(price: Price) -> tuple[Any, ...]:
    return (*_fit(price), price.valid_from)
