"""Files that survive a crash: written beside their place, flushed, renamed over it.

Belongs here: atomic writing of small files. Does not: what is in them (`state.py`), Delta commits (`delta.py`).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Flush the entries of directory `path`, so that renames and deletions in it survive a power cut."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace `path` by `content`; a reader sees the old or the new file, never a part."""
    write_all_atomically([(path, content)])


def write_all_atomically(files: Iterable[tuple[Path, bytes]]) -> None:
    """Replace several files, each atomically (not all at once); their directories are flushed once at the end."""
    directories: set[Path] = set()
    for path, content in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with suppress(FileNotFoundError):
                temporary.unlink()
            raise
        directories.add(path.parent)
    for directory in directories:
        sync_directory(directory)
