"""Figures of a replay: waits, completion, lost and idle GPU-hours, by size class and team.

A wait is all pending time of a job, after an eviction too; the time to first start and the completion time stand beside
it. Jobs that never started have none and are counted. A replay that got stuck has no mean of anything. Percentiles
interpolate linearly. Belongs here: what each figure means. Not here: integrals over time (`sweep.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from scheduler.model import MILLI, SECOND_US, Job, Node, Queue
from scheduler.replay.outcome import Outcome, Span, TraceRun
from scheduler.replay.sweep import MILLI_HOUR, Stretches, fragmentation, integrate
from scheduler.sizes import size_class

PERCENTILES = (50, 90, 95, 99)
_SHOWN_IDS = 20


@dataclass(frozen=True)
class Fleet:
    """What the replay ran on: nodes, or none for a scalar pool; `milli` in all, and the queues with their weights."""

    milli: int
    nodes: tuple[Node, ...]
    queues: Mapping[str, Queue]


@dataclass(frozen=True)
class Times:
    """Of one job, in microseconds: pending stretches, and end; None where it has not ended."""

    job: Job
    waits: tuple[tuple[int, int], ...]
    started_us: int | None
    ended_us: int | None

    @property
    def wait_us(self) -> int:
        return sum(end - begin for begin, end in self.waits)


def figures(runs: Sequence[TraceRun], out: Outcome, fleet: Fleet) -> dict[str, Any]:
    """All figures as one object that JSON can hold; seconds, GPU-hours, ratios of 0 to 1.

    `unstarted` counts the impossible ones too. `is_deadlocked`: jobs waited for ever; then waits are null.
    """
    times = times_of(runs, out)
    is_deadlocked = bool(out.stuck)
    spans = [s for s in out.spans if s.ended_us > s.begun_us]
    found: dict[str, Any] = {
        "jobs": len(runs),
        "started": len(out.started_us),
        "finished": len(out.ended_us),
        "unstarted": len(runs) - len(out.started_us),
        "failed": len(out.failed),
        "is_deadlocked": is_deadlocked,
        **_waits(times, is_deadlocked),
        **_ends(times, is_deadlocked, out),
        **_capacity(times, spans, out, fleet),
        **_lost(out, runs),
        "by_class": _parts(times, size_class, is_deadlocked),
        "by_team": _parts(times, lambda job: job.team, is_deadlocked),
        "impossible": dict(sorted(Counter(out.impossible.values()).items())),
        "impossible_jobs": list(out.impossible)[:_SHOWN_IDS],
        "waiting_at_end": list(out.stuck)[:_SHOWN_IDS],
    }
    return found


def times_of(runs: Sequence[TraceRun], out: Outcome) -> list[Times]:
    """Jobs that could run. One that waits when the replay ends has waited until then."""
    whole: dict[str, list[Span]] = defaultdict(list)
    for span in out.spans:
        if span.is_whole:
            whole[span.job_id].append(span)
    found = []
    for run in runs:
        job = run.job
        if job.job_id in out.impossible:
            continue
        waits, since = [], job.submit_us
        for span in whole[job.job_id]:
            waits.append((since, span.begun_us))
            since = span.ended_us
        ended = out.ended_us.get(job.job_id)
        if ended is None and job.job_id not in out.failed:
            waits.append((since, max(out.finished_us, since)))
        found.append(Times(job, tuple(waits), out.started_us.get(job.job_id), ended))
    return found


def _parts(times: Sequence[Times], key: Callable[[Job], str], is_deadlocked: bool) -> dict[str, dict[str, Any]]:
    """Waits of jobs by what `key` makes of them; impossible ones are in no part."""
    groups: dict[str, list[Times]] = defaultdict(list)
    for t in times:
        groups[key(t.job)].append(t)
    return {name: {"jobs": len(group), **_waits(group, is_deadlocked)} for name, group in sorted(groups.items())}


def _seconds(us: Sequence[int]) -> np.ndarray:
    return np.asarray(us, dtype=np.int64) / SECOND_US


def _rounded(value: float | None, digits: int = 6) -> float | None:
    return None if value is None else round(float(value), digits)


def _spread(values: np.ndarray, name: str, is_known: bool) -> dict[str, float | None]:
    """mean, median and other percentiles, and the longest of some seconds."""
    names = ("mean", "median", *(f"p{p}" for p in PERCENTILES[1:]), "max")
    if not is_known or not len(values):
        return {f"{n}_{name}": None for n in names}
    numbers = (values.mean(), *np.percentile(values, PERCENTILES), values.max())
    return {f"{n}_{name}": _rounded(v) for n, v in zip(names, numbers, strict=True)}


def _waits(times: Sequence[Times], is_deadlocked: bool) -> dict[str, Any]:
    begun = [t for t in times if t.started_us is not None]
    first = _seconds([t.started_us - t.job.submit_us for t in begun if t.started_us is not None])
    waits = _seconds([t.wait_us for t in begun])
    is_known = not is_deadlocked and len(begun) > 0
    return {
        **_spread(waits, "wait_s", is_known),
        "first_start_wait_s": _rounded(first.mean()) if is_known else None,
        "p95_first_start_wait_s": _rounded(np.percentile(first, 95)) if is_known else None,
        "started_at_once_ratio": _rounded((first == 0).mean()) if is_known else None,
    }


def _ends(times: Sequence[Times], is_deadlocked: bool, out: Outcome) -> dict[str, Any]:
    whole = _seconds([t.ended_us - t.job.submit_us for t in times if t.ended_us is not None])
    first = min((t.job.submit_us for t in times), default=0)
    return {
        **_spread(whole, "completion_s", not is_deadlocked),
        "makespan_s": None if is_deadlocked or not times else (out.finished_us - first) / SECOND_US,
    }


def _capacity(times: Sequence[Times], spans: Sequence[Span], out: Outcome, fleet: Fleet) -> dict[str, Any]:
    index = {name: i for i, name in enumerate(fleet.queues)}
    queue_of = {t.job.job_id: index[t.job.queue] for t in times}
    waiting = [(b, e, t.job.gpu_milli, index[t.job.queue], t.job.least_gpu_milli) for t in times for b, e in t.waits]
    held = [(s.begun_us, s.ended_us, s.milli, queue_of[s.job_id], 0) for s in spans]
    whole = sum(s.milli * (s.ended_us - s.begun_us) for s in spans if s.is_whole)
    weights = [q.weight for q in fleet.queues.values()]
    found = integrate(_stretches(held), _stretches(waiting), fleet.milli, weights)
    first, last = (pick((t.job.submit_us for t in times), default=0) for pick in (min, max))
    offered, arriving = fleet.milli * (out.finished_us - first), fleet.milli * (last - first)
    early = sum(s.milli * (min(s.ended_us, last) - s.begun_us) for s in spans if s.is_whole and s.begun_us < last)
    return {
        "capacity_gpus": fleet.milli / MILLI,
        "used_gpu_hours": _rounded(whole / MILLI_HOUR),
        "utilization": _rounded(whole / offered) if offered > 0 else None,
        "utilization_while_arriving": _rounded(early / arriving) if arriving > 0 else None,
        "idle_while_waiting_gpu_hours": _rounded(found.idle_while_waiting_gpu_hours),
        "fragmentation": _rounded(fragmentation(spans, fleet.nodes)) if fleet.nodes else None,
        "share_error": _rounded(found.share_error),
        "jain_index": _rounded(found.jain),
    }


def _stretches(rows: Sequence[tuple[int, int, int, int, int]]) -> Stretches:
    """Without those that took no time or ask for no GPU."""
    table = np.array([r for r in rows if r[1] > r[0] and r[2] > 0], dtype=np.int64).reshape(-1, 5)
    return Stretches(*table.T)


def _lost(out: Outcome, runs: Sequence[TraceRun]) -> dict[str, Any]:
    evicted = [s for s in out.spans if s.ending == "evicted"]
    partial = [s for s in out.spans if not s.is_whole and (s.ended_us > s.begun_us or s.ending == "cut")]
    lost = sum(s.milli * s.lost_us for s in out.spans)
    return {
        "evictions": len(evicted),
        "evicted_jobs": len({s.job_id for s in evicted}),
        "gpu_hours_lost": _rounded(lost / MILLI_HOUR),
        "gang_partial_holds": len({s.job_id for s in partial}),
        "partial_hold_gpu_hours": _rounded(sum(s.milli * (s.ended_us - s.begun_us) for s in partial) / MILLI_HOUR),
        "most_partial_gangs_at_once": _most_at_once(partial),
    }


def _most_at_once(partial: Sequence[Span]) -> int:
    """The most gangs that held a part at one instant."""
    events = sorted(
        (at, step, s.job_id)
        for s in partial
        for at, step in ((s.begun_us, 1), (s.ended_us, -1))
        if step > 0 or s.ending != "cut"
    )
    held: Counter[str] = Counter()
    most = 0
    for _, step, job_id in events:
        held[job_id] += step
        if not held[job_id]:
            del held[job_id]
        most = max(most, len(held))
    return most
