"""What `docs/build-log/queue.md` says of twenty gangs on two nodes, and the figures in its table."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from pipelines import cli
from scheduler.model import Node
from scheduler.replay.fleets import queues_for, read_fleet
from scheduler.replay.jobs import read_runs
from scheduler.replay.outcome import Outcome, TraceRun
from scheduler.replay.run import Setting, run_once

DOCS = Path(__file__).resolve().parents[2] / "docs"
TRACE, FLEET = (DOCS / "scheduler" / "examples" / name for name in ("twenty-gangs.csv", "two-nodes.csv"))
PAGE = DOCS / "build-log" / "queue.md"
SEEDS = range(1, 401)
RUN_US = 600_000_000


@cache
def given() -> tuple[list[TraceRun], tuple[Node, ...]]:
    nodes = tuple(read_fleet(FLEET))
    return read_runs(TRACE, nodes, pod_gpus=1), nodes


def under(policy: str, seed: int = 1) -> tuple[Outcome, dict[str, object]]:
    runs, nodes = given()
    return run_once(runs, Setting(policy, nodes=nodes, queues=queues_for({"research"}), seed=seed))


@cache
def podwise() -> tuple[tuple[Outcome, dict[str, object]], ...]:
    return tuple(under("podwise", seed) for seed in SEEDS)


def held_at(out: Outcome, at_us: int) -> dict[str, int]:
    """GPUs that each job holds at an instant; a replay that has stopped stays as it is."""
    held: Counter[str] = Counter()
    for s in out.spans:
        if s.begun_us <= at_us and (s.ended_us > at_us or s.ending == "cut"):
            held[s.job_id] += s.milli // 1000
    return held


def test_the_files_are_twenty_gangs_of_eight_pods_on_sixteen_gpus() -> None:
    runs, nodes = given()
    assert [(r.job.job_id, r.job.submit_us, r.duration_us) for r in runs] == [
        (f"job-{i:02}", 0, RUN_US) for i in range(1, 21)
    ]
    assert {(role.count, role.shape.gpus) for r in runs for role in r.job.roles} == {(8, 1)}
    assert [n.gpus for n in nodes] == [8, 8]


def test_no_seed_gets_them_through_without_a_queue() -> None:
    for out, found in podwise():
        assert found["is_deadlocked"]
        assert found["mean_wait_s"] is found["p95_wait_s"] is found["makespan_s"] is None
        assert found["finished"] + len(out.stuck) == 20
        assert found["finished"] <= 5
        assert found["idle_while_waiting_gpu_hours"] == 0
        # all is held, at once and for ever; in the end by nobody who works
        assert sum(held_at(out, 0).values()) == 16
        end = held_at(out, out.finished_us)
        assert sum(end.values()) == 16
        assert max(end.values()) < 8


def test_the_table_of_the_page_is_what_the_seeds_give() -> None:
    whole_at_once = Counter(sum(n == 8 for n in held_at(out, 0).values()) for out, _ in podwise())
    finished = Counter(found["finished"] for _, found in podwise())
    text = PAGE.read_text("utf-8")
    rows = {
        k: (int(a), int(b))
        for k, a, b in re.findall(r"^\| (none|one|two|three or more) \| (\d+) \| (\d+) \|", text, re.M)
    }
    assert rows == {
        "none": (whole_at_once[0], finished[0]),
        "one": (whole_at_once[1], finished[1]),
        "two": (whole_at_once[2], finished[2]),
        "three or more": (0, sum(n for k, n in finished.items() if k > 2)),
    }


def test_the_most_frequent_picture_is_that_of_the_real_scheduler() -> None:
    """One whole, and 3, 3, 1 and 1 pods of four others: seen on a real control plane, and most often here."""
    seen = Counter(tuple(sorted(held_at(out, 0).values(), reverse=True)) for out, _ in podwise())
    (shape, count), *_ = seen.most_common(1)
    assert shape == (8, 3, 3, 1, 1)
    assert f"{count} of the {len(SEEDS)} seeds" in PAGE.read_text("utf-8")


def test_who_runs_first_is_a_matter_of_chance() -> None:
    firsts = Counter(min(out.ended_us, key=lambda j: (out.ended_us[j], j)) for out, _ in podwise() if out.ended_us)
    assert len(firsts) >= 5
    total = sum(firsts.values())
    assert f"in {firsts['job-01']} of these {total}" in PAGE.read_text("utf-8")


@pytest.mark.parametrize("policy", ["fifo", "strandline"])
def test_with_a_queue_two_run_at_a_time_in_order(policy: str) -> None:
    out, found = under(policy)
    assert not found["is_deadlocked"]
    assert found["finished"] == 20
    assert found["gang_partial_holds"] == 0
    assert found["utilization"] == 1
    assert out.started_us == {f"job-{i + 1:02}": i // 2 * RUN_US for i in range(20)}
    assert found["mean_wait_s"] == sum(range(10)) * 600 / 10
    text = PAGE.read_text("utf-8")
    assert f"mean wait {found['mean_wait_s'] / 60:.0f} minutes" in text
    assert f"the last pair starts after {found['max_wait_s'] / 60:.0f}" in text


def test_the_commands_of_the_page(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS.parent)
    commands = re.findall(r"^strandline (replay docs/scheduler/examples/.*)$", PAGE.read_text("utf-8"), re.M)
    assert len(commands) >= 2
    results = {}
    for command in commands:
        words = command.split()
        words = words[: words.index("--picture")] if "--picture" in words else words
        with pytest.raises(SystemExit) as stopped:
            cli.main([*words, "--format", "json"])
        assert stopped.value.code in (0, None)
        found = json.loads(capsys.readouterr().out)
        results[found["policy"]] = found
    assert results["podwise"]["is_deadlocked"] and results["podwise"]["mean_wait_s"] is None
    assert not results["strandline"]["is_deadlocked"] and results["strandline"]["finished"] == 20
