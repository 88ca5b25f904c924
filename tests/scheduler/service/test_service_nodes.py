"""The world changes under the service: nodes lost, back or new, binds refused, pods of others, no answer at all."""

from __future__ import annotations

from pathlib import Path

from queue_service import FLAVOR, pods_of, reopened, service, states, submit, world

from scheduler.model import Node
from scheduler.service.worlds import SeenPod


def test_a_lost_node_stops_a_gang_that_needs_it_and_shrinks_one_that_does_not(tmp_path: Path) -> None:
    fleet = world(2, 2)
    queue = service(tmp_path, fleet)
    submit(queue, "rigid", gpus=1, pods=2, run_s=None)
    queue.tick()
    home = fleet.pods["rigid-1-0-0"].node
    submit(queue, "elastic", gpus=1, pods=2, least=1, run_s=None)
    queue.tick()
    fleet.down = {str(home)}
    queue.tick()
    assert queue.records.entries["rigid"].life.reason == "degraded"
    fleet.advance(61)
    queue.tick()
    assert states(queue, "rigid", "elastic") == ["pending", "running"]
    fleet.down = set()
    queue.tick()
    fleet.advance(11)
    queue.tick()
    queue.tick()
    assert states(queue, "rigid") == ["running"]
    assert pods_of(fleet, "rigid") == ["rigid-2-0-0", "rigid-2-0-1"]
    fleet.pods.pop("elastic-1-0-1")
    queue.tick()
    assert queue.records.entries["elastic"].life.milli == 1000


def test_a_node_that_comes_back_in_time_makes_a_gang_whole(tmp_path: Path) -> None:
    fleet = world(1, 1)
    queue = service(tmp_path, fleet)
    submit(queue, "rigid", gpus=1, pods=2, run_s=None)
    queue.tick()
    fleet.down = {"n0"}
    queue.tick()
    fleet.advance(30)
    fleet.down = set()
    queue.tick()
    fleet.advance(300)
    queue.tick()
    assert (states(queue, "rigid"), queue.records.entries["rigid"].life.reason) == (["running"], "whole")
    assert pods_of(fleet, "rigid") == ["rigid-1-0-0", "rigid-1-0-1"]


def test_a_refused_bind_backs_off_and_leaves_nothing_assumed(tmp_path: Path) -> None:
    fleet = world(2, 2)
    fleet.refuses = {"n0"}
    queue = service(tmp_path, fleet)
    submit(queue, "gang", gpus=2, pods=2)
    queue.tick()
    assert queue.records.entries["gang"].life.reason == "backoff"
    queue.tick()
    assert pods_of(fleet, "gang") == []
    queue.tick()
    assert queue.room is not None
    assert queue.room.scheduler.usage.is_empty()
    fleet.refuses = set()
    fleet.advance(11)
    queue.tick()
    assert pods_of(fleet, "gang") == ["gang-2-0-0", "gang-2-0-1"]


def test_pods_of_others_are_counted_until_they_go(tmp_path: Path) -> None:
    fleet = world(4)
    fleet.pods["x/y"] = SeenPod("x/y", "", 0, "n0", "running", 3000)
    queue = service(tmp_path, fleet)
    submit(queue, "two", gpus=2)
    queue.tick()
    assert states(queue, "two") == ["pending"]
    del fleet.pods["x/y"]
    queue.tick()
    assert states(queue, "two") == ["running"]


def test_a_new_node_is_used_and_what_runs_stays(tmp_path: Path) -> None:
    fleet = world(2)
    queue = service(tmp_path, fleet)
    submit(queue, "first", gpus=2, run_s=None)
    submit(queue, "second", gpus=2, run_s=None)
    queue.tick()
    fleet.nodes += (Node("n9", FLAVOR, 4),)
    queue.tick()
    assert states(queue, "first", "second") == ["running", "running"]
    assert fleet.pods["second-1-0-0"].node == "n9"
    fleet.nodes = fleet.nodes[1:]
    again = reopened(queue, tmp_path, fleet)
    again.tick()
    assert again.records.entries["first"].life.reason == "degraded"


def test_an_unreachable_world_stops_nothing_that_was_asked_for(tmp_path: Path) -> None:
    fleet = world(2)
    queue = service(tmp_path, fleet)
    fleet.is_reachable = False
    assert not queue.tick()
    submit(queue, "patient", gpus=2)
    assert "switched off" in queue.health.error
    fleet.is_reachable = True
    assert queue.tick()
    assert states(queue, "patient") == ["running"]
