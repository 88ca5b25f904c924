"""The simulated fleet: one clock, and every question that can be asked of it at an instant.

The World ties topology, work, activity and faults together; each of them is made in its own
module. It serves nothing over HTTP and writes no table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
import pyarrow as pa

from fleet import faults as faulting
from fleet.boards import NodeTrouble
from fleet.demand import full_share, seeded_demand, trace_demand
from fleet.history import History, fault_rows, midnights, reference_rows
from fleet.holdings import Holdings
from fleet.lists import Lists
from fleet.model import Fault, FleetSpec, Namespace, Node, NodeState, Pod, PodState, ScrapeOutcome
from fleet.past import history_rows
from fleet.placement import Placed, Pool, Room, make_pools, place
from fleet.podmaker import make_pods
from fleet.samples import CONTRACT, Samples
from fleet.states import node_state, pod_state
from fleet.telemetry import Telemetry
from fleet.topology import (
    SITES,
    TEAM_RULES,
    TENANTS,
    Tenant,
    build_namespaces,
    build_nodes,
    team_map,
    trace_site,
    trace_tenants,
)
from fleet.truth import Truth
from fleet.workload import DAY, Demand, select_jobs, trace_fleet_size
from warehouse.errors import BadInput


@dataclass(frozen=True)
class _Placement:
    """Who got which devices when, in seconds from `origin`."""

    origin: datetime
    tenants: tuple[Tenant, ...]
    pools: list[Pool]
    placed: list[list[Placed]]


class World:
    """A fleet and all the work on it over `[start_at - history, end_at)`.

    `nodes`, `namespaces`, `pods` (those that are listed at any time in the telemetry window, in a fixed
    order) and `faults` are tuples of records. Objects are identified by cluster and name: node names
    repeat between clusters. Telemetry covers `[start_at, end_at)`.
    """

    spec: FleetSpec
    nodes: tuple[Node, ...]
    namespaces: tuple[Namespace, ...]
    pods: tuple[Pod, ...]
    faults: tuple[Fault, ...]
    start_at: datetime
    end_at: datetime

    def __init__(
        self, spec: FleetSpec, nodes: tuple[Node, ...], namespaces: tuple[Namespace, ...], pods: tuple[Pod, ...],
        faults: tuple[Fault, ...], holdings: Holdings, placement: _Placement,
    ) -> None:  # fmt: skip
        self.spec, self.nodes, self.namespaces, self.pods, self.faults = spec, nodes, namespaces, pods, faults
        self.end_at = spec.end_at
        self.start_at = spec.end_at - timedelta(days=spec.days)
        self.holdings = holdings
        self._placement = placement
        self._index = {(n.cluster, n.name): i for i, n in enumerate(nodes)}
        self._faults_of: dict[tuple[str, str], list[Fault]] = {}
        for f in faults:
            self._faults_of.setdefault((f.cluster, f.node), []).append(f)
        telemetry = Telemetry(spec.seed, holdings, spec.collect_s, self._troubles())
        self.samples = Samples(telemetry, nodes, pods, faults, self.start_at, spec.kube_labels)

    @classmethod
    def build(cls, spec: FleetSpec) -> World:
        """Generates the whole world from `spec`, the same for the same spec; `BadInput` on one that makes no sense."""
        _check(spec)
        start_at = spec.end_at - timedelta(days=spec.days)
        if spec.jobs is None:
            nodes, placement, waiting, from_s, horizon_s = _seeded(spec, start_at)
        else:
            nodes, placement, waiting, from_s, horizon_s = _traced(spec, start_at)
        made = make_pods(
            spec.seed, placement.origin, nodes, placement.tenants, placement.pools, placement.placed, waiting, from_s,
            horizon_s, spec.finished_ttl_s,
        )  # fmt: skip
        faults, pods = faulting.plan(
            spec.seed, spec.faults, nodes, made.pods, start_at, spec.end_at, spec.finished_ttl_s
        )
        holdings = Holdings(spec.seed, nodes, pods, made.job, made.job_shape, start_at, spec.end_at)
        spaces = build_namespaces(placement.tenants, start_at - timedelta(days=spec.history_days + 30))
        return cls(spec, nodes, spaces, tuple(pods), faults, holdings, placement)

    def _troubles(self) -> list[NodeTrouble]:
        out = [NodeTrouble() for _ in self.nodes]
        for (node, device), spans in self.holdings.masks(self.faults).items():
            out[node].masks[device] = spans
        for f in self.faults:
            node = self._index[(f.cluster, f.node)]
            a, b = ((at - self.start_at).total_seconds() for at in (f.started_at, f.finished_at))
            if f.kind == "node_reboot":
                out[node].reboots.append(b)
            if f.kind in ("failing_gpu", "gpu_lost"):
                d = next(d.gpu_index for d in self.nodes[node].devices if d.pci_bus_id == f.pci_bus_id)
                (out[node].failing if f.kind == "failing_gpu" else out[node].lost).setdefault(d, []).append((a, b))
        for trouble in out:
            trouble.reboots.sort()
        return out

    def node_index(self, cluster: str, node: str) -> int:
        """Position of a node in `nodes`; `BadInput` names one that does not exist."""
        try:
            return self._index[(cluster, node)]
        except KeyError:
            raise BadInput(f"the fleet has no node {node!r} in cluster {cluster!r}") from None

    def sample_rows(self, times: Sequence[datetime], nodes: Iterable[tuple[str, str]] | None = None) -> pa.Table:
        """Rows of raw.dcgm_samples that scrapes at `times` give, for nodes (cluster, name) or all with an exporter.

        Values are exactly what parsing the exporter's text and multiplying by the factor of
        `fleet.exported` gives; what a card does not report is null. Scrapes that fail or come back
        empty (faults) give no rows. sampled_at is the instant given, plus the skew where a
        clock_skew fault is on.
        """
        for at in times:
            if not self.start_at <= at <= self.end_at:
                raise BadInput(
                    f"{at.isoformat()} is outside of the fleet's telemetry ({self.start_at} to {self.end_at})"
                )
        t = np.array([self.samples.seconds(at) for at in times])
        chosen = range(len(self.nodes)) if nodes is None else [self.node_index(c, n) for c, n in nodes]
        tables = [self.samples.rows(i, t) for i in chosen if self.nodes[i].target is not None]
        return pa.concat_tables([CONTRACT.arrow_schema.empty_table(), *tables])

    def scrape_outcome(self, cluster: str, node: str, at: datetime) -> ScrapeOutcome:
        """What a scrape of the node's exporter at `at` meets: ok, down (refused), empty (200, no body), timeout."""
        return self.samples.outcome(self.node_index(cluster, node), np.array([self.samples.seconds(at)]))[0]

    def nodes_at(self, at: datetime, cluster: str | None = None) -> tuple[NodeState, ...]:
        """Nodes as the API server shows them at `at`, in order of cluster and name."""
        chosen = [n for n in self.nodes if cluster is None or n.cluster == cluster]
        chosen.sort(key=lambda n: (n.cluster, n.name))
        return tuple(node_state(n, self._faults_of.get((n.cluster, n.name), ()), at) for n in chosen)

    def pods_at(self, at: datetime, cluster: str | None = None) -> tuple[PodState, ...]:
        """Pods as the API server lists them at `at` (pending, running, and finished ones within their TTL)."""
        us = np.int64((at - datetime(1970, 1, 1)) // timedelta(microseconds=1))
        lists = self._lists
        states = []
        for i in np.nonzero((lists.created <= us) & (us < lists.until))[0]:
            pod = lists.order[i]
            if cluster is None or pod.cluster == cluster:
                state = pod_state(pod, at)
                if state is not None:
                    states.append(state)
        return tuple(states)

    @cached_property
    def _lists(self) -> Lists:
        return Lists(self.nodes, self.namespaces, self.pods, self.faults)

    @cached_property
    def _truth(self) -> Truth:
        return Truth(self.holdings, self.faults, self.start_at)

    def raw_tables(self, start: datetime | None = None, end: datetime | None = None) -> Iterator[tuple[str, pa.Table]]:
        """The history face over `[start, end)` (default: all of it): (table name, rows) pairs, day by day.

        At most one part of a table comes for a day. raw.team_rules, raw.team_map, raw.fleet_faults,
        raw.allocation_history (its days precede the window) and raw.fleet_truth come first, each whole.
        """
        start, end = max(start or self.start_at, self.start_at), min(end or self.end_at, self.end_at)
        yield from reference_rows(TEAM_RULES, team_map(self._placement.tenants))
        yield "raw.fleet_faults", fault_rows(self.faults)
        p = self._placement
        if self.spec.jobs is None and self.spec.history_days:
            yield (
                "raw.allocation_history",
                history_rows(self.spec.seed, p.origin, self.start_at, self.nodes, p.tenants, p.pools, p.placed),
            )
        yield "raw.fleet_truth", self.truth(start, end)
        history = History(
            self.spec.seed, self.nodes, self.samples, self._lists, self.spec.interval_s, self.spec.snapshot_s,
            self.spec.days * DAY,
        )  # fmt: skip
        for lo, hi in midnights(start, end):
            yield from history.day(self.samples.seconds(lo), self.samples.seconds(hi))

    def truth(self, start: datetime, end: datetime) -> pa.Table:
        """raw.fleet_truth over the days of `[start, end)`: per pod and date what it held and truly used."""
        return self._truth.table(max(start, self.start_at), min(end, self.end_at))

    def activity_at(self, pod: int, at: Sequence[datetime]) -> np.ndarray:
        """True SM activity of `pods[pod]` on a fully used device at instants within its time: what truth integrates."""
        t = np.array([self.samples.seconds(x) for x in at])
        return self.holdings.activity.value(np.full(len(t), pod), t)


def _check(spec: FleetSpec) -> None:
    for name, low in (("days", 1), ("history_days", 0), ("interval_s", 1), ("snapshot_s", 1), ("collect_s", 1)):
        if getattr(spec, name) < low:
            raise BadInput(f"fleet: {name} is {getattr(spec, name)}; it must be at least {low}")
    if spec.finished_ttl_s < 0 or spec.finished_ttl_s > DAY:
        raise BadInput(f"fleet: finished_ttl_s is {spec.finished_ttl_s}; it must lie between 0 and {DAY}")
    if not spec.scale > 0:
        raise BadInput(f"fleet: scale is {spec.scale}; it must be above 0")
    if spec.end_at.tzinfo is not None or spec.end_at.microsecond:
        raise BadInput(f"fleet: end_at {spec.end_at.isoformat()} must be UTC without a zone, on a whole second")
    if spec.jobs is not None and not spec.jobs:
        raise BadInput("fleet: the trace has no jobs")
    for i, job in enumerate(spec.jobs or ()):
        if not (math.isfinite(job.submit_s) and math.isfinite(job.duration_s) and job.duration_s >= 0):
            raise BadInput(f"fleet: job {i} of the trace has submit {job.submit_s} s and duration {job.duration_s} s")
        if job.num_gpus < 0:
            raise BadInput(f"fleet: job {i} of the trace asks for {job.num_gpus} GPUs")
    faulting.counts(spec.faults)


def _seeded(spec: FleetSpec, start_at: datetime) -> tuple[tuple[Node, ...], _Placement, list[list[Demand]], int, int]:
    # without history, a few days still fill the fleet before telemetry begins
    before = max(spec.history_days, 10)
    origin = start_at - timedelta(days=before)
    days = before + spec.days
    nodes = build_nodes(spec.seed, SITES, spec.scale, origin)
    pools = make_pools(nodes)
    demands = seeded_demand(spec.seed, nodes, pools, TENANTS, origin.weekday(), days)
    placed, waiting = [], []
    cap = full_share(before, origin.weekday())
    for pool, wanted in zip(pools, demands, strict=True):
        done, left = place(pool, wanted, Room(nodes), days * DAY, cap)
        placed.append(done)
        waiting.append(left)
    return nodes, _Placement(origin, TENANTS, pools, placed), waiting, before * DAY, days * DAY


def _traced(spec: FleetSpec, start_at: datetime) -> tuple[tuple[Node, ...], _Placement, list[list[Demand]], int, int]:
    assert spec.jobs is not None
    jobs = select_jobs(spec.jobs, spec.jobs_from_s, spec.days)
    if not jobs:
        raise BadInput(f"fleet: no job of the trace is submitted within {spec.days} days from {spec.jobs_from_s}")
    gpus = trace_fleet_size(jobs, spec.days)
    site = trace_site(gpus // 8)
    nodes = build_nodes(spec.seed, (site,), spec.scale, start_at - timedelta(days=1))
    pools = make_pools(nodes)
    tenants = trace_tenants(site.cluster, {j.group for j in jobs})
    demands = trace_demand(spec.seed, jobs, pools[0], nodes[0], tenants)
    placed, left = place(pools[0], demands, Room(nodes), spec.days * DAY)
    return nodes, _Placement(start_at, tenants, pools, [placed]), [left], 0, spec.days * DAY
