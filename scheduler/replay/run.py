"""One replay of a trace under one policy, and several of shaken arrivals: from runs to figures.

Policies on a scalar pool are those of `scalar.py`; on nodes they are the cycle's, or the baseline pod by pod. Belongs
here: which engine a policy needs, and means over seeds. Not here: files (`jobs.py`, `fleets.py`), flags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from scheduler.cluster import Cluster
from scheduler.cycle import Scheduler
from scheduler.model import MILLI, Node, Queue
from scheduler.placement.bestfit import place
from scheduler.policy import MECHANISMS, POLICIES, Policy
from scheduler.predict import Exact, History, Predictor
from scheduler.replay.engine import Progress, replay
from scheduler.replay.fleets import capacity, pool_nodes
from scheduler.replay.jobs import shake
from scheduler.replay.metrics import Fleet, figures
from scheduler.replay.outcome import Outcome, Span, TraceRun
from scheduler.replay.podwise import replay_podwise
from scheduler.replay.scalar import POLICIES as SCALAR
from scheduler.replay.scalar import ScalarJob, run_scalar
from scheduler.usage import Usage
from warehouse.errors import BadInput

Estimates = Literal["exact", "history"]
NAMES = (*POLICIES, "podwise")


@dataclass(frozen=True)
class Setting:
    """What is replayed how. `nodes` None: a pool of `pool` GPUs. `estimates` None: as the policy's default.

    `shake_us` moves arrivals by up to as much, by `seed`; podwise draws its ties by `seed` too.
    """

    policy: str
    pool: int = 0
    nodes: tuple[Node, ...] | None = None
    queues: Mapping[str, Queue] = field(default_factory=dict)
    estimates: Estimates | None = None
    without: tuple[str, ...] = ()
    seed: int = 1
    shake_us: int = 0

    @property
    def is_scalar(self) -> bool:
        """Whether the policy runs on a pool that knows no nodes."""
        return self.nodes is None and self.policy in SCALAR

    @property
    def believes(self) -> Estimates:
        """Whose run times the policy believes: fifo, easy and conservative know them unless told otherwise."""
        return self.estimates or ("history" if self.policy == "strandline" else "exact")

    @property
    def fleet(self) -> tuple[Node, ...]:
        """The nodes; of a pool, those that it is cut into."""
        return tuple(pool_nodes(self.pool)) if self.nodes is None else self.nodes


def check(setting: Setting) -> None:
    """`BadInput` for a policy or mechanism that there is not, or that the policy has no use for."""
    if setting.policy not in NAMES:
        raise BadInput(f"policy {setting.policy!r}: there are {', '.join(NAMES)}")
    for name in setting.without:
        if name not in MECHANISMS:
            raise BadInput(f"mechanism {name!r}: there are {', '.join(MECHANISMS)}")
        if setting.policy != "strandline":
            raise BadInput(f"--without {name}: policy {setting.policy} has no mechanism to switch off")


def run_once(
    runs: Sequence[TraceRun], setting: Setting, progress: Progress | None = None
) -> tuple[Outcome, dict[str, Any]]:
    """One replay: what became of the jobs, and its figures."""
    check(setting)
    moved = shake(runs, setting.shake_us, setting.seed)
    if setting.is_scalar:
        out = scalar(moved, setting)
    elif setting.policy == "podwise":
        out = replay_podwise(moved, setting.fleet, setting.seed, impossible(moved, setting), progress)
    else:
        out = replay(moved, scheduler(setting), predictor(moved, setting), progress)
    nodes = () if setting.is_scalar else setting.fleet
    milli = setting.pool * MILLI if setting.is_scalar else sum(n.gpus * MILLI for n in nodes if n.is_schedulable)
    found = {
        "policy": setting.policy,
        "estimates": None if setting.policy == "podwise" else setting.believes,
        "without": list(setting.without),
        "seed": setting.seed,
        "shake_s": setting.shake_us / 1e6,
        **figures(moved, out, Fleet(milli, nodes, setting.queues)),
    }
    return out, found


def policy_of(setting: Setting) -> Policy:
    """The switches, those of the mechanisms left out turned off."""
    policy = POLICIES[setting.policy]
    if setting.believes == "exact":
        policy = policy.without(caution=1)
    for name in setting.without:
        policy = policy.without(**MECHANISMS[name])
    return policy


def scheduler(setting: Setting) -> Scheduler:
    """A fresh queue over the setting's fleet; for podwise only to judge what is impossible."""
    policy = policy_of(setting) if setting.policy in POLICIES else POLICIES["fifo"]
    nodes = setting.fleet
    usage = Usage(setting.queues, capacity(nodes), policy.half_life_us)
    return Scheduler(Cluster(nodes), usage, policy, place)


def predictor(runs: Sequence[TraceRun], setting: Setting) -> Predictor:
    """Who predicts run times."""
    if setting.believes == "history":
        return History()
    return Exact({r.job.job_id: r.duration_us for r in runs})


def impossible(runs: Sequence[TraceRun], setting: Setting) -> dict[str, str]:
    """Jobs that could never run here, with the reason: the baseline is spared them."""
    judge, known = scheduler(setting), {}
    found = {}
    for run in runs:
        key = (run.job.queue, run.job.shape_key)
        if key not in known:
            known[key] = judge.impossible(run.job)
        if (why := known[key]) is not None:
            found[run.job.job_id] = why
    return found


class _Learner:
    """A predictor as the scalar pool asks it."""

    def __init__(self, runs: Sequence[TraceRun], inner: Predictor) -> None:
        self.runs, self.inner = runs, inner
        self.index = {r.job.job_id: i for i, r in enumerate(runs)}

    def predict(self, job: int) -> int:
        self.inner.submitted(self.runs[job].job)
        return self.inner.predict(self.runs[job].job)

    def started(self, job: int, now: int) -> None:
        self.inner.started(self.runs[job].job, now)

    def revised(self, now: int) -> dict[int, int]:
        return {self.index[job_id]: us for job_id, us in self.inner.revised(now).items()}

    def ended(self, job: int) -> None:
        self.inner.ended(self.runs[job].job, self.runs[job].duration_us)


def scalar(runs: Sequence[TraceRun], setting: Setting) -> Outcome:
    """The scalar pool in milli-GPU."""
    jobs = [ScalarJob(r.job.submit_us, r.duration_us, r.job.gpu_milli, r.duration_us) for r in runs]
    learner = _Learner(runs, predictor(runs, setting)) if setting.believes == "history" else None
    starts = run_scalar(jobs, setting.pool * MILLI, setting.policy, learner)  # type: ignore[arg-type]
    out = Outcome()
    for run, start in zip(runs, map(int, starts), strict=True):
        job_id = run.job.job_id
        if start < 0:
            out.impossible[job_id] = f"the pool of {setting.pool} GPUs could not hold it, even empty"
            continue
        out.started_us[job_id], out.ended_us[job_id] = start, start + run.duration_us
        out.spans.append(Span(job_id, start, start + run.duration_us, run.job.gpu_milli))
    out.finished_us = max(out.ended_us.values(), default=0)
    return out


# Figures that are meant as they stand, not as a mean over seeds.
_ALIKE = ("policy", "estimates", "without", "seed", "shake_s", "impossible", "impossible_jobs", "waiting_at_end")


def mean_of(replays: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Means over replays of shaken arrivals, figure by figure; null where one has none. `spread`: lowest and highest.

    `is_deadlocked` is true where any is.
    """
    first = replays[0]
    found: dict[str, Any] = {}
    for name, value in first.items():
        values = [r.get(name) for r in replays]
        if name in _ALIKE:
            found[name] = value
        elif isinstance(value, bool):
            found[name] = any(values)
        elif isinstance(value, dict):
            found[name] = {k: mean_of([v[k] for v in values if k in v]) for k in value}  # type: ignore[index, operator]
        elif any(v is None for v in values):
            found[name] = None
        else:
            mean = float(np.mean(values))  # type: ignore[arg-type]
            found[name] = int(mean) if mean.is_integer() and isinstance(value, int) else round(mean, 6)
    return found


def spread_of(replays: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Lowest and highest of every figure that is a number in all replays and differs between them."""
    found = {}
    for name in replays[0]:
        values = [r[name] for r in replays]
        numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(numbers) == len(values) and name not in _ALIKE and min(numbers) < max(numbers):
            found[name] = [min(numbers), max(numbers)]
    return found
