"""Compaction and vacuum: fewer files for the same rows, and no files that nobody may read any more.

What must be kept is known from the manifests, which list files, and not from the Delta log: a closed month is
readable years after the log of its version was cleaned up.
Belongs here: both jobs, safe beside readers and repeatable. Does not: when they run.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from warehouse import delta
from warehouse.lake import Lake
from warehouse.state import manifest_history

RETENTION = timedelta(days=30)
# a file this young may belong to a commit or an open reader, whatever the retention asked for
GRACE = timedelta(hours=1)
TARGET_FILE_BYTES = 512 * 2**20


@dataclass(frozen=True)
class CompactReport:
    """Date partitions compacted and files before and after, over all tables."""

    partitions: int
    files_before: int
    files_after: int


@dataclass(frozen=True)
class VacuumReport:
    """Files and bytes removed (or that would be), and old manifests dropped."""

    files: int
    bytes: int
    manifests: int


def compact(lake: Lake, before: date | None = None, tables: Sequence[str] = ()) -> CompactReport:
    """Merge the files of every date older than `before` (default: today, UTC) that has more than one.

    Readers go on with the old files. The new ones are published at once for tables whose newest version is the
    published one; others follow with the next build, so nothing unfinished becomes visible.
    """
    limit = before or datetime.now(UTC).date()
    partitions = files_before = files_after = 0
    with lake.writer():
        published = lake.published()
        entries = dict(published.tables) if published else {}
        for name in tables or lake.contracts:
            table = delta.open_table(lake.root, lake.contract(name).name)
            if table is None:
                continue
            version, files = table.version(), delta.data_files(table)
            files_before += len(files)
            counts = Counter(f.day for f in files if f.day is not None and f.day < limit)
            for day in sorted(d for d, count in counts.items() if count > 1):
                table.optimize.compact(
                    partition_filters=[("date", "=", day.isoformat())],
                    target_size=TARGET_FILE_BYTES,
                    writer_properties=delta.WRITER,
                )
                partitions += 1
            current = lake.newest_version(name)
            assert current is not None
            files_after += len(current.files)
            if name in entries and entries[name].version == version:
                entries[name] = current
        if published and entries != published.tables:
            lake.publish_tables(f"compact-{datetime.now(UTC):%Y%m%dT%H%M%S%f}", entries, f"as {published.build_id}")
    return CompactReport(partitions, files_before, files_after)


def vacuum(lake: Lake, retention: timedelta = RETENTION, *, dry_run: bool = False) -> VacuumReport:
    """Remove data files that neither the newest versions nor a kept manifest need.

    Kept are the published manifest, those younger than `retention`, and those published with `keep`. Older ones are
    dropped first, so that none ever names a missing file.
    """
    now = datetime.now(UTC).replace(tzinfo=None)
    young_after_s = time.time() - max(retention, GRACE).total_seconds()
    with lake.writer():
        history = manifest_history(lake.state)
        published = lake.published()
        dropped = [
            path
            for path, manifest in history
            if not manifest.keep
            and manifest.created_at < now - retention
            and (published is None or manifest.created_at != published.created_at)
        ]
        kept = [m for path, m in history if path not in dropped] + ([published] if published else [])
        removable: list[Path] = []
        for name in lake.contracts:
            newest = lake.newest_version(name)
            if newest is None:
                continue
            needed = {f for m in kept if name in m.tables for f in m.tables[name].files} | set(newest.files)
            directory = delta.table_path(lake.root, name)
            for path in directory.glob("**/*.parquet"):
                relative = path.relative_to(directory).as_posix()
                if relative not in needed and not relative.startswith("_") and path.stat().st_mtime < young_after_s:
                    removable.append(path)
        size = sum(p.stat().st_size for p in removable)
        if not dry_run:
            for path in [*dropped, *removable]:
                path.unlink(missing_ok=True)
    return VacuumReport(len(removable), size, len(dropped))
