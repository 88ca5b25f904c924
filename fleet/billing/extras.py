"""What providers bill that the cluster does not know: other machines, storage, network, support, and taxes.

Belongs here: invented lines of that kind. They are billed by the day, or by the hour for machines, for as long as a
bill covers. Not here: the fleet's own nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from fleet.billing import cirrus, nimbus
from fleet.billing.calendar import DAY, Window, days_of, hours_of
from fleet.billing.lines import Line
from fleet.billing.money import COST, half_up


@dataclass(frozen=True)
class Extra:
    """A service that is billed beside the nodes: so much a day (or an hour) at a price."""

    name: str
    service: tuple[str, str, str]
    unit: str
    quantity: Decimal
    price: Decimal
    resource_type: str
    is_machine: bool = False


VIRTUAL = ("Compute", "Virtual Machines", "Virtual machines")
EXTRAS: dict[str, tuple[Extra, ...]] = {
    nimbus.PROVIDER: (
        Extra("bastion", VIRTUAL, "Hours", Decimal(1), Decimal("0.0928"), "Virtual Machine", is_machine=True),
        Extra("checkpoints", ("Storage", "Object Storage", "Object store"), "GiB-Days", Decimal("48320.5"),
              Decimal("0.00076"), "Bucket"),
        Extra("egress", ("Networking", "Network Connectivity", "Data transfer"), "GiB", Decimal("1841.25"),
              Decimal("0.05"), "Network"),
        Extra("support", ("Management and Governance", "Support", "Business support"), "Days", Decimal(1), Decimal(90),
              "Support plan"),
    ),
    cirrus.PROVIDER: (
        Extra("build-runner", VIRTUAL, "Hours", Decimal(1), Decimal("0.382"), "Virtual Machine", is_machine=True),
        Extra("datasets", ("Storage", "File Storage", "File store"), "GiB-Days", Decimal("20480"), Decimal("0.0054"),
              "Volume"),
    ),
}  # fmt: skip
TAX_SHARE: dict[str, Fraction] = {nimbus.PROVIDER: Fraction(7, 100), cirrus.PROVIDER: Fraction(19, 100)}
_ZONE = {nimbus.PROVIDER: "nb-east-1a", cirrus.PROVIDER: "cr-west-2-b"}


def extras(provider: str, days: Window) -> Iterator[Line]:
    """Lines of the provider's other services in the window, by service and time."""
    for extra in EXTRAS.get(provider, ()):
        periods = hours_of if extra.is_machine else days_of
        for start, end in periods(days.start_at, days.end_at):
            quantity, price = Fraction(extra.quantity), Fraction(extra.price)
            cost = half_up(quantity * price, COST)
            yield Line(
                kind="not_in_cluster" if extra.is_machine else "other", start=start, end=end, billed=cost,
                effective=cost, description=extra.service[2], quantity=quantity, unit=extra.unit, list_price=price,
                contracted_price=price, sku=f"{provider}-{extra.name}", sku_price=f"{provider}-{extra.name}-od",
                resource_id=f"{provider}:///{_ZONE[provider]}/{extra.name}", resource_name=extra.name,
                resource_type=extra.resource_type, service=extra.service,
            )  # fmt: skip


def tax(provider: str, billed: Sequence[Line], until: datetime) -> Line:
    """The tax on what was billed before credits, in whole cents, charged on the last day that is billed."""
    amount = half_up(sum((x.billed for x in billed if x.kind != "credit"), Fraction(0)) * TAX_SHARE[provider], 2)
    return Line(
        kind="tax", start=until - DAY, end=until, description="Sales tax", billed=amount, effective=amount,
        pricing=None, frequency="One-Time", service=("Other", "Other (Other)", "Tax"),
    )  # fmt: skip
