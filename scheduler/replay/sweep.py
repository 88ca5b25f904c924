"""Integrals over a replay: what was held, waited and idle between any two events, computed in blocks of instants.

Belongs here: idle and fragmented capacity, error of fair shares. Not here: figures by job (`metrics.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scheduler.model import Node
from scheduler.replay.outcome import Span

# Instants computed at once: blocks stay within some tens of megabytes for a thousand queues.
_BLOCK = 4096
MILLI_HOUR = 1000 * 3600 * 1_000_000


@dataclass(frozen=True)
class Stretches:
    """Amounts (milli-GPU) of a queue over [begun, ended), as equally long arrays; `least` is what would do to start."""

    begun: np.ndarray
    ended: np.ndarray
    milli: np.ndarray
    queue: np.ndarray
    least: np.ndarray


@dataclass(frozen=True)
class Integrals:
    """GPU-hours and time means over a replay; None where there was no time to take the mean over.

    `idle_while_waiting_gpu_hours`: idle while the smallest waiting demand would have fitted all that was idle.
    `share_error`: mean, while jobs wait, of the sum over queues of |held - entitled| / 2 capacity, entitled being the
    weighted max-min of what the queues hold and wait for. `jain`: mean of Jain's index of held / entitled over queues
    entitled to anything (Jain, Chiu and Hawe 1984).
    """

    held_gpu_hours: float
    idle_while_waiting_gpu_hours: float
    share_error: float | None
    jain: float | None


def integrate(held: Stretches, waiting: Stretches, capacity: int, weights: Sequence[int]) -> Integrals:
    """The integrals over all stretches. `capacity` in milli-GPU, `weights` by queue index."""
    instants = np.unique(np.concatenate([held.begun, held.ended, waiting.begun, waiting.ended]))
    lengths = np.append(np.diff(instants), 0)
    sizes, size_of = np.unique(waiting.least, return_inverse=True)
    queues = len(weights)
    by_queue = zip(
        _levels(instants, held, held.queue, held.milli, queues),
        _levels(instants, waiting, waiting.queue, waiting.milli, queues),
        _levels(instants, waiting, size_of, np.ones_like(waiting.milli), max(len(sizes), 1)),
        strict=True,
    )
    total = idle_waiting = waited = error = fair = jain_time = 0.0
    first = 0
    for holds, waits, counts in by_queue:
        span = lengths[first : first + len(holds)].astype(np.float64)
        first += len(holds)
        all_held = holds.sum(axis=1)
        total += float(all_held @ span)
        is_waiting = (counts > 0).any(axis=1)
        if not is_waiting.any():
            continue
        idle = np.maximum(capacity - all_held, 0)
        smallest = sizes[np.argmax(counts > 0, axis=1)]
        idle_waiting += float(np.where(is_waiting & (smallest <= idle), idle, 0) @ span)
        held_then, span = holds[is_waiting], span[is_waiting]
        entitled = max_min(held_then + waits[is_waiting], np.asarray(weights), capacity)
        waited += float(span.sum())
        error += float((np.abs(held_then - entitled).sum(axis=1) / (2 * capacity)) @ span)
        index, known = _jain(held_then, entitled)
        fair += float(index @ (span * known))
        jain_time += float(known @ span)
    return Integrals(
        total / MILLI_HOUR,
        idle_waiting / MILLI_HOUR,
        error / waited if waited else None,
        fair / jain_time if jain_time else None,
    )


def _levels(
    instants: np.ndarray, stretches: Stretches, column: np.ndarray, amount: np.ndarray, width: int
) -> Iterator[np.ndarray]:
    """Sums of what holds from each instant on, a column each, in blocks of instants: [instants in block, width]."""
    row = np.concatenate([np.searchsorted(instants, stretches.begun), np.searchsorted(instants, stretches.ended)])
    columns, amounts = np.concatenate([column, column]), np.concatenate([amount, -amount])
    order = np.argsort(row, kind="stable")
    row, columns, amounts = row[order], columns[order], amounts[order]
    level = np.zeros(width, dtype=np.int64)
    for first in range(0, len(instants), _BLOCK):
        last = min(first + _BLOCK, len(instants))
        inside = slice(*np.searchsorted(row, [first, last]))
        change = np.zeros((last - first, width), dtype=np.int64)
        np.add.at(change, (row[inside] - first, columns[inside]), amounts[inside])
        change[0] += level
        block = np.cumsum(change, axis=0)
        level = block[-1]
        yield block


def max_min(demand: np.ndarray, weights: np.ndarray, capacity: int) -> np.ndarray:
    """Weighted max-min shares of `capacity` by row: [rows, queues] from demands [rows, queues].

    A queue gets no more than it demands; what one leaves is dealt to the others by weight. Queues of weight 0 get what
    all others leave, evenly.
    """
    weighted = _fill(np.where(weights > 0, demand, 0), np.where(weights > 0, weights, 1), capacity)
    left = np.maximum(capacity - weighted.sum(axis=1), 0)
    return weighted + _fill(np.where(weights > 0, 0, demand), np.ones_like(weights), left)


def _fill(demand: np.ndarray, weights: np.ndarray, capacity: int | np.ndarray) -> np.ndarray:
    """Water filling: the level at which min(demand, level x weight) adds up to the capacity, by row."""
    room = np.broadcast_to(np.asarray(capacity, dtype=np.float64), (len(demand),))
    ratio = demand / weights
    order = np.argsort(ratio, axis=1, kind="stable")
    sorted_demand = np.take_along_axis(demand, order, axis=1).astype(np.float64)
    sorted_weight = weights[order].astype(np.float64)
    before = np.cumsum(sorted_demand, axis=1) - sorted_demand
    open_weight = np.cumsum(sorted_weight[:, ::-1], axis=1)[:, ::-1]
    # With all queues before k satisfied, those from k on share what is left; the first that it does not satisfy sets
    # the level.
    level = (room[:, None] - before) / open_weight
    short = level < np.take_along_axis(ratio, order, axis=1)
    k = np.argmax(short, axis=1)
    rows = np.arange(len(demand))
    reached = np.where(short[rows, k], level[rows, k], np.inf)
    return np.minimum(demand, np.maximum(reached, 0)[:, None] * weights)


def _jain(held: np.ndarray, entitled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Jain's index by row of held / entitled over queues entitled to anything, and whether a row has one."""
    counts = entitled > 0
    ratio = np.divide(held, entitled, out=np.zeros_like(entitled), where=counts)
    squares = (ratio**2).sum(axis=1) * counts.sum(axis=1)
    return np.divide(ratio.sum(axis=1) ** 2, squares, out=np.zeros(len(held)), where=squares > 0), squares > 0


def fragmentation(spans: Sequence[Span], nodes: Sequence[Node]) -> float | None:
    """Time mean, while anything is idle, of the share of idle GPUs that lie on partly used nodes; None: never idle.

    Only schedulable nodes count. The times are those from the first start to the last end.
    """
    capacity = [n.gpus * 1000 if n.is_schedulable else 0 for n in nodes]
    used = [0] * len(nodes)
    events = sorted(
        event
        for s in spans
        for node, milli in s.nodes
        for event in ((s.begun_us, node, milli), (s.ended_us, node, -milli))
        if s.ended_us > s.begun_us
    )
    idle, partial, last = sum(capacity), 0, events[0][0] if events else 0
    shares = time = 0.0
    for at, node, milli in events:
        if at > last:
            if idle > 0:
                shares += partial / idle * (at - last)
                time += at - last
            last = at
        before, free = used[node], capacity[node] - used[node]
        partial -= free if before else 0
        used[node] = before + milli
        partial += free - milli if used[node] else 0
        idle -= milli
    return shares / time if time else None
