"""What assets and checks need of the lake, as an interface; `pipelines/resources.py` has the real one.

Belongs here: the interface and how an asset gets at it. Not here: settings, locks, connections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa

from warehouse.lake import Lake
from warehouse.state import Mark

RESOURCE = "lake"
# One run at a time may hold a writer's place; see `concurrency` in dagster.yaml.
WRITER_POOL = "lake_writer"


class LakeAccess(Protocol):
    """The lake of a run. While the run lasts it holds the writer's lock, so its tables belong together."""

    @property
    def lake(self) -> Lake:
        """The lake, opened."""
        ...

    @property
    def marks_at_start(self) -> Sequence[Mark]:
        """Marks that stood when the run took the lock."""
        ...

    def connect(self, tables: Sequence[str]) -> duckdb.DuckDBPyConnection:
        """A connection over the newest committed versions of these tables: what this run wrote, published or not."""
        ...

    def stored_schema(self, table: str) -> pa.Schema:
        """Schema of a table as it is stored; the contract's where it was never written."""
        ...

    def extent(self, table: str) -> tuple[date, date]:
        """All days that a table holds, [start, end); every day where it has no partitions by date."""
        ...

    def now(self) -> datetime:
        """The clock, UTC naive."""
        ...

    def recorded(self) -> Mapping[str, str | None]:
        """Settings that models read: name to text."""
        ...

    def team_rules(self) -> Sequence[tuple[int, str, str | None]]:
        """Rows of raw.team_rules."""
        ...

    def team_rows(self) -> Sequence[tuple[str, str, str]]:
        """Rows of raw.team_map."""
        ...

    @property
    def queue_cluster(self) -> str:
        """Name of the cluster that the queue serves."""
        ...

    def queue_logs(self) -> Sequence[Path]:
        """Event logs of the queue service that there are."""
        ...

    @property
    def retention(self) -> timedelta:
        """How long files of old versions are kept."""
        ...


def lake_of(context: Any) -> LakeAccess:
    """The resource of an asset's or a check's context."""
    access: LakeAccess = getattr(context.resources, RESOURCE)
    return access
