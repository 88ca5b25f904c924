"""What each provider asks in all: its account for the window, how far its bill reaches, and sums by month and kind.

Belongs here: who bills what until when, conversion into the fleet's currency, raw.fleet_invoices. Not here: how lines
come about (`accounts.py`, `extras.py`) and how they are written down (`bills.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache

import pyarrow as pa

from fleet.billing import cirrus, nimbus, onprem
from fleet.billing.accounts import account
from fleet.billing.calendar import DAY, Window, first_of_month, midnight_from, months_of, whole_hours
from fleet.billing.extras import extras, tax
from fleet.billing.lines import Line
from fleet.billing.money import COST, UNIT, Exchange, as_decimal, half_up
from fleet.billing.pricebook import price_book
from fleet.billing.records import PriceBook
from fleet.model import Node
from warehouse.contracts import CONTRACTS

CURRENCY = "USD"
ACCOUNTS = {m.PROVIDER: (m.ACCOUNT, m.CURRENCY) for m in (nimbus, cirrus, onprem)}
# How many days a bill is behind; a provider that is not named sends none.
BEHIND_DAYS = {nimbus.PROVIDER: 0, cirrus.PROVIDER: 2}


@dataclass(frozen=True)
class Account:
    """A provider's account: what it charges in the window, and what of that its bill already tells.

    `known` are the lines for nodes, commitments and credits over all of the window; `told` those of the bill, other
    services and taxes among them, whose periods end by `told_until`.
    """

    provider: str
    account_id: str
    currency: str
    known: tuple[Line, ...]
    told: tuple[Line, ...]
    told_until: datetime | None

    @property
    def invoiced(self) -> tuple[Line, ...]:
        """Everything: what is known of the whole window, and of the rest what the bill tells."""
        return self.known + tuple(x for x in self.told if x.kind in ("tax", "other", "not_in_cluster"))


@dataclass(frozen=True)
class Billing:
    """The money of a simulated fleet: the price book and every provider's account over the days of the window."""

    book: PriceBook
    days: Window
    accounts: tuple[Account, ...]


def bill_fleet(nodes: Sequence[Node], window: Window) -> Billing:
    """Work out what the providers charge for the nodes while they are watched, in the telemetry window."""
    days = Window(midnight_from(window.start_at - DAY + timedelta(microseconds=1)), midnight_from(window.end_at))
    book = price_book(nodes, window)
    return Billing(book, days, tuple(_account(nodes, book, p, window, days) for p in book.providers()))


def _account(nodes: Sequence[Node], book: PriceBook, provider: str, window: Window, days: Window) -> Account:
    known = tuple(account(nodes, book, provider, window, days))
    account_id, currency = ACCOUNTS[provider]
    if provider not in BEHIND_DAYS:
        return Account(provider, account_id, currency, known, (), None)
    # a bill of the first day at least, where there is more than one
    behind = min(BEHIND_DAYS[provider], (days.end_at - days.start_at) // DAY - 1)
    until = days.end_at - behind * DAY
    told: list[Line] = []
    for start, end in months_of(Window(days.start_at, until)):
        since, upto = max(start, days.start_at), min(end, until)
        of_month = [x for x in known if since <= x.start < upto] + list(extras(provider, Window(since, upto)))
        told += [*of_month, tax(provider, of_month, upto)]
    return Account(provider, account_id, currency, known, tuple(told), until)


def converted(line: Line, exchange: Exchange, currency: str) -> tuple[Fraction, Fraction]:
    """Billed and effective cost in another currency, by the rate of the day on which the line's period begins.

    Unit prices first, as they are told, then what they make. A fee paid in advance is worth what it was on the day it
    was paid, so that its hours add up to it in that currency too.
    """
    rate = exchange.rate(currency, line.start.date())
    if currency == exchange.into:
        return line.billed, line.effective
    c = line.commitment
    if c is not None and line.status is not None:
        upfront = Fraction(c.upfront_cost) / whole_hours(c.starts_at, c.ends_at)
        paid = upfront * exchange.rate(currency, c.starts_at.date()) + Fraction(c.recurring_cost) * rate
        return Fraction(0), _signed(line.effective * paid / (upfront + Fraction(c.recurring_cost)))
    if line.contracted_price is None or line.quantity is None:
        return _signed(line.billed * rate), _signed(line.effective * rate)
    billed = _cost(line.contracted_price, line.quantity, rate)
    return billed, billed if line.effective == line.billed else _signed(line.effective * rate)


@lru_cache(maxsize=100_000)
def _cost(price: Fraction, quantity: Fraction, rate: Fraction) -> Fraction:
    return half_up(half_up(price * rate, UNIT) * quantity, COST)


def _signed(value: Fraction) -> Fraction:
    return -half_up(-value, COST) if value < 0 else half_up(value, COST)


def fleet_invoices(billing: Billing) -> pa.Table:
    """raw.fleet_invoices: sums by month, provider and kind, in the fleet's currency and in the provider's own."""
    exchange = Exchange(billing.book.exchange_rates, CURRENCY)
    rows = []
    for a in billing.accounts:
        sums: dict[tuple[datetime, str], list[Fraction]] = {}
        for line in a.invoiced:
            costs = converted(line, exchange, a.currency)
            total = sums.setdefault((first_of_month(line.start), line.kind), [Fraction(0)] * 4)
            for i, amount in enumerate((*costs, line.billed, line.effective)):
                total[i] += amount
        for (month, kind), total in sorted(sums.items()):
            billed, effective, own_billed, own_effective = (as_decimal(x, COST) for x in total)
            rows.append({
                "date": month.date(), "provider": a.provider, "billing_account_id": a.account_id, "kind": kind,
                "billed_cost": billed, "effective_cost": effective, "billing_currency": CURRENCY,
                "invoiced_currency": a.currency, "invoiced_billed_cost": own_billed,
                "invoiced_effective_cost": own_effective,
            })  # fmt: skip
    return pa.Table.from_pylist(rows, schema=CONTRACTS["raw.fleet_invoices"].arrow_schema)
