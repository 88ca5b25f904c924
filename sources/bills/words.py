"""Words of a bill: values that FOCUS enumerates, currencies and names of providers.

Belongs here: which spellings mean which value. Not here: what follows from a value (`rules.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

# Text that stands for null (FOCUS-Sample-Data writes NULL, BigQuery and Hive \N).
NULLS = ("", "NULL", "null", "Null", "\\N", "<null>")

# Values of FOCUS 1.4 by column; further spellings below.
ALLOWED = {
    "charge_category": ("Usage", "Purchase", "Tax", "Credit", "Adjustment"),
    "charge_class": ("Correction",),
    "charge_frequency": ("One-Time", "Recurring", "Usage-Based"),
    "pricing_category": ("Standard", "Dynamic", "Committed", "Other"),
    "commitment_category": ("Spend", "Usage"),
    "commitment_discount_status": ("Used", "Unused"),
    "capacity_reservation_status": ("Used", "Unused"),
    "service_category": (
        "AI and Machine Learning", "Analytics", "Business Applications", "Compute", "Databases", "Developer Tools",
        "Multicloud", "Identity", "Integration", "Internet of Things", "Management and Governance", "Media",
        "Migration", "Mobile", "Networking", "Security", "Storage", "Web", "Other",
    ),
}  # fmt: skip
# Of 1.0-preview and 0.5.
_OLDER = {
    "pricing_category": {"ondemand": "Standard", "commitmentbased": "Committed", "commitmentdiscount": "Committed"},
    "commitment_discount_status": {"usedcommitment": "Used", "unusedcommitment": "Unused"},
}
# An unknown value of these would change what a row's money means; of the others it is noted and left out.
DECISIVE = ("charge_category", "commitment_discount_status")
# Any value is kept; only known ones in another case are respelled.
OPEN = ("service_category",)

# ISO 4217, national currencies in circulation (list one of the maintenance agency, 2026).
_CODES = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF
IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD
MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB
RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD
UYU UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG
"""
CURRENCIES = frozenset(_CODES.split())

# What providers call themselves in bills, as the scheme of spec.providerID names them, which is what nodes carry.
_PROVIDERS = {
    "amazonwebservices": "aws", "amazon": "aws", "aws": "aws", "amazonwebservicesinc": "aws",
    "microsoft": "azure", "microsoftazure": "azure", "azure": "azure", "microsoftcorporation": "azure",
    "google": "gce", "googlecloud": "gce", "googlecloudplatform": "gce", "gcp": "gce",
    "oraclecloudinfrastructure": "oci", "oraclecloud": "oci", "oracle": "oci",
}  # fmt: skip


def parse_words(text: pl.Series, column: str) -> tuple[pl.Series, pl.Series]:
    """Values of `text` in FOCUS's spelling, and whether that differs from the text; null where FOCUS has no such."""
    spelled = {_key(v): v for v in ALLOWED[column]} | _OLDER.get(column, {})
    value = mapped(text, lambda t: spelled.get(_key(t), t if column in OPEN else None))
    return value, (value != text).fill_null(False)


def parse_currency(text: pl.Series) -> pl.Series:
    """ISO 4217 codes in capitals; null where the text is none."""
    return mapped(text, lambda t: t.upper() if t.upper() in CURRENCIES else None)


def provider_of(name: str) -> str:
    """The provider's name as nodes carry it; lower case where the name is not known."""
    return _PROVIDERS.get(_key(name), name.strip().lower())


def mapped(text: pl.Series, meaning: Callable[[str], str | None]) -> pl.Series:
    """`meaning` of each distinct text; null stays null. For columns with few distinct values."""
    distinct = text.drop_nulls().unique().to_list()
    if not distinct:
        return text.cast(pl.String)
    values = pl.Series([meaning(t) for t in distinct], dtype=pl.String)
    return text.replace_strict(pl.Series(distinct), values, default=None, return_dtype=pl.String)


def _key(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())
