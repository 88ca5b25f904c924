"""The picture of a replay: its series agree with the figures, and it is a document that a browser reads."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from pipelines import cli
from scheduler.model import Job, Node, Queue, Role, Shape
from scheduler.replay.outcome import TraceRun
from scheduler.replay.picture import Replayed, draw
from scheduler.replay.run import Setting, run_once
from scheduler.replay.timeline import PARTIAL, timeline

S, H = 1_000_000, 3600
NODES = (Node("a", "g", 8), Node("b", "g", 8))
QUEUES = {"t": Queue("t")}
EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "scheduler" / "examples"
SVG = "{http://www.w3.org/2000/svg}"


def job(name: str, pods: int, gpus: int, submit_s: int, run_s: int) -> TraceRun:
    return TraceRun(Job(name, "t", "t", (Role("w", Shape(gpus * 1000), pods),), submit_s * S), run_s * S)


# Two whole nodes for an hour; a gang that waits, and behind it one that backfill lets run; then a hole that is wanted.
MIXED = [
    job("a", 1, 6, 0, 2 * H),
    job("b", 1, 8, 0, H),
    job("c", 2, 8, 60, H),
    job("d", 1, 2, 120, 600),
    job("e", 1, 1, 180, H // 2),
]
GANGS = [job(f"job-{i:02}", 8, 1, 0, 600) for i in range(20)]


def replayed(runs: list[TraceRun], policy: str, seed: int = 1) -> Replayed:
    out, found = run_once(runs, Setting(policy, nodes=NODES, queues=QUEUES, seed=seed))
    return Replayed(runs, out, found)


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative", "strandline"])
def test_series_add_up_to_the_figures(policy: str) -> None:
    shown = replayed(MIXED, policy)
    first, last = 0, shown.out.finished_us
    series = timeline(shown.runs, shown.out, 16_000, (first, last), 100)
    hours = (last - first) / S / H / 100
    held = sum(v.sum() for v in series.held.values()) * hours
    assert held == pytest.approx(shown.found["used_gpu_hours"], abs=1e-3)
    assert series.wanted.sum() * hours == pytest.approx(shown.found["idle_while_waiting_gpu_hours"], abs=1e-3)
    waits = {t.job.job_id: (shown.out.started_us[t.job.job_id] - t.job.submit_us) * t.job.gpu_milli for t in MIXED}
    asked = sum(v.sum() for v in series.waiting.values()) * hours
    assert asked == pytest.approx(sum(waits.values()) / 1000 / S / H, abs=1e-3)
    assert not series.held[PARTIAL].any()
    total = sum(series.held.values()) + series.wanted
    assert np.all(total <= 16 + 1e-9)


def test_steps_hold_means() -> None:
    runs = [job("a", 1, 4, 0, 100)]
    shown = replayed(runs, "fifo")
    series = timeline(runs, shown.out, 16_000, (0, 150 * S), 3)
    assert series.held["2-7"].tolist() == [4, 4, 0]
    assert timeline(runs, shown.out, 16_000, (0, 400 * S), 2).held["2-7"].tolist() == [2, 0]


def test_what_a_deadlock_holds_goes_on_to_the_edge() -> None:
    shown = replayed(GANGS, "podwise")
    assert shown.found["finished"] == 2
    series = timeline(shown.runs, shown.out, 16_000, (0, 6000 * S), 100)
    assert series.held[PARTIAL].tolist() == [8] * 20 + [16] * 80
    assert series.held["8+"].tolist() == [8] * 20 + [0] * 80
    assert series.waiting["8+"].tolist() == [19 * 8] * 10 + [18 * 8] * 90
    assert not series.wanted.any()


def words(svg: str) -> list[str]:
    return ["".join(e.itertext()) for e in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_the_picture_says_what_happened() -> None:
    said = words(draw([replayed(GANGS, "podwise"), replayed(GANGS, "strandline")]))
    assert "deadlocked: 2 of 20 jobs ran, the others wait for ever; no mean" in said
    assert "from here on nothing can happen any more" in said
    assert "held by a part of a gang, no work" in said
    assert any(w.startswith("mean wait 45 min; 95 % within 90 min") for w in said)
    # no key for what is not there
    assert not any("jobs of 1 GPU" in w or "idle, though" in w for w in said)
    assert draw([replayed(GANGS, "strandline")]) == draw([replayed(GANGS, "strandline")])


def test_a_deadlock_at_the_first_instant_is_drawn() -> None:
    shown = replayed(GANGS, "podwise", seed=2)
    assert shown.out.finished_us == 0
    assert "deadlocked: 0 of 20 jobs ran, the others wait for ever; no mean" in words(draw([shown]))


def test_jobs_without_gpus_or_that_never_fit() -> None:
    runs = [job("cpu", 1, 0, 0, 10), job("large", 1, 9, 0, 10)]
    said = words(draw([replayed(runs, "strandline")]))
    assert any(w.startswith("mean wait 0 s") for w in said)
    assert "no job could start" in words(draw([replayed([job("large", 1, 9, 0, 10)], "strandline")]))


def replay(capsys: pytest.CaptureFixture[str], *flags: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["replay", str(EXAMPLES / "twenty-gangs.csv"), *map(str, flags)])
    said = capsys.readouterr()
    return int(stopped.value.code or 0), said.out, said.err


def test_the_command_draws(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "waits.svg"
    flags = ("--fleet", EXAMPLES / "two-nodes.csv", "--pod-gpus", 1, "--format", "json", "--picture", file)
    code, out, err = replay(capsys, "--policy", "podwise", "--against", "fifo", *flags)
    assert code == 0 and json.loads(out)["is_deadlocked"]
    assert str(file) in err
    assert {"podwise", "fifo"} <= set(words(file.read_text("utf-8")))
    assert replay(capsys, "--policy", "easy", "--shake", 60, "--seeds", 2, *flags)[0] == 0
    assert "easy" in words(file.read_text("utf-8"))
    # a pool without nodes
    assert replay(capsys, "--policy", "easy", "--pool", 16, "--picture", file)[0] == 0


@pytest.mark.parametrize(("name", "why"), [("waits.png", "ends in .svg"), ("no/waits.svg", "no such folder")])
def test_pictures_that_cannot_be_drawn(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, why: str) -> None:
    code, out, err = replay(capsys, "--pool", 16, "--picture", tmp_path / name)
    assert (code, out) == (2, "")
    assert why in err and name in err
