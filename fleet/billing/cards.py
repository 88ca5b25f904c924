"""The price book as rate card files, one for each provider, as a person would keep them.

Belongs here: the text of the cards, YAML under the column names of the rate card tables. Not here: what things cost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from fleet.billing.calendar import Window
from fleet.billing.pricebook import BOOKS
from fleet.billing.records import PriceBook

SOURCE = "invented price list of the simulated fleet"
SECTIONS = ("prices", "commitments", "credits", "exchange_rates", "owned_hardware", "energy_factors")
# Given once at the top of a card instead of in each row.
_ONCE = ("provider", "billing_account_id", "currency")


def write_cards(book: PriceBook, window: Window, folder: Path) -> list[Path]:
    """One YAML file for each provider of the book, and one for the exchange rates; the paths, in order of name."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        module.PROVIDER: card(book, module.PROVIDER, module.ACCOUNT, module.CURRENCY)
        for module in BOOKS
        if module.PROVIDER in book.providers()
    }
    if book.exchange_rates:
        texts["exchange-rates"] = "\n".join(
            [*_heading("exchange rates", window), f"source: {_text(SOURCE)}", *_section("exchange_rates", book, None)]
        )
    paths = []
    for name in sorted(texts):
        path = folder / f"{name}.yaml"
        path.write_text(texts[name] + "\n", encoding="utf-8")
        paths.append(path)
    return paths


def card(book: PriceBook, provider: str, account: str, currency: str) -> str:
    """The provider's card: everything of the book that names it."""
    lines = _heading(f"rate card of {provider}", None)
    lines += [f"provider: {provider}", f"billing_account_id: {account}", f"currency: {currency}"]
    lines.append(f"source: {_text(SOURCE)}")
    for section in SECTIONS:
        if section != "exchange_rates":
            lines += _section(section, book, provider)
    return "\n".join(lines)


def _heading(what: str, window: Window | None) -> list[str]:
    span = f", around {window.start_at.date()} to {window.end_at.date()}" if window else ""
    return [f"# SIMULATED {what}{span}. Providers, prices and contracts are invented."]


def _section(name: str, book: PriceBook, provider: str | None) -> Iterator[str]:
    rows: Iterable[Any] = getattr(book, name)
    mine = [r for r in rows if provider is None or r.provider == provider]
    if not mine:
        return
    yield f"{name}:"
    for row in mine:
        fields = {k: v for k, v in asdict(row).items() if v is not None and v != () and k not in _ONCE}
        for i, (column, value) in enumerate(fields.items()):
            yield f"{'  - ' if i == 0 else '    '}{column}: {_text(value)}"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f'"{value.isoformat()}Z"'
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return plain(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    return str(value) if isinstance(value, int) else json.dumps(value)


def plain(value: Decimal) -> str:
    """A decimal without exponent and without zeros that say nothing."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
