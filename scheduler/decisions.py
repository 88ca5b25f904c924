"""What a cycle answers: starts, reservations made and withdrawn, evictions, and why the rest still waits.

Belongs here: the answer's records. Not here: how it is found (`cycle.py` and the mechanisms).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from scheduler.contract import Kind
from scheduler.model import Job, Placement
from scheduler.reservations import Reservation

Reason = Literal["over_quota", "no_room", "behind_head", "held"]
Withdrawal = Literal["higher_class", "reclaiming_owner", "lost_capacity"]


@dataclass(frozen=True)
class Start:
    """A gang that starts now, where, and when it is believed to end."""

    job: Job
    placement: Placement
    end_us: int


@dataclass(frozen=True)
class Eviction:
    """A gang that gets notice, why and for which job, with the instants of the contract (us).

    `signal_us` is None where it is not told to save. `keep`: it only shrinks, to these pods; None: all of it goes.
    `lost_us`: the work that it is taken to lose, of all its GPUs.
    """

    job: Job
    kind: Kind
    for_job: str
    notice_us: int
    signal_us: int | None
    kill_us: int
    keep: Placement | None = None
    lost_us: int = 0


@dataclass(frozen=True)
class Withdrawn:
    """A reservation that was taken away, and the only reasons there are for that."""

    reservation: Reservation
    reason: Withdrawal
    by: str


@dataclass
class Decisions:
    """What one cycle decided. `reasons` say why jobs that were looked at still wait.

    `called_off`: gangs whose eviction is not needed any more. `wake_us`: the instant from which an eviction that is not
    allowed yet will be; without any event before, a cycle then.
    """

    starts: list[Start] = field(default_factory=list)
    reserved: list[Reservation] = field(default_factory=list)
    reasons: dict[str, Reason] = field(default_factory=dict)
    evictions: list[Eviction] = field(default_factory=list)
    called_off: list[str] = field(default_factory=list)
    withdrawn: list[Withdrawn] = field(default_factory=list)
    wake_us: int | None = None
