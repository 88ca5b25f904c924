"""What is asked of the fleet and when: jobs, inference services and notebooks, before placement.

Sizes, durations and arrival pattern belong here; where and when the work runs is `placement.py`'s.
The distributions are fitted to the published Philly job log (Microsoft, CC-BY-4.0; September and
October 2017): sizes 1:50188 2:904 4:945 8:713 12:7 16:65 24:4 32:23, durations median 1,486 s,
mean 13,669 s, p90 10,536 s, p99 268,916 s, by hour of day and day of week. Durations below two
and a half minutes are raised to between that and four and a half, because a pod that no scrape
ever sees teaches nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fleet.model import TraceJob
from fleet.shapes import SHAPE_INDEX
from fleet.substreams import stream

DAY = 86400
SIZES = np.array([1, 2, 4, 8, 12, 16, 24, 32])
SIZE_COUNTS = np.array([50188, 904, 945, 713, 7, 65, 4, 23], dtype=np.float64)
_PERCENTS = np.array([0, 2, 5, 10, 20, 25, 30, 40, 50, 60, 70, 75, 80, 85, 90, 93, 95, 97, 98, 99, 99.5, 99.9, 100])
# Percentiles (as above) of the log's durations in seconds by size: 1, 2, 4, and 8 or more GPUs.
_DURATIONS = np.array([
    [1, 44, 53, 65, 118, 275, 554, 982, 1477, 2001, 2547, 2753, 3586, 4933, 7232, 11104, 14783, 28225, 62791,
     113707, 240186, 1042019, 3256045],
    [2, 7, 9, 11, 13, 14, 15, 17, 19, 21, 33, 331, 47399, 101645, 174399, 247787, 277824, 432899, 525072, 809358,
     1271386, 1624128, 2582803],
    [19, 57, 85, 149, 479, 700, 2017, 8828, 26950, 48527, 85250, 97025, 123906, 177805, 222597, 295975, 467000,
     625804, 907021, 1204050, 1700703, 2647676, 2750674],
    [17, 42, 156, 365, 1594, 4663, 12416, 40975, 90975, 147134, 191357, 227694, 285457, 374801, 503431, 595396,
     674631, 901092, 1117512, 2005342, 2209237, 3031008, 4628226],
], dtype=np.float64)  # fmt: skip
# Jobs of the log by hour of day and by day of the week (Monday first).
_BY_HOUR = np.array([3004, 2697, 2951, 1999, 1078, 2688, 3731, 5369, 2281, 2139, 2151, 1622, 1882, 1283, 1353, 1169,
                     2133, 1467, 1279, 1127, 2529, 1903, 2687, 2327], dtype=np.float64)  # fmt: skip
_BY_WEEKDAY = np.array([6436, 8246, 7751, 9412, 10674, 5247, 5083], dtype=np.float64)


@dataclass(slots=True)
class Demand:
    """One job, replica or notebook session that wants devices.

    `arrive` and `duration` are whole seconds, `arrive` counted from the world's origin. `pods` are the
    devices each pod of the gang wants. `follow` is what the same owner asks for next, no sooner than
    `gap` seconds after this one ended. `elastic` work is not submitted while the pool is full.
    """

    arrive: int
    duration: int
    pods: tuple[int, ...]
    tenant: int
    team: str
    shape: int
    owner_kind: str
    owner: str
    cpu_milli: int
    memory_bytes: int
    elastic: bool = False
    gap: int = 0
    follow: Demand | None = field(default=None, repr=False)

    @property
    def devices(self) -> int:
        """Devices of all pods together."""
        return sum(self.pods)


def draw_sizes(rng: np.random.Generator, n: int) -> np.ndarray:
    """GPUs per job."""
    return rng.choice(SIZES, size=n, p=SIZE_COUNTS / SIZE_COUNTS.sum())


def draw_durations(rng: np.random.Generator, sizes: np.ndarray) -> np.ndarray:
    """Whole seconds per job: inverse of the log's distribution for that size, log-linear between its percentiles."""
    u = rng.random(len(sizes)) * 100.0
    short = 150 + np.floor(rng.random(len(sizes)) * 120)
    row = np.select([sizes == 1, sizes == 2, sizes == 4], [0, 1, 2], 3)
    out = np.empty(len(sizes))
    for i, table in enumerate(_DURATIONS):
        mask = row == i
        out[mask] = np.exp(np.interp(u[mask], _PERCENTS, np.log(table)))
    return np.where(out < 150, short, np.floor(out)).astype(np.int64)


def draw_arrivals(rng: np.random.Generator, weekday0: int, days: int, per_day: float) -> np.ndarray:
    """Sorted whole seconds of a Poisson stream with the log's daily and weekly pattern; day 0 is `weekday0`."""
    hour = np.arange(days * 24)
    weekday = (weekday0 + hour // 24) % 7
    rate = per_day / 24 * (_BY_HOUR / _BY_HOUR.mean())[hour % 24] * (_BY_WEEKDAY / _BY_WEEKDAY.mean())[weekday]
    counts = rng.poisson(rate)
    start = np.repeat(hour * 3600, counts)
    return np.sort(start + np.floor(rng.random(len(start)) * 3600).astype(np.int64))


def draw_shapes(rng: np.random.Generator, sizes: np.ndarray, durations: np.ndarray) -> np.ndarray:
    """Shapes of batch work: large and long jobs train, short ones are sweeps or batches, the shortest never train."""
    u = rng.random(len(sizes))
    brief, short, large = durations < 900, durations < 3600, sizes >= 4
    weights = np.select(
        [brief[:, None], large[:, None], short[:, None]],
        [[0.0, 0.02, 0.68, 0.30], [0.78, 0.17, 0.0, 0.05], [0.22, 0.12, 0.44, 0.22]],
        [0.48, 0.17, 0.15, 0.20],
    )
    kinds = np.array([SHAPE_INDEX[s] for s in ("training", "starved", "sweep", "batch")])
    return kinds[(u[:, None] > np.cumsum(weights, axis=1)[:, :3]).sum(axis=1)]


def gang(size: int, per_node: int) -> tuple[int, ...]:
    """How a job of `size` devices splits into pods of at most one node."""
    if size <= per_node:
        return (size,)
    full, rest = divmod(size, per_node)
    return (per_node,) * full + ((rest,) if rest else ())


def service_chain(
    rng: np.random.Generator, template: Demand, horizon: int, mean_life: int, gap: tuple[int, int]
) -> Demand:
    """A replica that is replaced by the next rollout, over and over, from `template.arrive` to `horizon`."""
    first = last = template
    last.duration = int(min(max(rng.exponential(mean_life), 6 * 3600), 15 * DAY))
    end = last.arrive + last.duration
    while end < horizon:
        pause = int(rng.integers(gap[0], gap[1]))
        life = int(min(max(rng.exponential(mean_life), 6 * 3600), 15 * DAY))
        follow = _again(template, end + pause, life, pause)
        last.follow, last = follow, follow
        end = follow.arrive + follow.duration
    return first


def notebook_chain(rng: np.random.Generator, template: Demand, weekday0: int, horizon: int) -> Demand | None:
    """A person's sessions: most working days from the morning on, some forgotten over night or the weekend."""
    first: Demand | None = None
    last: Demand | None = None
    free_from = 0
    for day in range(template.arrive // DAY, -(-horizon // DAY)):
        working = (weekday0 + day) % 7 < 5
        start = day * DAY + int(rng.integers(7 * 3600, 15 * 3600))
        hours = float(rng.lognormal(np.log(7.0), 0.7))
        if rng.random() > (0.75 if working else 0.12) or start < free_from:
            continue
        session = _again(template, start, int(min(max(hours, 0.4), 80) * 3600), 120)
        if first is None or last is None:
            first = session
        else:
            last.follow = session
        last = session
        free_from = session.arrive + session.duration + 300
    return first


def _again(d: Demand, arrive: int, duration: int, gap: int) -> Demand:
    return Demand(
        arrive, duration, d.pods, d.tenant, d.team, d.shape, d.owner_kind, d.owner, d.cpu_milli, d.memory_bytes,
        d.elastic, gap,
    )  # fmt: skip


def select_jobs(jobs: tuple[TraceJob, ...], from_s: float | None, days: int) -> list[TraceJob]:
    """The jobs submitted in the `days` from `from_s` (default: the day of the first submit), by submit time."""
    start = min(j.submit_s for j in jobs) if from_s is None else from_s
    chosen = [j for j in jobs if start <= j.submit_s < start + days * DAY and j.num_gpus > 0]
    return sorted((TraceJob(j.submit_s - start, j.duration_s, j.num_gpus, j.group) for j in chosen), key=_job_order)


def _job_order(j: TraceJob) -> tuple[float, float, int, str]:
    return (j.submit_s, j.duration_s, j.num_gpus, j.group)


def trace_fleet_size(jobs: list[TraceJob], days: int) -> int:
    """GPUs that serve the jobs with waits at peaks: upper quartile of hourly demand, in nodes of 8; fits any gang."""
    steps = np.zeros(days * 24 + 1)
    for j in jobs:
        steps[int(j.submit_s // 3600)] += j.num_gpus
        end = int((j.submit_s + j.duration_s) // 3600) + 1
        if end < len(steps):
            steps[end] -= j.num_gpus
    demand = np.cumsum(steps)[:-1]
    wanted = max([float(np.percentile(demand, 75)), *(j.num_gpus for j in jobs)])
    return int(-(-wanted // 8) * 8)


def trace_shapes(seed: int, jobs: list[TraceJob]) -> np.ndarray:
    """Shapes for trace jobs, which carry none: drawn as for seeded work; many long singles serve or are notebooks."""
    rng = stream(seed, "trace/shapes")
    sizes = np.array([j.num_gpus for j in jobs])
    durations = np.array([j.duration_s for j in jobs])
    shapes = draw_shapes(rng, sizes, durations)
    u = rng.random(len(jobs))
    single_long = (sizes == 1) & (durations > 8 * 3600)
    shapes[single_long & (u < 0.25)] = SHAPE_INDEX["inference"]
    shapes[single_long & (u > 0.8)] = SHAPE_INDEX["notebook"]
    return shapes
