"""Runs the models over windows of dates and publishes the result.

A build recomputes whole dates and replaces them, so running it twice, or again after a crash, gives the same
tables. Marks stay until the build that took them up is published.
Belongs here: choosing windows, running models in order, recomputing dates that changed intervals touch.
Does not: SQL, checking rows (`staging.py`), scheduling.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from datetime import time as midnight

import duckdb

from warehouse.due import beside, due_dates, known_dates
from warehouse.engine import LAYERS, open_database
from warehouse.errors import BadInput
from warehouse.lake import Lake
from warehouse.models import Model, downstream, load_models, select_models
from warehouse.settling import settle
from warehouse.spans import Changes, changes
from warehouse.sqltypes import quote
from warehouse.staging import Staged
from warehouse.state import Mark
from warehouse.windows import DAY, chunks, contiguous, days

CHUNK_DAYS = 7
# at this many input rows a date, a temporary table of the result costs more than it saves
HEAVY_ROWS = 250_000


@dataclass(frozen=True)
class ModelReport:
    """What one model did: rows written, seconds, date windows [start, end) replaced (none for whole tables)."""

    name: str
    rows: int
    seconds: float
    windows: tuple[tuple[date, date], ...]


@dataclass(frozen=True)
class BuildReport:
    """What a build did; `marks` is how many marks it took up and cleared."""

    build_id: str
    models: tuple[ModelReport, ...]
    seconds: float
    marks: int = 0

    @property
    def rows(self) -> int:
        return sum(m.rows for m in self.models)


Progress = Callable[[str], None]


class _Run:
    """One pass over the models: the dates due for each, and the marks made on the way."""

    def __init__(
        self,
        *,
        lake: Lake,
        connection: duckdb.DuckDBPyConnection,
        run_id: str,
        models: Mapping[str, Model],
        newest: date,
        known: frozenset[date],
        chunk_days: int,
        heavy_rows: int,
        due: set[date],
        marked: set[date],
    ) -> None:
        self.lake, self.connection, self.run_id = lake, connection, run_id
        self.models, self.newest, self.known = models, newest, known
        self.chunk_days, self.heavy_rows = chunk_days, heavy_rows
        self.due = {name: set(due) for name in models}
        self.marked = set(marked)
        self.new_marks: list[Mark] = []

    def bind(self, table: str) -> None:
        """Point the view of `table` at its newest committed version."""
        self.connection.execute(f"create or replace view {quote(table)} as {self.lake.relation(table)}")

    def execute(self, model: Model, progress: Progress | None) -> ModelReport:
        """Compute all dates due for the model, and those its changed intervals add."""
        begun = time.perf_counter()
        if progress is not None:
            progress(model.name)
        rows, windows = 0, []
        if self.lake.contract(model.name).window == "whole":
            rows = self._whole(model)
        done: set[date] = set()
        while waiting := self._waiting(model) - done:
            for start, end in contiguous(waiting):
                rows += self._window(model, start, end)
                windows.append((start, end))
                self.bind(model.name)
            done |= waiting
        self.bind(model.name)
        return ModelReport(model.name, rows, time.perf_counter() - begun, tuple(windows))

    def _waiting(self, model: Model) -> set[date]:
        return set() if self.lake.contract(model.name).window == "whole" else self.due[model.name]

    def _whole(self, model: Model) -> int:
        first, last = min(self.known, default=self.newest), max(self.known, default=self.newest)
        with self.lake.stage(model.name, connection=self.connection) as staged:
            self._add(staged, model, first, last + DAY, within=False)
            self.lake.commit(staged, self.run_id)
            return staged.checked

    def _window(self, model: Model, start: date, end: date) -> int:
        with self.lake.stage(model.name, start, end, self.connection) as staged:
            if model.compute is None and self._is_heavy(model, start, end):
                for day in days(start, end):
                    staged.write_query(model.sql, _parameters(model, day, day + DAY), str(model.path), day)
            else:
                for first, last in chunks(start, end, self.chunk_days):
                    self._add(staged, model, first, last, within=True)
            found = None
            if staged.contract.spans:
                found = changes(staged, self.lake.relation(model.name), self.newest)
            self.lake.commit(staged, self.run_id, before=lambda: self._follow(model, found))
            return staged.checked

    def _add(self, staged: Staged, model: Model, start: date, end: date, *, within: bool) -> None:
        if model.compute is not None:
            staged.add_arrow(model.compute(self.connection, start, end), str(model.path))
            return
        window = (start, end) if within else None
        staged.add_query(model.sql, _parameters(model, start, end), str(model.path), window)

    def _is_heavy(self, model: Model, start: date, end: date) -> bool:
        """Whether a date of an input is so large that statements take one date each and write files at once."""
        sizes = [self.lake.rows_by_date(name) for name in model.inputs]
        return any(rows >= self.heavy_rows for size in sizes for day, rows in size.items() if start <= day < end)

    def _follow(self, model: Model, found: Changes | None) -> None:
        """Add what changed intervals touch to the dates due; the marks make that survive a crash."""
        if found is None:
            return
        spanned = set(found.spanned & self.known) - self.due[model.name]
        self.due[model.name] |= spanned
        for reader in downstream(self.models, model.name):
            self.due[reader] |= found.own
        unmarked = (spanned | found.own) - self.marked
        self.new_marks += self.lake.mark(unmarked, f"{model.name}: intervals changed")
        self.marked |= unmarked


def _parameters(model: Model, start: date, end: date) -> dict[str, datetime]:
    bounds = {"start_at": datetime.combine(start, midnight()), "end_at": datetime.combine(end, midnight())}
    # DuckDB refuses parameters that a statement does not use
    return {name: bounds[name] for name in model.parameters}


def run_models(
    lake: Lake,
    names: Sequence[str],
    start: date,
    end: date,
    run_id: str = "",
    *,
    models: Mapping[str, Model] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    chunk_days: int = CHUNK_DAYS,
    heavy_rows: int = HEAVY_ROWS,
    progress: Progress | None = None,
) -> list[ModelReport]:
    """Compute [start, end) of the named models (selectors as in `select_models`) without publishing.

    Dates outside the window that changed intervals touch are computed for the interval table itself and marked
    for the next build.
    """
    available = models if models is not None else load_models()
    with lake.writer():
        chosen = select_models(available, names)
        reports, _ = _run(
            lake,
            chosen,
            due=set(days(start, end)),
            marks=lake.marks(),
            run_id=run_id,
            memory_limit=memory_limit,
            threads=threads,
            chunk_days=chunk_days,
            heavy_rows=heavy_rows,
            progress=progress,
        )
        return reports


def build(  # noqa: PLR0917
    lake: Lake,
    start: date | None = None,
    end: date | None = None,
    select: Sequence[str] = (),
    run_id: str | None = None,
    progress: Progress | None = None,
    *,
    models: Mapping[str, Model] | None = None,
    memory_limit: str | None = None,
    threads: int | None = None,
    chunk_days: int = CHUNK_DAYS,
    heavy_rows: int = HEAVY_ROWS,
) -> BuildReport:
    """Compute the models over [start, end) (or what changed, see `due_dates`), publish, clear the marks taken up.

    `select` limits the models (`name`, `+name`, `name+`); such a build clears no marks, since other models still
    need them. `progress` is told what is being computed. `chunk_days` bounds the memory of one statement; where a
    date of an input has `heavy_rows` or more, a statement takes one date. Raises `BadInput` where a model or its rows
    do not fit, and `LakeBusy` where another process writes.
    """
    begun = time.perf_counter()
    available = models if models is not None else load_models()
    chosen = select_models(available, select)
    build_id = run_id or f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
    with lake.writer():
        marks = lake.marks()
        known = known_dates(lake)
        due = due_dates(known, marks, start, end)
        reports, own = _run(
            lake,
            chosen,
            due=due,
            marks=marks,
            run_id=build_id,
            memory_limit=memory_limit,
            threads=threads,
            chunk_days=chunk_days,
            heavy_rows=heavy_rows,
            progress=progress,
        )
        lake.publish(build_id)
        covered = [m for m in marks if m.date in due and set(beside(m.date)) & known <= due]
        taken_up = [*covered, *own] if chosen.keys() == available.keys() else []
        lake.clear(taken_up)
    return BuildReport(build_id, tuple(reports), time.perf_counter() - begun, len(taken_up))


def _run(
    lake: Lake,
    models: Mapping[str, Model],
    *,
    due: set[date],
    marks: Sequence[Mark],
    run_id: str,
    memory_limit: str | None,
    threads: int | None,
    chunk_days: int,
    heavy_rows: int,
    progress: Progress | None,
) -> tuple[list[ModelReport], list[Mark]]:
    for name, model in models.items():
        if missing := [t for t in (name, *model.inputs) if t not in lake.contracts]:
            raise BadInput(f"{model.path}: there is no contract for {', '.join(missing)}")
    settle(lake)
    known = known_dates(lake)
    intervals = [n for n in models if lake.contract(n).spans]
    held = known.union(*(lake.dates(n) for n in intervals))
    newest = max(held | due, default=date.min)
    connection = open_database(lake.root, memory_limit=memory_limit, threads=threads)
    try:
        run = _Run(
            lake=lake,
            connection=connection,
            run_id=run_id,
            models=models,
            newest=newest,
            known=held,
            chunk_days=chunk_days,
            heavy_rows=heavy_rows,
            due=due,
            marked={m.date for m in marks},
        )
        for layer in LAYERS:
            connection.execute(f"create schema {layer}")
        for table in sorted({*models, *(i for m in models.values() for i in m.inputs)}):
            run.bind(table)
        return [run.execute(m, progress) for m in models.values()], run.new_marks
    finally:
        connection.close()
