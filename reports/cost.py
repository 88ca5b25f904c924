"""The cost report: what the fleet cost, who held it, and what was paid for and not used; one HTML page.

Belongs here: what stands on the page, in which order and words. Not here: reading marts (`cost_marts.py`), files and
flags (the command).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from html import escape
from pathlib import Path

import duckdb

from reports import cost_marts
from reports.bars import COLOURS, percent
from reports.cost_marts import Commitment, Findings, Money, Offer

STYLE = Path(__file__).with_name("page.css")
HELD = ("utilized", "stranded", "unobserved")
# The wastes that have an owner, and whose decision each was.
WASTES = {
    "stranded": ("held and idle", "the team that holds"),
    "unallocated": ("running and held by nobody", "the capacity team, or the node's owner"),
    "committed_unused": ("committed and not used", "who committed"),
}
PARTS = {
    "holder": "held by pods",
    "unallocated": "unallocated: held by nobody",
    "unavailable": "unavailable: could not work",
    "committed_unused": "committed and not used",
    "node_overhead": "CPU and memory that no pod requested",
    "unledgered": "node-hours without GPU telemetry or lists",
    "not_in_cluster": "machines that are in no cluster",
    "other_services": "storage, network, support",
    "tax": "tax",
    "credit": "credits",
    "commitment_purchase": "bought commitments (spread over what they cover)",
}
BILLS = {
    "match": "agree",
    "differs": "differ",
    "missing_in_bill": "computed, not on the bill",
    "not_in_bill": "on no bill: computed",
    "not_billed_yet": "not billed yet: computed",
    "not_computed": "on the bill, no rate card",
    "no_price": "no price known",
    "no_rate": "no exchange rate known",
    "tax": "tax",
    "credit": "credits",
    "not_in_cluster": "not in a cluster",
    "other_services": "other services",
}


def render(con: duckdb.DuckDBPyConnection, start: date, end: date, *, simulated: bool = False) -> str:
    """The page for the days [start, end), from a connection with the views of marts. `simulated` labels it so."""
    found = cost_marts.read(con, start, end)
    last = end - timedelta(days=1)
    label = '<p class="simulated">SIMULATED: this fleet, its prices and its bills were invented by a program.</p>'
    parts = [
        label if simulated else "",
        f"<header><h1>{escape(_headline(found))}</h1>",
        f'<p class="about">{start:%d %b %Y} to {last:%d %b %Y} (UTC), effective cost in {escape(found.currency)}</p>',
        "</header>",
        _tiles(found),
        "<h2>By team</h2>",
        _groups("team", found.teams),
        "<h2>By accelerator and provider</h2>",
        _groups("accelerator · provider", found.pools),
        "<h2>Three wastes, three owners</h2>",
        _wastes(found),
        "<h2>Everything that was paid for</h2>",
        _parts(found),
        "<h2>Commitments</h2>",
        _commitments(found.commitments),
        "<h2>Bills against rate cards</h2>",
        _bills(found.bills),
        "<h2>Buy or rent</h2>",
        _offers(found.offers),
        _words(),
    ]
    title = f"{'SIMULATED: ' if simulated else ''}Cost of the GPU fleet, {start} to {last}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE.read_text('utf-8')}</style></head>\n<body><main>"
        + "\n".join(p for p in parts if p)
        + "</main></body></html>\n"
    )


def whole(value: Decimal | float) -> str:
    """Money for people: whole units, with cents below ten."""
    return f"{value:,.0f}" if abs(float(value)) >= 10 or value == 0 else f"{value:,.2f}"


def rate(value: Decimal | float | None) -> str:
    """A price per GPU-hour; a dash for None."""
    return "–" if value is None else f"{value:,.2f}"


def waste(found: Findings) -> dict[str, Decimal]:
    """Effective cost of the three wastes."""
    parts = dict(found.parts)
    return {
        "stranded": found.total.stranded,
        **{name: parts.get(name, Money()).effective for name in ("unallocated", "committed_unused")},
    }


def _headline(found: Findings) -> str:
    if not found.parts:
        return "Nothing was charged in this time"
    lost = sum(waste(found).values(), cost_marts.ZERO)
    return f"{whole(lost)} of {whole(found.total.effective)} {found.currency} went to GPUs that nobody used"


def _tiles(found: Findings) -> str:
    total = found.total.effective
    lost = waste(found)
    tiles = [
        ("", "effective cost", total, f"{whole(found.total.billed)} billed"),
        ("utilized", "utilized", found.total.utilized, ""),
        ("stranded", "stranded", lost["stranded"], "held and idle"),
        ("", "unallocated", lost["unallocated"], "held by nobody"),
        ("", "committed, unused", lost["committed_unused"], "paid for and not used"),
    ]
    cells = []
    for kind, name, value, note in tiles:
        share = f"{percent(float(value / total))} of cost" if total and name != "effective cost" else ""
        small = ", ".join(t for t in (share, note) if t)
        cells.append(
            f'<div class="tile {kind}"><b>{whole(value)}</b><span>{escape(name)}</span>'
            f"<small>{escape(small)}</small></div>"
        )
    return f'<section class="tiles">{"".join(cells)}</section>'


def strip(values: Mapping[str, Decimal], of: Decimal, height: int = 16) -> str:
    """A bar of amounts of money by part, the width of `of` being all of the space."""
    drawn, x = [], 0.0
    for name, value in values.items():
        width = 100 * float(value / of) if of else 0.0
        if width > 0:
            drawn.append(
                f'<rect x="{x:.3f}%" width="{width:.3f}%" height="{height}" fill="{COLOURS[name]}">'
                f"<title>{escape(name)}: {whole(value)}</title></rect>"
            )
        x += max(width, 0.0)
    label = ", ".join(f"{n} {whole(v)}" for n, v in values.items())
    space = f'width="100%" height="{height}"'
    return f'<svg class="bar" {space} role="img" aria-label="{escape(label)}">{"".join(drawn)}</svg>'


def _groups(kind: str, groups: Sequence[tuple[str, Money]]) -> str:
    if not groups:
        return '<p class="note">Nothing was held.</p>'
    widest = max(m.effective for _, m in groups)
    rows = [
        f'<tr><th scope="row" title="{escape(name)}">{escape(name)}</th>'
        f'<td class="wide">{strip({n: getattr(m, n) for n in HELD}, widest)}</td>'
        f"<td>{whole(m.effective)}</td><td>{whole(m.stranded)}</td>"
        f"<td>{percent(float(m.stranded / m.effective) if m.effective else None)}</td>"
        f"<td>{rate(float(m.effective) / m.held_hours if m.held_hours else None)}</td>"
        f"<td>{rate(m.per_utilized_hour)}</td></tr>"
        for name, m in groups
    ]
    head = _head(kind, "", "cost", "stranded", "share", "per held GPU-hour", "per utilized GPU-hour")
    keys = "".join(f'<span><i style="background:{COLOURS[n]}"></i>{n}</span>' for n in HELD)
    return f'<table class="groups priced">{head}<tbody>{"".join(rows)}</tbody></table><p class="legend">{keys}</p>'


def _head(*columns: str) -> str:
    """Column titles; one that ends in * is text and stands left."""
    cells = [f'<th scope="col"{" class=text" if c.endswith("*") else ""}>{escape(c.rstrip("*"))}</th>' for c in columns]
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def _table(head: str, rows: Sequence[str], kind: str = "plain") -> str:
    return f'<table class="{kind}">{head}<tbody>{"".join(rows)}</tbody></table>'


def _wastes(found: Findings) -> str:
    lost = waste(found)
    named: dict[str, list[str]] = {"unallocated": [], "committed_unused": []}
    for part, owner, cost in found.owners:
        if part in named:
            named[part].append(f"{owner} {whole(cost)}")
    named["stranded"] = [f"{t} {whole(m.stranded)}" for t, m in sorted(found.teams, key=lambda g: -g[1].stranded)[:4]]
    rows = [
        f'<tr><th scope="row">{escape(what)}</th><td>{whole(lost[name])}</td>'
        f'<td class="text">{escape(who)}</td><td class="text">{escape(", ".join(named[name][:4]))}</td></tr>'
        for name, (what, who) in WASTES.items()
    ]
    return _table(_head("waste", "cost", "whose decision*", "most of it*"), rows)


def _parts(found: Findings) -> str:
    rows = [
        f'<tr><th scope="row">{escape(PARTS.get(name, name))}</th><td>{whole(m.list)}</td>'
        f"<td>{whole(m.contracted)}</td><td>{whole(m.billed)}</td><td>{whole(m.effective)}</td></tr>"
        for name, m in found.parts
    ]
    t = found.total
    bought = dict(found.parts).get("commitment_purchase", Money())
    rows.append(
        f'<tr class="total"><th scope="row">all</th><td>{whole(t.list - bought.list)}</td>'
        f"<td>{whole(t.contracted - bought.contracted)}</td>"
        f"<td>{t.billed:,.2f}</td><td>{t.effective:,.2f}</td></tr>"
    )
    note = '<p class="note">All of list and contracted leaves purchases out: what they cover is there already.</p>'
    return _table(_head("part", "list", "contracted", "billed", "effective"), rows) + note


def _commitments(commitments: Sequence[Commitment]) -> str:
    if not commitments:
        return '<p class="note">There are none.</p>'
    rows = [
        f'<tr><th scope="row" title="{escape(c.name)}">{escape(c.name)}<small>{escape(c.provider)}, {escape(c.kind)}'
        f"{escape(f', {c.owner}') if c.owner else ''}</small></th><td>{percent(c.utilization)}</td>"
        f"<td>{percent(c.coverage)}</td><td>{whole(c.used)}</td><td>{whole(c.unused)}</td><td>{whole(c.opening)}</td>"
        f"<td>{whole(c.purchased)}</td><td>{whole(c.closing)}</td></tr>"
        for c in commitments
    ]
    head = _head(
        "commitment", "used", "covers", "cost used", "wasted", "paid ahead before", "bought", "paid ahead after"
    )
    note = (
        '<p class="note">Used: share of the commitment. Covers: share of the usage it could have covered. Paid ahead: '
        "what has been billed and is not yet spread over hours; before + bought − used − wasted = after.</p>"
    )
    return _table(head, rows) + note


def _bills(bills: Sequence[tuple[str, str, int, Decimal, Decimal, Decimal]]) -> str:
    if not bills:
        return '<p class="note">No bill has been imported: every cost is computed from rate cards.</p>'
    rows = [
        f'<tr><th scope="row">{escape(provider)}</th><td class="text">{escape(BILLS.get(verdict, verdict))}</td>'
        f"<td>{n:,}</td><td>{computed:,.2f}</td><td>{billed:,.2f}</td><td>{difference:,.2f}</td></tr>"
        for provider, verdict, n, computed, billed, difference in bills
    ]
    head = _head("provider", "bill and rate card*", "resources", "computed", "billed", "difference")
    return _table(head, rows)


def _offers(offers: Sequence[Offer]) -> str:
    if not offers:
        return '<p class="note">No owned hardware, or nothing to compare it with.</p>'
    rows = [
        f'<tr><th scope="row">{escape(o.accelerator)}</th><td>{rate(o.owned)}</td>'
        f'<td class="text">{escape(o.rented_as)}</td><td>{rate(o.rent)}</td><td>{percent(o.break_even)}</td>'
        f'<td>{percent(o.held)}</td><td>{percent(o.utilized)}</td><td class="text">{escape(o.verdict)}</td></tr>'
        for o in offers
    ]
    head = _head("accelerator", "owned", "against*", "rented", "owning pays from", "held", "utilized", "verdict*")
    note = (
        '<p class="note">Prices per GPU-hour; owned: with power, spread over every hour. Rent is paid while something '
        "is held, so the verdict compares the share of time held with the share from which owning pays.</p>"
    )
    return _table(head, rows) + note


def _words() -> str:
    return """<section class="words"><h2>What the words mean</h2>
<p><b>Effective cost</b> spreads what was paid ahead over the hours it covers; <b>billed</b> is what invoices ask.
A node's charge is divided by its GPUs and dealt to whom the GPU-second ledger says held them; what a pod held
divides into <b>utilized</b>, <b>stranded</b> (held, observed and idle) and <b>unobserved</b>. Every division adds up to
what was divided, to the last digit. List and contracted cost hold usage and the purchase that covers it both: leave one
of them out before adding up.</p></section>"""
