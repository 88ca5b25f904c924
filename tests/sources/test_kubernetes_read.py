"""The snapshot reader against an API server on loopback: pages, expired positions, failures."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from sources.kubernetes import KubeList, parse_lists
from sources.kubernetes.read import Cluster, collect_clusters, connect, read_cluster
from warehouse.errors import BadInput

AT = datetime(2026, 3, 2)


def _pod(number: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"p{number}", "namespace": "ml", "uid": f"u{number}", "managedFields": [{"a": 1}]},
        "spec": {"containers": [{"name": "m", "env": [{"name": "TOKEN", "value": "secret"}]}]},
    }


class _Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(parts.query).items()}
        status, document = self.server.answer(parts.path, query)  # type: ignore[attr-defined]
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        return


class _Server(ThreadingHTTPServer):
    """Five pods, paged; `expire` positions are answered 410; `broken` paths 500; DRA on request."""

    daemon_threads = True
    expire = 0
    broken: tuple[str, ...] = ()
    dra = False
    asked: list[str]

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        self.asked.append(path)
        if path in self.broken:
            return 500, {"kind": "Status", "code": 500}
        if path == "/api/v1/pods":
            start, limit = int(query.get("continue") or 0), int(query["limit"])
            if start and self.expire:
                self.expire -= 1
                return 410, {"kind": "Status", "code": 410, "reason": "Expired"}
            end = min(5, start + limit)
            metadata = {"continue": str(end)} if end < 5 else {}
            return 200, {"kind": "PodList", "metadata": metadata, "items": [_pod(i) for i in range(start, end)]}
        if path == "/api/v1/nodes":
            return 200, {"kind": "NodeList", "metadata": {}, "items": [{"metadata": {"name": "n"}}]}
        if path == "/api/v1/namespaces":
            return 200, {"kind": "NamespaceList", "metadata": {}, "items": None}
        if self.dra and path.endswith(("resourceclaims", "resourceslices")):
            kind = "ResourceClaimList" if path.endswith("claims") else "ResourceSliceList"
            return 200, {"kind": kind, "metadata": {}, "items": []}
        return 404, {"kind": "Status", "code": 404}


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Api) as running:
        running.asked = []
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def _cluster(server: _Server) -> Cluster:
    return connect(host=f"http://127.0.0.1:{server.server_address[1]}", name="c")


def _snapshots(lists: list[KubeList]) -> dict[str, tuple[int, bool]]:
    rows = parse_lists(lists)["raw.kube_snapshots"].to_pylist()
    return {r["kind"]: (r["objects"], r["is_complete"]) for r in rows}


def test_pages_are_read_to_the_end(server: _Server) -> None:
    lists = read_cluster(_cluster(server), AT, page=2)
    assert server.asked.count("/api/v1/pods") == 3
    assert _snapshots(lists) == {"Node": (1, True), "Pod": (5, True), "Namespace": (0, True)}
    assert {x.at for x in lists} == {AT}
    assert all(b"secret" not in (x.body or b"") and b"managedFields" not in (x.body or b"") for x in lists)


def test_an_expired_position_starts_over(server: _Server) -> None:
    server.expire = 2
    assert _snapshots(read_cluster(_cluster(server), AT, page=2))["Pod"] == (5, True)
    server.expire = 99
    lists = read_cluster(_cluster(server), AT, page=2)
    assert _snapshots(lists)["Pod"] == (0, False)
    assert any("HTTP 410" in (x.error or "") for x in lists)


def test_a_failing_list_costs_no_other(server: _Server) -> None:
    server.broken = ("/api/v1/pods",)
    lists = read_cluster(_cluster(server), AT)
    assert _snapshots(lists) == {"Node": (1, True), "Pod": (0, False), "Namespace": (0, True)}


def test_claims_where_they_are_served(server: _Server) -> None:
    server.dra = True
    assert _snapshots(read_cluster(_cluster(server), AT))["ResourceClaim"] == (0, True)


def test_collects_until_stopped(server: _Server) -> None:
    found: list[KubeList] = []
    stop = threading.Event()

    def sink(lists: Any) -> None:
        found.extend(lists)
        if len(found) >= 6:
            stop.set()

    assert collect_clusters([_cluster(server)], sink, 0.05, stop) == 6
    assert len({x.at for x in found}) == 2


def test_an_unreachable_server_is_a_known_gap() -> None:
    lists = read_cluster(Cluster("c", connect(host="http://127.0.0.1:1").api, timeout_s=0.5), AT)
    assert _snapshots(lists) == {"Node": (0, False), "Pod": (0, False), "Namespace": (0, False)}


def test_a_kubeconfig_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"kubeconfig .*none, context \(current\)"):
        connect(str(tmp_path / "none"))
