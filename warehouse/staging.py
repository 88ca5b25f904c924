"""Rows on their way into a table: brought to the contract's types, checked, and only then committed.

Staged rows lie in a temporary table of an in-memory DuckDB that spills to disk, or, where many are expected of one
date, already in the data file that a commit would add; so their number is not bound by memory.
Belongs here: staging and checking rows of one window. Does not: locks, commits.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from warehouse.contracts.model import Field, Table
from warehouse.engine import relation_sql
from warehouse.errors import BadInput
from warehouse.files import NewFile, copy_to_file
from warehouse.sqltypes import conforming_columns, duckdb_type, literal, quote
from warehouse.windows import DAY, WriteWindow

OUTSIDE = "yields rows outside"


class Staged:
    """Rows of one window of one table, to be committed or dropped by `close`.

    `directory` is the table's; `files` are data files already written there, by date; `relation` reads all rows;
    `checked` is how many rows the last `check` saw.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, contract: Table, window: WriteWindow, directory: Path
    ) -> None:
        self.connection = connection
        self.contract = contract
        self.window = window
        self.directory = directory
        self.files: dict[date, NewFile] = {}
        self.checked = 0
        self.name = f"staged_{uuid.uuid4().hex}"
        columns = ", ".join(f"{quote(f.name)} {duckdb_type(f.arrow)}" for f in contract.fields)
        connection.execute(f"create temp table {self.name} ({columns})")

    def close(self) -> None:
        """Drop the staged rows, and files that were not committed."""
        self.connection.execute(f"drop table if exists {self.name}")
        for file in self.files.values():
            file.path.unlink(missing_ok=True)

    def take_files(self) -> list[NewFile]:
        """Hand over the files written, for a commit; `close` leaves them alone from then on."""
        files, self.files = list(self.files.values()), {}
        return files

    @property
    def relation(self) -> str:
        """The staged rows as a relation to select from."""
        if not self.files:
            return self.name
        paths = [str(f.path.relative_to(self.directory)) for f in self.files.values()]
        return f"(select * from {self.name} union all {relation_sql(self.contract, self.directory, paths)})"

    def add_arrow(self, data: pa.Table | pa.RecordBatchReader, origin: str) -> None:
        """Append Arrow rows; columns by name, any order. `BadInput` where they do not fit the contract."""
        source = f"incoming_{uuid.uuid4().hex}"
        self.connection.register(source, data.schema.empty_table())
        described = self._describe(f"select * from {source}", {}, origin)
        self.connection.unregister(source)
        columns = conforming_columns(self.contract, described, origin)
        self.connection.register(source, data)
        try:
            self._insert(columns, source, {}, origin)
        finally:
            self.connection.unregister(source)

    def add_query(
        self, sql: str, parameters: Mapping[str, Any], origin: str, within: tuple[date, date] | None = None
    ) -> None:
        """Append the rows of a SELECT run on the same connection.

        `within` [start, end) is the part of the window that the SELECT was asked for; `BadInput` where it yields
        other dates, since those would be there twice.
        """
        before = self.rows()
        columns = conforming_columns(self.contract, self._describe(sql, parameters, origin), origin)
        self._insert(columns, f"({sql}\n)", parameters, origin)
        if within is not None:
            inside = f"date >= {literal(within[0])} and date < {literal(within[1])}"
            expected = int(self._one(f"select count(*) from {self.name} where {inside}")[0])
            if self.rows() - before != expected:
                example = self._example(f"({inside}) is not true")
                raise BadInput(f"{origin}: {OUTSIDE} [{within[0]}, {within[1]}), e.g. {example}")

    def write_query(self, sql: str, parameters: Mapping[str, Any], origin: str, day: date) -> None:
        """Write the rows of a SELECT, all of date `day`, straight to a data file: for many rows, in no order.

        `BadInput` where it yields another date.
        """
        columns = conforming_columns(self.contract, self._describe(sql, parameters, origin), origin)
        first, *others = [c for c in self.contract.columns if c not in self.contract.partition_by]
        # in the outermost select list, where no other condition of the query is left to evaluate
        complaint = f"{OUTSIDE} [{day}, {day + DAY})"
        guarded = f"case when date = {literal(day)} then {columns[first]} else error({literal(complaint)}) end"
        rendered = [f"{guarded} as {quote(first)}", *(f"{columns[c]} as {quote(c)}" for c in others)]
        query = f"select {', '.join(rendered)} from ({sql}\n)"
        with self._named_errors(origin):
            file = copy_to_file(self.connection, query, parameters, self.contract, self.directory, day)
        if file.rows:
            self.files[day] = file
        else:
            file.path.unlink()

    def _describe(self, sql: str, parameters: Mapping[str, Any], origin: str) -> list[tuple[str, str]]:
        try:
            rows = self.connection.execute(f"describe {sql}", dict(parameters) or None).fetchall()
        except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException) as error:
            raise BadInput(f"{origin}: {error}") from error
        return [(row[0], row[1]) for row in rows]

    def _insert(self, columns: Mapping[str, str], source: str, parameters: Mapping[str, Any], origin: str) -> None:
        rendered = ", ".join(columns.values())
        with self._named_errors(origin):
            self.connection.execute(
                f"insert into {self.name} select {rendered} from {source}", dict(parameters) or None
            )

    @contextmanager
    def _named_errors(self, origin: str) -> Iterator[None]:
        try:
            yield
        except duckdb.ConversionException as error:
            raise BadInput(f"{origin}: a value does not fit {self.contract.name}: {error}") from error
        except duckdb.Error as error:
            if OUTSIDE in str(error):
                raise BadInput(f"{origin}: {error}") from error
            error.add_note(f"while computing {origin}")
            raise

    def rows(self) -> int:
        """Number of staged rows."""
        return int(self._one(f"select count(*) from {self.relation}")[0])

    def rows_by_date(self) -> dict[date | None, int]:
        """Staged rows of every date they carry; under None for tables without date partitions."""
        if not self.contract.partition_by:
            return {None: self.rows()}
        counted = self._all(f"select date, count(*) from {self.relation} group by date order by date")
        return {day: int(count) for day, count in counted}

    def check(self, origin: str) -> int:
        """Check window, nulls, ranges, allowed values and the key; returns the rows. `BadInput` shows one bad row."""
        rules = _rules(self.contract, self.window)
        counts = "".join(f", count(*) filter (where {condition})" for _, condition in rules)
        total, *broken = self._one(f"select count(*){counts} from {self.relation}")
        for (what, condition), count in zip(rules, broken, strict=True):
            if count:
                raise BadInput(
                    f"{origin}: {self.contract.name}: {what}: {count} of {total} rows, e.g. {self._example(condition)}"
                )
        self._check_key(origin)
        self.checked = int(total)
        return self.checked

    def _check_key(self, origin: str) -> None:
        key = ", ".join(quote(c) for c in self.contract.key)
        # one group of 64-bit hashes is several times cheaper than of wide keys; only a collision costs the exact check
        if not self._all(f"select 1 from {self.relation} group by hash({key}) having count(*) > 1 limit 1"):
            return
        repeated = f"select count(*) as copies, {key} from {self.relation} group by {key} having count(*) > 1 limit 1"
        for copies, *values in self._all(repeated):
            example = dict(zip(self.contract.key, map(str, values), strict=True))
            raise BadInput(f"{origin}: {self.contract.name}: {copies} rows with one key, e.g. {example}")

    def _example(self, condition: str) -> dict[str, str]:
        shown = list(dict.fromkeys([*self.contract.key, *_window_columns(self.contract)]))
        columns = ", ".join(quote(c) for c in shown)
        row = self._one(f"select {columns} from {self.relation} where {condition} limit 1")
        return dict(zip(shown, map(str, row), strict=True))

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        # always to the end: DuckDB 2 refuses the next statement while a result is half read
        return self.connection.execute(query).fetchall()

    def _one(self, query: str) -> tuple[Any, ...]:
        return self._all(query)[0]


def _window_columns(contract: Table) -> list[str]:
    if contract.window == "whole":
        return []
    return list(dict.fromkeys([contract.window, "date"]))


def _rules(contract: Table, window: WriteWindow) -> list[tuple[str, str]]:
    """(what is wrong, condition that finds it) for every rule that one row can break."""
    rules = [
        (f"{column} is null", f"{quote(column)} is null")
        for column in dict.fromkeys([*contract.required, *_window_columns(contract)])
    ]
    if window.column is not None and window.start is not None and window.end is not None:
        column = quote(window.column)
        outside = f"{column} < {literal(window.start)} or {column} >= {literal(window.end)}"
        rules.append((f"{window.column} outside the window [{window.start}, {window.end})", outside))
        if isinstance(window.start, datetime):
            rules.append(("hour is not on the hour", "hour <> date_trunc('hour', hour)"))
            rules.append(("date is not the date of hour", "date <> cast(hour as date)"))
    rules.extend(rule for field in contract.fields for rule in _field_rules(field))
    return rules


def _field_rules(field: Field) -> list[tuple[str, str]]:
    rules, column = [], quote(field.name)
    if field.low is not None:
        rules.append((f"{field.name} below {field.low:g}", f"{column} < {field.low:g}"))
    if field.high is not None:
        rules.append((f"{field.name} above {field.high:g}", f"{column} > {field.high:g}"))
    if field.low is not None and field.type == "double":
        rules.append((f"{field.name} is not a number", f"isnan({column})"))
    if field.values:
        allowed = ", ".join(literal(v) for v in field.values)
        rules.append((f"{field.name} not one of {', '.join(field.values)}", f"{column} not in ({allowed})"))
    return rules
