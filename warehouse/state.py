"""What the lake remembers beside its tables: which dates changed, and which versions are published.

A manifest names one Delta version of every table and the files of that version, so that a reader opens no Delta
log and all tables it sees belong to one build. Marks are written before the change they announce; a crash in
between leaves a mark too many, never one too few.
Belongs here: marks and manifests as files. Does not: locks, tables, SQL.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from warehouse.durable import sync_directory, write_all_atomically, write_atomically
from warehouse.errors import BadInput

_BUILD_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True)
class Mark:
    """A UTC date whose raw rows or intervals changed and that no build has taken up yet.

    `marked_at_s` is Unix time; `token` tells marks of one date apart, so that a build clears only those it saw.
    """

    date: date
    reason: str
    token: str
    marked_at_s: float


@dataclass(frozen=True)
class TableVersion:
    """One table in a manifest: Delta version, rows, its files relative to the table, whether columns were added."""

    version: int
    rows: int
    files: tuple[str, ...]
    evolved: bool = False


@dataclass(frozen=True)
class Manifest:
    """What a build published, or the newest versions as they are. `keep` saves it, and its files, from vacuum."""

    build_id: str
    created_at: datetime
    tables: dict[str, TableVersion] = field(default_factory=dict)
    note: str = ""
    keep: bool = False

    def to_json(self) -> bytes:
        """The manifest as JSON; `from_json` reads it back equal."""
        tables = {
            name: {"version": t.version, "rows": t.rows, "evolved": t.evolved, "files": list(t.files)}
            for name, t in sorted(self.tables.items())
        }
        document = {
            "build_id": self.build_id,
            "created_at": self.created_at.isoformat(timespec="microseconds") + "Z",
            "note": self.note,
            "keep": self.keep,
            "tables": tables,
        }
        return json.dumps(document, indent=1).encode()

    @classmethod
    def from_json(cls, content: bytes, origin: str) -> Manifest:
        """Parse a manifest; `BadInput` names `origin` where it is not one."""
        try:
            document: dict[str, Any] = json.loads(content)
            created_at = datetime.fromisoformat(document["created_at"]).astimezone(UTC).replace(tzinfo=None)
            tables = {
                name: TableVersion(t["version"], t["rows"], tuple(t["files"]), t["evolved"])
                for name, t in document["tables"].items()
            }
            return cls(document["build_id"], created_at, tables, document["note"], document["keep"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"{origin}: not a manifest of published versions: {error!r}") from error


def write_marks(directory: Path, dates: Iterable[date], reason: str) -> list[Mark]:
    """Write one mark a date, durably; returns them."""
    now = time.time()
    marks = [Mark(day, reason, uuid.uuid4().hex, now) for day in sorted(set(dates))]
    content = json.dumps({"reason": reason, "marked_at_s": now}).encode()
    write_all_atomically((directory / f"{m.date.isoformat()}--{m.token}.json", content) for m in marks)
    return marks


def read_marks(directory: Path) -> list[Mark]:
    """Every mark, by date."""
    marks = []
    for path in sorted(directory.glob("*--*.json")):
        with suppress(FileNotFoundError):
            day, token = path.stem.split("--", 1)
            try:
                marked = date.fromisoformat(day)
            except ValueError as error:
                raise BadInput(f"{path}: no mark of a changed date; remove it") from error
            try:
                content = json.loads(path.read_bytes())
                marks.append(Mark(marked, content["reason"], token, content["marked_at_s"]))
            except (ValueError, KeyError, TypeError):
                # its name says what has to be built, whatever became of its content
                marks.append(Mark(marked, "unreadable mark", token, path.stat().st_mtime))
    return marks


def clear_marks(directory: Path, marks: Iterable[Mark]) -> None:
    """Remove exactly these marks; those already gone are passed over."""
    removed = False
    for mark in marks:
        with suppress(FileNotFoundError):
            (directory / f"{mark.date.isoformat()}--{mark.token}.json").unlink()
            removed = True
    if removed:
        sync_directory(directory)


def new_manifest(build_id: str, tables: dict[str, TableVersion], note: str = "", keep: bool = False) -> Manifest:
    """A manifest of now; `BadInput` where the build id cannot be part of a file name."""
    if not _BUILD_ID.fullmatch(build_id):
        raise BadInput(f"build id {build_id!r}: letters, digits, '_', '.', '-', at most 100")
    return Manifest(build_id, datetime.now(UTC).replace(tzinfo=None), tables, note, keep)


def write_manifest(state: Path, manifest: Manifest) -> None:
    """Add the manifest to the history, then make it the published one by rename."""
    content = manifest.to_json()
    name = f"{manifest.created_at:%Y%m%dT%H%M%S%f}--{manifest.build_id}.json"
    write_atomically(state / "manifests" / name, content)
    write_atomically(state / "published.json", content)


def read_published(state: Path) -> Manifest | None:
    """The published manifest; None before the first build."""
    path = state / "published.json"
    try:
        return Manifest.from_json(path.read_bytes(), str(path))
    except FileNotFoundError:
        return None


def manifest_history(state: Path) -> list[tuple[Path, Manifest]]:
    """Every kept manifest with its file, oldest first."""
    history = []
    for path in sorted((state / "manifests").glob("*.json")):
        with suppress(FileNotFoundError):
            history.append((path, Manifest.from_json(path.read_bytes(), str(path))))
    return history


def manifest_as_of(state: Path, moment: datetime) -> Manifest | None:
    """The newest manifest created before `moment` (naive UTC); None where there is none."""
    name = f"{moment:%Y%m%dT%H%M%S%f}"
    earlier = [p for p in sorted((state / "manifests").glob("*.json")) if p.name.split("--", 1)[0] < name]
    return Manifest.from_json(earlier[-1].read_bytes(), str(earlier[-1])) if earlier else None
