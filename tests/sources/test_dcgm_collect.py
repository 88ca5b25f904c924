"""The scrape client and its targets, against exporters on loopback that behave, fail, stall and drip."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

import pytest

from sources.dcgm.collect import Client, collect, scrape_once
from sources.dcgm.scrape import Scrape
from sources.dcgm.targets import Target, targets_of_discovery, targets_of_urls
from warehouse.errors import BadInput

BODY = b'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-a"} 40\n'


class _Exporter(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        way = self.path.strip("/")
        body = {"empty": b"", "large": b"#" * 100_000, "sd": self.server.discovery}.get(way, BODY)  # type: ignore[attr-defined]
        if way == "gzip":
            body = gzip.compress(BODY)
        self.send_response({"broken": 500, "moved": 302}.get(way, 200))
        if way == "moved":
            self.send_header("Location", "/metrics")
        if way == "gzip":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            if way == "stall":
                time.sleep(1.5)
            if way == "drip":
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(0.1)
                return
            self.wfile.write(body)
        except OSError:
            return  # the client gave up, as it should

    def log_message(self, *args: object) -> None:
        return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    discovery = b"[]"


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Exporter) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def _target(server: _Server, way: str = "metrics") -> Target:
    host, port = server.server_address[:2]
    return Target(f"http://{host!s}:{port}/{way}", "c", way, "n")


@pytest.mark.parametrize(
    ("way", "status", "body", "error"),
    [
        ("metrics", 200, BODY, None),
        ("gzip", 200, BODY, None),
        ("empty", 200, b"", None),
        ("broken", 500, None, "HTTP 500"),
        ("moved", 302, None, "HTTP 302"),
        ("large", None, None, "body larger than 5000 bytes"),
        ("stall", None, None, "no answer within 0.5 s"),
        ("drip", None, None, "no end of the body within 0.5 s"),
    ],
)
def test_one_attempt(server: _Server, way: str, status: int | None, body: bytes | None, error: str | None) -> None:
    scrape = Client(timeout_s=0.5, max_bytes=5000).scrape(_target(server, way))
    assert (scrape.http_status, scrape.body, scrape.error) == (status, body, error)
    assert scrape.is_up == (body is not None)
    assert scrape.duration_s is not None
    assert scrape.duration_s < 1.4
    assert abs((datetime.now(UTC).replace(tzinfo=None) - scrape.at).total_seconds()) < 5


def test_nobody_listens() -> None:
    scrape = Client(timeout_s=0.5).scrape(Target("http://127.0.0.1:1/metrics", "c", "t"))
    assert (scrape.is_up, scrape.http_status, scrape.body) == (False, None, None)
    assert "refused" in (scrape.error or "")


def test_all_at_once(server: _Server) -> None:
    targets = [_target(server, w) for w in ("stall", "metrics", "stall", "broken")]
    start = time.monotonic()
    scrapes = scrape_once(targets, Client(timeout_s=0.6))
    assert time.monotonic() - start < 1.2
    assert [s.target for s in scrapes] == [t.instance for t in targets]


def test_collects_until_stopped_and_a_stalling_target_delays_no_other(server: _Server) -> None:
    found: list[Scrape] = []
    stop = threading.Event()
    threading.Timer(1.6, stop.set).start()
    targets = [_target(server), _target(server, "stall")]
    attempts = collect(lambda: targets, found.extend, 0.2, stop, Client(timeout_s=0.7), spread_s=0.0)
    assert attempts == len(found)
    good = [s for s in found if s.target == "metrics"]
    assert 5 <= len(good) <= 9
    assert all(s.is_up for s in good)
    gaps = [(b.at - a.at).total_seconds() for a, b in pairwise(good)]
    assert sorted(gaps)[len(gaps) // 2] == pytest.approx(0.2, abs=0.1)
    assert 1 <= sum(s.target == "stall" for s in found) <= 3


def test_targets_may_change_and_a_failing_discovery_keeps_the_last(server: _Server) -> None:
    answers: list[object] = [[_target(server)], BadInput("away"), [_target(server, "empty")]]

    def discover() -> list[Target]:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    found: list[Scrape] = []
    stop = threading.Event()
    threading.Timer(1.5, stop.set).start()
    collect(discover, found.extend, 0.2, stop, Client(timeout_s=0.5), refresh_s=0.4, spread_s=0.0)
    assert {s.target for s in found} == {"metrics", "empty"}
    assert found[-1].target == "empty"


def test_urls() -> None:
    assert targets_of_urls(["h:9400", "https://h/x"], "c", "n") == [
        Target("http://h:9400/metrics", "c", "h:9400", "n"),
        Target("https://h/x", "c", "h", "n"),
    ]
    for bad in ("ftp://h/x", "http://", "http://h:port/", "http://a b/"):
        with pytest.raises(BadInput, match="target"):
            targets_of_urls([bad])


GROUPS = [
    {"targets": ["a:1"], "labels": {"node": "na", "cluster": "k", "instance": "ia", "__scheme__": "https",
                                    "__metrics_path__": "/m"}},
    {"targets": ["b:1", "c:1"], "labels": {"instance": "both"}},
    {"targets": ["b:1"]},
]  # fmt: skip


def test_discovery_by_file_and_by_http(tmp_path: Path, server: _Server) -> None:
    path = tmp_path / "sd.json"
    path.write_text(json.dumps(GROUPS))
    server.discovery = path.read_bytes()
    for source in (str(path), _target(server, "sd").url):
        assert targets_of_discovery(source, "c") == [
            Target("https://a:1/m", "k", "ia", "na"),
            Target("http://b:1/metrics", "c", "b:1"),
            Target("http://c:1/metrics", "c", "c:1"),
        ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not JSON at line 1"),
        ("{}", "a JSON list of target groups"),
        ('[{"targets": "a:1"}]', "group 0: targets must be a list"),
        ('[{"targets": []}, {"targets": ["a:1"], "labels": {"node": 1}}]', "group 1: labels must map"),
        ('[{"targets": ["a b"]}]', "group 0: target"),
    ],
)
def test_discovery_that_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sd.json").write_text(text)
    with pytest.raises(BadInput, match=r"sd\.json: " + message):
        targets_of_discovery(str(tmp_path / "sd.json"))
    with pytest.raises(BadInput, match="No such file"):
        targets_of_discovery(str(tmp_path / "none.json"))
