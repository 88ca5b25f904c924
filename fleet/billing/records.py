"""What a price book is made of, as frozen records under the column names of the rate card tables.

Records only: no price is set here and nothing is computed. Money and quantities are Decimal, instants naive UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Literal


@dataclass(frozen=True)
class Price:
    """A price of a unit, as in raw.prices: `region` may be `*`, `valid_to_at` open, of two that hold the newer counts.

    A `committed` price is the rate under the Spend commitments of that provider and `commitment_type`.
    """

    provider: str
    billing_account_id: str
    sku_id: str
    sku_price_id: str
    price_description: str
    region: str
    instance_type: str
    accelerator: str
    billing_model: Literal["on_demand", "spot", "committed"]
    pricing_unit: Literal["Hours", "GPU-Hours", "vCPU-Hours", "GiB-Hours"]
    currency: str
    list_unit_price: Decimal
    contracted_unit_price: Decimal
    metering_s: int
    minimum_s: int
    valid_from_at: datetime
    as_of: date
    valid_to_at: datetime | None = None
    commitment_type: str | None = None
    rounding: Literal["up", "nearest", "none"] = "up"
    gpu_count: int | None = None


@dataclass(frozen=True)
class Commitment:
    """A commitment, as in raw.commitments: `committed_quantity` units an hour, or `committed_spend` money an hour.

    `recurring_cost` is paid for each hour of the term, invoiced by `payment_interval`.
    """

    provider: str
    billing_account_id: str
    commitment_id: str
    commitment_name: str
    commitment_category: Literal["Usage", "Spend"]
    commitment_type: str
    precedence: int
    region: str
    eligible_instance_types: tuple[str, ...]
    commitment_unit: str
    currency: str
    payment_model: Literal["No Upfront", "Partial Upfront", "All Upfront"]
    upfront_cost: Decimal
    recurring_cost: Decimal
    payment_interval: Literal["Hourly", "Monthly"]
    starts_at: datetime
    ends_at: datetime
    as_of: date
    committed_quantity: Decimal | None = None
    committed_spend: Decimal | None = None
    is_capacity_reservation: bool = False
    owner_team: str | None = None


@dataclass(frozen=True)
class Credit:
    """Money given back, as in raw.credits; `amount` is positive."""

    provider: str
    billing_account_id: str
    credit_id: str
    credit_description: str
    amount: Decimal
    currency: str
    charge_period_start_at: datetime
    charge_period_end_at: datetime
    as_of: date


@dataclass(frozen=True)
class ExchangeRate:
    """`exchange_rate` units of `to_currency` for one of `from_currency`, from `rate_date` on."""

    from_currency: str
    to_currency: str
    rate_date: date
    exchange_rate: Decimal


@dataclass(frozen=True)
class OwnedHardware:
    """What one owned node costs, as in raw.owned_hardware."""

    provider: str
    billing_account_id: str
    region: str
    instance_type: str
    accelerator: str
    gpu_count: int
    capex: Decimal
    residual: Decimal
    years: Decimal
    opex_per_year: Decimal
    power_kw: Decimal
    pue: Decimal
    tariff_per_kwh: Decimal
    currency: str
    valid_from_at: datetime
    as_of: date
    valid_to_at: datetime | None = None


@dataclass(frozen=True)
class EnergyFactor:
    """A site's overhead, tariff and grid, as in raw.energy_factors."""

    provider: str
    region: str
    pue: Decimal
    tariff_per_kwh: Decimal
    carbon_g_per_kwh: Decimal
    currency: str
    valid_from_at: datetime
    valid_to_at: datetime | None = None


@dataclass(frozen=True)
class PriceBook:
    """Everything the providers' price lists and contracts say."""

    prices: tuple[Price, ...]
    commitments: tuple[Commitment, ...]
    credits: tuple[Credit, ...]
    exchange_rates: tuple[ExchangeRate, ...]
    owned_hardware: tuple[OwnedHardware, ...]
    energy_factors: tuple[EnergyFactor, ...]

    def providers(self) -> tuple[str, ...]:
        """Names of all providers in the book, sorted."""
        return tuple(sorted({x.provider for part in (self.prices, self.owned_hardware) for x in part}))
