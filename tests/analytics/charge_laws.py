"""Laws that every set of charges obeys, as functions that raise where one is broken.

`tables` are the engine's inputs, `rows` the charges of all dates of the window; terms lie inside it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from charge_oracle import Oracle
from small_card import Row

Rows = list[Row]
Tables = Mapping[str, Any]
COSTS = ("list_cost", "contracted_cost", "billed_cost", "effective_cost")


def usage(rows: Rows) -> Rows:
    return [r for r in rows if r["charge_category"] == "Usage"]


def of_nodes(rows: Rows) -> Rows:
    return [r for r in rows if r["charge_scope"] == "node"]


def quantities_are_what_was_metered(tables: Tables, rows: Rows) -> None:
    """The pieces of a node-hour add up to its quantity, priced and consumed: none is lost, none covered twice."""
    found: defaultdict[Any, list[Fraction]] = defaultdict(lambda: [Fraction(0), Fraction(0)])
    for r in of_nodes(rows):
        sums = found[r["hour"], r["cluster"], r["node"], r["pricing_unit"]]
        sums[0] += Fraction(r["pricing_quantity"])
        sums[1] += Fraction(r["consumed_quantity"])
    oracle, expected = Oracle(tables), {}
    for node in tables["core.node_hours"]:
        unknown = {"pricing_unit": "Hours", "rounding": "none", "metering_s": 1, "minimum_s": 0}
        for p in oracle.prices(node, node["hour"]) or [unknown]:
            key = (node["hour"], node["cluster"], node["node"], p["pricing_unit"])
            expected[key] = list(oracle.metered(node, p))
    assert dict(found) == expected


def costs_are_price_times_quantity(tables: Tables, rows: Rows) -> None:
    for r in rows:
        for price, cost in (("list_unit_price", "list_cost"), ("contracted_unit_price", "contracted_cost")):
            if r[price] is not None:
                assert Fraction(r[price]) * Fraction(r["pricing_quantity"]) == Fraction(r[cost])
            elif r["charge_category"] != "Credit":
                assert r[cost] == 0 and r["flags"]


def hours_cost_what_is_amortized(tables: Tables, rows: Rows) -> None:
    """Used and unused of a commitment's hour cost its amortized hour."""
    sums: defaultdict[Any, Fraction] = defaultdict(Fraction)
    for r in usage(rows):
        if r["commitment_id"]:
            sums[r["commitment_id"], r["hour"]] += Fraction(r["effective_cost"])
    oracle = Oracle(tables)
    terms = {c["commitment_id"]: c for c in oracle.terms()}
    assert sum(c["hours"] for c in terms.values()) == len(sums)
    for (name, hour), found in sums.items():
        assert found == (oracle.amortized(terms[name], hour) or 0)


def terms_cost_what_is_billed(tables: Tables, rows: Rows) -> None:
    """Over a term, effective cost of usage and billed cost of purchases are equal (FOCUS EffectiveCost)."""
    # of fees whose rate is missing for a part of the term neither side is known
    unknown = {r["commitment_id"] for r in rows if r["commitment_id"] and r["flags"] and "no_rate" in r["flags"]}
    for name in {r["commitment_id"] for r in rows} - {None} - unknown:
        own = [r for r in rows if r["commitment_id"] == name]
        billed = sum((r["billed_cost"] for r in own), Decimal(0))
        assert sum((r["effective_cost"] for r in own), Decimal(0)) == billed
        assert all(r["effective_cost"] == 0 for r in own if r["charge_category"] == "Purchase")


def only_credits_are_negative(tables: Tables, rows: Rows) -> None:
    for r in rows:
        is_credit = r["charge_category"] == "Credit"
        assert all(r[c] <= 0 if is_credit else r[c] >= 0 for c in COSTS)
        assert not is_credit or len({r[c] for c in COSTS}) == 1


def commitments_are_used_at_most(tables: Tables, rows: Rows) -> None:
    """Used and unused are what was committed, hour by hour; purchases add up to what the term commits."""
    sums: defaultdict[Any, Decimal] = defaultdict(Decimal)
    bought: defaultdict[str, Decimal] = defaultdict(Decimal)
    for r in rows:
        if r["commitment_id"] and r["charge_category"] == "Usage":
            sums[r["commitment_id"], r["hour"]] += r["commitment_quantity"]
        elif r["commitment_id"]:
            bought[r["commitment_id"]] += r["commitment_quantity"]
    for c in Oracle(tables).terms():
        hours = [q for (name, _), q in sums.items() if name == c["commitment_id"]]
        assert [Fraction(q) for q in hours] == [c["size"]] * c["hours"]
        assert Fraction(bought[c["commitment_id"]]) == c["size"] * c["hours"]


def nothing_is_covered_twice(tables: Tables, rows: Rows) -> None:
    """A commitment covers a node's price once; what is covered is not billed, what is not is."""
    keys = ("hour", "cluster", "node", "pricing_unit", "commitment_id")
    assert not [k for k, n in Counter(tuple(r[c] for c in keys) for r in of_nodes(rows)).items() if n > 1]
    for r in of_nodes(rows):
        if r["commitment_id"]:
            assert r["billed_cost"] == 0 and r["pricing_category"] == "Committed"
        else:
            assert r["billed_cost"] == r["effective_cost"]


def columns_of_focus_fit_together(tables: Tables, rows: Rows) -> None:
    """FOCUS nullability: consumed quantity, status, commitment quantity and unit, unit prices, SKUs, periods."""
    for r in rows:
        is_usage, unused = r["charge_category"] == "Usage", r["commitment_discount_status"] == "Unused"
        assert (r["consumed_quantity"] is not None) == (is_usage and not unused)
        assert (r["commitment_discount_status"] is not None) == (is_usage and r["commitment_id"] is not None)
        assert (r["commitment_quantity"] is not None) == (r["commitment_unit"] is not None)
        assert (r["commitment_quantity"] is not None) == (r["commitment_id"] is not None)
        assert (r["capacity_reservation_status"] is not None) == (is_usage and r["capacity_reservation_id"] is not None)
        assert (r["pricing_quantity"] is None) == (r["charge_category"] == "Credit") == (r["pricing_unit"] is None)
        assert r["commitment_quantity"] is None or r["sku_price_id"] is not None
        assert not unused or (r["resource_id"] == r["commitment_id"] and r["billed_cost"] == 0)
        assert not unused or r["commitment_quantity"] > 0
        assert r["charge_category"] != "Purchase" or r["charge_frequency"] != "Usage-Based"
        assert r["billing_period_start_at"] <= r["charge_period_start_at"] < r["billing_period_end_at"]
        assert r["charge_period_start_at"] < r["charge_period_end_at"] and r["date"] == r["hour"].date()


LAWS: tuple[Callable[[Tables, Rows], None], ...] = (
    quantities_are_what_was_metered,
    costs_are_price_times_quantity,
    hours_cost_what_is_amortized,
    terms_cost_what_is_billed,
    only_credits_are_negative,
    commitments_are_used_at_most,
    nothing_is_covered_twice,
    columns_of_focus_fit_together,
)
