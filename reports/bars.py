"""Small drawings as inline SVG: a stacked bar and stacked areas over time.

Belongs here: geometry, the colours of the ledger's parts, titles that a pointer shows. Not here: text around the
drawings (`stranding.py`), numbers (`marts.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from html import escape

from reports.marts import Parts

# Apart also for colour-blind eyes and in grey: Okabe and Ito's green and vermilion, greys of rising lightness.
COLOURS = {
    "utilized": "#00735c",
    "stranded": "#d55e00",
    "unobserved": "#8a8f98",
    "unallocated": "#d9dce1",
    "unavailable": "#3d434d",
}
HELD = ("utilized", "stranded", "unobserved")
ALL = (*HELD, "unallocated", "unavailable")
TITLES = {
    "utilized": "utilized",
    "stranded": "stranded",
    "unobserved": "unobserved",
    "unallocated": "unallocated (held by nobody)",
    "unavailable": "unavailable",
}


def hours(value: float) -> str:
    """GPU-hours for people: whole, with one decimal below ten."""
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def percent(ratio: float | None) -> str:
    """A ratio as per cent; a dash for None."""
    return "–" if ratio is None else f"{ratio:.0%}"


def stacked(parts: Parts, of: float, show: Sequence[str] = HELD, height: int = 16) -> str:
    """A bar of `show`, the width of `of` being all of the space. A tick marks what GPU_UTIL would call used."""
    drawn, x = [], 0.0
    for name in show:
        value = getattr(parts, name)
        width = 100 * value / of if of else 0.0
        if width > 0:
            drawn.append(
                f'<rect x="{x:.3f}%" width="{width:.3f}%" height="{height}" fill="{COLOURS[name]}">'
                f"<title>{escape(TITLES[name])}: {hours(value)} GPU-hours</title></rect>"
            )
        x += width
    if show == HELD and of and parts.resident:
        at = 100 * parts.resident / of
        drawn.append(
            f'<rect x="{at:.3f}%" y="-3" width="2" height="{height + 6}" fill="#14181f">'
            f"<title>GPU_UTIL would call {hours(parts.resident)} GPU-hours used</title></rect>"
        )
    label = ", ".join(f"{TITLES[n]} {hours(getattr(parts, n))}" for n in show)
    return (
        f'<svg class="bar" width="100%" height="{height}" overflow="visible" role="img" '
        f'aria-label="{escape(label)} GPU-hours">{"".join(drawn)}</svg>'
    )


def areas(timeline: Sequence[tuple[datetime, Parts]], step_hours: int) -> str:
    """The parts of the fleet over time, stacked, in GPUs (the mean over each step); gaps in time stay gaps."""
    width, height, left, bottom = 1040, 260, 44, 24
    if not timeline:
        return "<p>No hours.</p>"
    step = timedelta(hours=step_hours)
    first, last = timeline[0][0], timeline[-1][0] + step
    scale = (width - left) / ((last - first) / step)
    top = max(p.capacity for _, p in timeline) / step_hours or 1.0
    tick = _round_step(top)
    ceiling = tick * (int(top / tick) + (0 if (top / tick).is_integer() else 1))

    def y_of(gpus: float) -> float:
        return height - bottom - (height - bottom - 8) * gpus / ceiling

    drawn = []
    floors = [0.0] * len(timeline)
    for name in ALL:
        tops = [f + getattr(p, name) / step_hours for f, (_, p) in zip(floors, timeline, strict=True)]
        path = []
        for run in _runs_of([at for at, _ in timeline], step):
            xs = [left + scale * ((timeline[i][0] - first) / step) for i in run]
            # One outline for a run of steps: a shape for each would leave hairlines between them.
            over = "".join(f"L{x:.1f} {y_of(tops[i]):.1f}h{scale:.2f}" for x, i in zip(xs, run, strict=True))
            under = "".join(
                f"L{x + scale:.1f} {y_of(floors[i]):.1f}h{-scale:.2f}"
                for x, i in zip(reversed(xs), reversed(run), strict=True)
            )
            path.append(f"M{over[1:]}{under}z")
        drawn.append(f'<path d="{"".join(path)}" fill="{COLOURS[name]}"/>')
        floors = tops
    for n in range(int(ceiling / tick) + 1):
        y = y_of(n * tick)
        drawn.append(f'<line x1="{left}" x2="{width}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        drawn.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{n * tick:g}</text>')
    span_days = max(1, round((last - first) / timedelta(days=1)))
    every = max(1, -(-span_days // 14))
    day = first.replace(hour=0)
    while day < last:
        x = left + scale * ((day - first) / step)
        if x >= left:
            drawn.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{height - bottom}" y2="{height - bottom + 4}"/>')
            drawn.append(f'<text x="{x + 3:.1f}" y="{height - 6}">{day:%d %b}</text>')
        day += timedelta(days=every)
    for at, parts in timeline:
        x = left + scale * ((at - first) / step)
        values = "\n".join(f"{TITLES[n]}: {getattr(parts, n) / step_hours:,.1f}" for n in reversed(ALL))
        drawn.append(
            f'<rect x="{x:.1f}" y="0" width="{scale:.2f}" height="{height - bottom}" fill="transparent">'
            f"<title>{at:%Y-%m-%d %H:%M} UTC, GPUs\n{escape(values)}</title></rect>"
        )
    return (
        f'<svg class="areas" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="GPUs over time by what became of them">{"".join(drawn)}</svg>'
    )


def _runs_of(instants: Sequence[datetime], step: timedelta) -> list[range]:
    """Indexes of instants that follow each other by one step, run by run."""
    starts = [i for i, at in enumerate(instants) if i == 0 or at - instants[i - 1] != step]
    return [range(a, b) for a, b in zip(starts, [*starts[1:], len(instants)], strict=True)]


def _round_step(top: float) -> float:
    """Spacing of about four lines up to `top`: 1, 2 or 5 times a power of ten."""
    magnitude = 1.0
    while magnitude * 10 <= top / 4:
        magnitude *= 10
    while magnitude > top / 4 and magnitude > 1e-3:
        magnitude /= 10
    return next(magnitude * m for m in (1, 2, 5, 10) if magnitude * m >= top / 4)


def legend(show: Sequence[str], tick: bool = False) -> str:
    """What the colours mean, and the tick where bars have it."""
    keys = [f'<span><i style="background:{COLOURS[n]}"></i>{escape(TITLES[n])}</span>' for n in show]
    if tick:
        keys.append('<span><i class="tick"></i>what GPU_UTIL would call used</span>')
    return f'<p class="legend">{"".join(keys)}</p>'
