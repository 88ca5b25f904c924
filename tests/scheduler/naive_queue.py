"""The queue written down plainly: every cycle looks at every job in order, with lists and integers and no shortcut.

It knows nodes of whole devices of one flavor, and no quota. Nothing of the scheduler is used but its records, so that
buckets, arrays and early exits are compared with what they stand for. A run is believed to end when predicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduler.model import MILLI, Job, Node, Queue
from scheduler.policy import Policy

PPM = 1_000_000
Need = dict[int, int]


@dataclass
class _Held:
    """Devices by node from `start` to `end`."""

    need: Need
    start: int
    end: int


class NaiveQueue:
    """`cycle` returns the ids that start, in the order in which they start, with the nodes of their pods."""

    def __init__(self, nodes: Sequence[Node], queues: Sequence[Queue], policy: Policy) -> None:
        self.policy = policy
        self.free = [n.gpus for n in nodes]
        self.total = sum(self.free) * MILLI
        self.weight = {q.name: q.weight for q in queues}
        self.held = dict.fromkeys(self.weight, 0)
        self.waiting: dict[str, tuple[Job, int]] = {}
        self.running: dict[str, tuple[Job, _Held]] = {}
        self.reserved: dict[str, _Held] = {}
        self.head: str | None = None

    def submit(self, job: Job, run_us: int) -> None:
        """A job comes; it is known to run for `run_us`."""
        self.waiting[job.job_id] = (job, run_us)

    def ended(self, job_id: str) -> None:
        """A job has ended."""
        job, held = self.running.pop(job_id)
        for node, n in held.need.items():
            self.free[node] += n
        self.held[job.queue] -= job.gpu_milli

    def cycle(self, now: int) -> list[tuple[str, Need]]:
        """Everything that starts now."""
        started: list[tuple[str, Need]] = []
        if self.policy.backfill == "none":
            while self.waiting:
                first = min(self.waiting, key=lambda j: self._key(j, now))
                if not self._start(first, now, started):
                    break
            return started
        for name in sorted(self.reserved, key=lambda j: self._key(j, now)):
            if not self._start(name, now, started):
                known = self.reserved[name]
                better = self._plan(name, now)
                if better.start < known.start:
                    self.reserved[name] = better
        if self.policy.backfill == "conservative":
            for name in sorted(self.waiting, key=lambda j: self._key(j, now)):
                if name not in self.reserved and not self._start(name, now, started):
                    self.reserved[name] = self._plan(name, now)
            return started
        left = set(self.waiting)
        while left:
            name = min(left, key=lambda j: self._key(j, now))
            left.remove(name)
            if self._start(name, now, started) or name in self.reserved:
                continue
            if self._is_aged(name, now):
                self.reserved[name] = self._plan(name, now)
            elif self.head is None:
                self.reserved[name] = self._plan(name, now)
                self.head = name
        return started

    def _is_aged(self, name: str, now: int) -> bool:
        limit = self.policy.age_us(self.waiting[name][0])
        return limit is not None and now - self.waiting[name][0].submit_us >= limit

    def _key(self, name: str, now: int) -> tuple[object, ...]:
        job, run_us = self.waiting[name]
        policy = self.policy
        is_critical = job.is_critical and policy.by_priority
        if self._is_aged(name, now):
            return (not is_critical, 0, job.submit_us, job.job_id)
        share, weight = self.held[job.queue] * PPM // self.total, self.weight[job.queue]
        step = policy.share_step_ppm
        ordered = (0, share * sum(self.weight.values()) // weight // step) if weight else (1, share // step)
        return (
            not is_critical,
            1,
            -job.priority if policy.by_priority else 0,
            ordered if policy.by_share else 0,
            run_us if policy.by_duration else 0,
            job.submit_us,
            job.job_id,
        )

    def _start(self, name: str, now: int, started: list[tuple[str, Need]]) -> bool:
        job, run_us = self.waiting[name]
        others = [r for j, r in self.reserved.items() if j != name]
        room = list(self.free)
        for r in others:
            if r.start < now + run_us:
                left = self._left(r.start, others)
                room = [min(a, b) for a, b in zip(room, left, strict=True)]
        need = _best_fit(job, room)
        if need is None:
            return False
        del self.waiting[name]
        self.reserved.pop(name, None)
        if self.head == name:
            self.head = None
        for node, n in need.items():
            self.free[node] -= n
        self.running[name] = (job, _Held(need, now, now + run_us))
        self.held[job.queue] += job.gpu_milli
        started.append((name, need))
        return True

    def _left(self, at: int, reserved: Sequence[_Held]) -> list[int]:
        """Devices of every node at an instant to come, beside reservations."""
        left = list(self.free)
        for _, run in self.running.values():
            if run.end <= at:
                for node, n in run.need.items():
                    left[node] += n
        for r in reserved:
            if r.start <= at < r.end:
                for node, n in r.need.items():
                    left[node] -= n
        return left

    def _plan(self, name: str, now: int) -> _Held:
        job, run_us = self.waiting[name]
        others = [r for j, r in self.reserved.items() if j != name]
        ends = {run.end for _, run in self.running.values()} | {r.end for r in others if r.end > now}
        for at in sorted({now} | ends):
            # whoever is reserved for a time within the run keeps its devices from the beginning
            room = self._left(at, [])
            for r in others:
                if r.start < at + run_us and at < r.end:
                    for node, n in r.need.items():
                        room[node] -= n
            need = _best_fit(job, room)
            if need is not None:
                return _Held(need, at, at + run_us)
        raise AssertionError(f"{name} fits nowhere")


def _best_fit(job: Job, room: Sequence[int]) -> Need | None:
    left = list(room)
    need: Need = {}
    pods = sorted(
        ((role.shape.gpus, r) for r, role in enumerate(job.roles) for _ in range(role.count)),
        key=lambda p: (-p[0], p[1]),
    )
    for size, _ in pods:
        fits = [(left[n], n) for n in range(len(left)) if left[n] >= size]
        if not fits:
            return None
        node = min(fits)[1]
        left[node] -= size
        need[node] = need.get(node, 0) + size
    return need
