"""What cirrus charges: euros, per minute, parts of a node apart, spot slices, a resource CUD and a prepaid block.

Belongs here: its price list, its contracts with us, and the dated rates of the euro. A100 nodes are priced as GPU, vCPU
and memory, as GCP does for its accelerator-optimized machines; eight A100-40 in all come near the 21.96 USD an hour
published for p4d.24xlarge (2026-11-09). L40S, TPU and L4 prices are invented at about what such nodes cost. The block
is paid whole in advance, as AWS Capacity Blocks are. Not here: billing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from fleet.billing.calendar import DAY, Window, first_of_month, hour_of, midnight_from, whole_hours
from fleet.billing.records import Commitment, Credit, EnergyFactor, ExchangeRate, Price, PriceBook
from fleet.catalogue import ACCELERATORS

PROVIDER = "cirrus"
ACCOUNT = "cirrus-billing-01C2-77"
CURRENCY = "EUR"
REGION = "cr-west-2"

A100, L40S, TPU, L4 = "cr-gpu-a100-8", "cr-gpu-l40s-8", "cr-tpu-v5e-4", "cr-gpu-l4-4"
# Instance type, accelerator, unit, SKU, euros.
_ON_DEMAND = (
    (A100, "a100-40", "GPU-Hours", "CR-A100-GPU", Decimal("1.80")),
    (A100, "a100-40", "vCPU-Hours", "CR-A100-CORE", Decimal("0.024")),
    (A100, "a100-40", "GiB-Hours", "CR-A100-RAM", Decimal("0.003")),
    (L40S, "l40s", "Hours", "CR-L40S-8", Decimal("11.90")),
    (TPU, "tpu-v5e", "Hours", "CR-TPU-V5E-4", Decimal("4.40")),
    (L4, "l4", "Hours", "CR-L4-4", Decimal("2.92")),
)  # fmt: skip
# A spot node costs 49 % to 63 % less, by slices of three days.
_SPOT = (Decimal("1.31"), Decimal("1.08"), Decimal("1.22"), Decimal("1.49"), Decimal("1.17"))
_SLICE = timedelta(days=3)
_EPOCH = datetime(1970, 1, 1, 6)
# US dollars for a euro, a new one each Monday.
_RATES = (Decimal("1.0842"), Decimal("1.0867"), Decimal("1.0815"), Decimal("1.0903"), Decimal("1.0879"))
_COMMITTED_A100 = Decimal("1.134")
_BLOCK_L40S = Decimal("8.75")
_BLOCK_DAYS = 35
_CREDIT_A_NODE = Decimal(40)


def book(nodes: Mapping[str, int], window: Window) -> PriceBook:
    """Prices and contracts; `nodes` counts the fleet's nodes of each instance type."""
    return PriceBook(
        prices=tuple(_on_demand(window) + _spot(window)),
        commitments=tuple(_commitments(nodes, window)),
        credits=(_credit(nodes, window),),
        exchange_rates=tuple(_rates(window)),
        owned_hardware=(),
        energy_factors=(
            EnergyFactor(
                PROVIDER, REGION, Decimal("1.1"), Decimal("0.11"), Decimal("117"), CURRENCY,
                first_of_month(window.start_at, -18),
            ),
        ),
    )  # fmt: skip


def _price(
    sku: str,
    kind: str,
    instance_type: str,
    accelerator: str,
    unit: str,
    euros: Decimal,
    since: datetime,
    **more: object,
) -> Price:
    fields: dict[str, object] = {"pricing_unit": unit, "billing_model": "on_demand", "as_of": since.date()} | more
    return Price(
        provider=PROVIDER, billing_account_id=ACCOUNT, sku_id=sku, sku_price_id=f"{sku}-{kind}",
        price_description=f"{instance_type} {kind.lower()}, {unit}", region=REGION, instance_type=instance_type,
        accelerator=ACCELERATORS[accelerator].plain_name, currency=CURRENCY, list_unit_price=euros,
        contracted_unit_price=euros, metering_s=60, minimum_s=60, valid_from_at=since, **fields,  # type: ignore[arg-type]
    )  # fmt: skip


def _on_demand(window: Window) -> list[Price]:
    since = first_of_month(window.start_at, -8)
    return [
        _price(sku, "OD", instance_type, accelerator, unit, euros, since)
        for instance_type, accelerator, unit, sku, euros in _ON_DEMAND
    ]


def _spot(window: Window) -> list[Price]:
    """Slices from before the window until after it; one ends where the next begins."""
    number = (window.start_at - _EPOCH) // _SLICE
    out = []
    while (since := _EPOCH + number * _SLICE) < window.end_at:
        euros = _SPOT[number % len(_SPOT)]
        until = since + _SLICE
        out.append(_price("CR-L4-4", "SPOT", L4, "l4", "Hours", euros, since, billing_model="spot", valid_to_at=until))
        number += 1
    return out


def _rates(window: Window) -> list[ExchangeRate]:
    monday = window.start_at.date() - timedelta(days=window.start_at.weekday())
    # the contracts' own dates need one too
    dates = [first_of_month(window.start_at, -18).date(), monday - 2 * DAY * 7]
    while (following := dates[-1] + 7 * DAY) < window.end_at.date():
        dates.append(following)
    return [ExchangeRate(CURRENCY, "USD", day, _RATES[i % len(_RATES)]) for i, day in enumerate(dates)]


def _commitments(nodes: Mapping[str, int], window: Window) -> list[Commitment]:
    out = []
    if nodes.get(A100):
        starts = first_of_month(window.start_at, -4)
        ends = first_of_month(starts, 12)
        # one node's GPUs more than there are
        gpus = Decimal(8 * (nodes[A100] + 1))
        out.append(Commitment(
            PROVIDER, ACCOUNT, f"{PROVIDER}/commitment/cud-a100-7f2", "A100 resource CUD", "Usage", "Resource CUD", 10,
            REGION, (A100,), "GPU-Hours", CURRENCY, "All Upfront",
            gpus * _COMMITTED_A100 * whole_hours(starts, ends), Decimal(0), "Monthly", starts, ends, starts.date(),
            committed_quantity=gpus, owner_team="vision",
        ))  # fmt: skip
    if nodes.get(L40S):
        starts = hour_of(window.start_at) - timedelta(days=4)
        ends = starts + timedelta(days=_BLOCK_DAYS)
        some = Decimal(max(1, nodes[L40S] // 2))
        out.append(Commitment(
            PROVIDER, ACCOUNT, f"{PROVIDER}/block/l40s-0031", "L40S capacity block", "Usage", "Capacity Block", 5,
            REGION, (L40S,), "Hours", CURRENCY, "All Upfront", some * _BLOCK_L40S * whole_hours(starts, ends),
            Decimal(0), "Monthly", starts, ends, starts.date(), committed_quantity=some, is_capacity_reservation=True,
            owner_team="speech",
        ))  # fmt: skip
    return out


def _credit(nodes: Mapping[str, int], window: Window) -> Credit:
    day = midnight_from(window.start_at)
    return Credit(
        PROVIDER, ACCOUNT, "cr-promo-88", "Start-up promotion", _CREDIT_A_NODE * sum(nodes.values()), CURRENCY, day,
        day + DAY, day.date(),
    )  # fmt: skip
