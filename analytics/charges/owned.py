"""What an hour of owned hardware costs.

Belongs here: the formula of owning, as a price. Not here: comparing it with renting (mart.buy_or_rent).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from analytics.charges.money import NANO, units
from analytics.charges.records import ALWAYS, ANYWHERE, NEVER, Price, first_hour
from warehouse.errors import BadInput

HOURS_PER_YEAR = 8760


def hourly_price(row: dict[str, Any]) -> int:
    """Price of a node-hour in 1e-9: ((capex - residual) / years + yearly opex) / 8760 + kW x PUE x tariff.

    Rounded half up once. `row`: a row of raw.owned_hardware; what is null counts as nothing, PUE as 1.
    """
    value = {k: Fraction(row[k] or 0) for k in ("capex", "residual", "years", "opex_per_year", "power_kw")}
    pue = Fraction(1 if row["pue"] is None else row["pue"])
    tariff = Fraction(row["tariff_per_kwh"] or 0)
    if value["years"] <= 0 or value["residual"] > value["capex"]:
        raise BadInput(
            f"raw.owned_hardware: {row['provider']} {row['instance_type']} ({row['source']}:{row['source_line']}): "
            "years must be positive and residual at most capex"
        )
    yearly = (value["capex"] - value["residual"]) / value["years"] + value["opex_per_year"]
    return units(yearly / HOURS_PER_YEAR + value["power_kw"] * pue * tariff, NANO)


def owned_prices(rows: Iterable[dict[str, Any]]) -> list[Price]:
    """Owned hardware as prices of node-hours, billed to the microsecond by who owns it."""
    prices = []
    for row in rows:
        price = hourly_price(row)
        region = row["region"] or ANYWHERE
        sku = f"owned/{row['provider']}/{row['instance_type']}"
        prices.append(
            Price(
                provider=row["provider"],
                sku_id=sku,
                sku_price_id=f"{sku}/{region}",
                billing_model="owned",
                pricing_unit="Hours",
                currency=row["currency"],
                list_price=price,
                contracted_price=price,
                region=region,
                instance_type=row["instance_type"],
                billing_account_id=row["billing_account_id"],
                description=f"Owned {row['instance_type']}: depreciation, running cost and power",
                valid_from=ALWAYS if row["valid_from_at"] is None else first_hour(row["valid_from_at"]),
                valid_to=NEVER if row["valid_to_at"] is None else first_hour(row["valid_to_at"]),
                as_of=row["as_of"],
            )
        )
    return prices
