"""What the cost report shows, read from marts: sums of their columns, and nothing beside.

Belongs here: the queries and the records they fill. Not here: how it looks (`cost.py`), and any figure that no mart
holds. Money stays Decimal up to the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import duckdb

ZERO = Decimal(0)
HOLDER = "holder"
# Parts that paid for capacity, in the order they are shown.
PARTS = (
    HOLDER, "unallocated", "unavailable", "committed_unused", "node_overhead", "unledgered", "not_in_cluster",
    "other_services", "tax", "credit", "commitment_purchase",
)  # fmt: skip


@dataclass(frozen=True)
class Money:
    """Sums of cost columns in the reporting currency, and GPU-hours held and utilized."""

    effective: Decimal = ZERO
    billed: Decimal = ZERO
    contracted: Decimal = ZERO
    list: Decimal = ZERO
    utilized: Decimal = ZERO
    stranded: Decimal = ZERO
    unobserved: Decimal = ZERO
    held_hours: float = 0.0
    utilized_hours: float = 0.0

    def __add__(self, other: Money) -> Money:
        return Money(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def per_utilized_hour(self) -> float | None:
        """Effective cost of what was held for one utilized GPU-hour; None where nothing was utilized."""
        return float(self.effective) / self.utilized_hours if self.utilized_hours else None


@dataclass(frozen=True)
class Commitment:
    """A commitment over the days shown; ratios 0 to 1, money in the reporting currency."""

    name: str
    kind: str
    provider: str
    owner: str | None
    utilization: float | None
    coverage: float | None
    used: Decimal
    unused: Decimal
    opening: Decimal
    purchased: Decimal
    closing: Decimal


@dataclass(frozen=True)
class Offer:
    """A row of mart.buy_or_rent: owning an accelerator against one way of renting it."""

    accelerator: str
    owned: Decimal
    rented_as: str
    rent: Decimal
    currency: str
    break_even: float | None
    held: float | None
    utilized: float | None
    verdict: str


@dataclass(frozen=True)
class Findings:
    """Everything on the page. `parts` are in the order of PARTS, groups by effective cost, most first."""

    currency: str
    total: Money
    parts: tuple[tuple[str, Money], ...]
    teams: tuple[tuple[str, Money], ...]
    pools: tuple[tuple[str, Money], ...]
    owners: tuple[tuple[str, str, Decimal], ...]
    commitments: tuple[Commitment, ...]
    bills: tuple[tuple[str, str, int, Decimal, Decimal, Decimal], ...]
    offers: tuple[Offer, ...]


SUMS = (
    ", ".join(
        f"coalesce(sum({c}), 0)"
        for c in (
            "effective_cost", "billed_cost", "contracted_cost", "list_cost", "utilized_cost", "stranded_cost",
            "unobserved_cost",
        )
    )
    + ", coalesce(cast(sum(allocated_gpu_seconds) as double), 0) / 3600"
    + ", coalesce(cast(sum(utilized_gpu_seconds) as double), 0) / 3600"
)  # fmt: skip


def days(con: duckdb.DuckDBPyConnection) -> tuple[date, date] | None:
    """Days [start, end) that mart.cost_daily holds; None where it is empty."""
    first, last = con.execute("select min(date), max(date) from mart.cost_daily").fetchall()[0]
    return None if first is None else (first, last + timedelta(days=1))


def read(con: duckdb.DuckDBPyConnection, start: date, end: date) -> Findings:
    """What the marts say of the days [start, end). `con` has the views of `warehouse.engine.connect`."""
    where = f"date >= date '{start}' and date < date '{end}'"
    found = {name: money for (name,), money in _groups(con, ["cost_part"], where)}
    currencies = con.execute(f"select distinct billing_currency from mart.cost_daily where {where}").fetchall()
    return Findings(
        currency=" ".join(sorted(c for (c,) in currencies if c)),
        total=sum(found.values(), Money()),
        parts=tuple((p, found[p]) for p in (*PARTS, *sorted(found.keys() - set(PARTS))) if p in found),
        teams=tuple((t or "no team", m) for (t,), m in _groups(con, ["team"], f"{where} and cost_part = '{HOLDER}'")),
        pools=tuple(
            (" · ".join(n or "unknown" for n in names), m)
            for names, m in _groups(con, ["accelerator", "provider"], f"{where} and cost_part = '{HOLDER}'")
        ),
        owners=_owners(con, where),
        commitments=_commitments(con, where),
        bills=_bills(con, where),
        offers=_offers(con),
    )


def _groups(con: duckdb.DuckDBPyConnection, by: Sequence[str], where: str) -> list[tuple[tuple[Any, ...], Money]]:
    names = ", ".join(by)
    rows = con.execute(
        f"select {names}, {SUMS} from mart.cost_daily where {where} group by {names} "
        f"order by sum(effective_cost) desc, {names}"
    ).fetchall()
    n = len(by)
    return [(row[:n], Money(*row[n:])) for row in rows]


def _owners(con: duckdb.DuckDBPyConnection, where: str) -> tuple[tuple[str, str, Decimal], ...]:
    """(part, who answers for it, effective cost) of what nobody held and of what was committed and not used."""
    rows = con.execute(
        "select cost_part, coalesce(owner_team, 'nobody named'), sum(effective_cost) from mart.cost_daily "
        f"where {where} and cost_part in ('unallocated', 'unavailable', 'committed_unused') "
        "group by 1, 2 having sum(effective_cost) <> 0 order by 1, 3 desc, 2"
    ).fetchall()
    return tuple(rows)


def _commitments(con: duckdb.DuckDBPyConnection, where: str) -> tuple[Commitment, ...]:
    balances = f"(select {{}}(date) from mart.commitment_balance_daily where {where})"
    first, last = balances.format("min"), balances.format("max")
    rows = con.execute(
        "select max(commitment_name), max(commitment_type), provider, max(owner_team), "
        "cast(sum(used_quantity) as double) / nullif(cast(sum(committed_quantity) as double), 0), "
        "sum(commitment_coverage_ratio * eligible_quantity) / nullif(sum(cast(eligible_quantity as double)), 0), "
        "sum(used_cost), sum(unused_cost), "
        f"max(opening_balance) filter (where date = {first}), "
        "sum(purchased_cost), "
        f"max(closing_balance) filter (where date = {last}) "
        f"from mart.commitment_balance_daily where {where} group by provider, commitment_id "
        "order by sum(unused_cost) desc, provider, commitment_id"
    ).fetchall()
    return tuple(Commitment(*row[:6], *(v or ZERO for v in row[6:])) for row in rows)


def _bills(con: duckdb.DuckDBPyConnection, where: str) -> tuple[tuple[str, str, int, Decimal, Decimal, Decimal], ...]:
    rows = con.execute(
        "select provider, verdict, count(distinct resource_id), coalesce(sum(computed_billed_cost), 0), "
        "coalesce(sum(bill_billed_cost), 0), "
        "coalesce(sum(bill_billed_cost), 0) - coalesce(sum(computed_billed_cost), 0) "
        f"from mart.bill_reconciliation where {where} group by 1, 2 order by 1, 2"
    ).fetchall()
    return tuple(rows)


def _offers(con: duckdb.DuckDBPyConnection) -> tuple[Offer, ...]:
    rows = con.execute(
        "select accelerator, owned_cost_per_gpu_hour, "
        "concat_ws(' ', rental_provider, replace(rental_billing_model, '_', ' '), rental_instance_type), "
        "rental_cost_per_gpu_hour, currency, break_even_ratio, allocation_measured_ratio, "
        "utilization_measured_ratio, verdict "
        "from mart.buy_or_rent order by accelerator, provider, region, rental_cost_per_gpu_hour, 3"
    ).fetchall()
    return tuple(Offer(*row) for row in rows)
