"""The live faces of a simulated fleet on one port: DCGM text per node, service discovery, Kubernetes API per cluster.

Composition and the scrape endpoint belong here; rendering is in `dcgm`, the API in `fleet.kubeapi`. What is served is
always simulated, and says so at `/`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import pyarrow as pa
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from exporters.dcgm import CONTENT_TYPE, render_rows
from fleet.clock import Clock
from fleet.kubeapi.app import SIMULATED_AT, cluster_api
from fleet.kubeapi.kubeconfig import as_text, kubeconfig
from fleet.kubeapi.reads import WatchTiming
from fleet.kubeapi.source import KubeWorld
from fleet.model import Node, ScrapeOutcome
from warehouse.errors import BadInput

_LOOPBACK = ("127.0.0.1", "::1", "testclient")


class LiveWorld(KubeWorld, Protocol):
    """What the live faces need of a world; `fleet.world.World` has it, tests hand in a small one."""

    @property
    def nodes(self) -> Sequence[Node]:
        """Every node of every cluster."""

    def sample_rows(self, times: Sequence[datetime], nodes: Iterable[tuple[str, str]] | None = None) -> pa.Table:
        """Rows of raw.dcgm_samples at those instants."""

    def scrape_outcome(self, cluster: str, node: str, at: datetime) -> ScrapeOutcome:
        """What a scrape meets at that instant."""


class _Faces:
    """Handlers over one world and clock."""

    def __init__(self, world: LiveWorld, clock: Clock, *, pod_labels: bool, slow_s: float) -> None:
        self._world, self._clock = world, clock
        self._pod_labels, self._slow_s = pod_labels, slow_s
        self._nodes = {(node.cluster, node.name): node for node in world.nodes}
        self.clusters = sorted({node.cluster for node in world.nodes})
        self._lock = threading.Lock()

    def _find(self, request: Request) -> Node | str:
        name, cluster = request.path_params["node"], request.path_params.get("cluster")
        clusters = [cluster] if cluster else [c for c, node in self._nodes if node == name]
        found = [self._nodes[c, name] for c in clusters if (c, name) in self._nodes]
        if not found:
            return f"no node {name!r}" + (f" in cluster {cluster!r}" if cluster else "")
        if len(found) > 1:
            return f"node {name!r} is in several clusters: use /clusters/<cluster>/nodes/{name}/metrics"
        if found[0].target is None:
            return f"node {name!r} has no DCGM exporter ({found[0].accelerator})"
        return found[0]

    async def metrics(self, request: Request) -> Response:
        """One scrape of one node's exporter, with the faults that are on."""
        node = self._find(request)
        if isinstance(node, str):
            return PlainTextResponse(node + "\n", 404)
        at = self._clock.now()
        outcome = self._world.scrape_outcome(node.cluster, node.name, at)
        headers = {SIMULATED_AT: _iso(at)}
        if outcome == "timeout":
            await asyncio.sleep(self._slow_s)
        if outcome in ("down", "timeout"):
            _hang_up(request)
            return PlainTextResponse("exporter down (simulated fault)\n", 503, headers)
        if outcome == "empty":
            return Response(b"", 200, headers, CONTENT_TYPE)
        try:
            body, at = await run_in_threadpool(self._scrape, node, at)
        except BadInput as error:
            return PlainTextResponse(f"{error}; GET or POST /clock\n", 503, headers)
        headers[SIMULATED_AT] = _iso(at)
        return Response(body, 200, headers, CONTENT_TYPE)

    def _scrape(self, node: Node, at: datetime) -> tuple[bytes, datetime]:
        # One at a time: the world keeps caches, and a scrape is milliseconds.
        with self._lock:
            rows = self._world.sample_rows([at], [(node.cluster, node.name)])
        if rows.num_rows:
            at = rows.column("sampled_at")[0].as_py()  # a node whose clock is skewed stamps its own time
        return render_rows(rows, pod_labels=self._pod_labels), at

    async def targets(self, request: Request) -> Response:
        """Prometheus http_sd: one target group per exporter; `?cluster=` restricts it."""
        wanted = request.query_params.get("cluster")
        return JSONResponse(
            [
                {
                    "targets": [request.url.netloc],
                    "labels": {
                        "__metrics_path__": f"/clusters/{node.cluster}/nodes/{node.name}/metrics",
                        "instance": node.target,
                        "node": node.name,
                        "cluster": node.cluster,
                    },
                }
                for node in self._nodes.values()
                if node.target is not None and wanted in (None, node.cluster)
            ]
        )

    async def kubeconfig(self, request: Request) -> Response:
        """The kubeconfig of all clusters under the address the request came to."""
        text = as_text(kubeconfig(self.clusters, str(request.base_url)))
        return Response(text, media_type="application/yaml")

    async def clock(self, request: Request) -> Response:
        """GET tells the clock; POST `{"at", "advance_s", "speed"}` sets it (loopback only)."""
        if request.method == "POST":
            if request.client is None or request.client.host not in _LOOPBACK:
                return PlainTextResponse("the clock is set from loopback only\n", 403)
            try:
                wanted = await request.json()
                at = _read_instant(wanted["at"]) if wanted.get("at") else None
                speed = None if wanted.get("speed") is None else float(wanted["speed"])
                self._clock.set(at, advance_s=float(wanted.get("advance_s", 0.0)), speed=speed)
            except (ValueError, TypeError, AttributeError) as error:
                return PlainTextResponse(f"clock: {error}\n", 400)
        return JSONResponse({"now": _iso(self._clock.now()), "speed": self._clock.speed, "simulated": True})

    async def index(self, request: Request) -> Response:
        """What is served here, for people."""
        base = str(request.base_url).rstrip("/")
        lines = [
            "Strandline simulated fleet: everything served here is simulated.",
            f"simulated now   {_iso(self._clock.now())}  (speed {self._clock.speed:g}; GET or POST {base}/clock)",
            f"exporters       {base}/clusters/<cluster>/nodes/<node>/metrics",
            f"discovery       {base}/sd/targets",
            f"kubeconfig      {base}/kubeconfig",
            *(f"Kubernetes API  {base}/clusters/{cluster}" for cluster in self.clusters),
        ]
        return PlainTextResponse("\n".join(lines) + "\n")


def _iso(at: datetime) -> str:
    return at.isoformat() + "Z"


def _read_instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at


def _hang_up(request: Request) -> None:
    """Drops the connection, as a dead exporter would; where the server's transport is out of reach, nothing happens.

    ASGI has no word for this. uvicorn's `receive` is a method of the cycle that owns the transport.
    """
    transport: Any = getattr(getattr(request.receive, "__self__", None), "transport", None)
    if transport is not None and hasattr(transport, "abort"):
        transport.abort()


def build_app(
    world: LiveWorld,
    clock: Clock,
    *,
    pod_labels: bool = True,
    slow_s: float = 15.0,
    timing: WatchTiming | None = None,
    log_size: int = 50_000,
) -> Starlette:
    """All faces of the world at the clock's instant, as one ASGI application.

    `pod_labels` is the exporters' Kubernetes mapping, `slow_s` how long a slow scrape is left waiting before it is hung
    up (more than the usual 10 s timeout), `timing` the watch's ticks and bookmarks, `log_size` how many changes a watch
    can go back.
    """
    faces = _Faces(world, clock, pod_labels=pod_labels, slow_s=slow_s)
    apis = {cluster: cluster_api(world, cluster, clock, timing, log_size=log_size) for cluster in faces.clusters}

    async def compact(request: Request) -> Response:
        """Forgets watch log and list snapshots, as etcd's compaction does (loopback only)."""
        if request.client is None or request.client.host not in _LOOPBACK:
            return PlainTextResponse("compaction is asked for from loopback only\n", 403)
        for api in apis.values():
            api.store.compact()
        return JSONResponse({"compacted": faces.clusters})

    return Starlette(
        routes=[
            Route("/", faces.index),
            Route("/clock", faces.clock, methods=["GET", "POST"]),
            Route("/compact", compact, methods=["POST"]),
            Route("/kubeconfig", faces.kubeconfig),
            Route("/sd/targets", faces.targets),
            Route("/nodes/{node}/metrics", faces.metrics),
            Route("/clusters/{cluster}/nodes/{node}/metrics", faces.metrics),
            *(Mount(f"/clusters/{cluster}", api.app) for cluster, api in apis.items()),
        ]
    )
