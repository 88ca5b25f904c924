"""The models: one SQL file per table under `sql/`, their dependencies and lineage read from the SQL.

A table that SQL cannot say is a model with a function in place of a statement; the rooms above hand those in.
Belongs here: finding, parsing, ordering and selecting models. Does not: running them (`runner.py`), style
(`lint.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import get_close_matches
from functools import cached_property, lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.lineage import Node, lineage

from warehouse.errors import BadInput

SQL_DIRECTORY = Path(__file__).resolve().parent.parent / "sql"
LAYERS = ("core", "mart")
DIALECT = "duckdb"
PARAMETERS = ("start_at", "end_at")
_HEADER_FIELD = re.compile(r"(grain|key|inputs|invariant):\s*(.*)")


# (connection with the inputs as views, first date, date after the last) -> rows of those dates
Compute = Callable[[duckdb.DuckDBPyConnection, date, date], pa.Table]


@dataclass(frozen=True)
class Model:
    """One SQL file: `name` is `layer.table` from its path, `header` the text of its leading comment.

    `inputs` are the tables it reads, in alphabetical order; `parameters` those of `PARAMETERS` it uses. Where
    `compute` is set, it makes the rows, `path` is its source file, and `sql` is empty.
    """

    name: str
    path: Path
    sql: str
    header: str
    inputs: tuple[str, ...]
    parameters: tuple[str, ...]
    compute: Compute | None = None

    @cached_property
    def fields(self) -> dict[str, str]:
        """The header's grain, key, inputs and invariant, where given; `description` is what precedes them."""
        fields, current = {"description": ""}, "description"
        for line in self.header.splitlines():
            found = _HEADER_FIELD.match(line)
            text = line
            if found:
                current, text = found[1], found[2]
            fields[current] = f"{fields.get(current, '')} {text}".strip()
        return fields

    @cached_property
    def tree(self) -> exp.Query:
        """The parsed statement."""
        return _parse(self.path, self.sql)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns the statement yields; none are known of a function."""
        return () if self.compute else tuple(self.tree.named_selects)

    @cached_property
    def lineage(self) -> dict[str, tuple[tuple[str, str], ...]]:
        """For each column the (table, column) pairs it comes from; empty where sqlglot cannot follow it."""
        if self.compute:
            return {}
        found = _lineage(self.sql, self.inputs)
        # sqlglot folds case: DuckDB's names do not tell capitals apart
        return {column: found.get(column.lower(), ()) for column in self.columns if column != "*"}


@lru_cache(maxsize=256)  # definitions are built more than once in a process, and this is the dearest part of it
def _lineage(sql: str, inputs: tuple[str, ...]) -> dict[str, tuple[tuple[str, str], ...]]:
    try:
        # All columns at once: the query is qualified once and shared parts are followed once (20 times faster
        # over our models than column by column); selects are not trimmed, nobody reads the nodes' SQL.
        nodes = lineage(None, sql, _schema(inputs), dialect=DIALECT, trim_selects=False)
    except Exception:  # lineage is shown, never relied upon, and sqlglot raises many kinds of error
        return {}
    assert isinstance(nodes, dict)
    written = _schema(inputs)
    return {column.lower(): _tables(node, written) for column, node in nodes.items()}


def _tables(root: Node, written: Mapping[str, Mapping[str, Mapping[str, str]]]) -> tuple[tuple[str, str], ...]:
    # a walk with memory: the nodes of shared expressions are shared, as a tree they can be very many
    found, seen, waiting = set(), set(), [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node.expression, exp.Table) and node.expression.db:
            layer, table = node.expression.db, node.expression.name
            column = node.name.rsplit(".", 1)[-1]
            spelt = {name.lower(): name for name in written.get(layer, {}).get(table, {})}
            found.add((f"{layer}.{table}", spelt.get(column.lower(), column)))
        waiting.extend(node.downstream)
    return tuple(sorted(found))


def _schema(tables: Iterable[str]) -> dict[str, dict[str, dict[str, str]]]:
    # imported here: contracts are needed for lineage only, and models must be loadable without them
    from warehouse.contracts import CONTRACTS  # noqa: PLC0415

    schema: dict[str, dict[str, dict[str, str]]] = {}
    for name in tables:
        layer, table = name.split(".", 1)
        if name in CONTRACTS:
            schema.setdefault(layer, {})[table] = {c: "unknown" for c in CONTRACTS[name].columns}
    return schema


def _parse(path: Path, sql: str) -> exp.Query:
    try:
        statements = sqlglot.parse(sql, dialect=DIALECT)
    except SqlglotError as error:
        raise BadInput(f"{path}: {error}") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise BadInput(f"{path}: a model is exactly one select statement")
    return statements[0]


def _header(sql: str) -> str:
    lines = []
    for line in sql.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").removeprefix(" "))
    return "\n".join(lines)


def _inputs(path: Path, tree: exp.Query) -> tuple[str, ...]:
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    inputs = set()
    for table in tree.find_all(exp.Table):
        if table.db:
            inputs.add(f"{table.db}.{table.name}")
        elif isinstance(table.this, exp.Identifier) and table.name not in ctes:
            raise BadInput(f"{path}: {table.name} is neither a common table expression nor layer.table")
    return tuple(sorted(inputs))


def read_model(path: Path, name: str) -> Model:
    """Parse one file; `BadInput` where it is not a single select or has parameters other than `PARAMETERS`."""
    sql = path.read_text(encoding="utf-8")
    tree = _parse(path, sql)
    used = {p.name for p in tree.find_all(exp.Parameter, exp.Placeholder)}
    if unknown := sorted(used - set(PARAMETERS)):
        raise BadInput(f"{path}: unknown parameter {', '.join(unknown)}; there are {', '.join(PARAMETERS)}")
    parameters = tuple(p for p in PARAMETERS if p in used)
    return Model(name, path, sql, _header(sql), _inputs(path, tree), parameters)


def load_models(directory: Path | None = None) -> dict[str, Model]:
    """All models under `directory` (default: the project's `sql/`), in run order: inputs before their readers.

    `BadInput` names the file that does not parse, or the models of a cycle.
    """
    directory = directory or SQL_DIRECTORY
    models = {}
    for layer in LAYERS:
        for path in sorted((directory / layer).glob("*.sql")):
            name = f"{layer}.{path.stem}"
            models[name] = read_model(path, name)
    return run_order(models)


def run_order(models: Mapping[str, Model]) -> dict[str, Model]:
    """The models, inputs before their readers; `BadInput` where they read each other in a circle."""
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name in sorted(models):
        sorter.add(name, *(i for i in models[name].inputs if i in models))
    try:
        return {name: models[name] for name in sorter.static_order()}
    except CycleError as error:
        raise BadInput(f"models read each other in a circle: {' -> '.join(error.args[1])}") from error


def upstream(models: Mapping[str, Model], name: str) -> set[str]:
    """Models that `name` reads, directly or not."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = {i for i in models[waiting.pop()].inputs if i in models} - found
        found |= new
        waiting.extend(new)
    return found


def downstream(models: Mapping[str, Model], name: str) -> set[str]:
    """Models that read `name`, directly or not."""
    found: set[str] = set()
    waiting = {name}
    while waiting:
        waiting = {n for n, m in models.items() if waiting & set(m.inputs)} - found
        found |= waiting
    return found


def select_models(models: Mapping[str, Model], selectors: Sequence[str]) -> dict[str, Model]:
    """The chosen models in run order: `name`, `+name` with all it reads, `name+` with all that reads it.

    No selectors mean all. `BadInput` names an unknown model and what it may have meant.
    """
    if not selectors:
        return dict(models)
    chosen: set[str] = set()
    for selector in selectors:
        name = selector.removeprefix("+").removesuffix("+")
        if name not in models:
            close = get_close_matches(name, models, n=3)
            hint = f"; did you mean {', '.join(close)}?" if close else f"; models are {', '.join(models)}"
            raise BadInput(f"there is no model {name}{hint}")
        chosen.add(name)
        if selector.startswith("+"):
            chosen |= upstream(models, name)
        if selector.endswith("+"):
            chosen |= downstream(models, name)
    return {name: model for name, model in models.items() if name in chosen}
