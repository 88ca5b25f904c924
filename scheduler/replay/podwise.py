"""The baseline: pods one by one, as Kubernetes places them where there is no queue.

Every pod is an item of its own. Each is tried when it comes and again whenever something was released; one that does
not fit is passed over. A node is chosen by the default score, LeastAllocated, ties at random. A gang of which only a
part found room holds what it has and does no work. Where only such gangs hold what is left, nothing ever ends again:
the replay stops and names who waits. Left out of kube-scheduler: backoff between tries, preemption by priority,
spreading and affinity; none of them heals this.

Pods of jobs that were submitted together come interleaved as the Job controller makes them: five jobs at a time, each
in batches of 1, 2, 4, ... pods (kubernetes/kubernetes, pkg/controller/job: concurrent syncs 5, slow start from 1). The
seed decides which of the five is next. Belongs here: this baseline. Not here: anything that our queue does.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduler.model import MILLI, Node, Shape
from scheduler.replay.engine import Progress
from scheduler.replay.outcome import Outcome, Span, TraceRun

_SYNCS = 5
_FULL = 100
# What the default scoring takes a pod for that asks for nothing: schedutil.DefaultMilliCPURequest and -MemoryRequest.
_CPU_MILLI, _MEMORY_MIB = 100, 200
_UNBOUNDED = 1 << 40
_TELL_EVERY = 1000


@dataclass
class _Gang:
    """A job on its way: pods that have no place yet, and since when its others hold what."""

    run: TraceRun
    missing: int
    pods: list[tuple[int, Shape, tuple[tuple[int, int], ...], int]] = field(default_factory=list)


class _Nodes:
    """Free capacity by node, and the default score."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.open = np.array([n.is_schedulable for n in nodes], dtype=bool)
        self.flavors = [n.flavor for n in nodes]
        self.free = [[MILLI] * n.gpus for n in nodes]
        self.gpus = np.array([n.gpus for n in nodes], dtype=np.int64)
        self.whole, self.milli = self.gpus.copy(), self.gpus * MILLI
        self.fullest = np.where(self.gpus > 0, MILLI, 0)
        self.cpus = np.array([n.cpu_milli for n in nodes], dtype=np.int64)
        self.memories = np.array([n.memory_mib for n in nodes], dtype=np.int64)
        self.cpu, self.memory = self.cpus.copy(), self.memories.copy()
        # for scores a pod uses a little even where it asks for nothing
        self.score_cpu, self.score_memory = self.cpus.copy(), self.memories.copy()
        self.is_bounded = bool((self.cpus < _UNBOUNDED).all() and (self.memories < _UNBOUNDED).all())
        self._of_models: dict[tuple[str, ...], np.ndarray] = {}

    def usable(self, models: tuple[str, ...]) -> np.ndarray:
        if models not in self._of_models:
            self._of_models[models] = self.open & np.array([not models or f in models for f in self.flavors])
        return self._of_models[models]

    def pick(self, shape: Shape, draw: random.Random) -> int | None:
        """The node of the best score, one of equals by the draw; None where the pod fits none."""
        fits = self.usable(shape.accelerators) & (self.cpu >= shape.cpu_milli) & (self.memory >= shape.memory_mib)
        fits &= self.whole >= shape.gpus if shape.gpu_milli % MILLI == 0 else self.fullest >= shape.gpu_milli
        where = np.flatnonzero(fits)
        if not len(where):
            return None
        score = self._score(where, shape)
        best = where[score == score.max()]
        return int(best[draw.randrange(len(best))])

    def _score(self, where: np.ndarray, shape: Shape) -> np.ndarray:
        """Free share after the pod, in whole percent: mean of CPU and memory where nodes say them, else of GPUs."""
        if not self.is_bounded:
            left, size = self.milli[where] - shape.gpu_milli, np.maximum(self.gpus[where] * MILLI, 1)
            return left * _FULL // size
        cpu = np.maximum(self.score_cpu[where] - (shape.cpu_milli or _CPU_MILLI), 0) * _FULL
        memory = np.maximum(self.score_memory[where] - (shape.memory_mib or _MEMORY_MIB), 0) * _FULL
        return (cpu // np.maximum(self.cpus[where], 1) + memory // np.maximum(self.memories[where], 1)) // 2

    def bind(self, node: int, shape: Shape) -> tuple[tuple[int, int], ...]:
        """Charge the pod; returns its devices with how much of each."""
        free = self.free[node]
        if shape.gpu_milli % MILLI:
            device = min((d for d in range(len(free)) if free[d] >= shape.gpu_milli), key=lambda d: (free[d], d))
            devices: tuple[tuple[int, int], ...] = ((device, shape.gpu_milli),)
        else:
            devices = tuple((d, MILLI) for d in range(len(free)) if free[d] == MILLI)[: shape.gpus]
        self._charge(node, shape, devices, 1)
        return devices

    def release(self, node: int, shape: Shape, devices: tuple[tuple[int, int], ...]) -> None:
        self._charge(node, shape, devices, -1)

    def _charge(self, node: int, shape: Shape, devices: tuple[tuple[int, int], ...], sign: int) -> None:
        free = self.free[node]
        for device, milli in devices:
            free[device] -= sign * milli
        self.whole[node] = free.count(MILLI)
        self.fullest[node] = max(free, default=0)
        self.milli[node] -= sign * shape.gpu_milli
        self.cpu[node] -= sign * shape.cpu_milli
        self.memory[node] -= sign * shape.memory_mib
        self.score_cpu[node] -= sign * (shape.cpu_milli or _CPU_MILLI)
        self.score_memory[node] -= sign * (shape.memory_mib or _MEMORY_MIB)


def interleaved(gangs: Sequence[_Gang], draw: random.Random) -> Iterator[tuple[_Gang, Shape]]:
    """Pods of jobs submitted together, in the order in which they come."""
    coming = deque(gangs)
    working: list[tuple[_Gang, deque[Shape], int]] = []
    while coming or working:
        while coming and len(working) < _SYNCS:
            gang = coming.popleft()
            working.append((gang, deque(r.shape for r in gang.run.job.roles for _ in range(r.count)), 1))
        k = draw.randrange(len(working)) if len(working) > 1 else 0
        gang, pods, batch = working[k]
        for _ in range(min(batch, len(pods))):
            yield gang, pods.popleft()
        if pods:
            working[k] = (gang, pods, 2 * batch)
        else:
            working.pop(k)


class _Waiting:
    """Pods without a place: first by priority, then in the order in which they came; alike ones share a line."""

    def __init__(self) -> None:
        self.lines: dict[tuple[int, Shape], deque[tuple[int, _Gang]]] = {}
        # lines whose first pod did not fit since the last release
        self.is_blocked: set[tuple[int, Shape]] = set()
        self.count = 0

    def add(self, gang: _Gang, shape: Shape) -> None:
        self.lines.setdefault((-gang.run.job.priority, shape), deque()).append((self.count, gang))
        self.count += 1

    def candidates(self) -> list[tuple[int, int, tuple[int, Shape]]]:
        """A heap of (priority, arrival, line) of lines worth a try."""
        found = [(key[0], line[0][0], key) for key, line in self.lines.items() if line and key not in self.is_blocked]
        heapq.heapify(found)
        return found


class _Replay:
    """State of one replay."""

    def __init__(self, nodes: Sequence[Node], seed: int) -> None:
        self.nodes, self.waiting, self.out = _Nodes(nodes), _Waiting(), Outcome()
        self.draw = random.Random(seed)  # noqa: S311  (a simulation)
        self.gangs: dict[str, _Gang] = {}
        self.ends: list[tuple[int, str]] = []

    def place_all(self, now: int) -> None:
        """One pass over what waits: each line until its first pod does not fit."""
        heap = self.waiting.candidates()
        while heap:
            priority, _, key = heapq.heappop(heap)
            line, shape = self.waiting.lines[key], key[1]
            node = self.nodes.pick(shape, self.draw)
            if node is None:
                self.waiting.is_blocked.add(key)
                continue
            _, gang = line.popleft()
            self._bind(gang, node, shape, now)
            if line:
                heapq.heappush(heap, (priority, line[0][0], key))
            else:
                del self.waiting.lines[key]

    def _bind(self, gang: _Gang, node: int, shape: Shape, now: int) -> None:
        gang.pods.append((node, shape, self.nodes.bind(node, shape), now))
        gang.missing -= 1
        if gang.missing:
            return
        job_id = gang.run.job.job_id
        self.out.started_us[job_id] = now
        self._held(gang, now, "finished")
        heapq.heappush(self.ends, (now + gang.run.duration_us, job_id))

    def _held(self, gang: _Gang, now: int, ending: str) -> None:
        """Record what the pods of a gang held while it was not whole."""
        for node, shape, _, begun in gang.pods:
            if begun < now or ending == "cut":
                milli = shape.gpu_milli
                self.out.spans.append(
                    Span(gang.run.job.job_id, begun, now, milli, ((node, milli),), False, ending)  # type: ignore[arg-type]
                )

    def end(self, job_id: str, now: int) -> None:
        gang = self.gangs.pop(job_id)
        milli: dict[int, int] = {}
        for node, shape, devices, _ in gang.pods:
            self.nodes.release(node, shape, devices)
            milli[node] = milli.get(node, 0) + shape.gpu_milli
        begun = self.out.started_us[job_id]
        self.out.ended_us[job_id] = now
        self.out.spans.append(Span(job_id, begun, now, sum(milli.values()), tuple(milli.items())))
        self.waiting.is_blocked.clear()

    def stop(self, now: int) -> None:
        """Nothing can happen any more: cut what is held by parts."""
        for gang in self.gangs.values():
            self._held(gang, now, "cut")
        self.out.stuck = tuple(self.gangs)
        self.out.finished_us = now


def replay_podwise(
    runs: Sequence[TraceRun],
    nodes: Sequence[Node],
    seed: int,
    impossible: dict[str, str],
    progress: Progress | None = None,
) -> Outcome:
    """Run all jobs but the impossible ones until nothing can happen any more. `runs` in the order of submission."""
    state = _Replay(nodes, seed)
    state.out.impossible = dict(impossible)
    coming, now = deque(r for r in runs if r.job.job_id not in impossible), 0
    while coming or state.ends:
        times = [state.ends[0][0]] if state.ends else []
        if coming:
            times.append(coming[0].job.submit_us)
        now = min(times)
        while state.ends and state.ends[0][0] <= now:
            state.end(heapq.heappop(state.ends)[1], now)
            if progress is not None and len(state.out.ended_us) % _TELL_EVERY == 0:
                progress(len(state.out.ended_us))
        together = []
        while coming and coming[0].job.submit_us == now:
            run = coming.popleft()
            gang = _Gang(run, sum(r.count for r in run.job.roles))
            state.gangs[run.job.job_id] = gang
            together.append(gang)
        for gang, shape in interleaved(together, state.draw):
            state.waiting.add(gang, shape)
        state.place_all(now)
        state.out.cycles += 1
    state.stop(now)
    return state.out
