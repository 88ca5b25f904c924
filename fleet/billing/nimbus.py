"""What nimbus charges: US dollars, per second with a minimum of a minute, an agreed discount, three commitments.

Belongs here: its price list and its contracts with us. Prices of 8-GPU nodes are those published for the like on AWS
(p4de.24xlarge 27.44705, p5.48xlarge 55.04 USD an hour, of 2026-11-09; 98.32 until the cut of June 2025); L4 and V100
nodes are invented at about what such nodes cost. Metering is that of Linux on demand there. Not here: billing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal

from fleet.billing.calendar import Window, first_of_month, midnight_from, whole_hours
from fleet.billing.records import Commitment, Credit, EnergyFactor, Price, PriceBook
from fleet.catalogue import ACCELERATORS

PROVIDER = "nimbus"
ACCOUNT = "nb-4471-0093"
CURRENCY = "USD"
REGION = "nb-east-1"
# Private pricing agreement: a flat share off every on-demand price.
AGREED = Decimal("0.88")
PLAN = "Savings Plan"

H100, A100, L4 = "nb.h100.8x", "nb.a100-80.8x", "nb.l4.4x"
# Instance type: list price and rate under a savings plan, USD per hour of a node.
_LIST = {H100: Decimal("55.04"), A100: Decimal("27.44705"), L4: Decimal("6.68"), "nb.v100.8x": Decimal("24.48")}
_PLAN_RATE = {H100: Decimal("33.024"), A100: Decimal("17.8405825"), L4: Decimal("4.676")}
_ACCELERATOR = {H100: "h100", A100: "a100-80", L4: "l4", "nb.v100.8x": "v100"}
_RESERVED_H100 = Decimal("35.776")
_RESERVED_L4 = Decimal("4.342")
_PLANNED_SHARE = Decimal("0.45")
_CREDIT_A_NODE = Decimal(65)
_CENT = Decimal("0.01")


def book(nodes: Mapping[str, int], window: Window) -> PriceBook:
    """Prices and contracts; `nodes` counts the fleet's nodes of each instance type."""
    return PriceBook(
        prices=tuple(_prices(window)),
        commitments=tuple(_commitments(nodes, window)),
        credits=(_credit(nodes, window),),
        exchange_rates=(),
        owned_hardware=(),
        energy_factors=(
            EnergyFactor(
                PROVIDER, REGION, Decimal("1.15"), Decimal("0.09"), Decimal("379.5"), CURRENCY,
                first_of_month(window.start_at, -18),
            ),
        ),
    )  # fmt: skip


def _accelerators(instance_type: str) -> int:
    """Accelerators of a node; its type says it, as in nb.h100.8x."""
    return int(instance_type.rpartition(".")[2].removesuffix("x"))


def _prices(window: Window) -> list[Price]:
    since = first_of_month(window.start_at, -5)
    before = first_of_month(window.start_at, -17)
    out = []

    def price(kind: str, instance_type: str, listed: Decimal, contracted: Decimal, **more: object) -> Price:
        fields: dict[str, object] = {
            "region": REGION, "billing_model": "on_demand", "valid_from_at": since, "as_of": since.date(),
        } | more  # fmt: skip
        return Price(
            provider=PROVIDER, billing_account_id=ACCOUNT, sku_id=f"NB-{instance_type}",
            sku_price_id=f"NB-{instance_type}-{kind}", price_description=f"{instance_type} {kind.lower()}, Linux",
            instance_type=instance_type, accelerator=ACCELERATORS[_ACCELERATOR[instance_type]].plain_name,
            pricing_unit="Hours", currency=CURRENCY, list_unit_price=listed, contracted_unit_price=contracted,
            metering_s=1, minimum_s=60, gpu_count=_accelerators(instance_type), **fields,  # type: ignore[arg-type]
        )  # fmt: skip

    for instance_type, listed in _LIST.items():
        out.append(price("OD", instance_type, listed, listed * AGREED))
        if rate := _PLAN_RATE.get(instance_type):
            out.append(price("SP", instance_type, rate, rate, billing_model="committed", commitment_type=PLAN))
    # what a year-old price list and one for all regions say: newer and nearer prices win over both
    old = Decimal("98.32")
    out.append(price("OD", H100, old, old * AGREED, valid_from_at=before, as_of=before.date()))
    anywhere = Decimal("7.1")
    out.append(price("OD-GLOBAL", L4, anywhere, anywhere * AGREED, region="*"))
    return out


def _commitments(nodes: Mapping[str, int], window: Window) -> list[Commitment]:
    starts = first_of_month(window.start_at, -3)
    ends = first_of_month(starts, 12)
    hours = whole_hours(starts, ends)
    out = []

    def commitment(number: str, name: str, **more: object) -> None:
        fields: dict[str, object] = {
            "provider": PROVIDER, "billing_account_id": ACCOUNT, "commitment_name": name, "region": REGION,
            "currency": CURRENCY, "payment_interval": "Monthly", "starts_at": starts, "ends_at": ends,
            "as_of": starts.date(), "commitment_category": "Usage", "commitment_type": "Reserved Instance",
            "precedence": 10, "commitment_unit": "Hours",
        }  # fmt: skip
        out.append(Commitment(commitment_id=f"{PROVIDER}/commitment/{number}", **(fields | more)))  # type: ignore[arg-type]

    reserved = 0
    if nodes.get(H100):
        reserved = max(1, nodes[H100] * 6 // 10)
        commitment(
            "ri-0a51", "H100 nodes of the language team", eligible_instance_types=(H100,),
            payment_model="No Upfront", upfront_cost=Decimal(0), recurring_cost=reserved * _RESERVED_H100,
            committed_quantity=Decimal(reserved), owner_team="language",
        )  # fmt: skip
    if nodes.get(L4):
        # two nodes more than there are: bought for a service that never came
        many = nodes[L4] + 2
        commitment(
            "ri-0c7e", "L4 nodes for search", eligible_instance_types=(L4,), payment_model="Partial Upfront",
            upfront_cost=many * Decimal(18_000), recurring_cost=many * _RESERVED_L4 / 2,
            committed_quantity=Decimal(many), owner_team="search",
        )  # fmt: skip
    planned = (nodes.get(H100, 0) - reserved) * _PLAN_RATE[H100] + nodes.get(A100, 0) * _PLAN_RATE[A100]
    spend = (planned * _PLANNED_SHARE).quantize(_CENT)
    if spend:
        commitment(
            "sp-19d4", "Compute savings plan", eligible_instance_types=(), commitment_category="Spend",
            commitment_type=PLAN, precedence=20, commitment_unit=CURRENCY, payment_model="Partial Upfront",
            upfront_cost=spend * hours / 2, recurring_cost=spend / 2, payment_interval="Hourly", committed_spend=spend,
        )  # fmt: skip
    return out


def _credit(nodes: Mapping[str, int], window: Window) -> Credit:
    day = midnight_from(window.start_at)
    return Credit(
        PROVIDER, ACCOUNT, "nb-credit-2207", "Credit for an outage of the month before",
        _CREDIT_A_NODE * sum(nodes.values()), CURRENCY, day, day + timedelta(days=1), day.date(),
    )  # fmt: skip
