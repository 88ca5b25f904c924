"""Small rate cards for tests: a sound row of every kind, and ways to write and read it.

Belongs here: sound rows, the text of a card made of them, and reading that text. Not here: what is to be true of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sources.prices import Cards, read_cards

TOP = {
    "provider": "nimbus",
    "billing_account_id": "nb-1",
    "currency": "USD",
    "as_of": "2026-01-01",
    "source": "price list",
}
PRICE = {"instance_type": "nb.h100.8x", "billing_model": "on_demand", "list_unit_price": "55.04"}
USAGE = {
    "commitment_id": "ri-1", "commitment_category": "Usage", "commitment_type": "Reserved Instance",
    "committed_quantity": "6", "payment_model": "No Upfront", "recurring_cost": "200",
    "starts_at": "2026-01-01", "ends_at": "2027-01-01",
}  # fmt: skip
SPEND = {
    "commitment_id": "sp-1", "commitment_category": "Spend", "commitment_type": "Savings Plan",
    "committed_spend": "100", "payment_model": "Partial Upfront", "upfront_cost": "438000", "recurring_cost": "50",
    "starts_at": "2026-01-01", "ends_at": "2027-01-01",
}  # fmt: skip
CREDIT = {"credit_id": "cr-1", "amount": "10", "charge_period_start_at": "2026-01-01"}
RATE = {"from_currency": "EUR", "to_currency": "USD", "exchange_rate": "1.08"}
OWNED = {
    "instance_type": "dgx-v100", "accelerator": "V100-SXM2-16GB", "gpu_count": "8", "capex": "149000", "years": "5",
    "power_kw": "3.5", "pue": "1.5", "tariff_per_kwh": "0.14",
}  # fmt: skip
ENERGY = {"pue": "1.5", "tariff_per_kwh": "0.14", "carbon_g_per_kwh": "269.8"}
SOUND = {
    "prices": PRICE,
    "commitments": USAGE,
    "credits": CREDIT,
    "exchange_rates": RATE,
    "owned_hardware": OWNED,
    "energy_factors": ENERGY,
}
SOUND_CSV = "provider,billing_account_id,billing_model,currency,list_unit_price,as_of,instance_type\n"
LINE = "nimbus,nb-1,on_demand,USD,55.04,2026-01-01,nb.h100.8x\n"


def document(section: str, *rows: dict[str, Any], top: dict[str, str] = TOP) -> tuple[str, list[dict[str, int]]]:
    """YAML of one section, a column a line, and the line of each column of each row."""
    lines = [*(f"{k}: {v}" for k, v in top.items()), f"{section}:"]
    places = []
    for row in rows:
        place = {}
        for i, (column, value) in enumerate(row.items()):
            lines.append(f"{'  - ' if i == 0 else '    '}{column}: {value}")
            place[column] = len(lines)
        places.append(place)
    return "\n".join(lines) + "\n", places


def read(tmp_path: Path, text: str | bytes, name: str = "card.yaml", kind: str | None = None) -> Cards:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_cards(path, kind)


def rows_refused(cards: Cards) -> list[int]:
    return [int(m.split(":")[1]) for m in cards.refused]
