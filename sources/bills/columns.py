"""Columns of a bill: which header means which column of raw.bills, and which FOCUS version a header speaks.

Spellings differ by version (Provider, ProviderName, ServiceProviderName) and by tool (case, spaces, underscores).
Belongs here: names. Not here: values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sources.bills.quoting import cut
from warehouse.errors import BadInput

# Column of raw.bills, then the headers it may have, newest first: 1.3+, 1.0-1.2, 1.0-preview and 0.5.
_SPELLINGS = """
resource_id ResourceId
resource_name ResourceName
resource_type ResourceType
billing_account_id BillingAccountId
sub_account_id SubAccountId
invoice_id InvoiceId
invoice_issuer InvoiceIssuerName InvoiceIssuer
service_provider ServiceProviderName ProviderName Provider
host_provider HostProviderName
region RegionId Region
zone AvailabilityZone
charge_category ChargeCategory ChargeType
charge_class ChargeClass
charge_description ChargeDescription
charge_frequency ChargeFrequency
charge_period_start_at ChargePeriodStart
charge_period_end_at ChargePeriodEnd
billing_period_start_at BillingPeriodStart
billing_period_end_at BillingPeriodEnd
service_category ServiceCategory
service_subcategory ServiceSubcategory
service_name ServiceName
sku_id SkuId
sku_price_id SkuPriceId
sku_meter SkuMeter
sku_price_details SkuPriceDetails
pricing_category PricingCategory
pricing_quantity PricingQuantity
pricing_unit PricingUnit
consumed_quantity ConsumedQuantity UsageQuantity
consumed_unit ConsumedUnit UsageUnit
list_unit_price ListUnitPrice
contracted_unit_price ContractedUnitPrice
list_cost ListCost
contracted_cost ContractedCost
billed_cost BilledCost
effective_cost EffectiveCost AmortizedCost
billing_currency BillingCurrency
pricing_currency PricingCurrency
pricing_currency_list_unit_price PricingCurrencyListUnitPrice
pricing_currency_contracted_unit_price PricingCurrencyContractedUnitPrice
pricing_currency_effective_cost PricingCurrencyEffectiveCost
commitment_id CommitmentDiscountId
commitment_name CommitmentDiscountName
commitment_type CommitmentDiscountType
commitment_category CommitmentDiscountCategory
commitment_discount_status CommitmentDiscountStatus
commitment_quantity CommitmentDiscountQuantity
commitment_unit CommitmentDiscountUnit
capacity_reservation_id CapacityReservationId
capacity_reservation_status CapacityReservationStatus
tags Tags
"""
# Read to repair other columns, and kept in `extra` as well.
_HELPING = """
block_size x_PricingBlockSize
block_text x_PricingUnitDescription
effective_unit_price x_EffectiveUnitPrice
charge_subcategory ChargeSubcategory
"""
SPELLINGS = {c: tuple(names) for c, *names in (line.split() for line in _SPELLINGS.strip().splitlines())}
HELPING = {c: tuple(names) for c, *names in (line.split() for line in _HELPING.strip().splitlines())}
# The header to name in messages.
FOCUS_NAME = {c: names[0] for c, names in (SPELLINGS | HELPING).items()}

# A file without these columns is no bill; costs are looked for apart, one of the two is enough.
MANDATORY = ("billing_account_id", "billing_currency", "charge_category", "charge_period_start_at",
             "charge_period_end_at")  # fmt: skip

# Columns that came with a version and are not in the one before (FOCUS_Spec, CHANGELOG.md).
_CAME_WITH = {
    "1.4": ("InvoiceDetailId", "CommitmentProgramEligibilityDetails"),
    "1.3": ("ServiceProviderName", "HostProviderName", "AllocatedMethodId", "AllocatedResourceId", "ContractApplied"),
    "1.2": ("InvoiceId", "PricingCurrency", "BillingAccountType", "SubAccountType"),
    "1.1": ("CapacityReservationId", "CapacityReservationStatus", "CommitmentDiscountQuantity", "ServiceSubcategory",
            "SkuMeter", "SkuPriceDetails"),
}  # fmt: skip


@dataclass(frozen=True)
class Header:
    """The columns of a file by position.

    `sources` are positions per column of raw.bills (or helper), the preferred spelling first; `extra` are name and
    position of what goes to `extra`. `names` are the headers as they stand in the file.
    """

    names: tuple[str, ...]
    sources: dict[str, tuple[int, ...]]
    extra: tuple[tuple[str, int], ...]
    version: str

    @property
    def width(self) -> int:
        return len(self.names)


def plain(name: str) -> str:
    """A header without case, spaces and punctuation: `Billing Account ID` and `billing_account_id` are one."""
    return "".join(c for c in name.lower() if c.isalnum())


def known(names: Sequence[str]) -> int:
    """How many of these headers FOCUS knows; the separator that finds most of them is the right one."""
    every = {plain(s) for spellings in SPELLINGS.values() for s in spellings}
    return len(every & {plain(n) for n in names})


def header(names: Sequence[str], source: str) -> Header:
    """The columns named by `names`; `BadInput` where two are the same or the mandatory ones are missing."""
    cleaned = [n.strip() or f"column_{i + 1}" for i, n in enumerate(names)]
    positions: dict[str, int] = {}
    for i, name in enumerate(cleaned):
        key = plain(name) or name
        if key in positions:
            raise BadInput(f"{source}: columns {cut(cleaned[positions[key]])} and {cut(name)} are the same")
        positions[key] = i
    sources: dict[str, tuple[int, ...]] = {}
    first: set[int] = set()
    for column, spellings in (SPELLINGS | HELPING).items():
        found = [positions[plain(s)] for s in spellings if plain(s) in positions]
        if found:
            sources[column] = tuple(found)
            if column in SPELLINGS:
                first.add(found[0])
    missing = [FOCUS_NAME[c] for c in MANDATORY if c not in sources]
    if "billed_cost" not in sources and "effective_cost" not in sources:
        missing.append("BilledCost or EffectiveCost")
    if missing:
        raise BadInput(f"{source}: no FOCUS bill: columns missing: {', '.join(missing)}")
    extra = tuple((name, i) for i, name in enumerate(cleaned) if i not in first)
    return Header(tuple(cleaned), sources, extra, _version(set(positions)))


def _version(keys: set[str]) -> str:
    """FOCUS version by the newest column there is; a file may carry less than its version offers."""
    if "chargesubcategory" in keys or "amortizedcost" in keys:
        return "1.0-preview" if "chargesubcategory" in keys and "effectivecost" in keys else "0.5"
    for version, names in _CAME_WITH.items():
        if keys & {plain(n) for n in names}:
            # 1.4 removed ProviderName, which 1.3 still required.
            return "1.4" if version == "1.3" and "providername" not in keys else version
    return "1.0"
