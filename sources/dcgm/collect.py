"""The scrape client: exporters read once, or again and again until stopped.

Due times come from the monotonic clock, time stamps from the wall clock at the start of a request.
Every attempt gives a `Scrape`, a failed one too; what becomes of it is the sink's business.
"""

from __future__ import annotations

import hashlib
import heapq
import queue
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import urllib3

from sources.dcgm.scrape import Scrape
from sources.dcgm.targets import Target

Sink = Callable[[Sequence[Scrape]], object]
_ACCEPT = "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1"
_FLUSH_S = 1.0


class Client:
    """Reads one exporter at a time per thread; safe to share. Connections are kept.

    `timeout_s` bounds a whole attempt, `max_bytes` the unpacked body. TLS is verified against the
    system's authorities, or `ca_file`, unless `verify` is false. `headers` are added to each request.
    """

    def __init__(
        self, timeout_s: float = 10.0, max_bytes: int = 64 << 20, *, verify: bool = True, ca_file: str | None = None,
        headers: dict[str, str] | None = None, connections: int = 64,
    ):  # fmt: skip
        self.timeout_s, self.max_bytes = timeout_s, max_bytes
        self._headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip", "User-Agent": "strandline", **(headers or {})}
        self._pool = urllib3.PoolManager(
            num_pools=1024, maxsize=4, block=False, ca_certs=ca_file, retries=False,
            cert_reqs="CERT_REQUIRED" if verify else "CERT_NONE",
        )  # fmt: skip
        self.connections = connections

    def scrape(self, target: Target) -> Scrape:
        """One attempt. Never raises for what the other side does; the error text says what went wrong."""
        at, start = datetime.now(UTC).replace(tzinfo=None), time.monotonic()
        status: int | None = None
        body: bytes | None = None
        error: str | None = None
        try:
            status, body = self._get(target.url, start + self.timeout_s)
            if status != 200:
                body, error = None, f"HTTP {status}"
        except _Abandoned as reason:
            error, status = str(reason), None
        except urllib3.exceptions.NewConnectionError as reason:  # which urllib3 counts among the timeouts
            error = f"no connection: {str(reason).rsplit(': ', 1)[-1]}"[:500]
        except urllib3.exceptions.TimeoutError:
            error = f"no answer within {self.timeout_s:g} s"
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as reason:
            error = f"{type(reason).__name__}: {reason}"[:500]
        return Scrape(target.cluster, target.instance, target.node, at, body, status, time.monotonic() - start, error,
                      None if body is None else hashlib.sha256(body).hexdigest())  # fmt: skip

    def _get(self, url: str, deadline: float) -> tuple[int, bytes]:
        timeout = urllib3.Timeout(connect=self.timeout_s, read=self.timeout_s, total=self.timeout_s)
        answer = self._pool.request("GET", url, headers=self._headers, timeout=timeout, preload_content=False,
                                    redirect=False)  # fmt: skip
        parts, size = [], 0
        try:
            while part := answer.read1(1 << 16, decode_content=True):
                size += len(part)
                if size > self.max_bytes:
                    raise _Abandoned(f"body larger than {self.max_bytes} bytes")
                if time.monotonic() > deadline:  # a server that drips never trips the socket's timeout
                    raise _Abandoned(f"no end of the body within {self.timeout_s:g} s")
                parts.append(part)
        except BaseException:
            answer.close()
            raise
        answer.release_conn()
        return answer.status, b"".join(parts)


class _Abandoned(Exception):
    """The attempt was given up; the message says why."""


def scrape_once(targets: Sequence[Target], client: Client) -> list[Scrape]:
    """One attempt at every target, at the same time as far as connections allow, in the targets' order."""
    with ThreadPoolExecutor(max(1, min(client.connections, len(targets)))) as pool:
        return list(pool.map(client.scrape, targets))


def collect(
    targets: Callable[[], Sequence[Target]], sink: Sink, every_s: float, stop: threading.Event, client: Client,
    *, refresh_s: float = 60.0, spread_s: float | None = None,
) -> int:  # fmt: skip
    """Scrape every target each `every_s` seconds until `stop`; returns the number of attempts.

    `targets` is asked again each `refresh_s`; when it fails the last answer stays (the first must work).
    Targets start spread over `spread_s` (default: the interval, 10 s at most), each always at its own
    moment of the interval. One that is still being read when due again is left out that time. The sink
    is called from this thread, about once a second, and a last time before the return.
    """
    return _Collector(targets, sink, every_s, stop, client, min(every_s, 10.0) if spread_s is None else spread_s).run(
        refresh_s
    )


class _Collector:
    def __init__(  # noqa: PLR0917
        self, targets: Callable[[], Sequence[Target]], sink: Sink, every_s: float, stop: threading.Event,
        client: Client, spread_s: float,
    ):  # fmt: skip
        self.targets, self.sink, self.every_s, self.stop, self.client = targets, sink, every_s, stop, client
        self.spread_s = spread_s
        self.done: queue.SimpleQueue[tuple[Target, Scrape]] = queue.SimpleQueue()
        self.due: list[tuple[float, str, Target]] = []
        self.active: set[Target] = set()
        self.running: set[Target] = set()
        self.pending: list[Scrape] = []

    def run(self, refresh_s: float) -> int:
        self._refresh(self.targets(), time.monotonic())
        refresh_at = time.monotonic() + refresh_s
        attempts = 0
        with ThreadPoolExecutor(max(1, self.client.connections)) as pool:
            flush_at = time.monotonic() + _FLUSH_S
            while not self.stop.is_set():
                self._gather()
                attempts += self._start_due(pool)
                now = time.monotonic()
                if now >= flush_at:
                    self._flush()
                    flush_at = now + _FLUSH_S
                if now >= refresh_at:
                    refresh_at = now + refresh_s
                    self._refresh_or_keep(now)
                next_due = self.due[0][0] if self.due else now + _FLUSH_S
                self.stop.wait(min(max(0.001, next_due - now), max(0.001, flush_at - now)))
        self._gather()  # the pool has waited for what was under way
        self._flush()
        return attempts

    def _refresh_or_keep(self, now: float) -> None:
        try:
            self._refresh(self.targets(), now)
        except ValueError:
            return  # discovery is away or half-written; the targets known stay

    def _refresh(self, targets: Sequence[Target], now: float) -> None:
        wanted = set(targets)
        for target in wanted - self.active:
            offset = zlib.crc32(f"{target.cluster}/{target.instance}".encode()) / 2**32
            heapq.heappush(self.due, (now + offset * self.spread_s, target.url, target))
        self.active = wanted

    def _start_due(self, pool: ThreadPoolExecutor) -> int:
        started = 0
        now = time.monotonic()
        while self.due and self.due[0][0] <= now:
            at, _, target = heapq.heappop(self.due)
            if target not in self.active:
                continue
            missed = int((now - at) // self.every_s)
            heapq.heappush(self.due, (at + (missed + 1) * self.every_s, target.url, target))
            if target not in self.running:
                self.running.add(target)
                pool.submit(self._attempt, target)
                started += 1
        return started

    def _attempt(self, target: Target) -> None:
        self.done.put((target, self.client.scrape(target)))

    def _gather(self) -> None:
        while not self.done.empty():
            target, scrape = self.done.get()
            self.running.discard(target)
            self.pending.append(scrape)

    def _flush(self) -> None:
        if self.pending:
            self.sink(self.pending)
            self.pending = []
