"""Which price holds for a node in an hour.

Belongs here: the choice among the prices of the book, and what an owned node costs. Not here: how much of it was used.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction

from fleet.billing.money import UNIT, half_up
from fleet.billing.records import OwnedHardware, Price
from fleet.model import Node
from fleet.topology import SPOT_LABEL
from warehouse.errors import BadInput

YEAR_HOURS = 8760


def is_spot(node: Node) -> bool:
    """Whether the provider may take the node back at any time."""
    return node.labels.get(SPOT_LABEL) == "true"


class PriceList:
    """Looks prices up: a price for the region wins over one for all regions, then the newer statement."""

    def __init__(self, prices: Sequence[Price]) -> None:
        self._prices = tuple(prices)
        self._found: dict[tuple[object, ...], tuple[Price, ...]] = {}

    def of_node(self, node: Node, hour: datetime) -> tuple[Price, ...]:
        """The prices of a node, one for each unit it is priced in; `BadInput` where there is none."""
        model = "spot" if is_spot(node) else "on_demand"
        found = self._look_up(node.provider, node.instance_type, node.region, model, None, hour)
        if not found:
            raise BadInput(f"the price book has no {model} price of {node.instance_type} in {node.region} at {hour}")
        return found

    def committed(self, node: Node, unit: str, commitment_type: str, hour: datetime) -> Fraction | None:
        """The node's rate under Spend commitments of that type; None where they do not apply to it."""
        found = self._look_up(node.provider, node.instance_type, node.region, "committed", commitment_type, hour)
        return next((Fraction(p.contracted_unit_price) for p in found if p.pricing_unit == unit), None)

    def _look_up(
        self, provider: str, instance_type: str, region: str, model: str, plan: str | None, hour: datetime
    ) -> tuple[Price, ...]:
        key = (provider, instance_type, region, model, plan, hour)
        if key not in self._found:
            best: dict[str, Price] = {}
            for p in self._prices:
                if (
                    (p.provider, p.instance_type, p.billing_model, p.commitment_type)
                    == (provider, instance_type, model, plan)
                    and p.region in (region, "*")
                    and p.valid_from_at <= hour
                    and (p.valid_to_at is None or hour < p.valid_to_at)
                ):
                    other = best.get(p.pricing_unit)
                    if other is None or (p.region != "*", p.as_of) > (other.region != "*", other.as_of):
                        best[p.pricing_unit] = p
            self._found[key] = tuple(best[unit] for unit in sorted(best))
        return self._found[key]


def owned_rate(node: Node, hardware: Sequence[OwnedHardware], hour: datetime) -> Fraction:
    """What an owned node costs an hour, with nine decimals: depreciation, running cost and power."""
    fitting = [
        h
        for h in hardware
        if h.provider == node.provider
        and h.instance_type == node.instance_type
        and h.region in (node.region, "*")
        and h.valid_from_at <= hour
        and (h.valid_to_at is None or hour < h.valid_to_at)
    ]
    if not fitting:
        raise BadInput(f"the price book does not say what an owned {node.instance_type} cost in {node.region}")
    h = max(fitting, key=lambda h: (h.region != "*", h.as_of))
    yearly = Fraction(h.capex - h.residual) / Fraction(h.years) + Fraction(h.opex_per_year)
    return half_up(yearly / YEAR_HOURS + Fraction(h.power_kw * h.pue * h.tariff_per_kwh), UNIT)
