"""Whatever the node-hours, requests and charges: nothing is lost, and the parts are those of an independent account.

The account here deals by fractions, one key after the other, without any of the SQL's arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from money_rows import Money
from node_hour import METHODS, SUMMED, NodeHour, attribute, failing, usage

WHOLE = 10**12
PRICES = {
    "aws_weights": (Fraction(9), Fraction(9, 10), Fraction(1, 10)),
    "opencost_ratios": (Fraction("0.95"), Fraction("0.031611"), Fraction("0.004237")),
}
Key = tuple[str, str]
MONEY = Money()


def deal(amount: int, weights: Mapping[Any, Fraction]) -> dict[Any, int]:
    """Largest remainder: floors first, then one unit each to the largest remainders, ties by key."""
    total = sum(weights.values())
    exact = {k: Fraction(abs(amount)) * w / total for k, w in weights.items()}
    shares = {k: int(x) for k, x in exact.items()}
    ranked = sorted(exact, key=lambda k: (shares[k] - exact[k], k))
    for k in ranked[: abs(amount) - sum(shares.values())]:
        shares[k] += 1
    return {k: -n if amount < 0 else n for k, n in shares.items()}


def ratios(n: NodeHour, method: str) -> dict[Key, tuple[int, int]]:
    """(units of 1e-12, those of them for accelerators) of each part of a known node-hour."""
    gpu: dict[Key, Fraction] = {}
    for row in n.ledger:
        for part, holder, column in (
            ("holder", row["holder"], "allocated"), ("unallocated", "", "unallocated"),
            ("unavailable", "", "unavailable"),
        ):  # fmt: skip
            if seconds := row.get(f"{column}_gpu_seconds"):
                gpu[part, holder] = gpu.get((part, holder), Fraction(0)) + Fraction(seconds)
    seconds = Fraction(n.running_us, 10**6)
    count = Fraction(n.gpus or 0) * seconds or sum(gpu.values(), Fraction(0))
    sizes = (count, Fraction(round((n.vcpus or 0) * 1000), 1000) * seconds, Fraction(int(n.gib or 0)) * seconds)
    share = dict(zip(("gpu", "cpu", "memory"), sizes, strict=True))
    if method == "whole_node" and count:
        weights = {"gpu": Fraction(1)}
    elif method.startswith("fixed"):
        g, c, m = (Fraction(x) for x in method.split(":")[1:])
        weights = {"gpu": g if count else Fraction(0), "cpu": c, "memory": m}
    else:
        prices = PRICES.get(method, PRICES["opencost_ratios"])
        weights = {k: share[k] * p for k, p in zip(share, prices, strict=True)}
    weights = {k: w for k, w in weights.items() if w}
    if not weights:  # the method says nothing of a node without accelerators: as OpenCost does
        of_host = zip(("cpu", "memory"), PRICES["opencost_ratios"][1:], strict=True)
        weights = {k: share[k] * p for k, p in of_host if share[k]} or {"cpu": Fraction(1)}
    parts: dict[Key, tuple[int, int]] = {key: (0, 0) for key in gpu}
    for component, units in deal(WHOLE, weights).items():
        if component == "gpu":
            claims = gpu or {("unledgered", ""): Fraction(1)}
        else:
            place = 1 if component == "cpu" else 2
            claims = {
                ("holder", r[0]): Fraction(round(r[1] * 3600 * r[3]), 1000)
                if place == 1
                else Fraction(round(r[2] * 1024 * 3600 * r[3]), 1024)
                for r in n.requests
            }
            claims = {k: w for k, w in claims.items() if w}
            rest = share[component] - sum(claims.values(), Fraction(0))
            if rest > 0 or not claims:
                claims["node_overhead", ""] = rest if rest > 0 else Fraction(1)
        for key, dealt in deal(units, claims).items():
            old = parts.get(key, (0, 0))
            parts[key] = (old[0] + dealt, old[1] + (dealt if component == "gpu" else 0))
    return {k: v for k, v in parts.items() if v[0] or k in gpu}


def units(value: Decimal | None, digits: int) -> int:
    return int((value or Decimal(0)).scaleb(digits))


SECONDS = st.integers(0, 3_600_000_000).map(lambda us: Decimal(us) / 10**6) | st.sampled_from(
    [Decimal(0), Decimal(3600)]
)
NAMES = st.sampled_from(["p1", "p2", "p3", "q"])
AMOUNT = st.integers(-(10**10), 10**11).map(lambda n: Decimal(n).scaleb(-9))
COST = st.integers(-(10**13), 10**14).map(lambda n: Decimal(n).scaleb(-10)) | st.sampled_from(
    [Decimal(0), Decimal("1e-10")]
)


@st.composite
def devices(draw: st.DrawFn) -> dict[str, Any]:
    holder = draw(NAMES | st.none())
    if holder is None:
        kind = draw(st.sampled_from(["unallocated", "unavailable"]))
        seconds = draw(SECONDS)
        return {"holder": None, "capacity_gpu_seconds": seconds, f"{kind}_gpu_seconds": seconds}
    held, broken = draw(SECONDS), draw(st.just(Decimal(0)) | SECONDS)
    utilized = min(held, draw(SECONDS))
    unobserved = min(held - utilized, draw(SECONDS))
    return {
        "holder": holder, "team": f"t-{holder}", "capacity_gpu_seconds": held + broken, "allocated_gpu_seconds": held,
        "utilized_gpu_seconds": utilized, "unobserved_gpu_seconds": unobserved,
        "stranded_gpu_seconds": held - utilized - unobserved, "unavailable_gpu_seconds": broken,
    }  # fmt: skip


@st.composite
def charges(draw: st.DrawFn, charge_id: str) -> dict[str, Any]:
    price = draw(st.integers(0, 10**11)) * Decimal("1e-9")
    made = usage(price, draw(AMOUNT), charge_id, charge_class="Correction", effective_cost=draw(COST),
                 commitment_quantity=draw(AMOUNT | st.none()), billed_cost=draw(COST))  # fmt: skip
    made["consumed_quantity"] = draw(AMOUNT | st.none())
    broken = draw(st.sampled_from(["", "", "list", "rounded", "no price"]))
    if broken == "list":
        made["list_cost"] = draw(st.integers(-(10**20), 10**24).map(lambda n: Decimal(n).scaleb(-18)))
    elif broken == "rounded":
        made["contracted_cost"] = round(made["contracted_cost"], 10)
    elif broken:
        made |= {"list_unit_price": None, "pricing_quantity": None}
    return made


@st.composite
def node_hours(draw: st.DrawFn) -> list[NodeHour]:
    made = []
    for i in range(draw(st.integers(1, 8))):
        pods = draw(st.lists(NAMES, unique=True, max_size=4))
        requests = [
            (pod, draw(st.integers(0, 9000)), draw(st.integers(0, 64)), draw(st.sampled_from([0.25, 1.0])))
            for pod in pods
        ]
        ledger = draw(st.lists(devices(), max_size=5))
        energy = [
            (f"{k:02}", draw(st.integers(0, 2_520_000_000_000).map(lambda n: Decimal(n) / 10**6)), draw(SECONDS))
            for k in range(len(ledger))
        ]
        made.append(NodeHour(
            node=f"n{i}", gpus=draw(st.sampled_from([0, 1, 8, None])), vcpus=draw(st.sampled_from([0, 4, 31.5])),
            gib=draw(st.sampled_from([0, 16, 100])), running_us=draw(st.integers(1, 3_600_000_000)), ledger=ledger,
            requests=requests, energy=energy,
            charges=[draw(charges(f"{i}/{k}")) for k in range(draw(st.integers(1, 3)))],
        ))  # fmt: skip
    return made


@pytest.mark.parametrize("method", [*METHODS, "fixed:0.5:0.5:0", "fixed:1:0:0"])
# no shrinking: an example takes half a second, and the first one found says enough
@settings(
    max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.explicit, Phase.generate]
)
@given(hours=node_hours())
def test_parts_are_the_independent_accounts_and_add_up(method: str, hours: list[NodeHour]) -> None:
    found: dict[str, dict[Key, dict[str, Any]]] = {}
    for row in attribute(MONEY, hours, method):
        found.setdefault(row["charge_id"], {})[row["cost_part"], row["holder"] or ""] = row
    for n in hours:
        parts = ratios(n, method)
        held = {row["holder"] for row in n.ledger if row.get("allocated_gpu_seconds")}
        for charge in n.charges:
            rows = found[charge["charge_id"]]
            assert {k: (units(r["allocated_ratio"], 12), units(r["gpu_ratio"], 12)) for k, r in rows.items()} == parts
            weights = {k: Fraction(u) for k, (u, _) in parts.items()}
            for metric, digits in (
                ("pricing_quantity", 9), ("consumed_quantity", 9), ("commitment_quantity", 9), ("billed_cost", 10),
                ("effective_cost", 10),
            ):  # fmt: skip
                expected = deal(units(charge.get(metric), digits), weights)
                assert {k: units(r[metric], digits) for k, r in rows.items()} == expected, metric
            for metric in SUMMED:
                values = [r[metric] for r in rows.values()]
                origin = charge.get(metric)
                assert (None in values) == (origin is None)
                assert sum(v or 0 for v in values) == (origin or 0), metric
            for key, row in rows.items():
                cost = units(row["effective_cost"], 10)
                three = [units(row[f"{k}_cost"], 10) for k in ("stranded", "unobserved", "utilized")]
                assert three == divided(cost, parts[key], n, key[1] if key[1] in held else None, key[0])
    assert failing(MONEY) == []


def divided(cost: int, part: tuple[int, int], n: NodeHour, holder: str | None, kind: str) -> list[int]:
    """Stranded, unobserved and utilized cost of a part."""
    if kind != "holder":
        return [0, 0, 0]
    if holder is None or not part[0]:
        return [0, cost, 0]
    gpu = deal(cost, {"cpu": Fraction(part[0] - part[1]), "gpu": Fraction(part[1])})["gpu"]
    names = ("stranded", "unobserved", "utilized")
    seconds = {
        k: sum((Fraction(r[f"{k}_gpu_seconds"]) for r in n.ledger if r["holder"] == holder), Fraction(0)) for k in names
    }
    shares = deal(gpu, seconds)
    return [shares["stranded"], shares["unobserved"] + cost - gpu, shares["utilized"]]
