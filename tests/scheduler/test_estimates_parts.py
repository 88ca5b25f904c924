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

_NOW = 10**6 * SECOND_US
# Run times of a batch whose level is drawn about 100 s: of those in the near part nine in ten within a third of it.
_NEAR = (100 * 0.6, 100 * 1.6)


def _times(*lengths_s: int, running_s: tuple[int, ...] = (), batch: int = 1) -> RunTimes:
    """Runs that ended by, or run until, `_NOW`, in batches of so many that came an hour apart."""
    times = RunTimes()
    for i, length in enumerate((*lengths_s, *running_s)):
        one = job(f"j{i}", at_s=3600 * (i // batch))
        times.came(one)
        times.started(one, _NOW - length * SECOND_US)
    for i in range(len(lengths_s)):
        times.ended(job(f"j{i}"), _NOW)
    return times


def _rest(times: RunTimes, elapsed_s: int = 0, job_id: str = "x", **more: object) -> np.ndarray:
    """What is left (s) of such a job in each of many futures."""
    rng = np.random.default_rng(1)
    asked = job(job_id, **more)  # type: ignore[arg-type]
    return np.array([times.future(rng, _NOW).rest([asked], [elapsed_s * SECOND_US])[0] for _ in range(800)]) / SECOND_US


def test_a_new_job_runs_as_long_as_batches_of_its_team_and_size_did() -> None:
    left = _rest(_times(*[100] * 40))
    assert np.median(left) == pytest.approx(100, rel=0.1)
    assert np.mean((_NEAR[0] < left) & (left < _NEAR[1])) > 0.6


def test_a_job_runs_like_its_batch_and_not_like_others() -> None:
    times = _times(*[1000] * 40, *[100] * 5, batch=5)
    assert np.median(_rest(times)) == pytest.approx(1000, rel=0.2)
    mate = job("mate", at_s=3600 * 8)
    times.came(mate)
    assert np.median(_rest(times, job_id="mate")) == pytest.approx(100, rel=0.2)


def test_what_is_left_is_drawn_from_runs_that_lasted_longer() -> None:
    times = _times(*[10] * 30, *[1000] * 10)
    assert np.median(_rest(times)) < 30
    times.came(late := job("late", at_s=500_000))
    times.started(late, _NOW - 100 * SECOND_US)
    assert np.median(_rest(times, 100, "late")) == pytest.approx(900, rel=0.25)


def test_runs_that_go_on_count_as_at_least_so_long() -> None:
    assert np.median(_rest(_times(*[100] * 20))) < 150
    assert np.median(_rest(_times(*[100] * 20, running_s=(5000,) * 20))) > 150
    # one short run of a batch whose others go on is not what the others are like
    times = _times(10, running_s=(3000,) * 30, batch=31)
    assert np.mean(_rest(times, 3000, "j5") > 60) > 0.9


def test_beyond_all_that_was_seen_it_runs_about_as_long_again() -> None:
    times = _times(*[10] * 20, running_s=(100_000,))
    assert 30_000 < np.median(_rest(times, 100_000, "j20")) < 300_000


def test_one_future_has_one_level_of_a_batch() -> None:
    times = _times(*[10, 10_000] * 20)
    batch = [job(f"b{i}", at_s=900_000) for i in range(30)]
    for one in batch:
        times.came(one)
    medians = []
    for k in range(40):
        left = times.future(np.random.default_rng(k), _NOW).rest(batch, [0] * 30) / SECOND_US
        medians.append(float(np.median(left)))
    assert min(medians) < 30
    assert max(medians) > 3000


def test_a_team_without_runs_is_told_by_its_size() -> None:
    assert np.median(_rest(_times(*[70] * 30), queue="b")) == pytest.approx(70, rel=0.3)


def test_a_limit_bounds_what_is_left() -> None:
    assert _rest(_times(*[1000] * 10), 100, limit_us=400 * SECOND_US).max() == 300


def test_a_stopped_run_tells_nothing() -> None:
    with_it = _times(*[70] * 30, running_s=(90_000,) * 20)
    for i in range(30, 50):
        with_it.stopped(job(f"j{i}"))
    assert np.median(_rest(with_it)) == pytest.approx(70, rel=0.2)


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
    p50, p90 = Calibration().answer("1", (9 * HOUR_US, 18 * HOUR_US), None, 0).chosen
    assert p50 == pytest.approx(9 * HOUR_US, rel=0.1)
    assert p90 == pytest.approx(18 * HOUR_US, rel=0.1)


def test_the_bound_draws_the_estimate_towards_itself_where_neither_was_told_yet() -> None:
    alone, beside = (Calibration().answer("1", (9 * HOUR_US,) * 2, bound, 0).chosen for bound in (None, (0, 0)))
    assert HOUR_US < beside[1] < alone[1]


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
