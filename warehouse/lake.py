"""The lake: Delta tables whose windows are replaced whole, in one commit, by one writer at a time.

A replacement is computed and checked before anything is touched; it either commits or leaves the table as it was.
Belongs here: the operations rooms use (replace, read, mark, publish). Does not: how each is stored (`delta`,
`staging`, `state`, `locks`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date, datetime
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse import delta, locks, state
from warehouse.contracts import CONTRACTS
from warehouse.contracts.model import Table
from warehouse.delta import DataFile
from warehouse.engine import open_database, relation_sql, write_view_database
from warehouse.errors import BadInput
from warehouse.files import NewFile, write_file
from warehouse.sqltypes import literal, quote
from warehouse.staging import Staged
from warehouse.state import Manifest, Mark, TableVersion
from warehouse.windows import read_predicate, write_window


class Lake:
    """The data folder at `root`: `lake/`, `landing/`, `state/` and `strandline.duckdb`.

    `contracts` are the tables it may hold; the default is the project's.
    """

    def __init__(self, root: Path | str, contracts: Mapping[str, Table] = CONTRACTS) -> None:
        self.root = Path(root).resolve()
        if "%" in str(self.root):  # deltalake 1.6 takes it for an escape and looks for its files elsewhere
            raise BadInput(f"{self.root}: the folder of a lake cannot have % in its path")
        self.contracts = contracts

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def _marks_directory(self) -> Path:
        return self.state / "marks"

    def contract(self, table: str) -> Table:
        """The contract of `layer.table`; `BadInput` where there is none."""
        try:
            return self.contracts[table]
        except KeyError:
            raise BadInput(f"there is no table {table}; tables are {', '.join(sorted(self.contracts))}") from None

    def writer(self, timeout_s: float = 600) -> AbstractContextManager[None]:
        """Exclusive right to change the lake, over processes and threads; reentrant; `LakeBusy` names the holder."""
        return locks.exclusive(self.state / "writer.lock", timeout_s)

    def version(self, table: str) -> int | None:
        """Newest committed Delta version; None where the table was never written."""
        opened = delta.open_table(self.root, self.contract(table).name)
        return None if opened is None else opened.version()

    def dates(self, table: str) -> list[date]:
        """Dates for which the newest version holds rows, in order."""
        return sorted(self.rows_by_date(table))

    def rows_by_date(self, table: str) -> dict[date, int]:
        """Rows of every date in the newest version, from the log; empty for tables without date partitions."""
        newest = delta.open_table(self.root, self.contract(table).name)
        counts: dict[date, int] = {}
        for file in delta.data_files(newest) if newest else []:
            if file.day is not None and file.rows:
                counts[file.day] = counts.get(file.day, 0) + file.rows
        return counts

    def relation(self, table: str, version: int | None = None) -> str:
        """A SELECT over the newest (or given) committed version, for a connection of `engine.open_database`."""
        contract = self.contract(table)
        opened = delta.open_table(self.root, table, version)
        directory = delta.table_path(self.root, table)
        if opened is None:
            return relation_sql(contract, directory, ())
        files = [f.path for f in delta.data_files(opened)]
        return relation_sql(contract, directory, files, evolved=delta.is_evolved(opened, contract))

    def read(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        start: date | None = None,
        end: date | None = None,
        version: int | None = None,
    ) -> pa.Table:
        """Rows of [start, end) (dates or datetimes, by the window column) in no particular order.

        `columns` default to the contract's. The newest version unless `version` says which; `BadInput` where the
        table has no such version. An unwritten table is empty.
        """
        contract = self.contract(table)
        chosen = list(columns if columns is not None else contract.columns)
        if unknown := [c for c in chosen if c not in contract.columns]:
            raise BadInput(f"{table} has no column {', '.join(unknown)}")
        predicate = read_predicate(contract, start, end)
        source = self.relation(table, version)
        schema = pa.schema([contract.arrow_schema.field(c) for c in chosen])
        connection = open_database(self.root)
        try:
            selected = ", ".join(quote(c) for c in chosen)
            rows = connection.sql(f"select {selected} from ({source}) where {predicate}").to_arrow_table()
        finally:
            connection.close()
        return rows.cast(schema)

    def replace(
        self,
        table: str,
        data: pa.Table | pa.RecordBatchReader,
        start: date | None = None,
        end: date | None = None,
        run_id: str = "",
        *,
        mark: bool = True,
    ) -> int:
        """Replace the rows of window [start, end) by `data` in one commit; returns the newest version.

        Bounds are datetimes on the hour for hour tables, dates for date tables, absent for whole tables. Empty data
        clears the window. `BadInput` (and nothing changed) where data do not fit the contract or lie outside.
        Replacing hours of a raw table marks the dates touched, before the commit, unless `mark` is false.
        """
        with self.writer(), self.stage(table, start, end) as staged:
            staged.add_arrow(data, f"rows for {table}")
            return self.commit(staged, run_id, mark=mark)

    @contextmanager
    def stage(
        self,
        table: str,
        start: date | None = None,
        end: date | None = None,
        connection: duckdb.DuckDBPyConnection | None = None,
    ) -> Iterator[Staged]:
        """Rows to be collected for a window, in `connection` or one of its own; dropped when the block ends."""
        contract = self.contract(table)
        window = write_window(contract, start, end)
        own = open_database(self.root) if connection is None else None
        target = connection if connection is not None else own
        assert target is not None
        try:
            staged = Staged(target, contract, window, delta.table_path(self.root, table))
            try:
                yield staged
            finally:
                staged.close()
        finally:
            if own is not None:
                own.close()

    def commit(
        self,
        staged: Staged,
        run_id: str = "",
        *,
        mark: bool = True,
        before: Callable[[], None] | None = None,
    ) -> int:
        """Check staged rows and replace their window by them in one commit; returns the newest version.

        `before` runs after the checks and before the commit: what must be durable first (marks).
        """
        contract, window = staged.contract, staged.window
        with self.writer():
            total = staged.check(f"rows for {contract.name}")
            opened = delta.ensure_table(self.root, contract)
            held = [f for f in delta.data_files(opened) if f.may_overlap(window)]
            if mark and contract.layer == "raw" and contract.window == "hour":
                self.mark({d for d in [*staged.rows_by_date(), *(f.day for f in held)] if d}, contract.name)
            if before is not None:
                before()
            if total == 0 and not held:
                return opened.version()
            added = self._write_files(
                staged, [f for f in held if not f.is_inside(window)], delta.is_evolved(opened, contract)
            )
            metadata = {"run_id": run_id, "window": f"{window.start}/{window.end}"}
            return delta.commit_files(opened, added, held, metadata)

    def _write_files(self, staged: Staged, partial: Sequence[DataFile], evolved: bool) -> list[NewFile]:
        """One new file a date: the staged rows, and of `partial` files those outside the window."""
        contract = staged.contract
        directory = delta.table_path(self.root, contract.name)
        written = staged.take_files()  # date tables only, whose partitions are replaced whole
        counts = staged.rows_by_date()
        for day in sorted({*counts, *(f.day for f in partial)}, key=lambda d: d or date.min):
            sources = [f"select * from {staged.name}" + (f" where date = {literal(day)}" if day else "")]
            rows = counts.get(day, 0)
            kept = [f for f in partial if f.day == day]
            if kept:
                old = relation_sql(contract, directory, [f.path for f in kept], evolved=evolved)
                sources.append(f"select * from ({old}) where not ({staged.window.sql})")
                rows += sum(f.rows for f in kept)
            if rows:
                source = " union all ".join(sources)
                file = write_file(staged.connection, source, rows=rows, contract=contract, directory=directory, day=day)
                if file.rows:
                    written.append(file)
        return written

    def mark(self, dates: Iterable[date], reason: str) -> list[Mark]:
        """Durably note that these dates changed. Call it before the change and under the same `writer()`."""
        with self.writer():
            return state.write_marks(self._marks_directory, dates, reason)

    def marks(self) -> list[Mark]:
        """Dates that changed and were not built since, in order."""
        return state.read_marks(self._marks_directory)

    def clear(self, marks: Iterable[Mark]) -> None:
        """Remove exactly these marks."""
        state.clear_marks(self._marks_directory, marks)

    def newest_version(self, table: str) -> TableVersion | None:
        """The newest committed version of a table with its files; None where it was never written."""
        contract = self.contract(table)
        opened = delta.open_table(self.root, table)
        if opened is None:
            return None
        files = delta.data_files(opened)
        paths = tuple(f.path for f in files if f.rows)
        return TableVersion(opened.version(), sum(f.rows for f in files), paths, delta.is_evolved(opened, contract))

    def newest(self) -> Manifest:
        """The newest committed version of every table, published or not, for `engine.connect(manifest=…)`."""
        return state.new_manifest("newest", self._newest_versions())

    def _newest_versions(self) -> dict[str, TableVersion]:
        found = {name: self.newest_version(name) for name in self.contracts}
        return {name: version for name, version in found.items() if version is not None}

    def publish(self, build_id: str, note: str = "", *, keep: bool = False) -> Manifest:
        """Make the newest version of every table what readers see, all at once; also `strandline.duckdb`.

        Frozen tables stay as they are published; their writer publishes them with `publish_tables`. `keep` saves the
        publication from maintenance for good (a closed month).
        """
        with self.writer():
            tables, published = self._newest_versions(), self.published()
            for name in [n for n, contract in self.contracts.items() if contract.frozen]:
                tables.pop(name, None)
                if published is not None and name in published.tables:
                    tables[name] = published.tables[name]
            return self.publish_tables(build_id, tables, note, keep=keep)

    def publish_tables(
        self, build_id: str, tables: Mapping[str, TableVersion], note: str = "", *, keep: bool = False
    ) -> Manifest:
        """Publish exactly these versions; `publish` is what builds use."""
        with self.writer():
            manifest = state.new_manifest(build_id, dict(tables), note, keep)
            write_view_database(self.root, manifest, self.contracts)
            state.write_manifest(self.state, manifest)
            return manifest

    def published(self) -> Manifest | None:
        """What readers see; None before the first publication."""
        return state.read_published(self.state)

    def published_as_of(self, moment: datetime) -> Manifest | None:
        """What readers saw just before `moment` (naive UTC)."""
        return state.manifest_as_of(self.state, moment)
