"""Restarts of the service at any point between log and world: everything is found again, nothing starts twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from queue_service import kinds, queues, reopened, service, states, submit, world

from scheduler.model import HOUR_US
from scheduler.policy import POLICIES
from scheduler.service.core import QueueService
from scheduler.service.worlds import FakeWorld, Pod


def picture(queue: QueueService) -> list[object]:
    """Everything a restart has to find again."""
    return [replace(e, run=replace(e.run) if e.run else None) for _, e in sorted(queue.records.entries.items())]


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
