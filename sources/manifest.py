"""Bulk import of captured files: `FILE.jsonl`, one object a line, into the landing spool.

A line names `kind` (dcgm, kubernetes or pod_resources), `file` (relative to the manifest, inside its
folder), `at` (RFC 3339; UTC where no zone is given), and as the kind needs `node`, `target` (default:
the node) and `cluster`. Lines may come in any order and more than once. What a body means is read when
the spool is sealed; here only what could not be read at all is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from sources.dcgm.scrape import Scrape
from sources.kubernetes.lists import KubeList, check_list
from warehouse.errors import BadInput
from warehouse.landing import EARLIEST, LATEST, Landing, Record

KINDS = ("dcgm", "kubernetes", "pod_resources")
_MESSAGES = 50
_LARGEST_FILE = 1 << 30


@dataclass
class ImportReport:
    """What a manifest brought: records landed by kind, and a message for every line that could not be used."""

    manifest: Path
    landed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    errors: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Raise `BadInput` with all messages if any line was bad. Call it once what landed is safe."""
        if self.errors:
            more = len(self.errors) - _MESSAGES
            tail = [f"... and {more} more"] if more > 0 else []
            raise BadInput("\n".join([*self.errors[:_MESSAGES], *tail]))


def import_manifest(path: Path | str, landing: Landing, cluster: str = "default") -> ImportReport:
    """Land every file that the manifest names; `cluster` stands in where a line names none.

    A bad line is reported by manifest and line number and never costs the others. `BadInput` only where
    the manifest itself cannot be read.
    """
    path = Path(path)
    report = ImportReport(path)
    landing.append(_records(path, cluster, report))
    return report


def _records(path: Path, cluster: str, report: ImportReport) -> Iterator[Record]:
    try:
        manifest = open(path, "rb")  # noqa: SIM115  (closed below; opening is what may fail)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    with manifest:
        for number, line in enumerate(manifest, 1):
            if not line.strip():
                continue
            try:
                record = _record(line, path.parent, cluster)
            except BadInput as error:
                report.errors.append(f"{path}:{number}: {error}")
                continue
            report.landed[record.kind] += 1
            yield record


def _record(line: bytes, folder: Path, cluster: str) -> Record:
    try:
        entry = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"not JSON at column {error.colno}: {error.msg}") from None
    if not isinstance(entry, dict):
        raise BadInput("a JSON object is expected")
    kind = entry.get("kind")
    if kind not in KINDS:
        raise BadInput(f"kind {kind!r} is none of {', '.join(KINDS)}")
    at = parse_instant(entry.get("at"))
    node, target = _text(entry, "node"), _text(entry, "target")
    cluster = _text(entry, "cluster") or cluster
    name = _text(entry, "file")
    if name is None:
        raise BadInput("file is missing")
    if kind == "dcgm":
        target = target or node
        if target is None:
            raise BadInput("node is missing (or target)")
        return Scrape(cluster, target, node, at, _body(folder, name)).record()
    if kind == "pod_resources" and node is None:
        raise BadInput("node is missing")
    listed = KubeList(cluster, at, _body(folder, name), name, kind, node)
    check_list(listed)
    return listed.record()


def _text(entry: dict[str, Any], key: str) -> str | None:
    value = entry.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise BadInput(f"{key}: {value!r} is no text")
    return value


def parse_instant(value: Any) -> datetime:
    """An RFC 3339 time as naive UTC (no zone means UTC); `BadInput` shows what is wrong."""
    if not isinstance(value, str):
        raise BadInput("at is missing" if value is None else f"at: {value!r} is no time")
    try:
        at = datetime.fromisoformat(value)
        at = at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at
    except (ValueError, OverflowError):
        raise BadInput(f"at: {value!r} is no time, such as 2026-03-02T00:00:00Z") from None
    if not EARLIEST <= at < LATEST:
        raise BadInput(f"at: {value!r} is out of range, {EARLIEST:%Y} to {LATEST:%Y}: was the clock set?")
    return at


def _body(folder: Path, name: str) -> bytes:
    file, root = Path(name), folder.resolve()
    if "\0" in name:
        raise BadInput("file: a name with a null character")
    if file.is_absolute() or not (root / file).resolve().is_relative_to(root):
        raise BadInput(f"file {name}: must stand in the folder of the manifest")
    try:
        if (root / file).stat().st_size > _LARGEST_FILE:
            raise BadInput(f"file {name}: larger than {_LARGEST_FILE >> 20} MiB")
        return (root / file).read_bytes()
    except OSError as error:
        raise BadInput(f"file {name}: {error.strerror}") from None
