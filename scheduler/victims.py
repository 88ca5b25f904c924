"""Who could be evicted for a waiting job, one by one, what each would cost, and what would be left.

Belongs here: candidates and the ledger after evictions. Not here: which sets are legal (`legality.py`), the search for
the best (`preemption.py`), the table of rules (`contract.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from scheduler import contract, quota
from scheduler.decisions import Eviction
from scheduler.gangs import Gang, Gangs
from scheduler.model import Ask, Kind, Placement, PodPlace, demand
from scheduler.policy import Policy
from scheduler.reservations import devices_by_node
from scheduler.usage import Usage

# Job id -> what is taken from it.
Chosen = Mapping[str, "Unit"]


@dataclass(frozen=True)
class Unit:
    """A gang that goes (`keep` None), or shrinks to the pods of `keep`. `cost`: milli-GPU x us of work lost."""

    gang: Gang
    eviction: Eviction
    cost: int
    freed: Mapping[Kind, int]
    milli: int

    @cached_property
    def job_id(self) -> str:
        """The victim."""
        return self.gang.job.job_id

    @cached_property
    def devices(self) -> dict[int, int]:
        """Devices of each node that the gang uses, if only in part."""
        return devices_by_node(self.gang.placement)

    @property
    def keep(self) -> Placement | None:
        """What stays of it."""
        return self.eviction.keep


class Projected:
    """The ledger as it will be once all that leaves has left, and `chosen` too."""

    def __init__(self, usage: Usage, gangs: Gangs) -> None:
        self.queues = usage.queues
        self._usage = usage
        self._gone: dict[tuple[str, Kind], int] = {}
        for gang in gangs.stopping():
            assert gang.stop is not None
            self._take(gang.job.queue, freed(gang, gang.stop.keep), 1)

    def _take(self, queue: str, amounts: Mapping[Kind, int], sign: int) -> None:
        for kind, amount in amounts.items():
            self._gone[queue, kind] = self._gone.get((queue, kind), 0) + sign * amount

    def claimed(self, queue: str, kind: Kind) -> int:
        """Units held or promised then."""
        return self._usage.claimed(queue, kind) - self._gone.get((queue, kind), 0)

    def may_hold(self, queue: str, amounts: Mapping[Kind, int], chosen: Chosen, *, may_borrow: bool) -> bool:
        """Whether the queue may take `amounts` once the chosen have gone."""
        for unit in chosen.values():
            self._take(unit.gang.job.queue, unit.freed, 1)
        answer = quota.may_hold(self, queue, amounts, may_borrow=may_borrow)
        for unit in chosen.values():
            self._take(unit.gang.job.queue, unit.freed, -1)
        return answer


def freed(gang: Gang, keep: Placement | None) -> dict[Kind, int]:
    """What a gang gives back when only `keep` of it stays."""
    if keep is None:
        return gang.amounts
    left = demand(gang.job, keep.counts(gang.job), keep.flavor)
    return {kind: n - left.get(kind, 0) for kind, n in gang.amounts.items() if n > left.get(kind, 0)}


def smallest(gang: Gang) -> Placement | None:
    """The pods of an elastic gang at its min count, the first of each role; None where it has no more."""
    kept: list[PodPlace] = []
    for r, role in enumerate(gang.job.roles):
        kept += sorted((p for p in gang.placement.pods if p.role == r), key=lambda p: p.index)[: role.least]
    return Placement(gang.placement.flavor, tuple(kept)) if len(kept) < len(gang.placement.pods) else None


@dataclass(frozen=True)
class Standing:
    """What victims are judged on at `now`. `known`: units by job and kind that were made for this instant before."""

    projected: Projected
    gangs: Gangs
    policy: Policy
    now: int
    known: dict[tuple[str, contract.Kind], tuple[Unit, ...]]


@dataclass(frozen=True)
class Candidates:
    """Units by victim (a shrink before the whole), and the first instant at which another will be allowed."""

    units: dict[str, tuple[Unit, ...]]
    next_us: int | None


def candidates(ask: Ask, at: Standing, *, may_reclaim: bool) -> Candidates:
    """All that the contract lets the job have evicted on a flavor now, one by one; sets are judged by `legality`."""
    units: dict[str, tuple[Unit, ...]] = {}
    later: list[int] = []
    by = ask.job
    for queue in _queues(ask, at, may_reclaim=may_reclaim):
        kind: contract.Kind = "preempt" if queue == by.queue else "reclaim"
        for gang in at.gangs.of_queue(queue):
            if gang.stop is not None or gang.placement.flavor != ask.flavor:
                continue
            if not contract.may_evict(by, gang.job, kind):
                continue
            # Never in the cycle of its start, which nobody has carried out yet.
            free_from = gang.protected_us + max(at.policy.min_run_us, 1)
            if contract.rule(gang.job, kind).has_min_run and at.now < free_from:
                later.append(free_from)
                continue
            key = (gang.job.job_id, kind)
            if key not in at.known:
                keeps = [k for k in (smallest(gang),) if k is not None] if gang.job.is_elastic else []
                at.known[key] = tuple(unit(gang, kind, at.now, keep) for keep in (*keeps, None))
            units[gang.job.job_id] = at.known[key]
    return Candidates(units, min(later, default=None))


def _queues(ask: Ask, at: Standing, *, may_reclaim: bool) -> list[str]:
    name, queues = ask.job.queue, at.projected.queues
    found = [name] if at.policy.by_priority else []
    cohort = queues[name].cohort
    if may_reclaim and cohort:
        kinds = list(demand(ask.job, ask.counts, ask.flavor))
        found += [
            other
            for other, q in sorted(queues.items())
            if other != name and q.cohort == cohort and any(quota.borrowed(at.projected, other, k) for k in kinds)
        ]
    return found


def unit(gang: Gang, kind: contract.Kind, now: int, keep: Placement | None) -> Unit:
    """A victim with the instants of its row and its cost: work since the last save and a restart, of all that goes.

    A gang that shrinks goes on and loses no work. For whom it goes is said when that is decided.
    """
    row = contract.rule(gang.job, kind)
    given = freed(gang, keep)
    milli = sum(n for (resource, _), n in given.items() if resource == "gpu")
    lost = 0 if keep is not None else contract.lost_us(gang.job, kind, max(now - gang.begun_us, 0))
    signal = now + row.notice_us if row.is_signalled else None
    eviction = Eviction(gang.job, kind, "", now, signal, now + row.lead_us, keep, lost)
    return Unit(gang, eviction, (lost + contract.RESTART_US) * milli, given, milli)
