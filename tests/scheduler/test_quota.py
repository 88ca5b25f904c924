"""Quota kind by kind: guaranteed, borrowed, over, never; what a cohort lends and keeps back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduler import quota
from scheduler.model import CPU, GPU, Queue, Quota
from scheduler.usage import Usage

H100, L4, CPUS = (GPU, "H100"), (GPU, "L4"), (CPU, "H100")


def cohort(*of: Queue, held: dict[str, int] | None = None) -> Usage:
    ledger = Usage({q.name: q for q in of}, {H100: 100})
    for name, amount in (held or {}).items():
        ledger.add(name, {H100: amount}, 0)
    return ledger


def queue(name: str, nominal: int, borrowing: int | None = None, lending: int | None = None, of: str = "c") -> Queue:
    return Queue(name, cohort=of, quotas={H100: Quota(nominal, borrowing, lending)})


def verdicts(ledger: Usage, name: str, *amounts: int) -> list[str]:
    return [quota.judge(ledger, name, {H100: n}) for n in amounts]


def test_a_queue_of_its_own_neither_borrows_nor_lends() -> None:
    ledger = cohort(queue("a", 8, of=""), queue("b", 8, of=""), held={"a": 4})
    assert verdicts(ledger, "a", 4, 5, 9) == ["guaranteed", "over_quota", "never"]
    assert verdicts(ledger, "b", 8) == ["guaranteed"]


def test_beyond_the_guarantee_it_borrows_what_others_do_not_use() -> None:
    ledger = cohort(queue("a", 8), queue("b", 8), held={"a": 6, "b": 3})
    assert verdicts(ledger, "a", 2, 3, 7, 8, 16, 17) == [
        "guaranteed", "borrowed", "borrowed", "over_quota", "over_quota", "never",
    ]  # fmt: skip
    assert quota.available(ledger, "a", H100) == 7
    assert [quota.borrowed(ledger, name, H100) for name in "ab"] == [0, 0]


def test_the_borrowing_limit_bounds_what_is_beyond() -> None:
    ledger = cohort(queue("a", 8, borrowing=2), queue("b", 8), held={"a": 8})
    assert verdicts(ledger, "a", 2, 3, 11) == ["borrowed", "over_quota", "never"]


def test_the_lending_limit_keeps_the_rest_back_from_others_only() -> None:
    ledger = cohort(queue("a", 8), queue("b", 8, lending=3), held={"a": 8})
    assert verdicts(ledger, "a", 3, 4, 12) == ["borrowed", "over_quota", "never"]
    assert verdicts(ledger, "b", 8) == ["guaranteed"]
    # what b uses of what it keeps back is not taken off twice
    assert verdicts(cohort(queue("a", 8), queue("b", 8, lending=3), held={"a": 8, "b": 5}), "a", 3, 4) == [
        "borrowed", "over_quota",
    ]  # fmt: skip


def test_what_was_lent_is_guaranteed_and_not_there() -> None:
    """Its owner gets it back by reclaim; until then even what it is guaranteed is over quota."""
    ledger = cohort(queue("a", 8), queue("b", 8), held={"a": 12})
    assert verdicts(ledger, "b", 4, 5) == ["guaranteed", "over_quota"]
    assert quota.borrowed(ledger, "a", H100) == 4


def test_promised_quota_counts_as_held() -> None:
    ledger = cohort(queue("a", 8), queue("b", 8))
    ledger.promise("b", {H100: 8})
    assert verdicts(ledger, "a", 8, 9) == ["guaranteed", "over_quota"]
    ledger.promise("b", {H100: 8}, -1)
    assert verdicts(ledger, "a", 9) == ["borrowed"]
    assert ledger.is_empty()


def test_the_worst_kind_decides_and_one_without_quota_does_not_count() -> None:
    both = Queue("a", cohort="c", quotas={H100: Quota(8), CPUS: Quota(10)})
    ledger = cohort(both, queue("b", 8))
    assert quota.judge(ledger, "a", {H100: 4, CPUS: 10}) == "guaranteed"
    assert quota.judge(ledger, "a", {H100: 9, CPUS: 10}) == "borrowed"
    assert quota.judge(ledger, "a", {H100: 4, CPUS: 11}) == "never"
    # an L4 is not an H100
    assert quota.judge(ledger, "a", {L4: 1_000}) == "guaranteed"


def test_who_cannot_give_back_does_not_borrow() -> None:
    ledger = cohort(queue("a", 8), queue("b", 8))
    assert quota.may_hold(ledger, "a", {H100: 9}, may_borrow=True)
    assert not quota.may_hold(ledger, "a", {H100: 9}, may_borrow=False)
    assert quota.never(ledger, "a", {H100: 9}, may_borrow=False)
    assert not quota.never(ledger, "a", {H100: 9}, may_borrow=True)


_LIMIT = st.none() | st.integers(0, 10)
_QUEUES = st.lists(st.tuples(st.integers(0, 10), _LIMIT, _LIMIT), min_size=1, max_size=4)


@given(_QUEUES, st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6)), max_size=20))
def test_the_cohort_is_never_over_and_what_it_keeps_back_stays(
    of: list[tuple[int, int | None, int | None]], asks: list[tuple[int, int]]
) -> None:
    ledger = cohort(*(queue(f"q{i}", n, b, k) for i, (n, b, k) in enumerate(of)))
    for i, amount in asks:
        name = f"q{i % len(of)}"
        if quota.may_hold(ledger, name, {H100: amount}, may_borrow=True):
            ledger.add(name, {H100: amount}, 0)
    held = {name: ledger.of(name, H100) for name in ledger.queues}
    assert sum(held.values()) <= sum(n for n, _, _ in of)
    for i, (nominal, borrowing, lending) in enumerate(of):
        name = f"q{i}"
        assert borrowing is None or held[name] <= nominal + borrowing
        if lending is not None:
            # what it does not lend is there for it, whatever the others hold
            kept = max(nominal - lending - held[name], 0)
            assert quota.available(ledger, name, H100) >= kept
            assert kept == 0 or quota.may_hold(ledger, name, {H100: kept}, may_borrow=False)


def in_kueues_tree(of: list[tuple[int, int | None, int | None]], held: list[int], i: int) -> int:
    """What a queue of a flat cohort may still take as Kueue computes it, from the parent's side.

    What a queue does not lend stays with it and the parent never sees it; usage beyond that counts in the parent; the
    borrowing limit bounds what is taken from there (kubernetes-sigs/kueue, pkg/cache/scheduler/resource_node.go).
    """
    local = [0 if lending is None else max(nominal - lending, 0) for nominal, _, lending in of]
    beyond = [max(n - own, 0) for n, own in zip(held, local, strict=True)]
    in_parent = sum(nominal - own for (nominal, _, _), own in zip(of, local, strict=True)) - sum(beyond)
    nominal, borrowing, _ = of[i]
    if borrowing is not None:
        in_parent = min(in_parent, nominal - local[i] - beyond[i] + borrowing)
    return max(local[i] - held[i], 0) + in_parent


@given(st.lists(st.tuples(st.integers(0, 10), _LIMIT, _LIMIT), min_size=2, max_size=4), st.data())
def test_a_flat_cohort_has_as_much_as_in_kueue(
    of: list[tuple[int, int | None, int | None]], data: st.DataObject
) -> None:
    ledger = cohort(*(queue(f"q{i}", n, b, k) for i, (n, b, k) in enumerate(of)))
    held = data.draw(st.lists(st.integers(0, 12), min_size=len(of), max_size=len(of)))
    for i, amount in enumerate(held):
        ledger.add(f"q{i}", {H100: amount}, 0)
    for i in range(len(of)):
        most = max(in_kueues_tree(of, held, i), 0)
        assert most == 0 or quota.may_hold(ledger, f"q{i}", {H100: most}, may_borrow=True)
        assert not quota.may_hold(ledger, f"q{i}", {H100: most + 1}, may_borrow=True)
