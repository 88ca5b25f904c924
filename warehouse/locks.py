"""The writer lock of a lake: one process, and in it one thread, changes tables at a time.

The lock is an flock, so the kernel releases it with its holder, however that died. Readers take no lock.
Belongs here: taking, naming and releasing it. Does not: what is done under it.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from warehouse.errors import LakeBusy

POLL_S = 0.05


class _Holder:
    """State of one lock file in this process; reentrant for the thread that holds it."""

    def __init__(self) -> None:
        self.thread_lock = threading.RLock()
        self.depth = 0
        self.fd: int | None = None


_HOLDERS: dict[Path, _Holder] = {}
_HOLDERS_GUARD = threading.Lock()


def _forget_in_child() -> None:
    # a forked child shares the parent's open file and would keep the lock alive after the parent's death
    global _HOLDERS_GUARD  # noqa: PLW0603
    for holder in _HOLDERS.values():
        if holder.fd is not None:
            os.close(holder.fd)
    _HOLDERS.clear()
    _HOLDERS_GUARD = threading.Lock()


os.register_at_fork(after_in_child=_forget_in_child)


def _describe_holder(path: Path) -> str:
    try:
        held = json.loads(path.read_text() or "{}")
    except (OSError, ValueError):
        held = {}
    if not held:
        return "another process"
    return f"process {held.get('pid')} on {held.get('host')} since {held.get('since')}"


def _flock(path: Path, deadline: float) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise LakeBusy(f"{path}: the lake is being written by {_describe_holder(path)}") from None
                time.sleep(POLL_S)
        note = {"pid": os.getpid(), "host": socket.gethostname(), "since": datetime.now(UTC).isoformat()}
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(note).encode(), 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


@contextmanager
def exclusive(path: Path, timeout_s: float) -> Iterator[None]:
    """Hold the lock file `path` for the block; waits `timeout_s`, then raises `LakeBusy` naming the holder.

    Reentrant within a thread. Other threads of the process wait like other processes.
    """
    path = path.resolve()
    with _HOLDERS_GUARD:
        holder = _HOLDERS.setdefault(path, _Holder())
    deadline = time.monotonic() + timeout_s
    if not holder.thread_lock.acquire(timeout=timeout_s):
        raise LakeBusy(f"{path}: the lake is being written by another thread of this process")
    try:
        if holder.depth == 0:
            holder.fd = _flock(path, deadline)
        holder.depth += 1
        try:
            yield
        finally:
            holder.depth -= 1
            if holder.depth == 0 and holder.fd is not None:
                fd, holder.fd = holder.fd, None
                os.ftruncate(fd, 0)
                os.close(fd)
    finally:
        holder.thread_lock.release()
