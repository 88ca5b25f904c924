"""Start estimates: how often they were right, beside the bound on recent waits, and what they cost.

The Philly slice (or any trace) replayed on 88 nodes of 8 GPUs under our policy with run times from history. Jobs that
do not start at once get their first estimate right then, of one GPU a share drawn by seed where `--share` says so. A
run forward serves all that come within `--fresh` seconds to a bucket that was in it, until they are as many again.
Estimates made before `--from` (UTC) and since then stand apart; all choices were made on the time before. Time of the
estimates is told beside that of the replay.
Run: `python benchmarks/estimates.py [--trace FILE] [--jobs 0] [--share 1.0] [--replicas 6] [--fresh 900]
[--from 2017-10-01]`.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from scheduler.estimates.forward import Reach
from scheduler.estimates.record import Scored
from scheduler.estimates.scoring import scores
from scheduler.model import SECOND_US
from scheduler.replay.estimating import Sample, replay_estimating
from scheduler.replay.fleets import pool_nodes, queues_for
from scheduler.replay.jobs import read_runs
from scheduler.replay.run import Setting

TRACE = Path(__file__).resolve().parents[2] / "shared/traces/philly/philly_jobs_2017-09_10.parquet"
NODES = 88
_COLUMNS = (
    ("jobs", "estimates", "{:,}"), ("answered", "answered", "{:.1%}"), ("mean wait s", "mean_wait_s", "{:,.0f}"),
    ("P50 covers", "p50_covers", "{:.3f}"), ("P90 covers", "p90_covers", "{:.3f}"),
    ("loss s", "p90_pinball_s", "{:,.0f}"), ("bound covers", "bound_p90_covers", "{:.3f}"),
    ("bound loss s", "bound_p90_pinball_s", "{:,.0f}"),
)  # fmt: skip


def table(name: str, scored: Iterable[Scored], asked: list[tuple[str, str]]) -> None:
    """A line for each size class: coverage and P90 pinball loss of estimate and bound."""
    print(f"{name:>14}" + "".join(f"{title:>14}" for title, _, _ in _COLUMNS))
    for kind, found in scores(scored, asked).items():
        cells = ["-" if found.get(key) is None else form.format(found[key]) for _, key, form in _COLUMNS]
        print(f"{kind:>14}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


def _told(ended: int) -> None:
    if ended % 10_000 < 1_000:
        print(f"{ended:,} jobs have ended", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trace", type=Path, default=TRACE)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--fresh", type=int, default=900)
    parser.add_argument("--replicas", type=int, default=Reach.replicas)
    parser.add_argument("--from", dest="since", default="2017-10-01")
    given = parser.parse_args()
    nodes = tuple(pool_nodes(8 * NODES))
    runs = read_runs(given.trace, nodes)[: given.jobs or None]
    setting = Setting("strandline", 8 * NODES, nodes, queues_for({r.job.queue for r in runs}))
    reach = Reach(replicas=given.replicas, fresh_us=given.fresh * SECOND_US)
    # The trace stays: full collections would look through it for each copy of the queue that is made and dropped.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    begun = time.process_time()
    out, watcher = replay_estimating(runs, setting, Sample({"1": given.share}), reach, _told)
    whole = time.process_time() - begun
    since = round(datetime.fromisoformat(given.since).replace(tzinfo=UTC).timestamp()) * SECOND_US
    submitted = {r.job.job_id: r.job.submit_us for r in runs}
    started = [a for a in watcher.asked if a[0] in out.started_us]
    for name, is_late in ((f"before {given.since[5:]}", False), (f"from {given.since[5:]}", True)):
        scored = [s for s in watcher.estimator.scored if (s.estimate.at_us >= since) == is_late]
        table(name, scored, [a for a in started if (submitted[a[0]] >= since) == is_late])
    count = max(len(watcher.asked), 1)
    print(
        f"CPU s: replay {whole - watcher.spent_s:.0f}, {len(watcher.asked):,} estimates {watcher.spent_s:.0f} "
        f"({1000 * watcher.spent_s / count:.0f} ms each, {watcher.runs:,} runs forward)"
    )


if __name__ == "__main__":
    main()
