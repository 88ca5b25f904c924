"""Pictures of the documentation, taken from a built demo lake with headless Chromium over its DevTools protocol.

Belongs here: which pages are shown, how wide, and when they are ready. Not here: what is on them. Needs a `chromium`
on the path (or in CHROMIUM); websockets comes with uvicorn. Run it by `make screenshots`:

    python docs/screenshots.py --data data [--only report,assets]
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

IMAGES = Path(__file__).resolve().parent / "images"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
)  # fmt: skip
LEDGER = "mart/gpu_ledger_hourly"


class Page:
    """One tab: load, wait for words on the page, shoot."""

    def __init__(self, socket_: ClientConnection):
        self._socket, self._id = socket_, 0

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of the DevTools protocol and its result."""
        self._id += 1
        self._socket.send(json.dumps({"id": self._id, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=60))
            if message.get("id") == self._id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return found["result"].get("value")

    def open(
        self, url: str, words: tuple[str, ...], width: int, height: int, settle_s: float, *, scale: float = 1
    ) -> None:
        """Load `url` in a window of that size and wait until all `words` are on it and its layout has come to rest."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )
        self.call("Page.navigate", url=url)
        self.wait(words)
        time.sleep(settle_s)

    def wait(self, words: tuple[str, ...], timeout_s: float = 90) -> None:
        """Until all `words` stand on the page; raises with what stands there instead."""
        until = time.monotonic() + timeout_s
        while True:
            text = self.evaluate("document.body ? document.body.innerText : ''") or ""
            missing = [w for w in words if w not in text]
            if not missing:
                return
            if time.monotonic() > until:
                raise TimeoutError(f"{missing} never appeared; the page says: {text[:2000]}")
            time.sleep(0.5)

    def click(self, selector: str, text: str) -> None:
        """Press the mouse in the middle of the first element of `selector` that says `text`."""
        box = self.evaluate(
            f"(() => {{ const e = [...document.querySelectorAll({json.dumps(selector)})].find(e => (e.innerText || '')"
            f".trim() === {json.dumps(text)}); if (!e) return null; const r = e.getBoundingClientRect(); "
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        if box is None:
            raise LookupError(f"no {selector} says {text!r}")
        self.press(*box)

    def press(self, x: float, y: float) -> None:
        """A click at a point of the window."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def shoot(self, name: str) -> None:
        """Write the window as docs/images/NAME.png."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        IMAGES.mkdir(parents=True, exist_ok=True)
        path = IMAGES / f"{name}.png"
        path.write_bytes(data)
        print(f"{path} {len(data) // 1024} kB")


@contextmanager
def browser() -> Iterator[Page]:
    """Headless Chromium with a profile of its own; stopped at the end."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("no chromium on the path; install it or set CHROMIUM")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port_file = Path(profile) / "DevToolsActivePort"
            port = _wait_for(lambda: port_file.read_text().split()[0] if port_file.is_file() else None)
            tabs = json.loads(_get(f"http://127.0.0.1:{port}/json/list"))
            url = next(t["webSocketDebuggerUrl"] for t in tabs if t["type"] == "page")
            with connect(url, max_size=None) as socket_:
                yield Page(socket_)
        finally:
            process.terminate()
            process.wait(20)


@contextmanager
def dagster_ui(data: Path) -> Iterator[str]:
    """`strandline ui` over the lake on a free port; yields its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "pipelines.cli", "ui", "--data", str(data), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(lambda: _get(f"{url}/server_info"), 180)
        yield url
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _get(url: str, body: dict[str, Any] | None = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


def _wait_for(probe: Any, timeout_s: float = 60) -> Any:
    until = time.monotonic() + timeout_s
    while True:
        try:
            if found := probe():
                return found
        except OSError:
            pass
        if time.monotonic() > until:
            raise TimeoutError("did not start in time")
        time.sleep(0.3)


def newest_run(url: str) -> str:
    """Id of the newest run that succeeded, by GraphQL."""
    query = "{ runsOrError(filter: {statuses: [SUCCESS]}, limit: 1) { ... on Runs { results { runId } } } }"
    results = json.loads(_get(f"{url}/graphql", {"query": query}))["data"]["runsOrError"]["results"]
    if not results:
        sys.exit("the lake has no finished run; take the pictures of a lake that `strandline demo` built")
    return str(results[0]["runId"])


def shoot_reports(page: Page, data: Path) -> None:
    """The stranding and the cost report: the upper part of each, and all of it."""
    paths = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "report", "--data", str(data)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    for path, name, top in zip(paths, ("report", "cost"), (790, 760), strict=True):
        page.open(Path(path).resolve().as_uri(), ("SIMULATED", "What the words mean"), 1136, top, 0.5)
        page.shoot(f"{name}-top")
        height = int(page.evaluate("document.documentElement.scrollHeight"))
        page.open(Path(path).resolve().as_uri(), ("What the words mean",), 1136, height, 0.5, scale=0.75)
        page.shoot(name)


def shoot_dagster(page: Page, url: str, names: set[str]) -> None:
    """Dagster's pages of the lake."""
    if "assets" in names:
        expanded = "?expanded=global%40global%3Amart"
        # Dagster draws only what lies in the window: one high enough for the whole group.
        page.open(f"{url}/asset-groups{expanded}", ("gpu_ledger_hourly", "job_efficiency"), 2100, 2250, 6, scale=0.62)
        page.shoot("asset-graph")
    if "lineage" in names:
        page.open(f"{url}/assets/{LEDGER}?view=lineage", ("gpu_ledger_hourly", "gpu_segments"), 1440, 760, 6)
        page.shoot("ledger-lineage")
    if "money" in names:
        page.open(f"{url}/assets/mart/cost_hourly?view=lineage", ("cost_hourly", "cost_shares"), 1440, 760, 6)
        page.shoot("cost-lineage")
    if "checks" in names:
        page.open(f"{url}/assets/{LEDGER}?view=checks", ("ledger_proof",), 1440, 760, 3)
        page.click("div", "ledger_proof")
        page.wait(("The ledger's proof",))
        time.sleep(2)
        page.shoot("ledger-checks")
    if "overview" in names:
        page.open(f"{url}/assets/{LEDGER}?view=overview", ("The GPU-second ledger", "pci_bus_id"), 1440, 900, 3)
        page.shoot("ledger-overview")
    if "run" in names:
        page.open(f"{url}/runs/{newest_run(url)}", ("Success", "Re-execute all"), 1440, 900, 5)
        # The button left of it gives the steps more room than the events.
        left, middle = page.evaluate(
            "(() => { const r = [...document.querySelectorAll('button')].find(e => e.innerText.startsWith("
            "'Re-execute all')).getBoundingClientRect(); return [r.x, r.y + r.height / 2]; })()"
        )
        page.press(left - 28, middle)
        time.sleep(2)
        page.shoot("run")


def main() -> None:
    """Take the pictures that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"), help="a lake that `strandline demo` built")
    parser.add_argument("--only", default="report,assets,lineage,money,checks,overview,run")
    given = parser.parse_args()
    names = set(given.only.split(","))
    with browser() as page:
        if "report" in names:
            shoot_reports(page, given.data)
        if names - {"report"}:
            with dagster_ui(given.data) as url:
                shoot_dagster(page, url, names)


if __name__ == "__main__":
    main()
