"""All that a provider charges us for a window, line by line in its own currency: nodes, commitments, credits.

Belongs here: making lines of what was used, covered, left unused, paid and credited. Not here: what the cluster does
not know of (`extras.py`), sums (`invoices.py`) and files (`bills.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from functools import lru_cache

from fleet.billing.calendar import HOUR, Window, hour_of, hours_of
from fleet.billing.commitments import Part, Payment, active, amortized, cover, payments
from fleet.billing.lines import ZERO, Line
from fleet.billing.money import COST, half_up, shares
from fleet.billing.pricelist import PriceList, owned_rate
from fleet.billing.records import Commitment, Credit, PriceBook
from fleet.billing.usage import metered_hours, present, uses
from fleet.model import Node


def account(nodes: Sequence[Node], book: PriceBook, provider: str, present_in: Window, days: Window) -> list[Line]:
    """The provider's lines for nodes, commitments and credits whose periods begin in `days`, by time.

    Nodes are charged while they are seen, in `present_in`; commitments cost through all of `days`.
    """
    mine = [n for n in nodes if n.provider == provider]
    lines = list(_owned(mine, book, present_in))
    owned = {h.instance_type for h in book.owned_hardware}
    priced = [n for n in mine if n.instance_type not in owned]
    prices = PriceList([p for p in book.prices if p.provider == provider])
    commitments = [c for c in book.commitments if c.provider == provider]
    used = uses(priced, prices, present_in)
    for hour, _ in hours_of(days.start_at, days.end_at):
        holding = active(commitments, hour)
        parts, left = cover(used.get(hour, ()), holding, prices, hour)
        lines += [_standard(p) for p in parts if p.commitment is None]
        for c in holding:
            lines += _committed(c, [p for p in parts if p.commitment is c], left[c.commitment_id], hour)
    for c in commitments:
        lines += [_purchase(p) for p in payments(c, days)]
    for credit in book.credits:
        if credit.provider == provider and days.start_at <= credit.charge_period_start_at < days.end_at:
            lines.append(_credit(credit))
    return sorted(lines, key=lambda line: line.start)


@lru_cache(maxsize=100_000)
def _cost(price: Fraction, quantity: Fraction) -> Fraction:
    return half_up(price * quantity, COST)


def _standard(part: Part) -> Line:
    use, price = part.use, part.use.price
    contracted = Fraction(price.contracted_unit_price)
    cost = _cost(contracted, part.quantity)
    return _of_node(part, "Dynamic" if use.is_spot else "Standard", cost, cost)


def _of_node(part: Part, pricing: str, billed: Fraction, effective: Fraction) -> Line:
    use, price, node = part.use, part.use.price, part.use.node
    c = part.commitment
    return Line(
        kind="usage", start=use.start, end=use.end, description=price.price_description, billed=billed,
        effective=effective, quantity=part.quantity, unit=price.pricing_unit,
        list_price=Fraction(price.list_unit_price), contracted_price=Fraction(price.contracted_unit_price),
        sku=price.sku_id, sku_price=price.sku_price_id, pricing=pricing, node=node,  # type: ignore[arg-type]
        resource_id=node.provider_id, resource_name=node.name, resource_type="Virtual Machine", commitment=c,
        status="Used" if c else None, committed=part.committed,
    )  # fmt: skip


def _committed(c: Commitment, parts: Sequence[Part], left: Fraction, hour: datetime) -> Iterator[Line]:
    """Lines of the covered use and of what was left, which together cost the hour's amortized amount."""
    weights = [p.committed or ZERO for p in parts] + ([left] if left else [])
    costs = shares(amortized(c, hour), weights)
    for part, cost in zip(parts, costs, strict=False):
        yield _of_node(part, "Committed", ZERO, cost)
    if left:
        yield Line(
            kind="usage", start=hour, end=hour + HOUR, description=f"{c.commitment_name}, unused", billed=ZERO,
            effective=costs[-1], quantity=left, unit=c.commitment_unit, pricing="Committed",
            sku=c.commitment_id.rpartition("/")[2], sku_price=f"{c.commitment_id.rpartition('/')[2]}-unused",
            resource_id=c.commitment_id, resource_name=c.commitment_name, resource_type=c.commitment_type,
            commitment=c, status="Unused", committed=left,
        )  # fmt: skip


def _purchase(p: Payment) -> Line:
    c = p.commitment
    # what the payment buys: the committed units (or money) of every hour that it pays
    bought = Fraction(c.committed_quantity or c.committed_spend or 0) * ((p.end - p.start) // HOUR)
    name = c.commitment_id.rpartition("/")[2]
    return Line(
        kind="purchase", start=p.start, end=p.end, billed=p.amount, effective=ZERO, quantity=Fraction(1), unit="Units",
        description=f"{c.commitment_name}, {'upfront' if p.is_upfront else 'recurring'} fee", list_price=p.amount,
        contracted_price=p.amount, sku=name, sku_price=f"{name}-{'upfront' if p.is_upfront else 'recurring'}",
        frequency="One-Time" if p.is_upfront else "Recurring", resource_id=c.commitment_id,
        resource_name=c.commitment_name, resource_type=c.commitment_type, commitment=c, committed=bought,
    )  # fmt: skip


def _credit(credit: Credit) -> Line:
    amount = -Fraction(credit.amount)
    return Line(
        kind="credit", start=credit.charge_period_start_at, end=credit.charge_period_end_at, billed=amount,
        effective=amount, description=credit.credit_description, pricing=None, frequency="One-Time",
    )  # fmt: skip


def _owned(nodes: Sequence[Node], book: PriceBook, window: Window) -> Iterator[Line]:
    """What owned nodes cost while they were there: an internal price, no invoice from outside."""
    owned = {h.instance_type for h in book.owned_hardware}
    rates: dict[tuple[str, str], Fraction] = {}
    for node, start, end in present([n for n in nodes if n.instance_type in owned], window):
        key = (node.region, node.instance_type)
        if key not in rates:
            rates[key] = owned_rate(node, book.owned_hardware, hour_of(start))
        rate, quantity = rates[key], metered_hours(node, start, end)
        cost = _cost(rate, quantity)
        yield Line(
            kind="usage", start=start, end=end, description=f"{node.instance_type}, owned", billed=cost,
            effective=cost, quantity=quantity, unit="Hours", list_price=rate, contracted_price=rate,
            sku=node.instance_type, sku_price=f"{node.instance_type}-owned", node=node, resource_id=node.provider_id,
            resource_name=node.name, resource_type="Server",
        )  # fmt: skip
