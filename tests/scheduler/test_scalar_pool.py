"""The scalar pool: published oracle means on the Philly slice, small cases by hand, and what backfill may never do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.replay.scalar import POLICIES, ScalarJob, run_scalar
from sources.traces import read_trace

S = 1_000_000


def job(submit: int, duration: int, gpus: int, predicted: int | None = None) -> ScalarJob:
    return ScalarJob(submit * S, duration * S, gpus, (duration if predicted is None else predicted) * S)


def starts(jobs: list[ScalarJob], size: int, policy: str) -> list[int]:
    return [int(s) // S if s >= 0 else -1 for s in run_scalar(jobs, size, policy)]  # type: ignore[arg-type]


def test_fifo_lets_the_head_block() -> None:
    jobs = [job(0, 10, 3), job(1, 10, 4), job(2, 2, 1)]
    assert starts(jobs, 4, "fifo") == [0, 10, 20]


def test_easy_passes_what_does_not_delay_the_head() -> None:
    jobs = [job(0, 10, 3), job(1, 10, 4), job(2, 8, 1), job(2, 9, 1)]
    # the first ends at 10, when the head starts; the second would not
    assert starts(jobs, 4, "easy") == [0, 10, 2, 20]


def test_easy_uses_what_the_head_leaves_over() -> None:
    jobs = [job(0, 10, 3), job(1, 10, 3), job(2, 100, 1)]
    assert starts(jobs, 4, "easy") == [0, 10, 2]


def test_conservative_delays_nobody() -> None:
    # under EASY the long narrow job passes and delays the second waiting one
    jobs = [job(0, 10, 3), job(1, 10, 3), job(2, 10, 4), job(3, 30, 1)]
    assert starts(jobs, 4, "easy") == [0, 10, 33, 3]
    assert starts(jobs, 4, "conservative") == [0, 10, 20, 30]


def test_a_job_larger_than_the_pool_never_starts_and_blocks_nobody() -> None:
    for policy in POLICIES:
        assert starts([job(0, 5, 9), job(1, 5, 8)], 8, policy) == [-1, 1]


def test_ends_come_before_starts_at_one_instant() -> None:
    for policy in POLICIES:
        assert starts([job(0, 5, 8), job(5, 5, 8)], 8, policy) == [0, 5]


JOBS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 30), st.integers(1, 8), st.integers(1, 30)), min_size=1, max_size=25
)


@given(JOBS, st.sampled_from(POLICIES), st.booleans())
def test_never_over_the_pool_and_everybody_starts(
    rows: list[tuple[int, int, int, int]], policy: str, exact: bool
) -> None:
    jobs = [job(s, d, g, d if exact else p) for s, d, g, p in sorted(rows)]
    begun = run_scalar(jobs, 8, policy)  # type: ignore[arg-type]
    assert all(b >= j.submit_us for b, j in zip(begun, jobs, strict=True))
    for at in begun:
        held = sum(j.gpus for b, j in zip(begun, jobs, strict=True) if b <= at < b + j.duration_us)
        assert held <= 8


@given(JOBS)
def test_planning_once_is_planning_every_time(rows: list[tuple[int, int, int, int]]) -> None:
    """With exact durations the conservative plan made on arrival is the one that planning anew finds."""
    exact = [job(s, d, g) for s, d, g, _ in sorted(rows)]
    # one job that is never predicted right sends the whole list through the other path; it comes when all is over
    late = job(10_000, 1, 1, 2)
    once = run_scalar(exact, 8, "conservative")
    again = run_scalar([*exact, late], 8, "conservative")
    assert list(once) == list(again)[:-1]


ORACLE = {
    600: (127_104.3, 105_697.5), 700: (7_981.3, 6_376.9), 800: (1_089.5, 890.1), 1000: (28.4, 28.4),
}  # fmt: skip


@pytest.mark.parametrize("size", ORACLE)
def test_means_of_the_philly_slice(size: int, shared_dir: Path) -> None:
    trace = read_trace(shared_dir / "traces/philly/philly_jobs_2017-09_10.parquet")
    jobs = [job(round(j.submit_s), round(j.duration_s), j.num_gpus) for j in trace]
    submits = np.array([j.submit_us for j in jobs])
    for policy, mean in zip(("fifo", "easy"), ORACLE[size], strict=True):
        waits = (run_scalar(jobs, size, policy) - submits) / S  # type: ignore[arg-type]
        assert round(float(waits.mean()), 1) == mean, policy
