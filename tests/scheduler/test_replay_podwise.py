"""The baseline without a queue: it fails as the real kube-scheduler was seen to, and the queue does not."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from scheduler.model import Job, Node, Queue, Role, Shape
from scheduler.replay.metrics import Fleet, figures
from scheduler.replay.outcome import Outcome, TraceRun
from scheduler.replay.podwise import _Gang, interleaved, replay_podwise
from scheduler.replay.run import Setting, run_once

S = 1_000_000
NODES = (Node("a", "g", 8), Node("b", "g", 8))
QUEUES = {"t": Queue("t")}


def gang(name: str, pods: int, submit_s: int = 0, gpus: int = 1, duration_s: int = 60, **more: object) -> TraceRun:
    roles = (Role("w", Shape(gpus * 1000, **more), pods),)  # type: ignore[arg-type]
    return TraceRun(Job(name, "t", "t", roles, submit_s * S), duration_s * S)


TWENTY = [gang(f"job-{i:02}", 8) for i in range(20)]


def held_at(out: Outcome, at_s: float) -> list[int]:
    """GPUs that each job holds at an instant, most first."""
    held: Counter[str] = Counter()
    for s in out.spans:
        if s.begun_us <= at_s * S and (s.ended_us > at_s * S or s.ending == "cut"):
            held[s.job_id] += s.milli // 1000
    return sorted(held.values(), reverse=True)


def test_twenty_gangs_without_a_queue() -> None:
    """One job whole, four partial ones holding the other half: as kube-scheduler on two nodes showed."""
    out = replay_podwise(TWENTY, NODES, 1, {})
    assert held_at(out, 15) == [8, 3, 3, 1, 1]
    found = figures(TWENTY, out, Fleet(16_000, NODES, QUEUES))
    assert found["is_deadlocked"]
    assert found["mean_wait_s"] is None
    assert found["most_partial_gangs_at_once"] >= 4


def test_no_seed_gets_all_twenty_through() -> None:
    shapes = Counter()
    for seed in range(60):
        out = replay_podwise(TWENTY, NODES, seed, {})
        assert len(out.ended_us) < 20
        assert sum(held_at(out, 15)) == 16
        shapes[tuple(held_at(out, 15))] += 1
    assert shapes.most_common(1)[0][0] == (8, 3, 3, 1, 1)


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative", "strandline"])
def test_the_same_jobs_in_a_queue(policy: str) -> None:
    _, found = run_once(TWENTY, Setting(policy, nodes=NODES, queues=QUEUES))
    assert found["finished"] == 20
    assert found["gang_partial_holds"] == 0
    assert not found["is_deadlocked"]
    # two at a time, ten rounds of a minute
    assert found["mean_wait_s"] == pytest.approx(sum(range(10)) * 60 / 10)


def test_pods_come_in_growing_batches_of_five_jobs_at_a_time() -> None:
    gangs = [_Gang(run, 8) for run in TWENTY]
    order = [g.run.job.job_id for g, _ in interleaved(gangs, random.Random(0))]
    assert Counter(order) == Counter({r.job.job_id: 8 for r in TWENTY})
    seen: Counter[str] = Counter()
    for name in order:
        seen[name] += 1
        assert sum(0 < n < 8 for n in seen.values()) <= 5


def test_same_seed_same_replay() -> None:
    assert replay_podwise(TWENTY, NODES, 7, {}) == replay_podwise(TWENTY, NODES, 7, {})
    assert replay_podwise(TWENTY, NODES, 7, {}) != replay_podwise(TWENTY, NODES, 8, {})


def test_least_allocated_spreads_single_pods() -> None:
    """Two pods of one GPU end on two nodes, so that a pod of 8 then fits neither."""
    for seed in range(5):
        runs = [gang("a", 1), gang("b", 1), gang("c", 1, 1, 8)]
        out = replay_podwise(runs, NODES, seed, {})
        nodes = {s.job_id: s.nodes[0][0] for s in out.spans}
        assert nodes["a"] != nodes["b"]
        assert out.started_us["c"] == 60 * S


def test_cpu_memory_models_and_shares_are_respected() -> None:
    nodes = (Node("a", "T4", 2, 4000, 1000), Node("b", "V100", 2, 8000, 1000))
    runs = [
        gang("cpu", 2, 0, 1, cpu_milli=4000, memory_mib=1, accelerators=("V100",)),
        gang("more", 1, 1, 1, 10, cpu_milli=1000, accelerators=("V100",)),
        TraceRun(Job("half", "t", "t", (Role("w", Shape(500, accelerators=("T4",)), 2),), 0), 30 * S),
        TraceRun(Job("whole", "t", "t", (Role("w", Shape(2000, accelerators=("T4",)), 1),), 1), 30 * S),
    ]
    runs.sort(key=lambda r: (r.job.submit_us, r.job.job_id))
    out = replay_podwise(runs, nodes, 1, {})
    assert out.started_us == {"cpu": 0, "half": 0, "whole": 30 * S, "more": 60 * S}
    assert next(s for s in out.spans if s.job_id == "half" and s.is_whole).nodes == ((0, 1000),)


def test_a_gang_that_waits_for_its_last_pod_holds_without_work() -> None:
    runs = [gang("a", 12, 0, 1), gang("b", 8, 1, 1)]
    out = replay_podwise(runs, NODES, 1, {})
    assert out.started_us == {"a": 0, "b": 60 * S}
    partial = [s for s in out.spans if not s.is_whole]
    assert {s.job_id for s in partial} == {"b"}
    assert sum(s.milli for s in partial) == 4000
    assert all((s.begun_us, s.ended_us) == (S, 60 * S) for s in partial)
