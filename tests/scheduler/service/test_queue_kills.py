"""kill -9 of the service at random points over the live simulated fleet: no accepted job lost, none started twice.

The fleet lives in this process and keeps its own record: the watch log of its API server. `QUEUE_KILLS` sets the number
of kills (4 by default, 50 for the whole proof); every kill comes after at least `QUEUE_KILL_SUBMITS` accepted submits
and `QUEUE_KILL_BINDS` binds since the kill before (200 and 50 with QUEUE_KILLS of 50 or more), and every fifth one,
as well as the last, between the log write of a start and its binds.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from killable_service import Killable
from watched_fleet import Record, fleet

pytestmark = pytest.mark.integration

KILLS = int(os.environ.get("QUEUE_KILLS", "4"))
IS_WHOLE = KILLS >= 50
SUBMITS = int(os.environ.get("QUEUE_KILL_SUBMITS", "200" if IS_WHOLE else "25"))
BINDS = int(os.environ.get("QUEUE_KILL_BINDS", "50" if IS_WHOLE else "8"))


def spec(rng: random.Random) -> dict[str, Any]:
    """A gang of one to three small pods that runs for some simulated seconds."""
    return {
        "name": "job",
        "roles": [{"gpus": rng.choice((1, 1, 2)), "count": rng.choice((1, 1, 2, 3))}],
        "pod": {"annotations": {"strandline.io/run-seconds": str(rng.randint(5, 40))}},
    }


@dataclass
class Submits:
    """Submits from several threads; `accepted` by idempotency key, `unsure` those that got no answer."""

    service: Killable
    seed: int
    accepted: dict[str, str] = field(default_factory=dict)
    unsure: dict[str, dict[str, Any]] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, thread: int) -> None:
        rng = random.Random(f"{self.seed}/{thread}")
        with self.service.client() as client:
            while not self.stop.is_set():
                self.one(client, uuid4().hex, spec(rng))
                time.sleep(0.002)

    def one(self, client: httpx.Client, key: str, body: dict[str, Any]) -> None:
        try:
            answer = client.post("/v1/jobs", json=body, headers={"Idempotency-Key": key})
        except httpx.TransportError:
            self.unsure[key] = body
            self.stop.set()
            return
        assert answer.status_code in (200, 201), answer.text
        self.accepted[key] = answer.json()["job_id"]


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def one_round(service: Killable, record: Record, accepted: dict[str, str], n: int) -> dict[str, dict[str, Any]]:
    """Submits and binds until the kill; gives the requests that got no answer."""
    rng = random.Random(n)
    is_between = n % 5 == 4 or n == KILLS - 1
    binds_before = sum(record.bound.values())
    service.start()
    submits = Submits(service, n)
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(submits.run, t) for t in range(4)]

        def is_due() -> bool:
            return len(submits.accepted) >= SUBMITS and sum(record.bound.values()) - binds_before >= BINDS

        try:
            wait_for(lambda: is_due() or not service.is_alive(), 120, f"round {n}: no {SUBMITS} submits, {BINDS} binds")
            assert service.is_alive(), "the service ended by itself"
            if not is_between:
                time.sleep(rng.uniform(0, 0.4))
                service.kill()
        finally:
            submits.stop.set()
            for future in running:
                future.result(60)
    if is_between:
        service.kill()
        accepted |= submits.accepted
        die_between(service, accepted, submits.unsure, rng)
    return accepted_and_unsure(accepted, submits)


def die_between(service: Killable, accepted: dict[str, str], unsure: dict[str, Any], rng: random.Random) -> None:
    """Another life of the service, which it takes itself between the log write of a start and its binds."""
    service.start(die_at=rng.randint(1, 6))
    submits = Submits(service, rng.randrange(1 << 30))
    with service.client() as client:
        for _ in range(12):
            if not submits.stop.is_set():
                submits.one(client, uuid4().hex, spec(rng))
    wait_for(lambda: not service.is_alive(), 60, "the service did not die between log and bind")
    assert service.process is not None
    assert service.process.wait(10) == -signal.SIGKILL
    assert started_in_log_only(service.folder / "events.db"), "it died neither before nor amid the binds of a gang"
    accepted |= submits.accepted
    unsure |= submits.unsure


def started_in_log_only(path: Path) -> int:
    """Starts that the log has as intended and not as done."""
    log = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        (n,) = log.execute(
            "select count(*) from events i where kind = 'intended' and not exists (select 1 from events b where "
            "b.job_id = i.job_id and b.event_id > i.event_id and b.kind in ('bound', 'ended', 'cancelled'))"
        ).fetchone()
        return int(n)
    finally:
        log.close()


def accepted_and_unsure(accepted: dict[str, str], submits: Submits) -> dict[str, dict[str, Any]]:
    accepted |= submits.accepted
    return submits.unsure


def test_no_kill_loses_an_accepted_job_or_starts_one_twice(tmp_path: Path, project_root: Path) -> None:
    service = Killable(tmp_path, project_root)
    accepted: dict[str, str] = {}
    unsure: dict[str, dict[str, Any]] = {}
    kills = 0
    with fleet(tmp_path) as record, service:
        while kills < KILLS:
            unsure |= one_round(service, record, accepted, kills)
            kills += 1
        service.start()
        with service.client() as client:
            again = Submits(service, -1)
            for key, body in unsure.items():
                again.one(client, key, body)
            accepted |= again.accepted
            jobs = everything(client)
            assert set(accepted.values()) <= set(jobs), "accepted jobs are lost"
            assert len(set(accepted.values())) == len(accepted) == len(jobs), "jobs were submitted twice"
            drain(client)
            jobs = everything(client)
    states = Counter(j["state"] for j in jobs.values())
    assert not {j["job_id"]: j["message"] for j in jobs.values() if j["state"] in ("failed", "impossible")}
    twice = {
        name: n
        for name, n in (record.created + record.bound).items()
        if max(record.created[name], record.bound[name]) > 1
    }
    assert not twice, "the fleet saw pods made or bound twice"
    assert not {name: nodes for name, nodes in record.nodes.items() if len(nodes) > 1}
    assert not {job: attempts for job, attempts in record.ran.items() if len(attempts) > 1}, "jobs started twice"
    assert set(record.ran) <= set(accepted.values())
    known_as_started = {j for j, s in jobs.items() if s["started_at"] is not None}
    assert set(record.ran) <= known_as_started
    print(f"kills {kills}, jobs {len(jobs)}, binds {sum(record.bound.values())}, {dict(states)}")


def everything(client: httpx.Client) -> dict[str, dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = {}
    after: str | None = None
    while True:
        page = client.get("/v1/jobs", params={"limit": 1000} | ({"after": after} if after else {})).json()
        jobs |= {j["job_id"]: j for j in page["jobs"]}
        if (after := page["next_after"]) is None:
            return jobs


def drain(client: httpx.Client) -> None:
    """Some undisturbed work: jobs that were under way at the last kill end."""
    waiting = client.get("/v1/jobs", params={"state": "running", "limit": 1000}).json()["jobs"]
    wanted = {j["job_id"] for j in waiting}

    def has_ended() -> bool:
        return not wanted & {
            j["job_id"] for j in client.get("/v1/jobs", params={"state": "running", "limit": 1000}).json()["jobs"]
        }

    wait_for(has_ended, 180, "jobs that ran do not end")
