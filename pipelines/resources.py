"""Dagster resources. Belongs here: the lake as a run sees it, with its lock and its settings.

Not here: what assets do with it (`assets/access.py` has the interface).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import duckdb
import pyarrow as pa
from pydantic import PrivateAttr

from pipelines.settings import Settings
from warehouse import delta
from warehouse.engine import LAYERS, open_database
from warehouse.lake import Lake
from warehouse.sqltypes import quote
from warehouse.state import Mark

# A build of a large window may hold the lock for long; a queued run waits rather than fails.
LOCK_TIMEOUT_S = 3600.0
EVERY_DAY = date(1970, 1, 1), date(9999, 12, 31)


class LakeResource(dg.ConfigurableResource):
    """The lake of a run. From the run's start to its end it holds the writer's lock: the in-process executor
    sets a resource up once for all steps, so no other writer gets between two tables of one build."""

    data: str
    memory_limit: str | None = None
    threads: int | None = None
    settings: dict[str, str | None]
    rules: list[list[str | None]]
    teams: list[list[str]]
    retention_s: float = 0.0
    queue_log: str = ""
    cluster: str = "default"

    _held: ExitStack = PrivateAttr(default_factory=ExitStack)
    _marks: tuple[Mark, ...] = PrivateAttr(default=())

    @classmethod
    def of(cls, settings: Settings) -> LakeResource:
        """The resource for these settings."""
        return cls(
            data=str(settings.data),
            memory_limit=settings.memory_limit,
            threads=settings.threads,
            settings=settings.recorded(),
            rules=[[source, key] for _, source, key in settings.team_rules()],
            teams=[list(row) for row in settings.team_rows()],
            retention_s=settings.retention or 0.0,
            queue_log=str(settings.queue_log_path()),
            cluster=settings.queue_cluster,
        )

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        """Take the lock. Marking needs it too, so every mark that comes while the run lasts is the run's own."""
        self._held = ExitStack()
        self._held.enter_context(self.lake.writer(LOCK_TIMEOUT_S))
        self._marks = tuple(self.lake.marks())

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """Release the lock, however the run ended."""
        self._held.close()

    @property
    def lake(self) -> Lake:
        """The lake, opened."""
        return Lake(Path(self.data))

    @property
    def marks_at_start(self) -> Sequence[Mark]:
        """Marks that stood when this run took the lock."""
        return self._marks

    def connect(self, tables: Sequence[str]) -> duckdb.DuckDBPyConnection:
        """A connection with views of the newest committed versions of these tables, published or not."""
        lake = self.lake
        con = open_database(lake.root, memory_limit=self.memory_limit, threads=self.threads)
        for layer in LAYERS:
            con.execute(f"create schema {layer}")
        for name in tables:
            con.execute(f"create view {quote(name)} as {lake.relation(name)}")
        return con

    def stored_schema(self, table: str) -> pa.Schema:
        """Schema of a table as it is stored; the contract's where it was never written."""
        opened = delta.open_table(self.lake.root, table)
        return self.lake.contract(table).arrow_schema if opened is None else pa.schema(opened.schema().to_arrow())

    def extent(self, table: str) -> tuple[date, date]:
        """All days that a table holds, [start, end); every day where it has no partitions by date."""
        if not self.lake.contract(table).partition_by:
            return EVERY_DAY
        days = self.lake.dates(table)
        return (days[0], days[-1] + timedelta(days=1)) if days else (date(1970, 1, 1), date(1970, 1, 2))

    def now(self) -> datetime:
        """The clock, UTC naive."""
        return datetime.now(UTC).replace(tzinfo=None)

    def recorded(self) -> Mapping[str, str | None]:
        """Settings that models read: name to text."""
        return self.settings

    def team_rules(self) -> Sequence[tuple[int, str, str | None]]:
        """Rows of raw.team_rules."""
        return [(rank, str(source), key) for rank, (source, key) in enumerate(self.rules, 1)]

    def team_rows(self) -> Sequence[tuple[str, str, str]]:
        """Rows of raw.team_map."""
        return [(cluster, namespace, team) for cluster, namespace, team in self.teams]

    @property
    def queue_cluster(self) -> str:
        """Whose queue the log is of."""
        return self.cluster

    def queue_logs(self) -> Sequence[Path]:
        """Event logs of the queue service that there are."""
        path = Path(self.queue_log)
        return [path] if self.queue_log and path.exists() else []

    @property
    def retention(self) -> timedelta:
        """How long files of old versions are kept."""
        return timedelta(seconds=self.retention_s)
