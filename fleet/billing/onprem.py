"""What the owned hall costs: nodes that were bought, the space they stand in and the power they draw. No bill comes.

Belongs here: purchase, running cost and site of owned nodes. A DGX-1 cost 149,000 USD when it was new; the others are
invented between such nodes and the 300,000 to 350,000 USD of an H100 node. Opex is about 150 USD a kW and month of
colocation, plus staff; the grid's 269.8 g/kWh is a world average used by published leaderboards. Not here: billing.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from fleet.billing.calendar import Window, first_of_month
from fleet.billing.records import EnergyFactor, OwnedHardware, PriceBook
from fleet.catalogue import ACCELERATORS

PROVIDER = "onprem"
ACCOUNT = "hall-1"
CURRENCY = "USD"
REGION = "dc-north"

_PUE = Decimal("1.5")
_TARIFF = Decimal("0.14")
# Instance type: accelerator, GPUs, price, residual value, years, yearly opex, kW.
_HARDWARE = {
    "dgx-v100": ("v100", 8, "149000", "0", "5", "9000", "3.5"),
    "hgx-a100-80": ("a100-80", 8, "165000", "33000", "4", "21000", "6.5"),
    "mig-a100-4": ("a100-40", 4, "72000", "12000", "4", "10500", "3.0"),
}


def book(nodes: Mapping[str, int], window: Window) -> PriceBook:
    """What the fleet's kinds of owned nodes cost; `nodes` counts them by instance type."""
    since = first_of_month(window.start_at, -24)
    owned = []
    for instance_type in nodes:
        key, gpus, *numbers = _HARDWARE[instance_type]
        capex, residual, years, opex, kilowatts = (Decimal(str(n)) for n in numbers)
        owned.append(OwnedHardware(
            PROVIDER, ACCOUNT, REGION, instance_type, ACCELERATORS[str(key)].plain_name, int(gpus), capex, residual,
            years, opex, kilowatts, _PUE, _TARIFF, CURRENCY, since, since.date(),
        ))  # fmt: skip
    site = EnergyFactor(PROVIDER, REGION, _PUE, _TARIFF, Decimal("269.8"), CURRENCY, since)
    return PriceBook((), (), (), (), tuple(owned), (site,))
