"""Running an ASGI application on a socket: in the foreground until stopped, or in a thread for the length of a block.

uvicorn and its settings belong here; what is served does not.
"""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from fleet.kubeapi.kubeconfig import as_text, kubeconfig


def _server(app: Any) -> uvicorn.Server:
    # Open watches would hold the server for as long as they last, so the graceful part is short.
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1, server_header=False
    )
    return uvicorn.Server(config)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    sock.listen(512)
    return sock


def _url(sock: socket.socket) -> str:
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run(app: Any, *, host: str = "127.0.0.1", port: int = 9400, started: Callable[[str], None] | None = None) -> None:
    """Serves until SIGINT or SIGTERM; `started(url)` is called once the port is open (port 0 takes a free one).

    Call it from the main thread. `OSError` names the address when it cannot be bound.
    """
    sock = _listen(host, port)
    # uvicorn raises the signal that stopped it once more when it is done; being stopped is the normal end here.
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        if started is not None:
            started(_url(sock))
        _server(app).run(sockets=[sock])
    finally:
        sock.close()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def serving(app: Any, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serves from a thread for the length of the block; gives the base URL."""
    sock = _listen(host, port)
    server = _server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, name="fleet-serve", daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 10
        while not server.started:
            if not thread.is_alive() or time.monotonic() > deadline:
                raise RuntimeError(f"the server on {_url(sock)} did not start")
            time.sleep(0.01)
        yield _url(sock)
    finally:
        server.should_exit = True
        thread.join(timeout=5)
        sock.close()


def write_kubeconfig(path: Path, clusters: list[str], base_url: str) -> None:
    """Writes the kubeconfig of the served clusters, by rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    partial.write_text(as_text(kubeconfig(clusters, base_url)))
    partial.replace(path)
