"""The kinds of rows that a card can hold: which table each becomes, and what its columns must and may say.

Belongs here: names, defaults that are constants, allowed words and bounds. Not here: reading text (`values.py`), and
rules that concern more than one column (`rules.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal

from warehouse.contracts import CONTRACTS
from warehouse.contracts.model import Table
from warehouse.errors import BadInput

# Words that FOCUS 1.4 or the contracts allow.
WORDS: dict[str, tuple[str, ...]] = {
    "billing_model": ("on_demand", "spot", "committed"),
    "pricing_unit": ("Hours", "GPU-Hours", "vCPU-Hours", "GiB-Hours"),
    "rounding": ("up", "nearest", "none"),
    "commitment_category": ("Usage", "Spend"),
    "payment_model": ("No Upfront", "Partial Upfront", "All Upfront"),
    "payment_interval": ("Hourly", "Monthly"),
}
CURRENCY_COLUMNS = frozenset({"currency", "from_currency", "to_currency"})
LIST_COLUMNS = frozenset({"eligible_instance_types"})
# Least values; a number that is not named here may be 0 and not less.
LEAST: dict[str, Decimal] = {"pue": Decimal(1), "metering_s": Decimal(1)}
ABOVE_ZERO = frozenset({"committed_quantity", "committed_spend", "amount", "exchange_rate", "capex", "years"})
# A metering unit of more than a day would be charged in an hour that no longer has to do with the use.
MOST: dict[str, Decimal] = {
    "metering_s": Decimal(86_400),
    "minimum_s": Decimal(31 * 86_400),
    "precedence": Decimal(1_000_000),
    "gpu_count": Decimal(1_000_000),
}
# Digits after the point where fewer are reckoned with than the column holds.
DIGITS: dict[str, int] = {"committed_spend": 9, "upfront_cost": 9, "recurring_cost": 9}
# FOCUS quantities are DECIMAL(18,9): what a term's purchase row can hold.
LARGEST_AMOUNT = Decimal(10) ** 9
DOCUMENT_DEFAULTS = ("provider", "billing_account_id", "currency", "as_of", "source")


@dataclass(frozen=True)
class Kind:
    """A section of a YAML card, or a kind of CSV file.

    `required` columns have no default; `defaults` are as text, as if they had been given; `sign` is the column that
    tells a CSV header of this kind from the others.
    """

    name: str
    required: tuple[str, ...]
    sign: str
    defaults: dict[str, str] = field(default_factory=dict)

    @property
    def table(self) -> Table:
        return CONTRACTS[f"raw.{self.name}"]

    @property
    def columns(self) -> tuple[str, ...]:
        """What a row may give: the contract's columns but `source_line`, which is counted."""
        return tuple(c for c in self.table.columns if c != "source_line")


KINDS: dict[str, Kind] = {
    k.name: k
    for k in (
        Kind(
            "prices",
            ("provider", "billing_account_id", "billing_model", "currency", "list_unit_price", "as_of"),
            "list_unit_price",
            {"region": "*", "pricing_unit": "Hours", "metering_s": "1", "minimum_s": "0", "rounding": "up"},
        ),
        Kind(
            "commitments",
            ("provider", "billing_account_id", "commitment_id", "commitment_category", "commitment_type", "currency",
             "payment_model", "starts_at", "ends_at", "as_of"),
            "commitment_id",
            {"region": "*", "is_capacity_reservation": "false"},
        ),
        Kind(
            "credits",
            ("provider", "billing_account_id", "credit_id", "amount", "currency", "charge_period_start_at", "as_of"),
            "credit_id",
        ),
        Kind("exchange_rates", ("from_currency", "to_currency", "rate_date", "exchange_rate"), "exchange_rate"),
        Kind(
            "owned_hardware",
            ("provider", "instance_type", "accelerator", "gpu_count", "capex", "years", "power_kw", "pue",
             "tariff_per_kwh", "currency", "as_of"),
            "capex",
            {"region": "*", "residual": "0", "opex_per_year": "0"},
        ),
        Kind(
            "energy_factors",
            ("provider", "pue", "tariff_per_kwh", "carbon_g_per_kwh", "currency"),
            "carbon_g_per_kwh",
            {"region": "*"},
        ),
    )
}  # fmt: skip


def kind_named(name: str) -> Kind:
    """The kind of that name (`prices` or `raw.prices`); `BadInput` lists those there are."""
    found = KINDS.get(name.removeprefix("raw."))
    if found is None:
        raise BadInput(f"--kind {name}: none of {', '.join(KINDS)}")
    return found
