"""The life of a job as a pure state machine: an event goes in, the next life and what is to be done come out.

Replay and service both drive it. Work is counted in milli-GPU x us (us alone for a job without GPUs), so that a gang
that shrinks works on at its size; a gang below its least counts holds GPUs and does not work. Belongs here: states,
reasons, timers, lost work, requeues. Not here: rules of evictions (`contract.py`), who acts on the actions.

  pending --Started--> running --Ended--> succeeded          Cancelled: from any of these to cancelled
  running --Noticed--> stopping --Killed--> pending (backoff), again by Resubmitted
  running --PodsLost, too few--> running (degraded) --PatienceOver--> pending (backoff), or failed at the backoff limit
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from scheduler import contract
from scheduler.model import SECOND_US, Job, JobState

# As Kubernetes' Job controller: 10 s after the first stop, doubled with each further one, at most 6 minutes.
BACKOFF_US, MOST_BACKOFF_US = 10 * SECOND_US, 360 * SECOND_US

LifeReason = Literal[
    "queued", "backoff", "whole", "smaller", "degraded", "preempt", "reclaim", "loss", "done", "backoff_limit", "user"
]


# -- events: all carry the instant (us) ------------------------------------------------------------------------------
@dataclass(frozen=True)
class Started:
    """Its pods run, with `milli` GPUs in all."""

    at_us: int
    milli: int


@dataclass(frozen=True)
class Noticed:
    """It is to leave for another job; `signal_us`: when it is told to save, `kill_us`: when what goes is killed."""

    at_us: int
    kind: contract.Kind
    signal_us: int | None
    kill_us: int


@dataclass(frozen=True)
class Signalled:
    """It was told to save."""

    at_us: int


@dataclass(frozen=True)
class CalledOff:
    """The notice is withdrawn."""

    at_us: int


@dataclass(frozen=True)
class Killed:
    """The grace is over: all of it has gone, or, where it only shrinks, all but `kept` milli-GPU."""

    at_us: int
    kept: int | None = None


@dataclass(frozen=True)
class Resized:
    """It lost pods, or has them back: `milli` GPUs in all now; `is_enough`: at least its least counts are there."""

    at_us: int
    milli: int
    is_enough: bool = True


@dataclass(frozen=True)
class PatienceOver:
    """Lost pods have not come back in time."""

    at_us: int


@dataclass(frozen=True)
class Resubmitted:
    """The backoff is over and it waits again, as old as ever."""

    at_us: int


@dataclass(frozen=True)
class Ended:
    """Its own end; an error is tried again like a loss."""

    at_us: int
    is_success: bool = True


@dataclass(frozen=True)
class Cancelled:
    """Its user does not want it any more."""

    at_us: int


Event = Started | Noticed | Signalled | CalledOff | Killed | Resized | PatienceOver | Resubmitted | Ended | Cancelled


# -- actions ---------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Save:
    """Tell it to save."""


@dataclass(frozen=True)
class Stop:
    """End all its pods and give back what they hold; `lost` of its work (milli-GPU x us) is undone and charged."""

    kind: contract.Kind | Literal["end"]
    lost: int = 0


@dataclass(frozen=True)
class Requeue:
    """Submit it again at `at_us`, with its first submission."""

    at_us: int


@dataclass(frozen=True)
class Wait:
    """Give it `PatienceOver` at `at_us`, unless its pods are back before."""

    at_us: int


Action = Save | Stop | Requeue | Wait


@dataclass(frozen=True)
class Life:
    """Where a job is.

    `safe`: work that is saved; `worked`: done by `seen_us`, of which all but `safe` would be lost. `stops` grows with
    every stop before its end, `losses` with those that count towards the backoff limit. `kind`: why it is stopping.
    """

    job: Job
    state: JobState = "pending"
    reason: LifeReason = "queued"
    safe: int = 0
    worked: int = 0
    begun_us: int = 0
    seen_us: int = 0
    milli: int = 0
    stops: int = 0
    losses: int = 0
    kind: contract.Kind | None = None
    signalled: int | None = None
    grace_us: int = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more will become of it."""
        return self.state in ("succeeded", "failed", "cancelled", "impossible")


def size(job: Job, milli: int) -> int:
    """Work done in a microsecond with so many GPUs."""
    return milli if job.gpu_milli else 1


class Unexpected(ValueError):
    """An event that cannot come in this state."""


def step(life: Life, event: Event, patience_us: int) -> tuple[Life, tuple[Action, ...]]:
    """The life after the event, and what is to be done in order. `Unexpected` where the event cannot come.

    `patience_us`: how long a gang waits for lost pods before it is stopped.
    """
    if life.is_over:
        raise Unexpected(f"{life.job.job_id} is {life.state}: {type(event).__name__} cannot come")
    if isinstance(event, Cancelled):
        stop = (Stop("end"),) if life.state in ("running", "stopping") else ()
        return replace(life, state="cancelled", reason="user", milli=0), stop
    if life.state == "pending":
        return _pending(life, event)
    return _running(_worked(life, event.at_us), event, patience_us)


def _pending(life: Life, event: Event) -> tuple[Life, tuple[Action, ...]]:
    if isinstance(event, Resubmitted) and life.reason == "backoff":
        return replace(life, reason="queued"), ()
    if isinstance(event, Started) and life.reason == "queued":
        is_whole = event.milli >= life.job.gpu_milli
        return replace(
            life, state="running", reason="whole" if is_whole else "smaller", worked=life.safe,
            begun_us=event.at_us, seen_us=event.at_us, milli=event.milli,
        ), ()  # fmt: skip
    raise Unexpected(f"{life.job.job_id} is pending ({life.reason}): {type(event).__name__} cannot come")


def _running(life: Life, event: Event, patience_us: int) -> tuple[Life, tuple[Action, ...]]:
    match event:
        case Ended(is_success=True):
            return replace(life, state="succeeded", reason="done", safe=life.worked, milli=0), (Stop("end"),)
        case Ended():
            return _stopped(life, event.at_us, "loss")
        case Resized():
            return _resized(life, event, patience_us)
        case PatienceOver():
            return _stopped(life, event.at_us, "loss") if life.reason == "degraded" else (life, ())
        case _:
            return _evicted(life, event)


def _evicted(life: Life, event: Event) -> tuple[Life, tuple[Action, ...]]:
    match event:
        case Noticed() if life.state == "running":
            grace = 0 if event.signal_us is None else event.kill_us - event.signal_us
            reason: LifeReason = "degraded" if life.reason == "degraded" else event.kind
            return replace(life, state="stopping", reason=reason, kind=event.kind, grace_us=grace), ()
        case Signalled() if life.state == "stopping":
            return replace(life, signalled=life.worked), (Save(),)
        case CalledOff() if life.state == "stopping":
            return _back(life), ()
        case Killed(kept=int(kept)) if life.state == "stopping":
            return _back(replace(life, milli=kept)), ()
        case Killed() if life.kind is not None:
            return _stopped(life, event.at_us, life.kind)
        case _:
            raise Unexpected(f"{life.job.job_id} is {life.state}: {type(event).__name__} cannot come")


def _worked(life: Life, now: int) -> Life:
    """Work goes on until `now`, and is saved whenever a checkpoint interval of this run is over."""
    if now < life.seen_us:
        raise Unexpected(f"{life.job.job_id}: an event of {now} comes after one of {life.seen_us}")
    rate = 0 if life.reason == "degraded" else size(life.job, life.milli)
    safe = life.safe
    if life.job.checkpoint_us:
        saved_at = life.begun_us + (now - life.begun_us) // life.job.checkpoint_us * life.job.checkpoint_us
        if saved_at > life.seen_us:
            safe = life.worked + rate * (saved_at - life.seen_us)
    return replace(life, safe=safe, worked=life.worked + rate * (now - life.seen_us), seen_us=now)


def _back(life: Life) -> Life:
    """Running and under no notice."""
    is_whole = life.milli >= life.job.gpu_milli
    reason: LifeReason = "degraded" if life.reason == "degraded" else "whole" if is_whole else "smaller"
    return replace(life, state="running", reason=reason, kind=None, signalled=None, grace_us=0)


def _resized(life: Life, event: Resized, patience_us: int) -> tuple[Life, tuple[Action, ...]]:
    was_degraded = life.reason == "degraded"
    life = replace(life, milli=event.milli)
    if not event.is_enough:
        wait = () if was_degraded else (Wait(event.at_us + patience_us),)
        return replace(life, reason="degraded"), wait
    life = replace(life, reason="whole") if was_degraded else life
    return _back(life) if life.state == "running" else life, ()


def _stopped(life: Life, now: int, kind: contract.Kind) -> tuple[Life, tuple[Action, ...]]:
    """Stopped before its end: what is not saved is lost; again after a backoff, or failed for good."""
    answers = life.job.save_us is not None and life.job.save_us <= life.grace_us
    safe = max(life.safe, life.signalled) if answers and life.signalled is not None else life.safe
    counts = contract.rule(life.job, kind).counts
    after = replace(
        life, state="pending", reason="backoff", safe=safe, worked=safe, milli=0, stops=life.stops + 1,
        losses=life.losses + counts, kind=None, signalled=None, grace_us=0,
    )  # fmt: skip
    stop = Stop(kind, life.worked - safe)
    if after.losses > life.job.backoff_limit:
        return replace(after, state="failed", reason="backoff_limit"), (stop,)
    return after, (stop, Requeue(now + backoff_us(after.stops)))


def backoff_us(stops: int) -> int:
    """How long a job stays out of the queue after its so-manieth stop."""
    return min(BACKOFF_US << min(stops - 1, 20), MOST_BACKOFF_US)
