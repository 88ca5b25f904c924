"""A tick does a bounded part: one job of very many pods keeps no other waiting, and its end does not either."""

from __future__ import annotations

import time
from pathlib import Path

from queue_service import kinds, pods_of, service, states, submit, world

from scheduler.service.acting import STARTS_OF_JOB, STOPS_OF_JOB
from scheduler.service.core import Health


def test_a_gang_of_many_pods_is_made_in_portions_beside_others(tmp_path: Path) -> None:
    fleet = world(4)
    queue = service(tmp_path, fleet)
    submit(queue, "vast", gpus=0, pods=3 * STARTS_OF_JOB + 1, run_s=None)
    queue.tick()
    assert len(pods_of(fleet, "vast")) == STARTS_OF_JOB
    submit(queue, "small", gpus=1)
    queue.tick()
    assert states(queue, "small") == ["running"] and kinds(queue, "small")[-1] == "bound"
    assert len(pods_of(fleet, "vast")) == 2 * STARTS_OF_JOB and "bound" not in kinds(queue, "vast")
    queue.tick()
    queue.tick()
    assert len(pods_of(fleet, "vast")) == 3 * STARTS_OF_JOB + 1 and kinds(queue, "vast")[-1] == "bound"
    made = [name for what, name in fleet.record if what == "create"]
    assert len(made) == len(set(made))


def test_a_cancelled_gang_is_made_no_further_and_goes_in_portions(tmp_path: Path) -> None:
    fleet = world(4)
    queue = service(tmp_path, fleet)
    many = STOPS_OF_JOB + STARTS_OF_JOB
    submit(queue, "vast", gpus=0, pods=2 * many, run_s=None)
    while len(pods_of(fleet, "vast")) < many:
        queue.tick()
    queue.cancel("vast", "somebody")
    made = len(pods_of(fleet, "vast"))
    queue.tick()
    assert len(pods_of(fleet, "vast")) == made - STOPS_OF_JOB
    for _ in range(-(-made // STOPS_OF_JOB)):
        queue.tick()
    assert pods_of(fleet, "vast") == []


def test_a_loop_that_has_stopped_is_told() -> None:
    health = Health(ticked_s=time.monotonic())
    assert health.trouble() == ""
    health.ticked_s = time.monotonic() - 2 * health.patience_s
    assert "no tick has ended" in health.trouble()
    assert Health(error="world: gone").trouble() == "world"
