"""The service over the fake world: starts, ends, losses, evictions, restarts at any point between log and world."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from queue_service import FLAVOR, kinds, pods_of, queues, service, states, submit, world

from scheduler.model import HOUR_US, Node
from scheduler.policy import POLICIES
from scheduler.service.core import QueueService
from scheduler.service.worlds import FakeWorld, Pod, SeenPod


def reopened(queue: QueueService, folder: Path, fleet: FakeWorld) -> QueueService:
    """What a restart after kill -9 finds: the log and the world, nothing else."""
    queue.log.close()
    return service(folder, fleet, queue.queues, queue.policy)


def picture(queue: QueueService) -> list[object]:
    """Everything a restart has to find again."""
    return [replace(e, run=replace(e.run) if e.run else None) for _, e in sorted(queue.records.entries.items())]


def test_jobs_start_end_and_make_room(tmp_path: Path) -> None:
    fleet = world(4)
    queue = service(tmp_path, fleet)
    submit(queue, "one", gpus=4)
    submit(queue, "two", gpus=2, pods=2)
    assert queue.tick()
    assert states(queue, "one", "two") == ["running", "pending"]
    assert queue.positions == {"two": 1}
    assert queue.reasons["two"] == "no_room"
    fleet.advance(61)
    queue.tick()
    assert states(queue, "one", "two") == ["succeeded", "running"]
    assert pods_of(fleet, "one") == []
    assert pods_of(fleet, "two") == ["two-1-0-0", "two-1-0-1"]
    fleet.advance(61)
    queue.tick()
    assert states(queue, "two") == ["succeeded"]
    assert queue.room is not None
    assert queue.room.scheduler.usage.is_empty()
    assert kinds(queue, "one") == ["submitted", "intended", "bound", "ended"]


def test_an_impossible_job_is_named_and_charged_nothing(tmp_path: Path) -> None:
    queue = service(tmp_path, world(4))
    queue.tick()
    submit(queue, "huge", gpus=8)
    assert states(queue, "huge") == ["impossible"]
    assert "even empty" in queue.records.entries["huge"].why
    assert states(reopened(queue, tmp_path, world(4)), "huge") == ["impossible"]


class Killed(BaseException):
    """kill -9, as far as one process can play it."""


class Dies(FakeWorld):
    """A world in which the service dies at its so-manieth write to it."""

    def __init__(self, fleet: FakeWorld, after: int) -> None:
        super().__init__(fleet.nodes)
        self.after = after

    def start(self, pods: list[Pod]) -> None:
        """Pod by pod, so that death may come in the middle of a gang."""
        if self.after == 0:
            raise Killed
        for n in range(1, len(pods) + 1):
            super().start(pods[:n])
            self.after -= 1
            if self.after == 0:
                raise Killed


@pytest.mark.parametrize("after", range(7))
def test_a_death_between_log_and_bind_starts_nothing_twice(tmp_path: Path, after: int) -> None:
    fleet = Dies(world(8), after)
    queue = service(tmp_path, fleet)
    for name in ("a1", "a2", "a3"):
        submit(queue, name, gpus=1, pods=2)
    try:
        queue.tick()
    except Killed:
        fleet.after = -1
    queue = reopened(queue, tmp_path, fleet)
    for _ in range(3):
        queue.tick()
        fleet.advance(40)
    queue.tick()
    assert states(queue, "a1", "a2", "a3") == ["succeeded"] * 3
    for what in ("create", "bind"):
        done = [name for w, name in fleet.record if w == what]
        assert len(done) == len(set(done)) == 6
    assert queue.records.counts["intended"] == queue.records.counts["bound"] == 3


def test_a_restart_finds_everything(tmp_path: Path) -> None:
    fleet = world(4, 4)
    queue = service(tmp_path, fleet)
    for i in range(12):
        submit(queue, f"j{i}", "ab"[i % 2], gpus=1 + i % 3, run_s=30 + i)
    for _ in range(4):
        queue.tick()
        fleet.advance(20)
    queue.cancel("j11", "a")
    queue.set_policy({"teams": {}}, 0, "root")
    before, positions = picture(queue), queue.positions
    again = reopened(queue, tmp_path, fleet)
    assert picture(again) == before
    assert again.records.policy == {"teams": {}}
    again.tick()
    assert set(again.positions) <= set(positions)
    for _ in range(20):
        fleet.advance(30)
        again.tick()
    assert set(states(again, *(f"j{i}" for i in range(11)))) == {"succeeded"}
    assert states(again, "j11") == ["cancelled"]


def test_a_cancelled_job_leaves_queue_or_nodes(tmp_path: Path) -> None:
    fleet = world(1)
    queue = service(tmp_path, fleet)
    submit(queue, "runs", run_s=None)
    submit(queue, "waits", run_s=None)
    queue.tick()
    queue.cancel("waits", "a")
    queue.cancel("runs", "a")
    queue.cancel("runs", "a")
    submit(queue, "next")
    queue.tick()
    assert states(queue, "runs", "waits", "next") == ["cancelled", "cancelled", "pending"]
    queue.tick()
    assert states(queue, "next") == ["running"]
    assert pods_of(fleet, "runs") == []
    assert kinds(queue, "runs").count("cancelled") == 1


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


def test_an_owner_gets_back_what_was_borrowed_after_notice_signal_and_kill(tmp_path: Path) -> None:
    fleet = world(4)
    queue = service(tmp_path, fleet, queues(a=2, b=2))
    submit(queue, "borrower", "a", gpus=4, run_s=None)
    queue.tick()
    fleet.advance(2 * 3600)
    submit(queue, "owner", "b", gpus=2, run_s=None)
    queue.tick()
    assert states(queue, "borrower", "owner") == ["stopping", "pending"]
    fleet.advance(60)
    queue.tick()
    assert ("save", "borrower-1-0-0") in fleet.record
    fleet.advance(120)
    queue.tick()
    assert states(queue, "borrower", "owner") == ["pending", "pending"]
    queue.tick()
    assert states(queue, "owner") == ["running"]
    trail = [k for k in kinds(queue, "borrower") if k in ("noticed", "signalled", "killed")]
    assert trail == ["noticed", "signalled", "killed"]


def test_a_restart_calls_an_eviction_off_and_plans_it_anew(tmp_path: Path) -> None:
    fleet = world(4)
    queue = service(tmp_path, fleet, queues(a=2, b=2))
    submit(queue, "borrower", "a", gpus=4, run_s=None)
    queue.tick()
    fleet.advance(2 * 3600)
    submit(queue, "owner", "b", gpus=2, run_s=None)
    queue.tick()
    queue = reopened(queue, tmp_path, fleet)
    queue.tick()
    assert kinds(queue, "borrower")[-2:] == ["called_off", "noticed"]
    fleet.advance(200)
    queue.tick()
    queue.tick()
    assert states(queue, "owner") == ["running"]


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


def test_what_if_asks_without_changing_anything(tmp_path: Path) -> None:
    fleet = world(4)
    queue = service(tmp_path, fleet)
    submit(queue, "runs", gpus=3, run_s=None)
    submit(queue, "waits", gpus=3, run_s=None)
    queue.tick()
    job = queue.records.entries["waits"].job
    small = replace(job, job_id="?", roles=(replace(job.roles[0], shape=replace(job.roles[0].shape, gpu_milli=1000)),))
    before = kinds(queue)
    assert queue.what_if(replace(small, limit_us=HOUR_US)).starts_now
    found = queue.what_if(replace(job, job_id="?", submit_us=queue.now))
    assert (found.starts_now, found.position, found.reason) == (False, 2, "no_room")
    big = replace(job, roles=(replace(job.roles[0], shape=replace(job.roles[0].shape, gpu_milli=64000)),))
    assert queue.what_if(big).why is not None
    assert kinds(queue) == before


def test_decayed_usage_survives_a_restart(tmp_path: Path) -> None:
    fleet = world(4)
    queue = service(tmp_path, fleet, policy=POLICIES["strandline"].without(half_life_us=HOUR_US))
    submit(queue, "over", "a", gpus=4, run_s=600)
    queue.tick()
    fleet.advance(601)
    queue.tick()
    submit(queue, "runs", "b", gpus=2, run_s=None)
    queue.tick()
    fleet.advance(900)
    queue.tick()
    again = reopened(queue, tmp_path, fleet)
    again.tick()
    assert queue.room is not None
    assert again.room is not None
    for name in ("a", "b"):
        shares = [q.room.scheduler.usage.share_ppm(name, fleet.at_us) for q in (queue, again) if q.room]
        assert shares[0] == shares[1] > 0


def test_gangs_are_bound_side_by_side(tmp_path: Path) -> None:
    fleet = world(8, 8)
    queue = service(tmp_path, fleet)
    queue.binders = 4
    names = [f"j{i}" for i in range(12)]
    for name in names:
        submit(queue, name, gpus=1)
    queue.tick()
    assert set(states(queue, *names)) == {"running"}
    assert kinds(queue).count("bound") == 12
