"""A second account of what nodes cost, row by row in fractions: slow, and without a line of the charge engine.

It follows the written rules (docs/cost/method.md) in the most literal way: units of metering are counted one by one,
every hour asks the whole card, shares are dealt by sorting fractions. Tests compare it with the engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction as F
from typing import Any

from charge_oracle_prices import HOUR, NANO, TENTH_NANO, Prices, Row, rounded, shares


class Oracle(Prices):
    """The charges that the rows make."""

    def charges(self, start: date, days: int) -> list[Row]:
        """Charges of the dates, without the columns that only describe."""
        out: list[Row] = []
        hour = datetime(start.year, start.month, start.day)
        last = hour + timedelta(days=days)
        known = [n["hour"] for n in self.t["core.node_hours"]]
        terms = self.terms()
        while hour < last:
            is_known = not known or min(known) <= hour <= max(known)
            out += self.of_hour(hour, terms if is_known else [])
            for c in terms:
                out += self.purchases(c, hour, is_known)
            for credit in self.t["raw.credits"]:
                if hour <= credit["charge_period_start_at"] < hour + HOUR:
                    out.append(self.credit(credit, hour))
            hour += HOUR
        return out

    # commitments

    def terms(self) -> list[Row]:
        """The newest version of each commitment, in the order in which they apply, on whole hours."""
        newest: dict[Any, Row] = {}
        for c in sorted(self.t["raw.commitments"], key=lambda c: c["as_of"]):
            newest[c["provider"], c["commitment_id"]] = c
        out = []
        for c in newest.values():
            begin, end = self.ceiling(c["starts_at"]), self.ceiling(c["ends_at"])
            types = [t for t in (c.get("eligible_instance_types") or "").split(",") if t]
            size = c["committed_quantity"] if c["commitment_category"] == "Usage" else c["committed_spend"]
            out.append(c | {"begin": begin, "end": end, "hours": int((end - begin) / HOUR), "types": types,
                            "size": F(size), "anywhere": c.get("region") in (None, "*")})  # fmt: skip
        return sorted(out, key=lambda c: (
            c["commitment_category"] == "Spend", c["precedence"], c["anywhere"], len(c["types"]) or 99,
            c.get("billing_account_id") is None, c["begin"], c["provider"], c["commitment_id"],
        ))  # fmt: skip

    def ceiling(self, at: datetime) -> datetime:
        floor = at.replace(minute=0, second=0, microsecond=0)
        return floor if floor == at else floor + HOUR

    def reaches(self, c: Row, node: Row, p: Row) -> bool:
        account = c.get("billing_account_id")
        return (
            not p.get("owned") and node["capacity_type"] != "spot" and c["provider"] == node["provider"]
            and (c["anywhere"] or c["region"] == node["region"])
            and (not c["types"] or node["instance_type"] in c["types"])
            and (account is None or p.get("billing_account_id") in (None, account))
        )  # fmt: skip

    def of_hour(self, hour: datetime, terms: list[Row]) -> list[Row]:
        """Usage charges of the hour: nodes', and what commitments leave unused."""
        uses: list[Row] = []
        nodes = [n for n in self.t["core.node_hours"] if n["hour"] == hour]
        for node in sorted(nodes, key=lambda n: (n["resource_id"], n["cluster"], n["node"], n["node_uid"])):
            found = self.prices(node, hour)
            unknown = {"pricing_unit": "Hours", "rounding": "none", "metering_s": 1, "minimum_s": 0, "unknown": True,
                       "billing_model": "spot" if node["capacity_type"] == "spot" else "unknown"}  # fmt: skip
            for p in found or [unknown]:
                quantity, consumed = self.metered(node, p)
                uses.append({"node": node, "p": p, "q": quantity, "left": quantity, "consumed": consumed, "parts": []})
        out = []
        for c in terms:
            if c["begin"] <= hour < c["end"]:
                out += self.commit(c, hour, uses)
        for use in uses:
            if use["left"] or not use["parts"]:
                use["parts"].append((use["left"], None, None, None, None))
            weights = [part[0] for part in use["parts"]]
            dealt = shares(use["consumed"], weights, NANO) if sum(weights) else [use["consumed"]]
            out += [self.node_row(use, hour, *part, each) for part, each in zip(use["parts"], dealt, strict=True)]
        return out

    def commit(self, c: Row, hour: datetime, uses: list[Row]) -> list[Row]:
        """Cover the uses of the hour; what is left as an unused row."""
        if c["commitment_category"] == "Usage":
            taken, used = self.take_units(c, uses)
        else:
            taken, used = self.take_money(c, hour, uses)
        rest = c["size"] - sum(used)
        cost = self.amortized(c, hour)
        dealt = shares(cost or F(0), [*used, rest], TENTH_NANO)
        for (use, quantity), each, effective in zip(taken, used, dealt, strict=False):
            use["left"] -= quantity
            use["parts"].append((quantity, c, each, effective, cost is None))
        if not rest:
            return []
        listed, agreed = self.unit_prices(c, hour)
        return [{
            "hour": hour, "resource": c["commitment_id"], "category": "Usage", "pricing": "Committed",
            "status": "Unused", "commitment": c["commitment_id"], "quantity": rest, "consumed": None,
            "list": (listed or F(0)) * rest, "contracted": (agreed or F(0)) * rest, "billed": F(0),
            "effective": dealt[-1], "committed": rest,
            "flags": "no_rate" if cost is None or listed is None else None,
        }]  # fmt: skip

    def take_units(self, c: Row, uses: list[Row]) -> tuple[list[tuple[Row, F]], list[F]]:
        taken, used, rest = [], [], c["size"]
        order = [u for u in uses if self.reaches(c, u["node"], u["p"])]
        if c["is_capacity_reservation"]:
            order = [u for u in order if u["node"]["capacity_type"] == "reserved"] + [
                u for u in order if u["node"]["capacity_type"] != "reserved"
            ]
        for u in order:
            unit, priced, gpus = c["commitment_unit"], u["p"]["pricing_unit"], u["node"]["gpu_count"]
            worth = F(1)
            if unit != priced:
                if {unit, priced} != {"Hours", "GPU-Hours"} or not gpus:
                    continue
                worth = F(gpus) if unit == "GPU-Hours" else F(1, gpus)
            elif unit == "GPU-Hours" and not gpus:
                continue
            if not u["left"] or not rest:
                continue
            quantity, amount = u["left"], math.ceil(u["left"] * worth / NANO) * NANO
            if amount > rest:
                quantity, amount = math.floor(rest / worth / NANO) * NANO, rest
            if quantity:
                taken.append((u, quantity))
                used.append(amount)
                rest -= amount
        return taken, used

    def take_money(self, c: Row, hour: datetime, uses: list[Row]) -> tuple[list[tuple[Row, F]], list[F]]:
        offers = []
        for place, u in enumerate(uses):
            node, p = u["node"], u["p"]
            if not u["left"] or p.get("unknown") or not self.reaches(c, node, p):
                continue
            committed = [
                r for r in self.t["raw.prices"]
                if r["billing_model"] == "committed" and r["commitment_type"] == c["commitment_type"]
                and r["pricing_unit"] == p["pricing_unit"]
            ]  # fmt: skip
            found = self.fitting(committed, node, hour)
            if not found:
                continue
            day = hour.date()
            rate = self.converted(self.agreed(found[0]), found[0]["currency"], c["currency"], day)
            compared = self.converted(self.agreed(found[0]), found[0]["currency"], self.currency, day)
            price = self.converted(self.agreed(p), p["currency"], self.currency, day)
            if rate is None or compared is None or not price:
                continue
            offers.append((-(1 - compared / price), compared, p["sku_id"], place, rate))
        taken, exact, rest = [], [], c["size"]
        for _, _, _, place, rate in sorted(offers):
            u = uses[place]
            quantity, money = u["left"], u["left"] * rate
            if money > rest:
                quantity, money = math.floor(rest / rate / NANO) * NANO, rest
            if quantity and rest:
                taken.append((u, quantity))
                exact.append(money)
                rest -= money
        if not sum(exact):
            return taken, [F(0) for _ in exact]
        return taken, shares(rounded(sum(exact, F(0)), NANO), exact, NANO)

    def month(self, at: datetime) -> datetime:
        return at.replace(day=1, hour=0)

    def fee_of(self, c: Row, hour: datetime) -> tuple[F | None, datetime]:
        """Recurring fee of an hour, converted as its purchase is, and when that is charged."""
        at = hour if c["payment_interval"] == "Hourly" else max(self.month(hour), c["begin"])
        fee = F(c["recurring_cost"])
        return (self.converted(fee, c["currency"], self.currency, at.date()) if fee else F(0)), at

    def upfront(self, c: Row) -> F | None:
        fee = F(c["upfront_cost"])
        return self.converted(fee, c["currency"], self.currency, c["begin"].date()) if fee else F(0)

    def amortized(self, c: Row, hour: datetime) -> F | None:
        upfront, (recurring, _) = self.upfront(c), self.fee_of(c, hour)
        if upfront is None or recurring is None:
            return None
        n = int((hour - c["begin"]) / HOUR) + 1
        whole = upfront / TENTH_NANO
        return (math.floor(n * whole / c["hours"]) - math.floor((n - 1) * whole / c["hours"])) * TENTH_NANO + recurring

    def unit_prices(self, c: Row, hour: datetime) -> tuple[F | None, F | None]:
        """List and contracted price of an unused unit."""
        day = hour.date()
        if c["commitment_category"] == "Spend":
            one = self.converted(F(1), c["currency"], self.currency, day)
            return one, one
        region = "*" if c["anywhere"] else c["region"]
        for kind in c["types"]:
            node = {"provider": c["provider"], "region": region, "instance_type": kind, "accelerator": None,
                    "capacity_type": "on-demand"}  # fmt: skip
            for p in self.prices(node, hour):
                if p["pricing_unit"] == c["commitment_unit"] and not p.get("owned"):
                    listed = self.converted(p["list_unit_price"], p["currency"], self.currency, day)
                    agreed = self.converted(self.agreed(p), p["currency"], self.currency, day)
                    if listed is not None:
                        return listed, agreed
                    return self.own_fee(c, day)
        return self.own_fee(c, day)

    def own_fee(self, c: Row, day: date) -> tuple[F | None, F | None]:
        total = F(c["upfront_cost"]) + F(c["recurring_cost"]) * c["hours"]
        fee = self.converted(rounded(total / (c["size"] * c["hours"]), NANO), c["currency"], self.currency, day)
        return fee, fee

    def purchases(self, c: Row, hour: datetime, is_known: bool) -> list[Row]:
        out = []
        total, upfront, recurring = c["size"] * c["hours"], F(c["upfront_cost"]), F(c["recurring_cost"])
        first = rounded(total * upfront / (upfront + recurring * c["hours"]), NANO) if upfront else F(0)
        is_hourly = c["payment_interval"] == "Hourly"
        if upfront and hour == c["begin"] and (is_known or not is_hourly):
            fee = self.upfront(c)
            out.append(self.purchase(c, hour, F(1), fee, first))
        fee, at = self.fee_of(c, hour)
        if (recurring or not upfront) and c["begin"] <= hour < c["end"] and at == hour and (is_known or not is_hourly):
            following = (self.month(hour) + timedelta(days=32)).replace(day=1)
            until = hour + HOUR if is_hourly else min(following, c["end"])
            n, m = (int((x - c["begin"]) / HOUR) for x in (hour, until))
            per_hour = (total - first) / c["hours"]
            quantity = math.floor(m * per_hour / NANO) * NANO - math.floor(n * per_hour / NANO) * NANO
            out.append(self.purchase(c, hour, F(m - n), fee, quantity))
        return out

    def purchase(self, c: Row, hour: datetime, count: F, fee: F | None, quantity: F) -> Row:
        cost = count * (fee or F(0))
        return {
            "hour": hour, "resource": c["commitment_id"], "category": "Purchase", "pricing": "Standard",
            "status": None, "commitment": c["commitment_id"], "quantity": count, "consumed": None, "list": cost,
            "contracted": cost, "billed": cost, "effective": F(0), "committed": quantity,
            "flags": "no_rate" if fee is None else None,
        }  # fmt: skip

    def node_row(
        self, use: Row, hour: datetime, quantity: F, c: Row | None, used: F | None, effective: F | None,
        is_unconverted: bool | None, consumed: F,
    ) -> Row:  # fmt: skip
        node, p, day = use["node"], use["p"], hour.date()
        flags, listed, agreed = [], None, None
        if p.get("unknown"):
            flags.append("no_price")
        else:
            listed = self.converted(p["list_unit_price"], p["currency"], self.currency, day)
            agreed = self.converted(self.agreed(p), p["currency"], self.currency, day)
        if (listed is None and not p.get("unknown")) or is_unconverted:
            flags.append("no_rate")
        billed = rounded((agreed or F(0)) * quantity, TENTH_NANO) if c is None else F(0)
        return {
            "hour": hour, "resource": node["resource_id"], "category": "Usage",
            "pricing": "Committed" if c else "Dynamic" if p["billing_model"] == "spot" else "Standard",
            "status": "Used" if c else None, "commitment": c and c["commitment_id"], "quantity": quantity,
            "consumed": consumed, "list": (listed or F(0)) * quantity, "contracted": (agreed or F(0)) * quantity,
            "billed": billed, "effective": billed if c is None else effective, "committed": used,
            "flags": ",".join(flags) or None,
        }  # fmt: skip

    def credit(self, credit: Row, hour: datetime) -> Row:
        rate = self.rate(credit["currency"], self.currency, hour.date())
        cost = F(0) if rate is None else -rounded(F(credit["amount"]) * rate, TENTH_NANO)
        return {
            "hour": hour, "resource": None, "category": "Credit", "pricing": None, "status": None, "commitment": None,
            "quantity": None, "consumed": None, "list": cost, "contracted": cost, "billed": cost, "effective": cost,
            "committed": None, "flags": "no_rate" if rate is None else None,
        }  # fmt: skip


def as_oracle(row: Row) -> Row:
    """A row of core.computed_charges in the oracle's columns."""
    names = {
        "hour": "hour", "resource": "resource_id", "category": "charge_category", "pricing": "pricing_category",
        "status": "commitment_discount_status", "commitment": "commitment_id", "quantity": "pricing_quantity",
        "consumed": "consumed_quantity", "list": "list_cost", "contracted": "contracted_cost", "billed": "billed_cost",
        "effective": "effective_cost", "committed": "commitment_quantity", "flags": "flags",
    }  # fmt: skip
    return {k: F(row[v]) if isinstance(row[v], Decimal) else row[v] for k, v in names.items()}


def in_order(rows: Iterable[Row]) -> list[str]:
    """Rows as sorted text, so that differences can be read."""
    return sorted(" ".join(f"{k}={v}" for k, v in row.items() if v is not None) for row in rows)
