"""Charges that stand for no node: purchases, unused commitments, credits.

Unused rows carry prices as the FOCUS appendix does (commitment_discount_flexibility, zero percent utilization): the
unused quantity at the list and contracted price of the SKU that was committed to, which is the on-demand price of the
first eligible instance type. Where the commitment names none, or it is priced in another unit, the price is the
commitment's own fee for a unit; under a Spend commitment a unit of money costs one (appendix,
commitment_discount_scenarios, flexible spend plan, 0 percent).
Belongs here: columns of these rows. Not here: amounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, NamedTuple

from analytics.charges.amortize import Plan
from analytics.charges.coverage import Unused
from analytics.charges.credits import Credit
from analytics.charges.currency import Exchange
from analytics.charges.money import NANO, half_up
from analytics.charges.pricing import Card, Kind
from analytics.charges.records import ANYWHERE, Commitment, Price, date_of, hour_at

_EXACT = Context(prec=80)
Row = dict[str, Any]


def decimal(value: int | None, digits: int) -> Decimal | None:
    """`value` x 10^-digits, exactly."""
    return None if value is None else Decimal(value).scaleb(-digits, _EXACT)


class Own(NamedTuple):
    """Unit prices in the currency they were given in."""

    currency: str | None
    listed: int | None
    agreed: int | None


@dataclass(frozen=True)
class Books:
    """What rows are stated with: prices, conversion, reporting currency, commitment ids that two providers share."""

    card: Card
    exchange: Exchange
    currency: str
    shared_ids: frozenset[str]

    def purchases(self, plan: Plan, start: int, end: int) -> Iterator[Row]:
        """Purchase rows of a commitment charged in the hours [start, end)."""
        c = plan.commitment
        for p in plan.purchases(start, end):
            kind = "upfront" if p.is_upfront else "recurring"
            yield self._commitment(c, p.start, kind) | {
                "charge_category": "Purchase",
                "charge_description": f"{kind.capitalize()} fee of {label(c)}",
                "charge_frequency": "One-Time" if p.is_upfront else "Recurring",
                "charge_period_end_at": hour_at(p.end),
                "pricing_category": "Standard",
                "pricing_unit": "Units" if p.is_upfront else "Hours",
                "commitment_quantity": decimal(p.quantity, 9),
                **_own_sku(c, kind),
                **self._priced(p.count * NANO, p.price, p.price, Own(c.currency, p.price_in_own, p.price_in_own)),
                "billed_cost": decimal((p.price or 0) * p.count, 9),
                "effective_cost": Decimal(0),
                "pricing_currency_effective_cost": Decimal(0),
                "flags": "no_rate" if p.price is None else None,
            }

    def unused(self, plan: Plan, rest: Unused) -> Row:
        """The row of what a commitment did not use of an hour."""
        c = plan.commitment
        sku, prices = self._committed_price(plan, rest.hour)
        unrated = rest.is_unconverted or prices[0] is None
        return self._commitment(c, rest.hour, "unused") | {
            "charge_category": "Usage",
            "charge_description": f"Unused part of {label(c)}",
            "charge_frequency": "Usage-Based",
            "charge_period_end_at": hour_at(rest.hour + 1),
            "pricing_category": "Committed",
            "pricing_unit": c.unit,
            "commitment_discount_status": "Unused",
            "capacity_reservation_status": "Unused" if c.is_capacity_reservation else None,
            "commitment_quantity": decimal(rest.quantity, 9),
            **sku,
            **self._priced(rest.quantity, *prices),
            "billed_cost": Decimal(0),
            "effective_cost": decimal(rest.cost, 10),
            "pricing_currency_effective_cost": decimal(rest.cost_in_own, 10),
            "flags": "no_rate" if unrated else None,
        }

    def credits(self, credits: Iterable[Credit], start: date, end: date) -> Iterator[Row]:
        """Credits whose period starts on a date of [start, end): negative, all four costs alike."""
        for c in credits:
            if not start <= c.start.date() < end:
                continue
            hour = c.start.replace(minute=0, second=0, microsecond=0)
            amount = self.exchange.price(c.amount, c.currency, self.currency, hour.date())
            cost = decimal(-(amount or 0), 10)
            yield self._base(hour, c.provider, c.account) | {
                "charge_id": f"computed/credit/{c.provider}/{c.credit_id}/{hour:%Y%m%dT%H}",
                "charge_scope": "credit",
                "charge_category": "Credit",
                "charge_description": c.description,
                "charge_frequency": "One-Time",
                "charge_period_start_at": c.start,
                "charge_period_end_at": c.end or c.start + timedelta(hours=1),
                "service_category": "Other",
                "service_subcategory": "Other (Other)",
                "service_name": "Credits",
                "pricing_currency": c.currency,
                "pricing_currency_effective_cost": decimal(-c.amount, 10),
                "list_cost": cost,
                "contracted_cost": cost,
                "billed_cost": cost,
                "effective_cost": cost,
                "flags": "no_rate" if amount is None else None,
            }

    def _priced(self, quantity: int, listed: int | None, agreed: int | None, own: Own) -> Row:
        """Quantity, prices and the costs they make; all integers of 1e-9."""
        return {
            "pricing_quantity": decimal(quantity, 9),
            "list_unit_price": decimal(listed, 9),
            "contracted_unit_price": decimal(agreed, 9),
            "pricing_currency": own.currency,
            "pricing_currency_list_unit_price": decimal(own.listed, 9),
            "pricing_currency_contracted_unit_price": decimal(own.agreed, 9),
            "list_cost": decimal(quantity * (listed or 0), 18),
            "contracted_cost": decimal(quantity * (agreed or 0), 18),
        }

    def _committed_price(self, plan: Plan, hour: int) -> tuple[Row, tuple[int | None, int | None, Own]]:
        """SKU columns and (list, contracted, the same in the price's own currency) of a committed unit."""
        c, day = plan.commitment, date_of(hour)
        found = self._sku_price(c, hour)
        if found is not None:
            listed = self.exchange.price(found.list_price, found.currency, self.currency, day)
            agreed = self.exchange.price(found.contracted_price, found.currency, self.currency, day)
            own = Own(found.currency, found.list_price, found.contracted_price)
            # a rate that is missing here is missing for the usage too; the fee says what the unit cost
            if listed is not None and agreed is not None:
                sku = {"sku_id": found.sku_id, "sku_price_id": found.sku_price_id, "sku_meter": "Commitment"}
                return sku, (listed, agreed, own)
        if c.category == "Spend":
            converted = self.exchange.price(NANO, c.currency, self.currency, day)
            return _own_sku(c, "unit"), (converted, converted, Own(c.currency, NANO, NANO))
        own_fee = _fee(c)
        fee = self.exchange.price(own_fee, c.currency, self.currency, day)
        return _own_sku(c, "unit"), (fee, fee, Own(c.currency, own_fee, own_fee))

    def _sku_price(self, c: Commitment, hour: int) -> Price | None:
        for instance_type in c.types if c.category == "Usage" else ():
            kind = Kind(c.provider, c.region or ANYWHERE, instance_type, None, False)
            for price in self.card.of_node(kind, hour):
                if price.pricing_unit == c.unit and price.billing_model != "owned":
                    return price
        return None

    def _commitment(self, c: Commitment, hour: int, what: str) -> Row:
        shared = f"{c.provider}/" if c.commitment_id in self.shared_ids else ""
        return self._base(hour_at(hour), c.provider, c.account) | {
            "charge_id": f"computed/{shared}{c.commitment_id}/{hour_at(hour):%Y%m%dT%H}/{what}",
            "charge_scope": "commitment",
            "resource_id": c.commitment_id,
            "resource_name": c.name,
            "resource_type": "Commitment",
            "region": c.region,
            "service_category": "Compute",
            "service_subcategory": "Virtual Machines",
            "service_name": "Virtual Machines",
            "owner_team": c.owner_team,
            **commitment_columns(c),
        }

    def _base(self, hour: datetime, provider: str, account: str | None) -> Row:
        month = hour.replace(day=1, hour=0)
        return {
            "date": hour.date(),
            "hour": hour,
            "provider": provider,
            "billing_account_id": account,
            "invoice_issuer": provider,
            "service_provider": provider,
            "host_provider": provider,
            "charge_period_start_at": hour,
            "billing_period_start_at": month,
            "billing_period_end_at": (month + timedelta(days=32)).replace(day=1),
            "billing_currency": self.currency,
        }


def label(c: Commitment) -> str:
    """How a commitment is called in descriptions."""
    return c.name or c.commitment_id


def commitment_columns(c: Commitment) -> Row:
    """The columns by which every row of a commitment names it."""
    return {
        "commitment_id": c.commitment_id,
        "commitment_name": c.name,
        "commitment_type": c.type,
        "commitment_category": c.category,
        "commitment_unit": c.unit,
        "capacity_reservation_id": c.commitment_id if c.is_capacity_reservation else None,
    }


def _own_sku(c: Commitment, what: str) -> Row:
    """SKU columns of the commitment itself; `what`: which of its prices (a FOCUS SkuPriceId has one)."""
    return {"sku_id": c.type or c.category, "sku_price_id": f"{c.commitment_id}/{what}", "sku_meter": "Commitment"}


def _fee(c: Commitment) -> int:
    """All fees of the term for one committed unit, 1e-9."""
    return half_up((c.upfront + c.recurring * c.hours) * NANO, c.quantity * c.hours)
