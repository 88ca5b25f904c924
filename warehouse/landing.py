"""The landing spool: collected bodies wait here, on disk, until they are sealed into raw tables.

A file holds a batch of records of one UTC hour, compressed, named by the hash of what it holds; it
appears by rename after an fsync, so that a reader never sees half a file, two collectors never collide
and the same batch landed twice is one file. What a body means is none of this module's business.

Layout: `landing/<YYYY-MM-DDTHH>/<sha256>.land`; unfinished writes stand in `landing/tmp`. In `landing/damaged`
stand files whose content does not match their name, and those of a time that no table takes (a clock gone wrong).
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from warehouse.durable import sync_directory

_MAGIC = b"SLAND1\n\0"
_LENGTHS = struct.Struct("<II")
_NO_BODY = 0xFFFFFFFF
_HOUR = "%Y-%m-%dT%H"
_BATCH_BYTES = 32 << 20
_STALE_TMP_S = 3600.0
# Before Kubernetes there was nothing to collect: a clock that says so, 1970 above all, was never set, and one
# sample of it would make a GPU look as if it had stood there ever since.
EARLIEST, LATEST = datetime(2015, 1, 1), datetime(2200, 1, 1)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Record:
    """One collected body. `kind` is dcgm, kubernetes or pod_resources; `at` is naive UTC.

    `target` names what was read (endpoint, node or list source); `meta` holds JSON values; `body` is
    None where the attempt failed.
    """

    kind: str
    cluster: str
    target: str
    at: datetime
    meta: dict[str, Any] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True)
class Landed:
    """A file of the spool: its hour, path and size in bytes as stored."""

    hour: datetime
    path: Path
    size: int


class Landing:
    """The spool under `root/landing`. Safe for several writers and readers, also over processes."""

    def __init__(self, root: Path | str):
        self.folder = Path(root) / "landing"

    def append(self, records: Record | Iterable[Record]) -> list[Path]:
        """Store records durably; returns the files written. One file per hour and about 32 MB.

        Records before `EARLIEST` or from `LATEST` on are kept in `landing/damaged`, where they hold nobody up.
        """
        batches: dict[datetime, list[Record]] = defaultdict(list)
        sizes: dict[datetime, int] = defaultdict(int)
        paths = []
        for record in [records] if isinstance(records, Record) else records:
            hour = record.at.replace(minute=0, second=0, microsecond=0)
            if not EARLIEST <= record.at < LATEST:
                log.warning("%s %s: time %s is out of range; set aside", record.kind, record.target, record.at)
            batches[hour].append(record)
            sizes[hour] += len(record.body or b"")
            if sizes[hour] >= _BATCH_BYTES:
                paths.append(self._write(hour, batches.pop(hour)))
                del sizes[hour]
        return paths + [self._write(hour, batch) for hour, batch in sorted(batches.items())]

    def files(self, until: datetime | None = None) -> list[Landed]:
        """What waits, by hour and name; only hours that start before `until`."""
        found = []
        for folder in sorted(self.folder.glob("*T*")) if self.folder.is_dir() else []:
            try:
                hour = datetime.strptime(folder.name, _HOUR)
            except ValueError:
                continue
            if until is None or hour < until or hour >= LATEST:
                found += [Landed(hour, p, p.stat().st_size) for p in sorted(folder.glob("*.land"))]
        return found

    def read(self, landed: Landed) -> list[Record] | None:
        """The records of a file; None if it is damaged or out of time (then it is moved aside, not deleted)."""
        data = landed.path.read_bytes()
        try:
            records = list(_unpack(data, landed.path.stem))
        except (ValueError, struct.error, KeyError, OSError, pa.ArrowException):  # OSError: what zstd refuses
            records = []
        if records and all(EARLIEST <= r.at < LATEST for r in records):
            return records
        damaged = self.folder / "damaged"
        damaged.mkdir(exist_ok=True)
        os.replace(landed.path, damaged / f"{landed.path.parent.name}.{landed.path.name}")
        return None

    def delete(self, files: Sequence[Landed]) -> None:
        """Forget files; ones already gone are no error. Also clears abandoned unfinished writes."""
        for landed in files:
            landed.path.unlink(missing_ok=True)
        for folder in {landed.path.parent for landed in files}:
            try:
                folder.rmdir()
            except OSError:
                continue  # a collector is still writing this hour
        self._clear_tmp()

    def _clear_tmp(self) -> None:
        oldest = time.time() - _STALE_TMP_S
        for path in (self.folder / "tmp").glob("*"):
            try:
                if path.stat().st_mtime < oldest:
                    path.unlink(missing_ok=True)
            except FileNotFoundError:
                continue

    def _write(self, hour: datetime, records: Sequence[Record]) -> Path:
        name, data = _pack(records)
        path = self.folder / hour.strftime(_HOUR) / f"{name}.land"
        if not EARLIEST <= hour < LATEST:
            path = self.folder / "damaged" / f"{hour.strftime(_HOUR)}.{name}.land"
        if path.exists():
            return path
        tmp = self.folder / "tmp" / f"{name}.{os.getpid()}.{uuid.uuid4().hex}"
        tmp.parent.mkdir(parents=True, exist_ok=True)
        with open(tmp, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        while True:
            if not path.parent.is_dir():
                path.parent.mkdir(exist_ok=True)
                sync_directory(self.folder)
            try:
                os.replace(tmp, path)
                sync_directory(path.parent)
                return path
            except FileNotFoundError:
                continue  # the emptied hour was just removed; make it again


def _pack(records: Sequence[Record]) -> tuple[str, bytes]:
    parts = []
    for r in records:
        header = orjson.dumps([r.kind, r.cluster, r.target, r.at.isoformat(), r.meta])
        parts += [_LENGTHS.pack(len(header), _NO_BODY if r.body is None else len(r.body)), header, r.body or b""]
    payload = b"".join(parts)
    packed = pa.compress(payload, codec="zstd", asbytes=True)
    return hashlib.sha256(payload).hexdigest(), _MAGIC + struct.pack("<Q", len(payload)) + packed


def _unpack(data: bytes, name: str) -> Iterator[Record]:
    start = len(_MAGIC) + 8
    if data[: len(_MAGIC)] != _MAGIC:
        raise ValueError("not a landing file")
    (size,) = struct.unpack("<Q", data[len(_MAGIC) : start])
    if size > len(data) << 16:  # no zstd stream of ours expands this much: the length is damaged
        raise ValueError("length does not fit")
    payload = pa.decompress(data[start:], decompressed_size=size, codec="zstd", asbytes=True)
    if hashlib.sha256(payload).hexdigest() != name:
        raise ValueError("content does not match the name")
    position = 0
    while position < size:
        head, body = _LENGTHS.unpack_from(payload, position)
        position += _LENGTHS.size
        kind, cluster, target, at, meta = orjson.loads(payload[position : position + head])
        position += head
        length = 0 if body == _NO_BODY else body
        content = None if body == _NO_BODY else payload[position : position + length]
        position += length
        yield Record(kind, cluster, target, datetime.fromisoformat(at), meta, content)
