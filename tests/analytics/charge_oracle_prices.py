"""The second account's prices, conversion and metering: literal and slow, without a line of the charge engine.

Belongs here: what a node-hour costs on demand. Not here: commitments and rows (`charge_oracle.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction as F
from typing import Any

Row = dict[str, Any]
HOUR = timedelta(hours=1)
US = timedelta(microseconds=1)
NANO, TENTH_NANO = F(1, 10**9), F(1, 10**10)
UNITS = ("Hours", "GPU-Hours", "vCPU-Hours", "GiB-Hours")


def rounded(value: F, unit: F) -> F:
    """Half up, for values that are not negative."""
    return math.floor(value / unit + F(1, 2)) * unit


def shares(total: F, weights: list[F], unit: F) -> list[F]:
    """Largest remainder: whole units first, then one more each where most was cut off."""
    whole = sum(weights)
    wanted = [total / unit * w / whole for w in weights]
    given = [math.floor(x) for x in wanted]
    by_cut = sorted(range(len(weights)), key=lambda i: (given[i] - wanted[i], i))
    for i in by_cut[: int(total / unit) - sum(given)]:
        given[i] += 1
    return [g * unit for g in given]


class Prices:
    """The tables of the engine's inputs as rows: rates, prices and quantities in them."""

    def __init__(self, tables: Mapping[str, Iterable[Row]]) -> None:
        self.t = {name: list(rows) for name, rows in tables.items()}
        for name in ("core.node_hours", "raw.prices", "raw.commitments", "raw.credits", "raw.exchange_rates",
                     "raw.owned_hardware", "raw.settings"):  # fmt: skip
            self.t.setdefault(name, [])
        found = [s["value"] for s in self.t["raw.settings"] if s["setting"] == "currency"]
        self.currency = found[0] if found else "USD"

    # money of other currencies

    def rate(self, origin: str, target: str, day: date) -> F | None:
        if origin == target:
            return F(1)
        for a, b, is_inverse in ((origin, target, False), (target, origin, True)):
            dated = [
                r for r in self.t["raw.exchange_rates"]
                if r["from_currency"] == a and r["to_currency"] == b and r["rate_date"] <= day
            ]  # fmt: skip
            if dated:
                newest = F(max(dated, key=lambda r: r["rate_date"])["exchange_rate"])
                return 1 / newest if is_inverse else newest
        return None

    def converted(self, value: Decimal | F | None, origin: str, target: str, day: date) -> F | None:
        rate = self.rate(origin, target, day)
        return None if value is None or rate is None else rounded(F(value) * rate, NANO)

    # prices

    def prices(self, node: Row, hour: datetime) -> list[Row]:
        for owned in self.fitting(self.t["raw.owned_hardware"], node, hour):
            value = (F(owned["capex"]) - F(owned["residual"])) / F(owned["years"]) + F(owned["opex_per_year"])
            power = F(owned["power_kw"]) * F(owned["pue"]) * F(owned["tariff_per_kwh"])
            price = rounded(value / 8760 + power, NANO)
            return [{"owned": True, "pricing_unit": "Hours", "list_unit_price": price, "contracted_unit_price": price,
                     "currency": owned["currency"], "rounding": "none", "metering_s": 1, "minimum_s": 0,
                     "billing_model": "owned", "sku_id": "owned"}]  # fmt: skip
        model = "spot" if node["capacity_type"] == "spot" else "on_demand"
        fitting = self.fitting([p for p in self.t["raw.prices"] if p["billing_model"] == model], node, hour)
        best = {u: next((p for p in fitting if p["pricing_unit"] == u), None) for u in UNITS}
        parts = [best[u] for u in UNITS[1:] if best[u] is not None]
        whole = best["Hours"]
        if whole is not None and all(self.fit(whole) >= self.fit(p) for p in parts):
            return [whole]
        return parts

    def fitting(self, rows: list[Row], node: Row, hour: datetime) -> list[Row]:
        """Rows that hold for the node in the hour, the one that counts first."""
        found = []
        for p in sorted(rows, key=lambda p: str(p.get("sku_price_id"))):
            same_type = p["instance_type"] == node["instance_type"] if p["instance_type"] else (
                p.get("accelerator") == node["accelerator"]
            )  # fmt: skip
            holds = (p.get("valid_from_at") or datetime.min) <= hour < (p.get("valid_to_at") or datetime.max)
            if p["provider"] == node["provider"] and same_type and holds and p["region"] in ("*", node["region"]):
                found.append(p)
        found.sort(key=lambda p: (self.fit(p), p.get("valid_from_at") or datetime.min), reverse=True)
        return found

    def fit(self, p: Row) -> tuple[Any, ...]:
        return (bool(p["instance_type"]), p["region"] != "*", p["as_of"])

    def agreed(self, p: Row) -> Decimal:
        agreed = p.get("contracted_unit_price")
        return p["list_unit_price"] if agreed is None else agreed

    # quantities

    def metered(self, node: Row, p: Row) -> tuple[F, F]:
        """Priced and consumed quantity of the node's hour."""
        hour, created, finished = node["hour"], node["created_at"], node["node_finished_at"]
        begin = max(hour, created)
        end = begin + node["running_us"] * US
        count = {"Hours": F(1), "GPU-Hours": F(node["gpu_count"] or 0), "vCPU-Hours": F(node["cpu_milli"], 1000),
                 "GiB-Hours": F(node["memory_bytes"], 2**30)}[p["pricing_unit"]]  # fmt: skip

        def hours(seconds: F) -> F:
            return rounded(seconds * count / 3600, NANO)

        def since(at: datetime) -> F:
            return F((at - created) // US, 10**6)

        consumed = hours(since(end)) - hours(since(begin))
        minimum = F(p["minimum_s"] or 0)
        ends_here = finished is not None and hour < finished <= hour + HOUR
        if p["rounding"] == "none":
            until = max(since(finished), minimum) if ends_here else since(end)
            return hours(until) - hours(since(begin)), consumed
        unit = F(p["metering_s"])
        allowed = None
        if finished is not None:
            lasted = since(finished) / unit
            units = math.floor(lasted + F(1, 2)) if p["rounding"] == "nearest" else math.ceil(lasted)
            allowed = max(units, math.ceil(minimum / unit))
        before = here = 0
        while since(created) + here * unit < since(end) and (allowed is None or here < allowed):
            if here * unit < since(begin):
                before += 1
            here += 1
        if ends_here:
            here = allowed or 0
        return hours(here * unit) - hours(before * unit), consumed
