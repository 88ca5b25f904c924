"""Figures of a replay against values worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.model import Job, Node, Queue, Role, Shape
from scheduler.replay.metrics import Fleet, figures, size_class
from scheduler.replay.outcome import Outcome, Span, TraceRun
from scheduler.replay.sweep import max_min

S = 1_000_000
H = 3600 * S
NODES = (Node("a", "g", 4), Node("b", "g", 4))
FLEET = Fleet(8000, NODES, {"x": Queue("x"), "y": Queue("y")})


def run(name: str, submit_s: int, gpus: int, queue: str = "x", duration_s: int = 3600) -> TraceRun:
    return TraceRun(Job(name, queue, queue, (Role("w", Shape(gpus * 1000), 1),), submit_s * S), duration_s * S)


def span(name: str, begun_s: int, ended_s: int, *nodes: tuple[int, int], **more: object) -> Span:
    held = tuple((node, gpus * 1000) for node, gpus in nodes)
    return Span(name, begun_s * S, ended_s * S, sum(m for _, m in held), held, **more)  # type: ignore[arg-type]


def outcome(spans: Sequence[Span], **more: object) -> Outcome:
    started: dict[str, int] = {}
    ended: dict[str, int] = {}
    for s in spans:
        if s.is_whole:
            started.setdefault(s.job_id, s.begun_us)
            if s.ending == "finished":
                ended[s.job_id] = s.ended_us
    last = max((s.ended_us for s in spans), default=0)
    return Outcome(started, ended, spans=list(spans), finished_us=last, **more)  # type: ignore[arg-type]


def test_waits_completion_and_started_at_once() -> None:
    runs = [run("j", 0, 4), run("k", 0, 4, duration_s=1800), run("l", 1800, 8)]
    out = outcome([span("j", 0, 3600, (0, 4)), span("k", 0, 1800, (1, 4)), span("l", 3600, 7200, (0, 4), (1, 4))])
    found = figures(runs, out, FLEET)
    assert (found["mean_wait_s"], found["median_wait_s"], found["max_wait_s"]) == (600, 0, 1800)
    assert found["p90_wait_s"] == pytest.approx(np.percentile([0, 0, 1800], 90))
    assert found["started_at_once_ratio"] == pytest.approx(2 / 3)
    assert found["mean_completion_s"] == pytest.approx((3600 + 1800 + 5400) / 3)
    assert found["utilization"] == pytest.approx((4 * 1 + 4 * 0.5 + 8 * 1) / (8 * 2))
    # half an hour of 4 idle GPUs, which the waiting 8 do not fit
    assert found["idle_while_waiting_gpu_hours"] == 0
    assert [found["by_class"][c]["jobs"] for c in ("2-7", "8+")] == [2, 1]
    # node b is idle as a whole, then nothing is idle
    assert found["fragmentation"] == 0


def test_idle_gpus_count_where_the_smallest_waiting_demand_fits_all_of_them() -> None:
    runs = [run("j", 0, 2), run("k", 0, 3), run("l", 0, 3), run("m", 900, 7)]
    spans = [span("j", 0, 3600, (0, 2)), span("k", 0, 3600, (1, 3)), span("l", 3600, 7200, (0, 3))]
    found = figures(runs, outcome([*spans, span("m", 7200, 10800, (0, 4), (1, 3))]), FLEET)
    # three of 8 are idle for an hour while l (3) waits; in the second hour five are, and m (7) does not fit
    assert found["idle_while_waiting_gpu_hours"] == 3
    # hour 1: 2 + 1 idle, both nodes used; hour 2: 1 of 5 idle GPUs on a used node; hour 3: 1 of 1
    assert found["fragmentation"] == pytest.approx((1 + 1 / 5 + 1) / 3)


def test_a_requeued_job_waits_again() -> None:
    runs = [run("j", 0, 8), run("k", 600, 8, duration_s=600)]
    spans = [
        span("j", 0, 1200, (0, 4), (1, 4), ending="evicted", lost_us=900 * S),
        span("k", 1200, 1800, (0, 4), (1, 4)),
        span("j", 1800, 5400, (0, 4), (1, 4)),
    ]
    found = figures(runs, outcome(spans), FLEET)
    assert found["by_class"]["8+"]["mean_wait_s"] == 600
    assert found["max_wait_s"] == 600
    assert found["first_start_wait_s"] == 300
    assert found["mean_completion_s"] == pytest.approx((5400 + 1200) / 2)
    assert (found["evictions"], found["evicted_jobs"], found["gpu_hours_lost"]) == (1, 1, 2)


def test_partial_holds_and_no_mean_after_a_deadlock() -> None:
    runs = [run("j", 0, 8), run("k", 0, 8)]
    spans = [
        span("j", 0, 0, (0, 4), is_whole=False, ending="cut"),
        span("k", 0, 0, (1, 4), is_whole=False, ending="cut"),
    ]
    found = figures(runs, outcome(spans, stuck=("j", "k")), FLEET)
    assert (found["is_deadlocked"], found["unstarted"], found["gang_partial_holds"]) == (True, 2, 2)
    assert found["most_partial_gangs_at_once"] == 2
    assert found["mean_wait_s"] is None
    assert found["by_team"]["x"]["mean_wait_s"] is None
    assert found["waiting_at_end"] == ["j", "k"]


def test_impossible_jobs_are_in_no_wait() -> None:
    runs = [run("j", 0, 4), run("k", 0, 9)]
    found = figures(runs, outcome([span("j", 5, 10, (0, 4))], impossible={"k": "too large"}), FLEET)
    assert (found["jobs"], found["unstarted"], found["mean_wait_s"]) == (2, 1, 5)
    assert found["impossible"] == {"too large": 1}
    assert list(found["by_class"]) == ["2-7"]


def test_share_error_and_jain() -> None:
    # For an hour x holds all 8 while y waits for 4: each is entitled to 4.
    runs = [run("j", 0, 8), run("k", 0, 4, "y")]
    out = outcome([span("j", 0, 3600, (0, 4), (1, 4)), span("k", 3600, 7200, (0, 4))])
    found = figures(runs, out, FLEET)
    assert found["share_error"] == pytest.approx((4 + 4) / 16)
    assert found["jain_index"] == pytest.approx((2 + 0) ** 2 / (2 * (4 + 0)))
    # weight 0 comes last: then x held what it was entitled to
    zero = Fleet(8000, NODES, {"x": Queue("x", 1), "y": Queue("y", 0)})
    assert figures(runs, out, zero)["share_error"] == 0


def test_no_figure_is_not_a_number() -> None:
    found = figures([run("j", 0, 9)], Outcome(impossible={"j": "too large"}), FLEET)
    assert found["mean_wait_s"] is None
    assert found["idle_while_waiting_gpu_hours"] == 0
    assert found["share_error"] is None


def test_size_classes() -> None:
    def of(milli: int) -> str:
        return size_class(Job("j", "t", "t", (Role("w", Shape(milli), 1),), 0))

    assert [of(m) for m in (0, 300, 1000, 2000, 7000, 8000)] == ["1", "1", "1", "2-7", "2-7", "8+"]


QUEUES = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), min_size=1, max_size=6)


@given(QUEUES, st.integers(1, 60))
def test_max_min_shares(queues: list[tuple[int, int]], capacity: int) -> None:
    """Nobody over its demand, all that is demanded or there is dealt, and who is short has no less per weight."""
    demand, weights = np.array([[d for d, _ in queues]]), np.array([w for _, w in queues])
    got = max_min(demand, weights, capacity)[0]
    assert (got <= demand[0] + 1e-9).all()
    assert got.sum() == pytest.approx(min(capacity, demand.sum()))
    short = got < demand[0] - 1e-9
    for i in np.flatnonzero(short & (weights > 0)):
        for k in np.flatnonzero(weights > 0):
            assert got[i] / weights[i] >= got[k] / weights[k] - 1e-9
        assert got[weights == 0].sum() == pytest.approx(0)
