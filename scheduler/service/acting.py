"""Bringing the world to where the log says it should be: pods to end, to warn and to make.

What should run follows from the records alone, so nothing here is remembered over a restart. Belongs here: from records
to calls of the world. Not here: decisions (`deciding.py`), the calls themselves (`worlds.py`, `kubeworld.py`).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from scheduler.service.deciding import Decider
from scheduler.service.journal import Journal
from scheduler.service.records import Entry
from scheduler.service.worlds import Pod, Refused, Seen, World, pod_name

# Kubernetes' own default; a pod that was killed under the contract had its grace before.
CANCEL_GRACE_S = 30
# Portions of a tick, so that one job of very many pods keeps no other from being looked at: how many pods of each job
# are made, and how many ended. What is left goes on in the next tick.
STARTS_OF_JOB = 64
STOPS_OF_JOB = 64


@dataclass
class Work:
    """What a tick does to the world once its events are committed. A start has pods, and whether they are the last."""

    stops: list[tuple[list[str], int]] = field(default_factory=list)
    saves: list[tuple[list[str], int]] = field(default_factory=list)
    starts: list[tuple[Entry, list[Pod], bool]] = field(default_factory=list)


class Actor:
    """Acts in one world on one journal. `lock` is the queue's; `binders`: gangs whose pods are made at one time."""

    def __init__(
        self, world: World, journal: Journal, decider: Decider, lock: threading.RLock, binders: int
    ) -> None:  # fmt: skip
        self.world, self.journal, self.decider, self.lock, self.binders = world, journal, decider, lock, binders
        self._told: set[tuple[str, int]] = set()

    def work(self, seen: Seen) -> Work:
        """What keeps the world from being as the log says; call it under the lock."""
        work, stops = Work(), Counter[str]()
        for pod in sorted(seen.pods.values(), key=lambda p: p.name):
            entry = self.journal.records.entries.get(pod.job_id)
            if entry is None:
                continue
            run = entry.run
            wanted = run is not None and pod.attempt == run.attempt and any(
                pod.name == pod_name(pod.job_id, run.attempt, r, i) for r, i, *_ in run.whole.pods
            )  # fmt: skip
            if not wanted and stops[pod.job_id] < STOPS_OF_JOB:
                stops[pod.job_id] += 1
                work.stops.append(([pod.name], CANCEL_GRACE_S if entry.life.state == "cancelled" else 0))
        for entry in self.journal.records.running.values():
            run = entry.run
            assert run is not None
            if not run.is_bound:
                left = [p for p in _pods(entry) if p.name not in seen.pods or seen.pods[p.name].node != p.node]
                work.starts.append((entry, left[:STARTS_OF_JOB], len(left) <= STARTS_OF_JOB))
            elif entry.life.signalled is not None and run.stop is not None:
                told = (entry.job.job_id, run.attempt)
                if told not in self._told:
                    self._told.add(told)
                    work.saves.append(([p.name for p in _pods(entry)], run.stop.kill_us))
        return work

    def act(self, work: Work) -> None:
        calls: list[Callable[[], None]] = [partial(self.world.stop, *stop) for stop in work.stops]
        calls += [partial(self.world.save, *save) for save in work.saves]
        calls += [partial(self._start, *start) for start in work.starts]
        try:
            if self.binders == 1:
                for call in calls:
                    call()
            elif calls:
                with ThreadPoolExecutor(self.binders, "queue-bind") as pool:
                    for done in [pool.submit(call) for call in calls]:
                        done.result()
        finally:
            with self.lock:
                self.journal.flush()

    def _start(self, entry: Entry, pods: list[Pod], is_last: bool) -> None:
        with self.lock:
            run = entry.run
        if run is None or (pods and run.attempt != pods[0].attempt):
            return  # cancelled meanwhile
        attempt, refusal = run.attempt, ""
        try:
            self.world.start(pods)
        except Refused as error:
            refusal = str(error)
        with self.lock:
            if entry.run is None or entry.run.attempt != attempt:
                return  # cancelled meanwhile: the next tick ends its pods
            if refusal:
                self.decider.end(entry, self.decider.now(), is_success=False, reason=refusal)
            elif is_last:
                self.journal.note("bound", entry, self.decider.now(), {"attempt": attempt})


def _pods(entry: Entry) -> list[Pod]:
    run, job = entry.run, entry.job
    assert run is not None
    return [
        Pod(
            pod_name(job.job_id, run.attempt, r, i), job.job_id, run.attempt, job.team, job.roles[r].name, i, node,
            job.roles[r].shape, tuple(d for d, _ in devices), entry.template,
        )
        for r, i, node, devices in run.places.pods
    ]  # fmt: skip
