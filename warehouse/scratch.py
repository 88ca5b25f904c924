"""Spill directories: each connection its own, swept when the process that owned them is gone.

DuckDB leaves its spill files behind when it is killed, and two in-memory databases must not share a directory.
Belongs here: making and sweeping them. Does not: anything that must be kept.
"""

from __future__ import annotations

import atexit
import fcntl
import itertools
import os
import shutil
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

_COUNTER = itertools.count()
_OWNED: dict[tuple[int, Path], Path] = {}


def _sweep(base: Path) -> None:
    for lock in base.glob("*/.owner"):
        with suppress(OSError):
            fd = os.open(lock, os.O_RDWR)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
            finally:
                os.close(fd)


def _process_directory(base: Path) -> Path:
    key = (os.getpid(), base)
    if key in _OWNED:
        return _OWNED[key]
    try:
        base.mkdir(parents=True, exist_ok=True)
        if not os.access(base, os.W_OK):
            raise PermissionError(base)
    except OSError:
        # a reader may have no right to write beside the tables
        base = Path(tempfile.gettempdir()) / f"strandline-{os.getuid()}"
        base.mkdir(parents=True, exist_ok=True)
    _sweep(base)
    path = base / uuid.uuid4().hex
    building = base / f".{path.name}"
    building.mkdir()
    fd = os.open(building / ".owner", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    fcntl.flock(fd, fcntl.LOCK_EX)  # held open until the process ends, however it ends
    os.rename(building, path)
    _OWNED[key] = path
    pid = os.getpid()
    atexit.register(lambda: shutil.rmtree(path, ignore_errors=True) if os.getpid() == pid else None)
    return path


def spill_directory(root: Path) -> Path:
    """A path of its own for the spill files of one connection to the lake at `root`; DuckDB makes it when needed."""
    return _process_directory(root / "state" / "spill") / str(next(_COUNTER))
