"""Lines of an account as rows of FOCUS, under its column names, before any provider's manner of writing.

Belongs here: which FOCUS column says what of a line. Not here: files and their quirks (`bills.py`). Column names and
rules are those of FOCUS 1.2, Cost and Usage.
"""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from fleet.billing.calendar import first_of_month
from fleet.billing.lines import Line
from fleet.billing.money import COST, UNIT, as_decimal
from fleet.catalogue import ACCELERATORS
from fleet.topology import OWNER_LABEL

# FOCUS 1.0, and what 1.1 and 1.2 added to it.
_1_0 = """
AvailabilityZone BilledCost BillingAccountId BillingAccountName BillingCurrency BillingPeriodEnd BillingPeriodStart
ChargeCategory ChargeClass ChargeDescription ChargeFrequency ChargePeriodEnd ChargePeriodStart
CommitmentDiscountCategory CommitmentDiscountId CommitmentDiscountName CommitmentDiscountStatus CommitmentDiscountType
ConsumedQuantity ConsumedUnit ContractedCost ContractedUnitPrice EffectiveCost InvoiceIssuerName ListCost ListUnitPrice
PricingCategory PricingQuantity PricingUnit ProviderName PublisherName RegionId RegionName ResourceId ResourceName
ResourceType ServiceCategory ServiceName SkuId SkuPriceId SubAccountId SubAccountName Tags
"""
_1_1 = """
CapacityReservationId CapacityReservationStatus CommitmentDiscountQuantity CommitmentDiscountUnit ServiceSubcategory
SkuMeter SkuPriceDetails
"""
_1_2 = """
BillingAccountType InvoiceId PricingCurrency PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost
PricingCurrencyListUnitPrice SubAccountType
"""
COLUMNS_1_0, COLUMNS_1_1, COLUMNS_1_2 = (names.split() for names in (_1_0, _1_1, _1_2))
EXACT = 18


def focus_row(line: Line, provider: str, account_id: str, currency: str, is_closed: bool) -> dict[str, Any]:
    """One line under the column names of FOCUS: Decimal amounts, naive UTC times, JSON texts; None where it says none.

    `is_closed` months have an invoice, others are month to date.
    """
    month = first_of_month(line.start)
    node, c = line.node, line.commitment
    is_used = line.kind in ("usage", "other", "not_in_cluster") and line.status != "Unused"
    reserved = c is not None and c.is_capacity_reservation
    owner = (node.labels.get(OWNER_LABEL) if node else None) or (c.owner_team if c and node is None else None)
    tags = {"cluster": node.cluster} if node else {}
    row: dict[str, Any] = {
        "AvailabilityZone": node.zone if node else None,
        "BilledCost": as_decimal(line.billed, COST),
        "BillingAccountId": account_id,
        "BillingAccountName": f"{provider} main account",
        "BillingAccountType": "Billing Account",
        "BillingCurrency": currency,
        "BillingPeriodStart": month,
        "BillingPeriodEnd": first_of_month(month, 1),
        "ChargeCategory": _category(line),
        "ChargeDescription": line.description,
        "ChargeFrequency": line.frequency,
        "ChargePeriodStart": line.start,
        "ChargePeriodEnd": line.end,
        "ConsumedQuantity": _number(line.quantity, UNIT) if is_used else None,
        "ConsumedUnit": line.unit if is_used else None,
        "ContractedCost": as_decimal(line.contracted_cost, EXACT),
        "ContractedUnitPrice": _number(line.contracted_price, UNIT),
        "EffectiveCost": as_decimal(line.effective, COST),
        "InvoiceId": f"{provider}-{month:%Y%m}-0001" if is_closed else None,
        "InvoiceIssuerName": provider,
        "ListCost": as_decimal(line.list_cost, EXACT),
        "ListUnitPrice": _number(line.list_price, UNIT),
        "PricingCategory": line.pricing,
        "PricingCurrency": currency,
        "PricingCurrencyContractedUnitPrice": _number(line.contracted_price, UNIT),
        "PricingCurrencyEffectiveCost": as_decimal(line.effective, COST),
        "PricingCurrencyListUnitPrice": _number(line.list_price, UNIT),
        "PricingQuantity": _number(line.quantity, UNIT),
        "PricingUnit": line.unit,
        "ProviderName": provider,
        "PublisherName": provider,
        "RegionId": node.region if node else (c.region if c else None),
        "RegionName": node.region if node else (c.region if c else None),
        "ResourceId": line.resource_id,
        "ResourceName": line.resource_name,
        "ResourceType": line.resource_type,
        "ServiceCategory": line.service[0],
        "ServiceSubcategory": line.service[1],
        "ServiceName": line.service[2],
        "SkuId": line.sku,
        "SkuPriceId": line.sku_price,
        "SkuMeter": f"{line.unit} of {line.resource_type}" if line.sku else None,
        "Tags": json.dumps(tags | ({"owner": owner} if owner else {}), sort_keys=True),
    }
    if node:
        row["SkuPriceDetails"] = json.dumps({
            "GpuCount": len(node.devices), "GpuModel": ACCELERATORS[node.accelerator].plain_name,
            "InstanceType": node.instance_type,
        }, sort_keys=True)  # fmt: skip
    if c:
        row |= {
            "CommitmentDiscountCategory": c.commitment_category,
            "CommitmentDiscountId": c.commitment_id,
            "CommitmentDiscountName": c.commitment_name,
            "CommitmentDiscountType": c.commitment_type,
            "CommitmentDiscountStatus": line.status,
            "CommitmentDiscountQuantity": _number(line.committed, UNIT),
            "CommitmentDiscountUnit": c.commitment_unit,
        }
    if reserved and c and line.kind == "usage":
        row |= {"CapacityReservationId": c.commitment_id, "CapacityReservationStatus": line.status}
    return row


def _category(line: Line) -> str:
    if line.kind in ("other", "not_in_cluster"):
        return "Usage"
    return line.kind.capitalize()


def _number(value: Fraction | None, decimals: int) -> Decimal | None:
    return None if value is None else as_decimal(value, decimals)


def zoned(at: datetime) -> str:
    """A time as FOCUS wants it: with seconds and Z."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
