"""Run times from censored runs, arrivals drawn again, the bound on waits, and the correction: each on its own."""

from __future__ import annotations

import numpy as np
import pytest
from small_world import job

from scheduler.estimates.arrivals import DAY_US, Arrivals
from scheduler.estimates.calibrate import Calibration, quantile
from scheduler.estimates.fallback import Bounds, least_waits, rank
from scheduler.estimates.record import Estimate, Scored
from scheduler.estimates.remaining import RunTimes
from scheduler.estimates.scoring import pinball, scores
from scheduler.model import HOUR_US, SECOND_US


def _times(*lengths_s: int, running_s: tuple[int, ...] = ()) -> tuple[RunTimes, int]:
    """Runs that all ended by, or run until, a common instant, which is given too."""
    times, now = RunTimes(), 10**6 * SECOND_US
    for i, length in enumerate((*lengths_s, *running_s)):
        times.started(job(f"j{i}"), now - length * SECOND_US)
    for i in range(len(lengths_s)):
        times.ended(job(f"j{i}"), now)
    return times, now


def _rest(times: RunTimes, now: int, elapsed_s: int, **more: int) -> np.ndarray:
    count = 4000
    drawn = times.future(np.random.default_rng(1), now).rest(
        [job("x", **more)] * count, [elapsed_s * SECOND_US] * count
    )
    return drawn / SECOND_US


def test_what_is_left_is_drawn_from_runs_that_lasted_longer() -> None:
    times, now = _times(*[10] * 50, *[100] * 6, *[200] * 6)
    left = _rest(times, now, 50)
    assert set(left) == {50.0, 150.0}
    assert np.mean(left == 50) == pytest.approx(0.5, abs=0.03)


def test_runs_that_go_on_count_as_at_least_so_long() -> None:
    ended = [100] * 10
    only_ended, now = _times(*ended)
    with_running, _ = _times(*ended, running_s=(500,) * 10)
    assert np.mean(_rest(only_ended, now, 0) <= 100) == 1.0
    assert np.mean(_rest(with_running, now, 0) <= 100) == pytest.approx(0.5, abs=0.03)


def test_beyond_all_that_was_seen_it_runs_as_long_again_in_half_of_cases() -> None:
    times, now = _times(*[10] * 20)
    assert np.mean(_rest(times, now, 1000) <= 1000) == pytest.approx(0.5, abs=0.03)


def test_a_team_without_runs_is_told_by_its_size() -> None:
    times, now = _times(*[70] * 10)
    assert set(_rest(times, now, 0, queue="b")) == {70.0}  # type: ignore[arg-type]


def test_a_limit_bounds_what_is_left() -> None:
    times, now = _times(*[1000] * 10)
    assert _rest(times, now, 100, limit_us=400 * SECOND_US).max() == 300


def test_a_stopped_run_tells_nothing() -> None:
    times, now = _times(*[70] * 10, running_s=(900,))
    times.stopped(job("j10"))
    assert set(_rest(times, now, 0)) == {70.0}


def test_arrivals_come_again_at_their_hour() -> None:
    known = Arrivals()
    for day in range(10):
        known.came(job(f"d{day}", at_s=(day * DAY_US + 9 * HOUR_US) // SECOND_US))
    now = 10 * DAY_US
    future = known.known(now).future(np.random.default_rng(3), "~")
    coming = [next(future) for _ in range(5)]
    assert [j.submit_us - now for j in coming] == [9 * HOUR_US + d * DAY_US for d in range(5)]
    assert len({j.job_id for j in coming}) == 5


def test_little_history_is_no_rate_and_none_gives_none() -> None:
    known = Arrivals()
    assert list(known.known(HOUR_US).future(np.random.default_rng(3), "~")) == []
    for i in range(60):
        known.came(job(f"m{i}", at_s=60 * i))
    future = known.known(HOUR_US).future(np.random.default_rng(3), "~")
    coming = [next(future).submit_us for _ in range(120)]
    assert coming == sorted(coming)
    assert coming[60] == coming[0] + 4 * HOUR_US == 8 * HOUR_US


def test_nothing_that_comes_now_or_later_is_known() -> None:
    known = Arrivals()
    known.came(job("a", at_s=10))
    known.came(job("b", at_s=20))
    assert [j.job_id for _, j in known.known(20 * SECOND_US).jobs] == ["a"]


@pytest.mark.parametrize(("n", "quantile_", "k"), [(59, 0.95, 59), (29, 0.9, 29), (100, 0.5, 59), (1, 0.5, 1)])
def test_rank_of_a_bound(n: int, quantile_: float, k: int) -> None:
    assert rank(n, quantile_) == k


def test_a_bound_forgets_what_was_before_a_change() -> None:
    bounds = Bounds()
    for _ in range(300):
        bounds.waited("1", 10)
    assert bounds.bound("1", 0.9) == 10
    assert bounds.bound("8+", 0.9) is None
    for _ in range(3):
        bounds.waited("1", 500)
    assert bounds.bound("1", 0.9) == 500
    assert least_waits(0.9) == 29


def test_quantile_of_censored_values() -> None:
    values = np.arange(1.0, 11.0)
    seen = np.zeros(10, dtype=bool)
    assert quantile(values, seen, 0.5) == 6.0
    late = values > 5
    assert quantile(values, late, 0.9) == 10.0


def _tell(told: Calibration, name: str, raw: tuple[int, int], now: int) -> None:
    told.told(name, "1", told.answer("1", raw, None, now))


def test_scores_come_in_when_jobs_start_and_those_that_wait_count() -> None:
    told, raw = Calibration(), (9 * HOUR_US, 9 * HOUR_US)
    for i in range(60):
        _tell(told, f"j{i}", raw, 0)
    before = told.answer("1", raw, None, 1).chosen
    for i in range(60):
        told.started(f"j{i}", 19 * HOUR_US)
    p50, p90 = told.answer("1", raw, None, 20 * HOUR_US).chosen
    assert before[0] < p50 == pytest.approx(19 * HOUR_US)
    assert p90 == p50
    for i in range(60):
        _tell(told, f"w{i}", raw, 20 * HOUR_US)
    assert told.answer("1", raw, None, 200 * HOUR_US).chosen[1] > p90


def test_the_first_estimates_stand_about_as_they_are() -> None:
    p50, p90 = Calibration().answer("1", (9 * HOUR_US, 18 * HOUR_US), (HOUR_US, HOUR_US), 0).chosen
    assert p50 == pytest.approx(9 * HOUR_US, rel=0.1)
    assert p90 == pytest.approx(18 * HOUR_US, rel=0.1)


@pytest.mark.parametrize("is_bound_right", [False, True])
def test_whoever_lost_less_of_late_answers(is_bound_right: bool) -> None:
    draw, told, misses = np.random.default_rng(5), Calibration(), []
    for i in range(300):
        now, right, wrong = i * HOUR_US, *(int(n) * HOUR_US for n in draw.integers(1, 100, 2))
        pairs = [(wrong, wrong), (right, right)]
        raw, bound = pairs if is_bound_right else pairs[::-1]
        answer = told.answer("1", raw, bound, now)
        misses.append(abs(answer.chosen[0] - right) / HOUR_US)
        told.told(f"j{i}", "1", answer)
        told.started(f"j{i}", now + right)
    assert np.mean(misses[100:]) < 2


def test_covered_as_often_as_told_on_steady_waits() -> None:
    draw, told, covers = np.random.default_rng(5), Calibration(), []
    for i in range(1200):
        now, raw = i * HOUR_US, int(draw.integers(1, 100)) * 60 * SECOND_US
        waited = int(raw * draw.lognormal(0.7, 1.0))
        answer = told.answer("1", (raw, 2 * raw), (HOUR_US, 3 * HOUR_US), now)
        covers.append([waited <= p for p in answer.chosen])
        told.told(f"j{i}", "1", answer)
        told.started(f"j{i}", now + waited)
    p50, p90 = np.mean(covers[200:], axis=0)
    assert p50 == pytest.approx(0.5, abs=0.05)
    assert p90 == pytest.approx(0.9, abs=0.04)


def test_scores() -> None:
    second = SECOND_US
    told = Estimate("a", "1", 0, 1, "forward", 10 * second, 20 * second, bound50_us=0, bound90_us=100 * second)
    found = scores([Scored(told, 15 * second), Scored(told, 30 * second)], [("a", "1"), ("b", "1")])
    assert found["1"]["p50_covers"] == 0.0
    assert found["1"]["p90_covers"] == 0.5
    assert found["1"]["answered"] == 0.5
    assert found["1"]["p90_pinball_s"] == pytest.approx((0.1 * 5 + 0.9 * 10) / 2)
    assert found["1"]["bound_p90_pinball_s"] == pytest.approx((0.1 * 85 + 0.1 * 70) / 2)
    assert found["8+"] == {"estimates": 0, "answered": None}
    assert pinball(np.array([1.0]), np.array([1.0]), 0.9) == 0
