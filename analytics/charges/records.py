"""Rate cards, commitments and owned hardware as the engine uses them: integers, whole hours, one version each.

Hours are counted from 1970-01-01T00 UTC. An hour belongs to a validity or a term if its start does, so what begins
or ends inside an hour counts from the next one; consecutive terms never share an hour.
Belongs here: the records and reading them from the lake. Not here: choosing among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb

from analytics.charges.money import NANO, units
from warehouse.errors import BadInput

EPOCH = datetime(1970, 1, 1)
HOUR = timedelta(hours=1)
ALWAYS, NEVER = -(2**40), 2**40
ANYWHERE = "*"
PRICING_UNITS = ("Hours", "GPU-Hours", "vCPU-Hours", "GiB-Hours")
ROUNDINGS = ("up", "nearest", "none")
# DECIMAL(18,9), the type of every quantity
LARGEST_QUANTITY = 10**18 - 1


def hour_at(hour: int) -> datetime:
    """The instant at which the hour begins."""
    return EPOCH + hour * HOUR


def first_hour(at: datetime) -> int:
    """The first hour that begins at `at` or later."""
    return -((EPOCH - at) // HOUR)


def date_of(hour: int) -> date:
    """UTC date of the hour."""
    return hour_at(hour).date()


def month_of(hour: int) -> tuple[int, int]:
    """First hour of the hour's calendar month (UTC) and of the next."""
    start = hour_at(hour).replace(day=1, hour=0)
    following = (start + timedelta(days=32)).replace(day=1)
    return first_hour(start), first_hour(following)


@dataclass(frozen=True)
class Price:
    """A row of a rate card, or what stands for one: owned hardware, or no price at all.

    Prices in 1e-9 of `currency`; None: nobody knows. Valid for the hours [valid_from, valid_to).
    """

    provider: str
    sku_id: str | None
    sku_price_id: str | None
    billing_model: str
    pricing_unit: str
    currency: str | None
    list_price: int | None
    contracted_price: int | None
    metering_s: int = 1
    minimum_s: int = 0
    rounding: str = "none"
    region: str = ANYWHERE
    instance_type: str | None = None
    accelerator: str | None = None
    commitment_type: str | None = None
    billing_account_id: str | None = None
    description: str | None = None
    valid_from: int = ALWAYS
    valid_to: int = NEVER
    as_of: date = date.min


@dataclass(frozen=True)
class Commitment:
    """A commitment over the hours [start, end). Quantity an hour in 1e-9 of `unit`, fees in 1e-9 of `currency`.

    Fees are taken at 1e-9, the resolution of a FOCUS unit price. `types`: instance types in the order given, empty
    for any; `region` and `account`: None for any.
    """

    provider: str
    commitment_id: str
    name: str | None
    category: str
    type: str | None
    precedence: int | None
    region: str | None
    account: str | None
    types: tuple[str, ...]
    quantity: int
    unit: str
    currency: str
    payment_model: str | None
    upfront: int
    recurring: int
    hourly: bool
    start: int
    end: int
    is_capacity_reservation: bool
    owner_team: str | None

    @property
    def hours(self) -> int:
        return self.end - self.start

    @property
    def order(self) -> tuple[Any, ...]:
        """Sort key of application: Usage before Spend, precedence, narrower scope, earlier start, id."""
        return (
            self.category != "Usage",
            self.precedence is None,
            self.precedence or 0,
            self.region is None,
            len(self.types) or NEVER,
            self.account is None,
            self.start,
            self.provider,
            self.commitment_id,
        )


def read_prices(connection: duckdb.DuckDBPyConnection, start: int, end: int) -> list[Price]:
    """raw.prices that hold in some of the hours [start, end).

    `BadInput` names a row whose unit or rounding is unknown or whose metering is not positive.
    """
    prices = []
    held = f"(select * from raw.prices where {_holds(start, end)})"
    for r in table_rows(connection, held, "provider, sku_price_id, region, valid_from_at, as_of"):
        where = f"raw.prices: {r['provider']} {r['sku_price_id']} ({r['source']}:{r['source_line']})"
        rounding = r["rounding"] or "up"
        if r["pricing_unit"] not in PRICING_UNITS:
            raise BadInput(f"{where}: pricing_unit is {r['pricing_unit']}, not one of {', '.join(PRICING_UNITS)}")
        if rounding not in ROUNDINGS:
            raise BadInput(f"{where}: rounding is {rounding}, not one of {', '.join(ROUNDINGS)}")
        if r["metering_s"] is not None and r["metering_s"] <= 0:
            raise BadInput(f"{where}: metering_s is {r['metering_s']}, not a positive number of seconds")
        listed = r["list_unit_price"]
        agreed = listed if r["contracted_unit_price"] is None else r["contracted_unit_price"]
        if listed is None:
            listed = agreed
        if listed is None or listed < 0 or agreed < 0:
            raise BadInput(f"{where}: list_unit_price and contracted_unit_price must be given and not negative")
        prices.append(
            Price(
                provider=r["provider"],
                sku_id=r["sku_id"] or r["sku_price_id"],
                sku_price_id=r["sku_price_id"],
                billing_model=r["billing_model"],
                pricing_unit=r["pricing_unit"],
                currency=r["currency"],
                list_price=units(listed, NANO),
                contracted_price=units(agreed, NANO),
                metering_s=r["metering_s"] or 1,
                minimum_s=r["minimum_s"] or 0,
                rounding="none" if r["metering_s"] is None else rounding,
                region=r["region"] or ANYWHERE,
                instance_type=r["instance_type"],
                accelerator=r["accelerator"],
                commitment_type=r["commitment_type"],
                billing_account_id=r["billing_account_id"],
                description=r["price_description"],
                valid_from=_bound(r["valid_from_at"], ALWAYS),
                valid_to=_bound(r["valid_to_at"], NEVER),
                as_of=r["as_of"],
            )
        )
    return prices


def read_commitments(connection: duckdb.DuckDBPyConnection) -> list[Commitment]:
    """raw.commitments, the newest as_of of each, in order of application.

    as_of only decides between versions: the newest one holds for the whole term, also the part before as_of, since
    purchases and amortization of a term must add up. A term in which no hour begins counts as the hour it starts in.
    """
    newest: dict[tuple[str, str], dict[str, Any]] = {}
    for r in table_rows(connection, "raw.commitments", "provider, commitment_id, as_of"):
        newest[r["provider"], r["commitment_id"]] = r
    return sorted((_commitment(r) for r in newest.values()), key=lambda c: c.order)


def _commitment(r: dict[str, Any]) -> Commitment:
    where = f"raw.commitments: {r['provider']} {r['commitment_id']} ({r['source']}:{r['source_line']})"
    category = r["commitment_category"]
    if category not in ("Usage", "Spend"):
        raise BadInput(f"{where}: commitment_category is {category}, not Usage or Spend")
    if r["starts_at"] is None or r["ends_at"] is None or r["starts_at"] >= r["ends_at"]:
        raise BadInput(f"{where}: the term is {r['starts_at']} to {r['ends_at']}")
    start, end = first_hour(r["starts_at"]), first_hour(r["ends_at"])
    if start == end:
        start -= 1
    given = r["committed_quantity"] if category == "Usage" else r["committed_spend"]
    field = "committed_quantity" if category == "Usage" else "committed_spend"
    quantity = units(given, NANO)
    if quantity <= 0:
        raise BadInput(f"{where}: {field} is {given}, not positive")
    if quantity * (end - start) > LARGEST_QUANTITY:
        raise BadInput(f"{where}: {field} over the term is more than DECIMAL(18,9) holds")
    if category == "Usage" and r["commitment_unit"] not in PRICING_UNITS:
        raise BadInput(f"{where}: commitment_unit is {r['commitment_unit']}, not one of {', '.join(PRICING_UNITS)}")
    interval = (r["payment_interval"] or "Monthly").lower()
    if interval not in ("hourly", "monthly"):
        raise BadInput(f"{where}: payment_interval is {r['payment_interval']}, not Hourly or Monthly")
    upfront, recurring = units(r["upfront_cost"], NANO), units(r["recurring_cost"], NANO)
    if upfront < 0 or recurring < 0:
        raise BadInput(f"{where}: upfront_cost and recurring_cost must not be negative")
    types = tuple(t.strip() for t in (r["eligible_instance_types"] or "").split(",") if t.strip())
    return Commitment(
        provider=r["provider"],
        commitment_id=r["commitment_id"],
        name=r["commitment_name"],
        category=category,
        type=r["commitment_type"],
        precedence=r["precedence"],
        region=None if r["region"] in (None, ANYWHERE) else r["region"],
        account=r["billing_account_id"],
        types=() if ANYWHERE in types else types,
        quantity=quantity,
        unit=r["commitment_unit"] if category == "Usage" else r["currency"],
        currency=r["currency"],
        payment_model=r["payment_model"],
        upfront=upfront,
        recurring=recurring,
        hourly=interval == "hourly",
        start=start,
        end=end,
        is_capacity_reservation=bool(r["is_capacity_reservation"]),
        owner_team=r["owner_team"],
    )


def read_rates(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, str, date, Decimal]]:
    """raw.exchange_rates: from, to, date, rate."""
    for r in table_rows(connection, "raw.exchange_rates", "from_currency, to_currency, rate_date"):
        yield r["from_currency"], r["to_currency"], r["rate_date"], r["exchange_rate"]


def read_currency(connection: duckdb.DuckDBPyConnection) -> str:
    """The setting `currency`: what costs are stated in."""
    found = connection.execute("select max(value) from raw.settings where setting = 'currency'").fetchall()
    return found[0][0] or "USD"


def read_owned(connection: duckdb.DuckDBPyConnection) -> Iterator[dict[str, Any]]:
    """Rows of raw.owned_hardware by column name."""
    return table_rows(connection, "raw.owned_hardware", "provider, region, instance_type, valid_from_at, as_of")


def table_rows(connection: duckdb.DuckDBPyConnection, table: str, order: str) -> Iterator[dict[str, Any]]:
    """Rows of a table by column name, in that order."""
    cursor = connection.execute(f"select * from {table} order by {order}")
    names = [d[0] for d in cursor.description or ()]
    return (dict(zip(names, row, strict=True)) for row in cursor.fetchall())


def _holds(start: int, end: int) -> str:
    since, until = (f"timestamp '{hour_at(h):%Y-%m-%d %H:%M:%S}'" for h in (start, end))
    return f"(valid_from_at is null or valid_from_at < {until}) and (valid_to_at is null or valid_to_at > {since})"


def _bound(at: datetime | None, otherwise: int) -> int:
    return otherwise if at is None else first_hour(at)
