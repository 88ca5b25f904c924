"""Quota: what a queue is guaranteed, may borrow from its cohort and lends to it.

A queue may hold its nominal quota at any time that the cohort has it; beyond that it borrows what others of the cohort
do not use and lend, up to its borrowing limit. Queues without a cohort neither borrow nor lend. Belongs here: whether a
demand is within quota. Not here: who should give back (`reclaim`), free capacity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from scheduler.model import Kind, Queue, Quota

Verdict = Literal["guaranteed", "borrowed", "over_quota", "never"]


class Ledger(Protocol):
    """What quota is judged on: the usage ledger, or what it would be after evictions."""

    queues: dict[str, Queue]

    def claimed(self, queue: str, kind: Kind) -> int: ...


def judge(usage: Ledger, queue: str, amounts: Mapping[Kind, int]) -> Verdict:
    """Whether the queue may hold `amounts` more: the worst answer over all kinds.

    "never": no state of the cohort would allow it. Kinds for which the queue has no quota do not count.
    """
    order: tuple[Verdict, ...] = ("guaranteed", "borrowed", "over_quota", "never")
    verdicts = [_judge_kind(usage, queue, kind, amount) for kind, amount in amounts.items()]
    return max(verdicts, key=order.index, default="guaranteed")


def _judge_kind(usage: Ledger, queue: str, kind: Kind, amount: int) -> Verdict:
    quota = usage.queues[queue].quotas.get(kind)
    if quota is None:
        return "guaranteed"
    members = _members(usage, queue, kind)
    if amount > _most(quota, [q for name, q in members.items() if name != queue]):
        return "never"
    held = usage.claimed(queue, kind)
    beyond = held + amount - quota.nominal
    if beyond > 0 and (len(members) == 1 or (quota.borrowing_limit is not None and beyond > quota.borrowing_limit)):
        return "over_quota"
    if amount > available(usage, queue, kind):
        return "over_quota"
    return "guaranteed" if held + amount <= quota.nominal else "borrowed"


def may_hold(usage: Ledger, queue: str, amounts: Mapping[Kind, int], *, may_borrow: bool) -> bool:
    """Whether the queue may take `amounts` now; a gang that is never evicted may not borrow, or it could not return."""
    verdict = judge(usage, queue, amounts)
    return verdict == "guaranteed" or (may_borrow and verdict == "borrowed")


def never(usage: Ledger, queue: str, amounts: Mapping[Kind, int], *, may_borrow: bool) -> bool:
    """Whether no state of the cohort would ever let the queue take `amounts`."""
    quotas = usage.queues[queue].quotas
    is_beyond = any(kind in quotas and amount > quotas[kind].nominal for kind, amount in amounts.items())
    return judge(usage, queue, amounts) == "never" or (is_beyond and not may_borrow)


def available(usage: Ledger, queue: str, kind: Kind) -> int:
    """Units of the kind that the cohort has left for the queue: all quota less all use, less what others keep back."""
    members = _members(usage, queue, kind)
    total = sum(q.nominal for q in members.values()) - sum(usage.claimed(name, kind) for name in members)
    for name, quota in members.items():
        if name != queue and quota.lending_limit is not None:
            kept = quota.nominal - quota.lending_limit
            total -= max(kept - usage.claimed(name, kind), 0)
    return total


def borrowed(usage: Ledger, queue: str, kind: Kind) -> int:
    """Units that the queue holds beyond its nominal quota."""
    quota = usage.queues[queue].quotas.get(kind)
    return 0 if quota is None else max(usage.claimed(queue, kind) - quota.nominal, 0)


def _members(usage: Ledger, queue: str, kind: Kind) -> dict[str, Quota]:
    """Queues of the cohort that have a quota of the kind, the queue itself among them."""
    cohort = usage.queues[queue].cohort
    return {
        name: q.quotas[kind]
        for name, q in usage.queues.items()
        if kind in q.quotas and (name == queue or (cohort and q.cohort == cohort))
    }


def _most(quota: Quota, others: list[Quota]) -> int:
    """The most that the queue could ever hold."""
    lent = sum(q.nominal if q.lending_limit is None else min(q.lending_limit, q.nominal) for q in others)
    limit = lent if quota.borrowing_limit is None else min(quota.borrowing_limit, lent)
    return quota.nominal + limit
