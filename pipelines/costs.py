"""What the demo says of money: a table that adds up to the last cent, proofs of its two sums, a line per commitment.

Belongs here: reading the cost marts and laying their figures out. Not here: computing a cost; every figure is a sum of
a mart's column or of raw.fleet_invoices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import duckdb

from pipelines import console
from pipelines.settings import Settings
from warehouse.engine import connect

ZERO = Decimal(0)
HEADER = ("cost", "effective", "utilized", "stranded", "unobserved", "share")
# What nobody held, and what is no node's, in the order in which it is shown.
PARTS = {
    "unallocated": "unallocated",
    "unavailable": "unavailable",
    "node_overhead": "node overhead",
    "unledgered": "nodes without a ledger",
    "committed_unused": "committed unused",
    "commitment_purchase": "commitment purchases",
    "not_in_cluster": "not in cluster",
    "other_services": "other services",
    "credit": "credits",
    "tax": "tax",
}
_CENT = Decimal("0.01")


@dataclass(frozen=True)
class Cost:
    """A row: a team, or a part of the cost that is no team's. The last three are None where they mean nothing."""

    name: str
    effective: Decimal
    utilized: Decimal | None = None
    stranded: Decimal | None = None
    unobserved: Decimal | None = None


@dataclass(frozen=True)
class Sums:
    """Whole sums of the days: effective and billed cost of all charges, billed cost of all invoices (None: another
    currency), and how far prepaid balances fell (None where one is not known)."""

    currency: str
    effective: Decimal
    billed: Decimal
    invoiced: Decimal | None
    prepaid: Decimal | None


def cost_rows(con: duckdb.DuckDBPyConnection, start: date, end: date) -> list[Cost]:
    """Rows of the days [start, end): teams by cost, then the parts that nobody held. They add up to every charge."""
    where = f"date >= date '{start}' and date < date '{end}'"
    teams = con.execute(
        "select coalesce(team, 'no team'), sum(effective_cost), sum(utilized_cost), sum(stranded_cost), "
        f"sum(unobserved_cost) from mart.cost_daily where {where} and cost_part = 'holder' "
        "group by 1 order by 2 desc, 1"
    ).fetchall()
    parts = dict(
        con.execute(
            f"select cost_part, sum(effective_cost) from mart.cost_daily where {where} and cost_part <> 'holder' "
            "group by 1"
        ).fetchall()
    )
    rows = [Cost(name, *(v or ZERO for v in values)) for name, *values in teams]
    rows += [Cost(title, parts.pop(part)) for part, title in PARTS.items() if part in parts]
    rows += [Cost(part, cost) for part, cost in sorted(parts.items())]
    # what was bought for later periods costs nothing here
    return [r for r in rows if r.effective or r.utilized is not None]


def cost_sums(con: duckdb.DuckDBPyConnection, start: date, end: date) -> Sums:
    """The sums that the table is checked against."""
    where = f"date >= date '{start}' and date < date '{end}'"
    currency, effective, billed = con.execute(
        "select coalesce(min(billing_currency), ''), coalesce(sum(effective_cost), 0), coalesce(sum(billed_cost), 0) "
        f"from core.charges where {where}"
    ).fetchall()[0]
    # invoices are of whole months; those of the days' months were written for these days alone
    invoices = con.execute(
        "select coalesce(sum(billed_cost), 0), coalesce(bool_and(billing_currency = ?), true) "
        f"from raw.fleet_invoices where date >= date_trunc('month', date '{start}') and date < date '{end}'",
        [currency],
    ).fetchall()[0]
    prepaid = con.execute(
        f"select sum(closing_balance - opening_balance), count(*) = count(closing_balance - opening_balance) "
        f"from mart.commitment_balance_daily where {where}"
    ).fetchall()[0]
    return Sums(
        currency, effective, billed, invoices[0] if invoices[1] else None, (prepaid[0] or ZERO) if prepaid[1] else None
    )


def commitment_lines(con: duckdb.DuckDBPyConnection, start: date, end: date) -> list[str]:
    """For each commitment what of it was used and what was not, and the prepaid balance before and after."""
    where = f"date >= date '{start}' and date < date '{end}'"
    rows = con.execute(
        "select provider, coalesce(min(commitment_name), commitment_id), min(commitment_unit), sum(used_quantity), "
        "sum(unused_quantity), min_by(opening_balance, date), max_by(closing_balance, date), sum(purchased_cost), "
        "sum(used_cost), sum(unused_cost), min(billing_currency) "
        f"from mart.commitment_balance_daily where {where} group by provider, commitment_id order by 1, 2"
    ).fetchall()
    lines = []
    for provider, name, unit, used, unused, opening, closing, bought, used_cost, unused_cost, currency in rows:
        whole = (used or ZERO) + (unused or ZERO)
        share = f" ({float((used or ZERO) / whole):.0%})" if whole else ""
        balances = " + ".join((f"prepaid {money(opening)}", f"bought {money(bought)}"))
        lines.append(
            f"commitment {provider}, {name}: used {used:,.0f} {unit}{share}, unused {unused:,.0f}; {balances} - used "
            f"{money(used_cost)} - unused {money(unused_cost)} = {money(closing)} {currency}"
        )
    return lines


def money(value: Decimal | None) -> str:
    """An amount to the cent, thousands marked; a dash where it is not known."""
    return "-" if value is None else f"{value.quantize(_CENT):,}"


def proofs(rows: Sequence[Cost], sums: Sums) -> list[str]:
    """The two sums that finance looks at, and what bridges them."""
    table = sum((r.effective for r in rows), ZERO)
    lines = [_proof("teams and the rest", table, "sum of EffectiveCost", sums.effective, sums.currency)]
    if sums.invoiced is not None:
        lines.append(_proof("sum of BilledCost", sums.billed, "invoices of the simulated providers", sums.invoiced,
                            sums.currency))  # fmt: skip
    if sums.prepaid is not None:
        lines.append(_proof("BilledCost - EffectiveCost", sums.billed - sums.effective, "change of prepaid balances",
                            sums.prepaid, sums.currency))  # fmt: skip
    return lines


def _proof(left: str, one: Decimal, right: str, other: Decimal, currency: str) -> str:
    difference = one - other
    verdict = "equal to the cent" if abs(difference) < _CENT / 2 else f"DIFFERENCE {difference.normalize():f}"
    if difference and verdict.startswith("equal"):
        verdict += f" (difference {difference.normalize():f})"
    return f"{left} {money(one)} = {right} {money(other)} {currency}: {verdict}"


def print_costs(settings: Settings, start: date, end: date) -> None:
    """The table of the days [start, end), its proofs and the commitments, on stdout."""
    with connect(settings.data, memory_limit=settings.memory_limit, threads=settings.threads) as con:
        rows, sums = cost_rows(con, start, end), cost_sums(con, start, end)
        commitments = commitment_lines(con, start, end)
    if not rows:
        return
    total = Cost(
        "all", *(sum((getattr(r, c) or ZERO for r in rows), ZERO) for c in HEADER[1:5])
    )  # teams and parts together
    cells = [
        [
            r.name, *("" if v is None else money(v) for v in (r.effective, r.utilized, r.stranded, r.unobserved)),
            f"{float(r.effective / total.effective):.1%}" if total.effective else "",
        ]
        for r in [*rows, total]
    ]  # fmt: skip
    console.table(HEADER, cells, title=f"Cost by team in {sums.currency} (simulated)")
    print()
    for line in proofs(rows, sums):
        print(line)
    for line in commitments:
        print(line)
