"""The queue: a trace replayed by policy, one cycle over a long queue and a large fleet, and jobs that all do not fit.

Three parts. Seconds of replaying the Philly slice (or any trace) on 88 nodes of 8 GPUs and on the scalar pool. Then one
cycle with 10,000 pending jobs on 1,200 full nodes: cold (a fresh queue's first), warm (a job ended and one came since)
and after an arrival alone. Last, 5,000 identical jobs that do not fit: how often the placer is asked in a cycle.
Run: `python benchmarks/queueing.py [--trace FILE] [--jobs 0] [--pending 10000] [--nodes 1200]`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np

from scheduler.cluster import Cluster
from scheduler.cycle import Scheduler
from scheduler.model import SECOND_US, Ask, Job, Node, Placement, Queue, Role, Shape
from scheduler.placement.bestfit import place
from scheduler.policy import POLICIES
from scheduler.replay.fleets import capacity, pool_nodes, queues_for
from scheduler.replay.jobs import read_runs
from scheduler.replay.run import Setting, run_once
from scheduler.usage import Usage

TRACE = Path(__file__).resolve().parents[2] / "shared/traces/philly/philly_jobs_2017-09_10.parquet"
NODES = 88
# Sizes of the Philly slice, of 100.
SIZES = (1,) * 95 + (2, 4, 4, 8, 16)
TEAMS = 15
HOUR = 3600 * SECOND_US
REPLAYS: tuple[tuple[str, str | None, bool], ...] = (
    ("fifo", None, True), ("easy", None, True), ("conservative", None, True), ("podwise", None, False),
    ("fifo", None, False), ("easy", "exact", False), ("easy", "history", False), ("strandline", "exact", False),
    ("strandline", "history", False),
)  # fmt: skip


def replays(trace: Path, most: int) -> None:
    """Seconds, mean and p95 wait of each policy."""
    nodes = tuple(pool_nodes(8 * NODES))
    runs = read_runs(trace, nodes)[: most or None]
    setting = Setting("fifo", 8 * NODES, None, queues_for({r.job.queue for r in runs}))
    print(
        "".join(f"{t:>14}" for t in ("policy", "run times", "on", "jobs", "seconds", "CPU s", "mean wait s", "p95 s"))
    )
    for policy, estimates, is_scalar in REPLAYS:
        begun, cpu = time.perf_counter(), time.process_time()
        wanted = replace(setting, policy=policy, estimates=estimates, nodes=None if is_scalar else nodes)
        found = run_once(runs, wanted)[1]
        figures = (
            policy, found["estimates"] or "-", "scalar pool" if is_scalar else f"{NODES} nodes", f"{len(runs):,}",
            f"{time.perf_counter() - begun:.1f}", f"{time.process_time() - cpu:.1f}",
            f"{found['mean_wait_s'] or 0:,.0f}", f"{found['p95_wait_s'] or 0:,.0f}",
        )  # fmt: skip
        print("".join(f"{f:>14}" for f in figures), flush=True)


class Counted:
    """Best-fit that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, cluster: Cluster, ask: Ask, whole: np.ndarray) -> Placement | None:
        self.asked += 1
        return place(cluster, ask, whole)


def full_fleet(nodes: int, placer: Counted, *, idle: int = 0) -> Scheduler:
    """A queue over a fleet that jobs of 1 to 8 GPUs fill but for `idle` of each node, ending at different times."""
    fleet = [Node(f"n{i:04}", "gpu", 8) for i in range(nodes)]
    queues = {f"team-{k}": Queue(f"team-{k}") for k in range(TEAMS)}
    queue = Scheduler(Cluster(fleet), Usage(queues, capacity(fleet)), POLICIES["strandline"], placer)
    draw = random.Random(1)
    for i in range(nodes):
        for k, size in enumerate((4, 2, 1, 1) if i % 3 and not idle else (8 - idle,)):
            queue.submit(job(f"run-{i}-{k}", size, draw), draw.randrange(1, 48) * HOUR)
    queue.cycle(0)
    return queue


def job(name: str, gpus: int, draw: random.Random, at: int = 0) -> Job:
    """A job of some team; more than 8 GPUs as pods of 8."""
    team = f"team-{draw.randrange(TEAMS)}"
    return Job(name, team, team, (Role("w", Shape(min(gpus, 8) * 1000), -(-gpus // 8)),), at)


def timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def cycles(nodes: int, pending: int) -> None:
    """Milliseconds of one cycle: cold, warm, after an arrival."""
    placer = Counted()
    queue = full_fleet(nodes, placer)
    running = [gang.job.job_id for gang in queue.gangs]
    draw, now = random.Random(2), SECOND_US
    for i in range(pending):
        queue.submit(
            job(f"wait-{i:05}", draw.choice(SIZES), draw, -draw.randrange(11 * HOUR)), draw.randrange(1, 40) * HOUR // 2
        )
    queue.ended(running.pop(), now)
    placer.asked = 0
    print("".join(f"{t:>14}" for t in ("cycle", "pending", "nodes", "ms", "placer asked")))

    def show(what: str, ms: float, asked: int) -> None:
        print(
            "".join(f"{f:>14}" for f in (what, f"{len(queue.pending):,}", f"{nodes:,}", f"{ms:.1f}", f"{asked}")),
            flush=True,
        )

    show("cold", timed(lambda: queue.cycle(now)), placer.asked)
    for what in ("warm", "arrival"):
        spent, asked = [], []
        for i in range(15):
            now += SECOND_US
            if what == "warm":
                queue.ended(running.pop(), now)
            queue.submit(job(f"{what}-{i}", 1, draw, now), HOUR)
            placer.asked = 0
            spent.append(timed(lambda: queue.cycle(now)))  # noqa: B023  (called at once)
            asked.append(placer.asked)
        show(what, median(spent), int(median(asked)))


def identical(pending: int = 5000) -> None:
    """How often the placer is asked for jobs alike that do not fit."""
    placer = Counted()
    queue = full_fleet(100, placer, idle=1)
    draw = random.Random(3)
    gang = next(iter(queue.gangs)).job
    for i in range(pending):
        alike = Job(f"alike-{i:04}", gang.team, gang.queue, (Role("w", Shape(8000), 1),), i)
        queue.submit(alike, draw.randrange(1, 9) * HOUR)
    placer.asked = 0
    first = timed(lambda: queue.cycle(pending))
    print(f"{pending:,} alike that do not fit, all new: placer asked {placer.asked} times, {first:.1f} ms", flush=True)
    for name in ("run-50-0", "run-51-0"):
        queue.ended(name, pending + 1)
        queue.cluster.cordon("n0050" if name == "run-50-0" else "n0051")
    placer.asked = 0
    again = timed(lambda: queue.cycle(pending + 1))
    print(f"{pending:,} alike, others ended: placer asked {placer.asked} times, {again:.1f} ms", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, default=TRACE)
    parser.add_argument("--jobs", type=int, default=0, help="only so many of the trace; 0: all")
    parser.add_argument("--pending", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=1200)
    parser.add_argument("--only", choices=("replays", "cycles", "identical"))
    args = parser.parse_args()
    if args.only in (None, "cycles"):
        cycles(args.nodes, args.pending)
    if args.only in (None, "identical"):
        identical()
    if args.only in (None, "replays"):
        if args.trace.exists():
            replays(args.trace, args.jobs)
        else:
            print(f"no trace at {args.trace}: --trace FILE replays one", file=sys.stderr)


if __name__ == "__main__":
    main()
