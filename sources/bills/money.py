"""Costs, prices and quantities of a bill's row: what is missing is filled where the row itself says it, else refused.

Sources: FOCUS 1.4 (BilledCost, EffectiveCost, ListCost, ContractedCost); known gaps of Microsoft's exports as
recorded in its FinOps toolkit: quantities in blocks (issue 727), unused commitments without cost (834), contracted
cost 0 (874, 2307), list cost 0, and purchases of savings plans with an effective cost (1092).
Belongs here: rules about money. Not here: reading numbers.
"""

from __future__ import annotations

import re
from decimal import Decimal

import polars as pl

from sources.bills.columns import FOCUS_NAME
from sources.bills.numbers import round_half_even
from sources.bills.quoting import shown
from sources.bills.rules import is_, refused_in
from sources.bills.sheet import Sheet

# A price that is a double times a quantity that is one: what two 15-digit numbers may differ by.
TOLERANCE = 1e-9
_BLOCK = re.compile(r"([0-9][0-9,]*)([KMB]?)(?=\s|/|$)")
_UNITS = {"": 1, "K": 1_000, "M": 1_000_000, "B": 1_000_000_000}
PRICES = ("list_unit_price", "contracted_unit_price", "pricing_currency_list_unit_price",
          "pricing_currency_contracted_unit_price")  # fmt: skip
# What only a charge that takes back has below zero; `sql/check/cost_signs.sql` holds the built costs to the same.
SIGNED = ("billed_cost", "effective_cost", "list_cost", "contracted_cost", "pricing_quantity", "consumed_quantity",
          "commitment_quantity")  # fmt: skip


def apply(sheet: Sheet) -> None:
    """Apply every rule to the costs of the sheet; `rules.apply` goes before."""
    for column in PRICES:
        sheet.refuse(pl.col(column) < 0, column, pl.concat_str(shown(column), pl.lit(": a unit price is not negative")))
    _blocks(sheet)
    _billed_and_effective(sheet)
    _unused(sheet)
    _purchases(sheet)
    _list_and_contracted(sheet)
    _corrections(sheet)


def _set(sheet: Sheet, rows: list[int], column: str, values: list[Decimal], text: str) -> None:
    """Set a column at these rows, noted."""
    if not rows:
        return
    at = pl.Series([False] * sheet.df.height).scatter(rows, True)
    kind = sheet.df.schema[column]
    new = pl.Series([None] * sheet.df.height, dtype=kind).scatter(rows, pl.Series(values, dtype=kind))
    sheet.change(pl.lit(at), column, pl.lit(new), text)


def _blocks(sheet: Sheet) -> None:
    """Quantities counted in single units under a price for a block of them (x_PricingBlockSize) are divided by it.

    Newer exports count blocks already, so the costs decide: a quantity is divided where only then ListCost (or
    ContractedCost) is price x quantity, or where neither is known and it equals the consumed quantity.
    """
    if not sheet.has(pl.col("block_size").is_not_null() | pl.col("block_text").is_not_null()):
        return
    names = ("block_size", "block_text", "pricing_quantity", "consumed_quantity", "list_unit_price", "list_cost",
             "contracted_unit_price", "contracted_cost")  # fmt: skip
    rows, values = [], []
    candidates = sheet.df.with_row_index("i").filter(
        pl.col("pricing_quantity").is_not_null()
        & ((pl.col("block_size") > 1) | (pl.col("block_size").is_null() & pl.col("block_text").is_not_null()))
    )
    for i, *cells in candidates.select("i", *names).iter_rows():
        row = dict(zip(names, cells, strict=True))
        block = row["block_size"] or _block_of(row["block_text"])
        if block is not None and block > 1 and _is_undivided(row, block):
            rows.append(i)
            values.append(round_half_even(row["pricing_quantity"] / block, 9))
    _set(sheet, rows, "pricing_quantity", values, "divided by the block size of its price")


def _block_of(text: str | None) -> Decimal | None:
    """Units of a block in a description such as `100 Hours`, `10K`, `1 GB/Month`."""
    match = _BLOCK.match(text or "")
    return None if match is None else Decimal(match[1].replace(",", "")) * _UNITS[match[2]]


def _is_undivided(row: dict[str, Decimal], block: Decimal) -> bool:
    quantity = row["pricing_quantity"]
    for price, cost in ((row["list_unit_price"], row["list_cost"]),
                        (row["contracted_unit_price"], row["contracted_cost"])):  # fmt: skip
        if price and cost:
            return not _near(price * quantity, cost) and _near(price * quantity / block, cost)
    return quantity == row["consumed_quantity"]


def _near(a: Decimal, b: Decimal) -> bool:
    return abs(a - b) <= Decimal(TOLERANCE) * max(abs(a), abs(b)) + Decimal("1e-9")


def _billed_and_effective(sheet: Sheet) -> None:
    billed, effective = pl.col("billed_cost"), pl.col("effective_cost")
    committed = (
        pl.col("commitment_id").is_not_null()
        | pl.col("commitment_discount_status").is_not_null()
        | pl.col("commitment_type").is_not_null()
        | is_("pricing_category", "Committed")
    )
    no_billed = billed.is_null() & ~refused_in(sheet, "billed_cost")
    no_effective = effective.is_null() & ~refused_in(sheet, "effective_cost")
    sheet.refuse(no_billed & no_effective, "billed_cost", "is missing, and so is EffectiveCost")
    # Purchases of commitments have none (_purchases); other rows of commitments do not say how theirs is amortized.
    purchase = is_("charge_category", "Purchase") & pl.col("commitment_id").is_not_null()
    sheet.refuse(no_effective & ~no_billed & committed & ~purchase, "effective_cost",
                 "is missing on a charge of a commitment")  # fmt: skip
    sheet.refuse(no_billed & ~no_effective & committed, "billed_cost", "is missing on a charge of a commitment")
    alone = ~committed | purchase
    sheet.change(no_effective & alone, "effective_cost", billed, "was missing: taken to be BilledCost")
    sheet.change(no_billed & ~committed, "billed_cost", effective, "was missing: taken to be EffectiveCost")


def _unused(sheet: Sheet) -> None:
    """The unused part of a commitment costs what is not used; a zero there is a gap, not a gift."""
    free = is_("commitment_discount_status", "Unused") & (pl.col("effective_cost") == 0)
    if not sheet.has(free):
        return
    names = ("commitment_unit", "billing_currency", "commitment_quantity", "effective_unit_price", "pricing_quantity")
    rows, values, unknown = [], [], []
    for i, *cells in sheet.df.with_row_index("i").filter(free).select("i", *names).iter_rows():
        row = dict(zip(names, cells, strict=True))
        if (row["commitment_unit"] or "").upper() == row["billing_currency"] and row["commitment_quantity"]:
            cost = round_half_even(row["commitment_quantity"], 10)  # a commitment to spend: its quantity is money
        elif row["effective_unit_price"] and row["pricing_quantity"]:
            cost = round_half_even(row["effective_unit_price"] * row["pricing_quantity"], 10)
        elif row["commitment_quantity"] or row["pricing_quantity"]:
            unknown.append(i)
            continue
        else:
            continue
        rows.append(i)
        values.append(cost)
    if unknown:
        at = pl.Series([False] * sheet.df.height).scatter(unknown, True)
        sheet.refuse(pl.lit(at), "effective_cost", "is 0 although a part of the commitment is unused")
    _set(sheet, rows, "effective_cost", values, "of an unused commitment filled from its quantity")


def _purchases(sheet: Sheet) -> None:
    bought = is_("charge_category", "Purchase") & pl.col("commitment_id").is_not_null()
    sheet.change(
        bought & (pl.col("effective_cost") != 0), "effective_cost", pl.lit(Decimal(0)),
        "set to 0: the usage that the commitment covers carries it",
    )  # fmt: skip


def _list_and_contracted(sheet: Sheet) -> None:
    """Fill list and contracted cost where they are missing, or 0 although something is paid.

    From price x quantity, else from each other; FOCUS knows no other source, and without one the effective cost
    stands in (as the FinOps toolkit does), since no discount is known of.
    """
    priced = pl.col("charge_category").is_in(["Usage", "Purchase"])
    paid = (pl.col("effective_cost") > 0) | (pl.col("billed_cost") > 0)
    missing = {}
    for column in ("list_cost", "contracted_cost"):
        gap = pl.col(column).is_null() & ~refused_in(sheet, column)
        gap |= (pl.col(column) == 0) & priced & paid
        missing[column] = sheet.df.select(gap.fill_null(False).alias("m"))["m"]
    for column, price in (("list_cost", "list_unit_price"), ("contracted_cost", "contracted_unit_price")):
        known = priced & (pl.col(price) > 0) & (pl.col("pricing_quantity") != 0)
        rows = sheet.df.with_row_index("i").filter(missing[column] & known.fill_null(False))
        filled = rows["i"].to_list()
        products = [p * q for p, q in rows.select(price, "pricing_quantity").iter_rows()]
        _set(sheet, filled, column, products, "filled from unit price and quantity")
        if filled:
            missing[column] = missing[column].scatter(filled, False)
    pairs = (
        ("contracted_cost", "contracted_unit_price", "list_cost", "list_unit_price", "ListCost", "ListUnitPrice"),
        ("list_cost", "list_unit_price", "contracted_cost", "contracted_unit_price", "ContractedCost",
         "ContractedUnitPrice"),
    )  # fmt: skip
    for column, price, other, other_price, cost_name, price_name in pairs:
        filled_from = pl.lit(missing[column]) & ~pl.lit(missing[other]) & pl.col(other).is_not_null()
        sheet.change(filled_from, column, pl.col(other), f"filled from {cost_name}")
        unpriced = pl.col(price).is_null() | (pl.col(price) == 0)
        sheet.change(filled_from & priced & unpriced & (pl.col(other_price) > 0), price, pl.col(other_price),
                     f"filled from {price_name}")  # fmt: skip
    for column in ("list_cost", "contracted_cost"):
        gap = pl.lit(missing["list_cost"] & missing["contracted_cost"])
        value = pl.when(priced).then(pl.col("effective_cost")).otherwise(pl.col("billed_cost"))
        sheet.change(gap, column, value, "filled from the cost paid: no list or contracted price is known")


def _corrections(sheet: Sheet) -> None:
    """A charge below zero that is neither credit nor adjustment takes back an earlier one: a correction, said or not.

    FOCUS has ChargeClass say so; exports leave it out on refunds, reversals and returned purchases.
    """
    giving = pl.col("charge_category").is_in(["Credit", "Adjustment"])
    for column in SIGNED:
        unsaid = pl.col("charge_class").is_null() & ~giving & (pl.col(column) < 0)
        why = pl.lit(f"was missing: taken to be Correction, as {FOCUS_NAME[column]} is negative (")
        sheet.change(unsaid, "charge_class", pl.lit("Correction"), pl.concat_str(why, shown(column), pl.lit(")")))
