"""The queue service as a process that a test starts and kills."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx

TOKEN = "kill-test-token-0000"
SCRIPT = Path(__file__).with_name("killed_service.py")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Killable:
    """The service as a process, started again after every kill on the same log, fleet and port."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root, self.port = folder, root, free_port()
        (folder / "tokens.csv").write_text(f"token,team,role\n{TOKEN},a,team\n")
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[str] | None = None

    def start(self, die_at: int = 0) -> None:
        command = [sys.executable, str(SCRIPT), str(self.folder), str(self.folder / "kubeconfig"), str(self.port)]
        self.process = subprocess.Popen(
            [*command, *([str(die_at)] if die_at else [])], cwd=self.root, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(self.root)},
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stdout.readline().startswith("http"), "the service did not start"

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def __enter__(self) -> Killable:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_alive():
            self.kill()

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)
