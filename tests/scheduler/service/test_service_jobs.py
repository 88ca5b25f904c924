"""Jobs in the service over the fake world: they start, end, wait, are cancelled, asked about and evicted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from queue_service import kinds, pods_of, queues, reopened, service, states, submit, world

from scheduler.model import HOUR_US


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
