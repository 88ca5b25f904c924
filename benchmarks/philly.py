"""The queue on the Philly slice: EASY and ours side by side, each mechanism left out in turn, and fairness.

88 nodes of 8 GPUs; a job of up to 8 GPUs is one pod, a larger one pods of 8 and a rest. Both policies place by best-fit
and believe the same predictor. Every figure is the mean over the trace as it is and over arrivals shaken by up to 60 s.
October alone is what was submitted from 1 October on, in the same replays. Weights of teams are their nodes in
`philly_vc_nodes.csv`, 0 for a team that is not there; fairness with reclaim gives each team that part of the fleet as
its guaranteed quota, in one cohort, with a checkpoint every 30 minutes and a minimum run of an hour.
Run: `python benchmarks/philly.py [--part compare|mechanisms|beyond|reclaim] [--seeds 6] [--estimates history]`.
"""

from __future__ import annotations

import argparse
import csv
import datetime as dt
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from scheduler.cluster import Cluster
from scheduler.cycle import Scheduler
from scheduler.model import GPU, HOUR_US, MILLI, SECOND_US, Queue, Quota
from scheduler.placement.bestfit import place
from scheduler.policy import MECHANISMS, POLICIES, Policy
from scheduler.predict import Exact, History, Predictor
from scheduler.replay.engine import replay
from scheduler.replay.fleets import POOL_FLAVOR, capacity, pool_nodes
from scheduler.replay.jobs import read_runs, shake
from scheduler.replay.metrics import Fleet, figures
from scheduler.replay.outcome import Outcome, TraceRun
from scheduler.usage import Usage

FOLDER = Path(__file__).resolve().parents[2] / "shared/traces/philly"
NODES = tuple(pool_nodes(88 * 8))
OCTOBER_US = int(dt.datetime(2017, 10, 1, tzinfo=dt.UTC).timestamp()) * SECOND_US
CHECKPOINT_US = HOUR_US // 2
SHAKE_US = 60 * SECOND_US

Figures = dict[str, float]
Way = tuple[str, Policy, str]
_WAITS = ("mean_s", "p95_1", "p95_2-7", "p95_8+", "longest", "oct_mean_s", "oct_p95_8+")
_COLUMNS = (*_WAITS, "share_err", "lost_%", "cpu_s")


def weights() -> dict[str, int]:
    """Nodes by team."""
    with (FOLDER / "philly_vc_nodes.csv").open() as lines:
        return {row["vc"]: int(row["nodes"]) for row in csv.DictReader(lines)}


def queues(runs: Sequence[TraceRun], *, with_quota: bool = False) -> dict[str, Queue]:
    """A queue a team; with quota, its part of the fleet by largest remainder."""
    of = weights()
    names = sorted({r.job.queue for r in runs})
    found = {name: Queue(name, of.get(name, 0), "all") for name in names}
    if not with_quota:
        return found
    fleet, total = 8 * len(NODES), sum(of.get(name, 0) for name in names)
    exact = {name: fleet * of.get(name, 0) / total for name in names}
    gpus = {name: int(part) for name, part in exact.items()}
    for name in sorted(names, key=lambda n: (gpus[n] - exact[n], n))[: fleet - sum(gpus.values())]:
        gpus[name] += 1
    return {n: replace(q, quotas={(GPU, POOL_FLAVOR): Quota(gpus[n] * MILLI)}) for n, q in found.items()}


def once(runs: Sequence[TraceRun], policy: Policy, estimates: str, of: Mapping[str, Queue]) -> Figures:
    """One replay."""
    begun = time.process_time()
    queue = Scheduler(Cluster(NODES), Usage(of, capacity(NODES), policy.half_life_us), policy, place)
    exact = Exact({r.job.job_id: r.duration_us for r in runs})
    predictor: Predictor = exact if estimates == "exact" else History()
    out = replay(runs, queue, predictor)
    spent = time.process_time() - begun
    found = figures(runs, out, Fleet(sum(n.gpus for n in NODES) * MILLI, NODES, of))
    held = sum(s.milli * (s.ended_us - s.begun_us) for s in out.spans) / MILLI / HOUR_US
    return waits(runs, out) | {
        "share_err": found["share_error"], "lost_%": 100 * found["gpu_hours_lost"] / held, "cpu_s": spent,
    }  # fmt: skip


def waits(runs: Sequence[TraceRun], out: Outcome) -> Figures:
    """Waits to the first start (s) of all, and of those that came in October."""
    wait = np.array([(out.started_us[r.job.job_id] - r.job.submit_us) / SECOND_US for r in runs])
    gpus = np.array([r.job.gpu_milli // MILLI for r in runs])
    is_october = np.array([r.job.submit_us >= OCTOBER_US for r in runs])

    def p95(which: np.ndarray) -> float:
        return float(np.percentile(wait[which], 95)) if which.any() else 0.0

    return {
        "mean_s": float(wait.mean()), "p95_1": p95(gpus == 1), "p95_2-7": p95((gpus > 1) & (gpus < 8)),
        "p95_8+": p95(gpus >= 8), "longest": float(wait.max()),
        "oct_mean_s": float(wait[is_october].mean()) if is_october.any() else 0.0,
        "oct_p95_8+": p95(is_october & (gpus >= 8)),
    }  # fmt: skip


def show(name: str, values: Figures, to: Figures | None = None) -> None:
    """A row: figures, or ratios to another's."""
    cells = []
    for column in _COLUMNS:
        value = values[column]
        if to is not None:
            cells.append(f"{value / to[column]:.2f}" if to[column] else "-")
        else:
            cells.append(f"{value:,.0f}" if column in _WAITS else f"{value:.3g}")
    print(f"{name:<34}" + "".join(f"{c:>12}" for c in cells), flush=True)


def mean(values: Sequence[Figures]) -> Figures:
    return {c: float(np.mean([v[c] for v in values])) for c in _COLUMNS}


def compare(trace: Sequence[TraceRun], seeds: int, ways: Iterable[Way], *, with_quota: bool = False) -> None:
    """Each way over all seeds; ratios to the first."""
    print(f"{'':<34}" + "".join(f"{c:>12}" for c in _COLUMNS))
    first: Figures | None = None
    for name, policy, estimates in ways:
        values = []
        for seed in range(seeds):
            runs = trace if seed == 0 else shake(trace, SHAKE_US, seed)
            is_ours = policy.name == "strandline"
            values.append(once(runs, policy, estimates, queues(runs, with_quota=with_quota and is_ours)))
        found = mean(values)
        show(f"{name}, {estimates}", found)
        if first is None:
            first = found
        else:
            show("  to the first", found, first)


def ours(estimates: str, **changes: object) -> Policy:
    """Our policy without eviction, cautious where run times are predicted."""
    policy = POLICIES["strandline"].without(with_preemption=False)
    return (policy.without(caution=1) if estimates == "exact" else policy).without(**changes)


def _compare(estimates: str) -> list[Way]:
    return [("easy", POLICIES["easy"], estimates), ("ours", ours(estimates), estimates)]


def _mechanisms(estimates: str) -> list[Way]:
    off = [n for n in MECHANISMS if n not in ("preemption", "decay")]
    return [("ours", ours(estimates), estimates)] + [
        (f"without {n}", ours(estimates, **MECHANISMS[n]), estimates) for n in off
    ]


def _beyond(estimates: str) -> list[Way]:
    return [
        ("easy", POLICIES["easy"], estimates),
        ("conservative", POLICIES["conservative"].without(depth=100), estimates),
        ("ours", ours(estimates), estimates),
        ("ours, conservative (100)", ours(estimates, backfill="conservative", depth=100), estimates),
        ("ours, shares decayed in 24 h", ours(estimates, half_life_us=24 * HOUR_US), estimates),
        ("ours, run times known", ours("exact"), "exact"),
    ]


def _reclaim(estimates: str) -> list[Way]:
    with_reclaim = ours(estimates).without(with_preemption=True)
    by_share = with_reclaim.without(age_limit_us=None)
    return [
        ("easy", POLICIES["easy"], estimates),
        ("ours, quota and reclaim", with_reclaim, estimates),
        ("without ageing", by_share, estimates),
        ("and shares in fine steps", by_share.without(share_step_ppm=1), estimates),
    ]


PARTS: dict[str, Callable[[str], list[Way]]] = {
    "compare": _compare, "mechanisms": _mechanisms, "beyond": _beyond, "reclaim": _reclaim,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, default="compare")
    parser.add_argument("--estimates", choices=("history", "exact"), default="history")
    parser.add_argument("--seeds", type=int, default=6, help="the trace as it is, and so many less one shaken")
    parser.add_argument("--september", action="store_true", help="only what was submitted before October")
    args = parser.parse_args()
    trace = read_runs(FOLDER / "philly_jobs_2017-09_10.parquet", NODES)
    if args.september:
        trace = [r for r in trace if r.job.submit_us < OCTOBER_US]
    if args.part == "reclaim":
        trace = [replace(r, job=replace(r.job, checkpoint_us=CHECKPOINT_US)) for r in trace]
    compare(trace, args.seeds, PARTS[args.part](args.estimates), with_quota=args.part == "reclaim")


if __name__ == "__main__":
    main()
