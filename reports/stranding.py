"""The stranding report: one self-contained HTML page from marts, readable offline and on paper.

Belongs here: what stands on the page, in which order and words. Not here: reading marts (`marts.py`), drawings
(`bars.py`), files and flags (the command).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from html import escape
from pathlib import Path

import duckdb

from reports import bars, marts
from reports.bars import hours, percent
from reports.marts import Parts, Run

STYLE = Path(__file__).with_name("page.css")
VERDICTS = {
    "idle": "did nothing",
    "mostly_idle": "mostly idle",
    "input_starved": "waits for its input",
    "below_baseline": "below its kind's usual",
    "as_expected": "usual for its kind",
    "not_observed": "not observed",
}
# Below this share of capacity, activity that nobody held is the tail of holders who have just left.
ROGUE = 0.001
SHAPES = {"starved": "training, starved", "sweep": "parameter sweep"}
# Verdicts that ask for something to be done; the others only explain.
CALLS = ("idle", "mostly_idle", "input_starved", "below_baseline")


def render(con: duckdb.DuckDBPyConnection, start: date, end: date, *, simulated: bool = False) -> str:
    """The page for the days [start, end), from a connection with the views of marts. `simulated` labels it so."""
    found = marts.read(con, start, end)
    last = end - timedelta(days=1)
    label = '<p class="simulated">SIMULATED: this fleet and everything on it was invented by a program.</p>'
    clusters = f"{len(found.clusters)} clusters: " if len(found.clusters) > 1 else "cluster "
    parts = [
        label if simulated else "",
        f"<header><h1>{escape(_headline(found.total))}</h1>",
        f'<p class="about">{_days(start, last)} (UTC), {clusters}',
        f"{escape(', '.join(found.clusters))}</p>",
        *(f'<p class="lead">{escape(line)}</p>' for line in _lead(found.total)),
        "</header>",
        _tiles(found.total),
        _whole(found.total),
        "<h2>By team</h2>",
        _groups("team", found.teams),
        "<h2>Over time</h2>",
        f'<p class="note">GPUs, mean over each {"hour" if found.step_hours == 1 else "day"}.</p>',
        bars.areas(found.timeline, found.step_hours),
        bars.legend(bars.ALL),
        "<h2>By accelerator</h2>",
        _groups("accelerator", found.accelerators),
        "<h2>By namespace</h2>",
        _groups("namespace", found.namespaces),
        "<h2>Runs that strand most</h2>",
        _runs(found.runs),
        _verdicts(found.verdicts),
        _words(),
    ]
    title = f"{'SIMULATED: ' if simulated else ''}Stranded GPU-hours, {start} to {last}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE.read_text('utf-8')}</style></head>\n<body><main>"
        + "\n".join(p for p in parts if p)
        + "</main></body></html>\n"
    )


def _headline(total: Parts) -> str:
    if not total.allocated:
        return "No GPU was held in this time"
    return f"{hours(total.stranded)} of {hours(total.allocated)} allocated GPU-hours were stranded"


def _days(start: date, last: date) -> str:
    return f"{start:%d %b %Y}" if start == last else f"{start:%d %b %Y} to {last:%d %b %Y}"


def _lead(total: Parts) -> list[str]:
    lines = []
    if total.allocated and total.resident:
        lines.append(
            f"GPU_UTIL, the figure most dashboards show, would call {percent(total.share('resident'))} of the "
            f"allocated time used. The multiprocessors were busy for {percent(total.share('utilized'))} of it."
        )
    if (total.share("rogue", "capacity") or 0) >= ROGUE:
        lines.append(f"{hours(total.rogue)} GPU-hours of activity were on GPUs that no pod held.")
    return lines


def _tiles(total: Parts) -> str:
    tiles = [
        ("capacity", total.capacity, "GPU-hours that existed"),
        ("allocated", total.allocated, f"{percent(total.share('allocated', 'capacity'))} of capacity"),
        *(
            (n, getattr(total, n), f"{percent(total.share(n))} of allocated" if total.allocated else "")
            for n in bars.HELD
        ),
    ]
    cells = [
        f'<div class="tile {name}"><b>{hours(value)}</b><span>{name}</span><small>{escape(note)}</small></div>'
        for name, value, note in tiles
    ]
    return f'<section class="tiles">{"".join(cells)}</section>'


def _whole(total: Parts) -> str:
    return bars.stacked(total, total.capacity, bars.ALL, height=28) + bars.legend(bars.ALL)


def _groups(kind: str, groups: Sequence[tuple[str, Parts]]) -> str:
    shown = [(name, p) for name, p in groups if p.allocated]
    if not shown:
        return '<p class="note">Nothing was held.</p>'
    widest = max(p.allocated for _, p in shown)
    rows = [
        f'<tr><th scope="row" title="{escape(name)}">{escape(name)}</th><td class="wide">{bars.stacked(p, widest)}</td>'
        f"<td>{hours(p.allocated)}</td><td>{hours(p.utilized)}</td><td>{hours(p.stranded)}</td>"
        f"<td>{hours(p.unobserved)}</td><td>{_share(p)}</td></tr>"
        for name, p in shown
    ]
    head = _head(kind, "", "allocated", "utilized", "stranded", "unobserved", "share stranded")
    return f'<table class="groups">{head}<tbody>{"".join(rows)}</tbody></table>{bars.legend(bars.HELD, tick=True)}'


def _share(parts: Parts) -> str:
    """The stranded share of what is held; a dash where none of it was observed."""
    return percent(parts.share("stranded") if parts.unobserved < parts.allocated else None)


def _head(*columns: str) -> str:
    """Column titles; one that ends in * is text and stands left."""
    cells = [f'<th scope="col"{" class=text" if c.endswith("*") else ""}>{escape(c.rstrip("*"))}</th>' for c in columns]
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def _runs(runs: Sequence[Run]) -> str:
    if not runs:
        return '<p class="note">No run stranded anything.</p>'
    rows = [
        f'<tr><th scope="row" title="{escape(r.namespace)}/{escape(r.pod)}">{escape(r.pod)}'
        f"<small>{escape(r.namespace)}, {escape(r.team or 'no team')}</small></th>"
        f'<td class="text">{r.devices} × {escape(r.accelerator or "unknown")}</td>'
        f'<td class="text">{escape(SHAPES.get(r.shape, r.shape))}</td>'
        f"<td>{hours(r.allocated)}</td><td>{hours(r.stranded)}</td>"
        f"<td>{percent(r.utilization)}</td><td>{percent(r.typical)}</td>"
        f'<td class="text"><span class="verdict{" call" if r.verdict in CALLS else ""}">'
        f"{escape(VERDICTS.get(r.verdict, r.verdict))}</span></td></tr>"
        for r in runs
    ]
    head = _head("pod", "holds*", "kind of work*", "allocated", "stranded", "used", "usual", "verdict*")
    return (
        f'<table class="runs">{head}<tbody>{"".join(rows)}</tbody></table>'
        '<p class="note">The kind of work is told from metrics alone. Used: utilized ÷ observed. Usual: the median '
        "activity of runs of that kind on that accelerator that ended or were last seen on the same day. A verdict "
        "tells a run from its kind; what is usual for a kind may still strand most.</p>"
    )


def _verdicts(verdicts: Sequence[tuple[str, int, float, float]]) -> str:
    if not verdicts:
        return ""
    rows = [
        f'<tr><th scope="row">{escape(VERDICTS.get(v, v))}</th><td>{n:,}</td>'
        f"<td>{hours(held)}</td><td>{hours(lost)}</td></tr>"
        for v, n, held, lost in verdicts
    ]
    head = _head("all runs by verdict", "runs", "allocated", "stranded")
    return f'<table class="verdicts">{head}<tbody>{"".join(rows)}</tbody></table>'


def _words() -> str:
    return """<section class="words"><h2>What the words mean</h2>
<p>All figures are GPU-hours and add up exactly: capacity = allocated + unallocated + unavailable; allocated =
utilized + stranded + unobserved. <b>Allocated</b>: a pod holds the device, from being scheduled to the end of its last
container.
<b>Utilized</b>: the streaming multiprocessors were busy (SM_ACTIVE; where a card has none, the graphics engine or
GPU_UTIL). <b>Stranded</b>: held, observed and not used. <b>Unobserved</b>: held while no sample covers it; it counts as
neither. The black tick marks what GPU_UTIL, the figure most dashboards show, would call used: it says that some kernel
ran, not how much of the card it filled; MIG instances have none and add nothing to it.</p></section>"""
