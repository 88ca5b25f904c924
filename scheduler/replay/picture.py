"""A picture of replays as SVG: GPUs held over time by size of the job, wanted while idle, and what waits below.

Belongs here: geometry, colours, words. Not here: the series (`timeline.py`), figures (`metrics.py`), files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any

import numpy as np

from scheduler.model import HOUR_US, MILLI, SECOND_US
from scheduler.replay.outcome import Outcome, TraceRun
from scheduler.replay.timeline import PARTIAL, Timeline, timeline
from scheduler.sizes import CLASSES

# One hue that darkens with size, and Okabe and Ito's vermilion and yellow: apart for colour-blind eyes and in grey.
_COLOURS = {"1": "#a9d3ef", "2-7": "#4b9ad0", "8+": "#0b4f85", PARTIAL: "#d55e00"}
_WANTED = "#f0c419"
_TITLES = {"1": "1 GPU", "2-7": "2–7 GPUs", "8+": "8 or more GPUs", PARTIAL: "held by a part of a gang, no work"}
_WIDTH, _LEFT, _RIGHT = 960, 56, 16
_TOP, _HEAD, _HELD, _GAP, _WAITING, _FOOT = 36, 62, 150, 24, 64, 36
_STEPS = 440
_STEPS_S = (1, 2, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200)
_DAY_S = 86_400
# Traces whose times are dates begin after this; others count from an origin of their own.
_DATES_FROM_US = 946_684_800 * SECOND_US


@dataclass(frozen=True)
class Replayed:
    """One replay: jobs as they were replayed, what became of them, and the figures made of it."""

    runs: Sequence[TraceRun]
    out: Outcome
    found: Mapping[str, Any]


def draw(replays: Sequence[Replayed]) -> str:
    """The replays below each other over one axis of time, as an SVG document."""
    first = min(r.job.submit_us for shown in replays for r in shown.runs)
    last = max(_last(shown, first) for shown in replays)
    panel = _HEAD + _HELD + _GAP + _WAITING + _FOOT
    height = _TOP + panel * len(replays)
    series = [timeline(s.runs, s.out, round(s.found["capacity_gpus"] * MILLI), (first, last), _STEPS) for s in replays]
    # one scale for all, so that they compare
    most = _ceiling(max(float(sum(s.waiting.values()).max()) for s in series))  # type: ignore[union-attr]
    parts = [_legend(series)]
    for k, (shown, found) in enumerate(zip(replays, series, strict=True)):
        drawn = _panel(shown, found, most, first, last)
        parts.append(f'<g transform="translate(0,{_TOP + k * panel})">{drawn}</g>')
    names = " and ".join(_name(s.found) for s in replays)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="GPUs held and asked for over time under {escape(names)}" '
        'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12" fill="#14181f">'
        '<defs><pattern id="wanted" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect width="6" height="6" fill="#fff6cf"/><rect width="2.4" height="6" fill="{_WANTED}"/></pattern></defs>'
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _last(shown: Replayed, first: int) -> int:
    """Where the picture of a replay ends: with it, or a good while later where jobs wait for ever."""
    end = max(shown.out.finished_us, first)
    if shown.out.stuck:
        end += max((end - first) // 2, *(r.duration_us for r in shown.runs))
    return max(end, first + SECOND_US)


def _name(found: Mapping[str, Any]) -> str:
    without = "".join(f", without {name}" for name in found["without"])
    return f"{found['policy']}{without}"


def _legend(shown: Sequence[Timeline]) -> str:
    """What the colours mean that are there."""
    keys = [(_COLOURS[n], f"jobs of {_TITLES[n]}") for n in CLASSES if any(_is_in(s, n) for s in shown)]
    if any(s.held[PARTIAL].any() for s in shown):
        keys.append((_COLOURS[PARTIAL], _TITLES[PARTIAL]))
    if any(s.wanted.any() for s in shown):
        keys.append(("url(#wanted)", "idle, though enough for a job that waits"))
    drawn, x = [], float(_LEFT)
    for colour, words in keys:
        drawn.append(
            f'<rect x="{x:.0f}" y="12" width="12" height="12" fill="{colour}" stroke="#5a6270" stroke-width="0.5"/>'
            f'<text x="{x + 17:.0f}" y="22">{escape(words)}</text>'
        )
        x += 17 + 6.1 * len(words) + 18
    return "".join(drawn)


def _is_in(series: Timeline, name: str) -> bool:
    return bool(series.held[name].any() or series.waiting[name].any())


def _panel(shown: Replayed, series: Timeline, most: float, first: int, last: int) -> str:
    found = shown.found
    parts = [
        f'<text x="{_LEFT}" y="18" font-size="15" font-weight="600">{escape(_name(found))}</text>',
        f'<text x="{_LEFT}" y="36" fill="#454c57">{escape(_summary(found))}</text>',
    ]
    held = {name: (series.held[name], _COLOURS[name]) for name in (*CLASSES, PARTIAL)}
    held["wanted"] = (series.wanted, "url(#wanted)")
    waiting = {name: (series.waiting[name], _COLOURS[name]) for name in CLASSES}
    parts.append(_areas(held, _HEAD, _HELD, series.capacity, "GPUs held"))
    top = _HEAD + _HELD + _GAP
    parts.append(_areas(waiting, top, _WAITING, most, "GPUs asked for by jobs that wait"))
    bottom = top + _WAITING
    parts.append(_time_axis(first, last, bottom))
    if shown.out.stuck:
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * (shown.out.finished_us - first) / (last - first)
        anchor, beside = ("end", x - 6) if x > _WIDTH * 0.6 else ("start", x + 6)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_HEAD - 6}" y2="{bottom}" stroke="#14181f" stroke-dasharray="4 3"/>'
            f'<text x="{beside:.1f}" y="{_HEAD + 16}" text-anchor="{anchor}" '
            'font-weight="600" fill="#14181f" stroke="#ffffff" stroke-width="3" paint-order="stroke">'
            "from here on nothing can happen any more</text>"
        )
    return "".join(parts)


def _summary(found: Mapping[str, Any]) -> str:
    if found["is_deadlocked"]:
        return f"deadlocked: {found['finished']:,} of {found['jobs']:,} jobs ran, the others wait for ever; no mean"
    if found["mean_wait_s"] is None:
        return "no job could start"
    parts = [f"mean wait {_duration(found['mean_wait_s'])}", f"95 % within {_duration(found['p95_wait_s'])}"]
    parts.append(f"{found['idle_while_waiting_gpu_hours']:,.1f} GPU-hours idle though wanted")
    if found["evictions"]:
        what = "eviction" if found["evictions"] == 1 else "evictions"
        parts.append(f"{found['evictions']:,} {what}, {found['gpu_hours_lost']:,.1f} GPU-hours of work lost")
    return "; ".join(parts)


def _duration(seconds: float) -> str:
    for size, unit in ((_DAY_S, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:,.0f} s"


def _areas(stacked: Mapping[str, tuple[np.ndarray, str]], top: float, height: float, most: float, title: str) -> str:
    """Series on top of each other, with lines of the scale below them; `most` is the top."""
    width = _WIDTH - _LEFT - _RIGHT
    parts = [f'<rect x="{_LEFT}" y="{top}" width="{width}" height="{height}" fill="#eef0f3"/>']
    floor = np.zeros(_STEPS)
    for values, colour in stacked.values():
        if values.max() > 0:
            parts.append(f'<path d="{_outline(floor, floor + values, top, height, most)}" fill="{colour}"/>')
        floor = floor + values
    count = 4 if height > 100 else 2
    for mark in (most * n / count for n in range(count + 1)):
        y = top + height * (1 - mark / most)
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" '
            'stroke="#5a6270" stroke-opacity="0.35"/>'
        )
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" font-size="11">{mark:,.4g}</text>'.replace(
                "e+", "e"
            )
        )
    parts.append(f'<text x="{_LEFT}" y="{top - 5:.1f}" font-size="11" fill="#454c57">{escape(title)}</text>')
    return "".join(parts)


def _ceiling(value: float) -> float:
    """The top of a scale: whole, and of two digits that count from 200 on."""
    digits = max(len(str(int(value))) - 2, 0) if value >= 200 else 0
    return float(max(-(-value // 10**digits) * 10**digits, 1))


def _outline(under: np.ndarray, over: np.ndarray, top: float, height: float, most: float) -> str:
    """Where a series lies between two heights, in steps; what stays equal is one line."""
    step = (_WIDTH - _LEFT - _RIGHT) / _STEPS

    def line(values: np.ndarray, indexes: Sequence[int], shift: int) -> list[str]:
        """Corners of a staircase; `shift` is 1 where it is walked from the right."""
        heights = [f"{top + height * (1 - min(values[i] / most, 1.0)):.1f}" for i in indexes]
        points = []
        for k, i in enumerate(indexes):
            if k == 0 or heights[k] != heights[k - 1]:
                points.append(f"L{_LEFT + step * (i + shift):.1f} {heights[k]}")
            if k == len(indexes) - 1 or heights[k] != heights[k + 1]:
                points.append(f"L{_LEFT + step * (i + 1 - shift):.1f} {heights[k]}")
        return points

    corners = line(over, range(_STEPS), 0) + line(under, range(_STEPS - 1, -1, -1), 1)
    return "M" + "".join(corners)[1:] + "z"


def _time_axis(first: int, last: int, y: float) -> str:
    span_s = (last - first) / SECOND_US
    days = [n * _DAY_S for n in (1, 2, 7, 14, 28, 91, 364)]
    step_s = next((s for s in (*_STEPS_S, *days) if span_s / s <= 10), days[-1] * max(1, round(span_s / days[-1] / 8)))
    has_dates = first >= _DATES_FROM_US
    origin = first // (step_s * SECOND_US) * step_s * SECOND_US if has_dates else first
    parts = []
    at = origin
    while at <= last:
        if at >= first:
            x = _LEFT + (_WIDTH - _LEFT - _RIGHT) * (at - first) / (last - first)
            anchor = "end" if x > _WIDTH - _RIGHT - 24 else "middle"
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 4}" stroke="#5a6270"/>')
            parts.append(
                f'<text x="{x:.1f}" y="{y + 17}" text-anchor="{anchor}" font-size="11">'
                f"{_instant(at, first, step_s)}</text>"
            )
        at += step_s * SECOND_US
    return "".join(parts)


def _instant(at: int, first: int, step_s: int) -> str:
    if first < _DATES_FROM_US:
        passed = (at - first) / SECOND_US
        unit, size = (
            ("d", _DAY_S)
            if step_s >= _DAY_S
            else ("h", HOUR_US // SECOND_US)
            if step_s >= 3600
            else ("min", 60)
            if step_s >= 60
            else ("s", 1)
        )
        return f"{passed / size:,.0f} {unit}" if passed else "0"
    when = datetime.fromtimestamp(at / SECOND_US, UTC)
    return f"{when:%d %b}" if step_s >= _DAY_S else f"{when:%d %b %H:%M}" if step_s >= 60 else f"{when:%H:%M:%S}"
