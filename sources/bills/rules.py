"""Rules over several columns of a bill's row: what every row needs, and what a category of charge rules out.

What would make money wrong refuses the row; what is only against the style of FOCUS is put right and noted. Sources:
FOCUS 1.4 (column definitions of Cost and Usage) and the known gaps of AWS's and Microsoft's exports.
Belongs here: identity, periods, categories. Not here: prices, quantities and costs (`money.py`).
"""

from __future__ import annotations

import polars as pl

from sources.bills import words
from sources.bills.quoting import shown
from sources.bills.sheet import Sheet

SKU = ("sku_id", "sku_price_id", "sku_meter", "sku_price_details")
PRICING = ("list_unit_price", "contracted_unit_price", "pricing_quantity", "pricing_unit", "pricing_category")


def is_(column: str, value: str) -> pl.Expr:
    """Whether the column has that value; false where it is null."""
    return (pl.col(column) == value).fill_null(False)


def apply(sheet: Sheet, provider: str | None) -> None:
    """Apply every rule; adds `provider` (given, or of the row) and `date`, the first day of the billing month."""
    _who(sheet, provider)
    _periods(sheet)
    sheet.refuse(pl.col("charge_category").is_null() & ~refused_in(sheet, "charge_category"), "charge_category",
                 "is missing")  # fmt: skip
    _older_versions(sheet)
    _categories(sheet)


def refused_in(sheet: Sheet, column: str) -> pl.Expr:
    """Rows that this column has already refused, so that they do not also count as missing."""
    refused = pl.repeat(False, sheet.df.height, eager=True)
    for name, reasons in sheet.refusals:
        if name == sheet.field(column):
            refused = refused | reasons.is_not_null()
    return pl.lit(refused)


def _who(sheet: Sheet, provider: str | None) -> None:
    if provider is not None:
        named = pl.repeat(words.provider_of(provider), sheet.df.height, eager=True)
    else:
        # AWS and Microsoft leave the name out on some charges; the issuer is who one pays for them.
        name = pl.coalesce("service_provider", "invoice_issuer").alias("n")
        named = words.mapped(sheet.df.select(name)["n"], words.provider_of)
    sheet.df = sheet.df.with_columns(named.alias("provider"))
    sheet.refuse(pl.col("provider").is_null(), "service_provider", "is missing; --provider says whose bill this is")
    for column in ("billing_account_id", "billing_currency"):
        missing = pl.col(column).is_null() & ~refused_in(sheet, column)
        sheet.refuse(missing, column, "is missing")
    # Microsoft writes these where there is no price sheet entry.
    sheet.drop(pl.col("sku_price_id").is_in(["-2", "Unassigned"]), "sku_price_id", "stands for none")


def _periods(sheet: Sheet) -> None:
    start, end = pl.col("charge_period_start_at"), pl.col("charge_period_end_at")
    for column in ("charge_period_start_at", "charge_period_end_at"):
        sheet.refuse(pl.col(column).is_null() & ~refused_in(sheet, column), column, "is missing")
    sheet.refuse(
        end <= start,
        "charge_period_end_at",
        pl.concat_str(shown("charge_period_end_at"), pl.lit(" is not after ChargePeriodStart "),
                      shown("charge_period_start_at")),
    )  # fmt: skip
    sheet.change(
        pl.col("billing_period_start_at").is_null() & ~refused_in(sheet, "billing_period_start_at"),
        "billing_period_start_at",
        start.dt.truncate("1mo"),
        "taken to be the month of ChargePeriodStart",
    )
    # East of Greenwich a month begins on the last day of the one before, in UTC; no zone is further off than 14 h.
    month = pl.col("billing_period_start_at").dt.offset_by("14h").dt.truncate("1mo")
    sheet.change(
        pl.col("billing_period_end_at").is_null() & ~refused_in(sheet, "billing_period_end_at"),
        "billing_period_end_at",
        pl.col("billing_period_start_at").dt.offset_by("1mo"),
        "taken to be a month after BillingPeriodStart",
    )
    sheet.refuse(
        pl.col("billing_period_end_at") <= pl.col("billing_period_start_at"),
        "billing_period_end_at",
        pl.concat_str(shown("billing_period_end_at"), pl.lit(" is not after BillingPeriodStart")),
    )
    sheet.df = sheet.df.with_columns(month.dt.date().alias("date"))


def _older_versions(sheet: Sheet) -> None:
    """ChargeSubcategory of 1.0-preview says what CommitmentDiscountStatus says since 1.0."""
    for text, status in (("Used Commitment", "Used"), ("Unused Commitment", "Unused")):
        said = pl.col("charge_subcategory").str.to_lowercase() == text.lower()
        sheet.change(
            said & pl.col("commitment_discount_status").is_null(), "commitment_discount_status", pl.lit(status),
            f"taken from ChargeSubcategory {text}",
        )  # fmt: skip


def _categories(sheet: Sheet) -> None:
    tax = is_("charge_category", "Tax")
    for column in (*SKU, *PRICING):
        sheet.drop(tax, column, "a tax has none")
    usage = is_("charge_category", "Usage")
    unused = is_("commitment_discount_status", "Unused") | (
        is_("capacity_reservation_status", "Unused") & pl.col("commitment_discount_status").is_null()
    )
    other = pl.col("charge_category").is_not_null() & ~usage
    for column in ("commitment_discount_status", "capacity_reservation_status"):
        sheet.drop(other, column, "only usage has it")
    for column in ("consumed_quantity", "consumed_unit"):
        sheet.drop(other, column, "only usage consumes")
        sheet.drop(usage & unused, column, "what is unused is not consumed")
    sheet.drop(is_("charge_category", "Purchase") & is_("charge_frequency", "Usage-Based"), "charge_frequency",
               "a purchase is not charged by usage")  # fmt: skip
