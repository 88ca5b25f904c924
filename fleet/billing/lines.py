"""A line of an account: one charge for one period, in the provider's currency.

Records only. What a line costs is worked out in `usage.py`, `commitments.py` and `extras.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Literal

from fleet.billing.records import Commitment
from fleet.model import Node

Kind = Literal["usage", "purchase", "credit", "tax", "other", "not_in_cluster"]
ZERO = Fraction(0)


@dataclass(frozen=True)
class Line:
    """One charge. Prices are per `unit` of `quantity`; billed and effective cost have ten decimals.

    Credits are negative. `node` is set where the fleet's nodes were used. `status` is that of a commitment's use,
    `committed` how much of the commitment's unit the line used, left unused or bought.
    """

    kind: Kind
    start: datetime
    end: datetime
    description: str
    billed: Fraction
    effective: Fraction
    quantity: Fraction | None = None
    unit: str | None = None
    list_price: Fraction | None = None
    contracted_price: Fraction | None = None
    sku: str | None = None
    sku_price: str | None = None
    pricing: Literal["Standard", "Dynamic", "Committed"] | None = "Standard"
    frequency: Literal["One-Time", "Recurring", "Usage-Based"] = "Usage-Based"
    node: Node | None = None
    resource_id: str | None = None
    resource_name: str | None = None
    resource_type: str | None = None
    service: tuple[str, str, str] = ("Compute", "Virtual Machines", "GPU servers")
    commitment: Commitment | None = None
    status: Literal["Used", "Unused"] | None = None
    committed: Fraction | None = None

    @property
    def list_cost(self) -> Fraction:
        """List price x quantity; what a credit or tax asks; nothing for unused commitments, which have no price."""
        return self._cost(self.list_price)

    @property
    def contracted_cost(self) -> Fraction:
        """Contracted price x quantity, otherwise as `list_cost`."""
        return self._cost(self.contracted_price)

    def _cost(self, price: Fraction | None) -> Fraction:
        if price is None or self.quantity is None:
            return ZERO if self.status == "Unused" else self.billed
        return price * self.quantity
