"""Lint of the models: the portable subset of SQL in which DuckDB and Spark give the same rows, and the house style.

Every rule stands for a construct that a second engine reads differently or not at all, tried on both; most of the
differences are silent. Belongs here: rules over one model's syntax tree. Does not: running or ordering models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.tokens import TokenType

from warehouse.contracts.fields import FIELDS
from warehouse.models import DIALECT, Model

_FORBIDDEN_FUNCTIONS = {
    "arg_max": "null arguments differ; rank with row_number() and keep rank 1",
    "arg_min": "null arguments differ; rank with row_number() and keep rank 1",
    "max_by": "null arguments differ; rank with row_number() and keep rank 1",
    "min_by": "null arguments differ; rank with row_number() and keep rank 1",
    "quantile_cont": "has no counterpart of that name; use median() or rank rows",
    "quantile_disc": "has no counterpart of that name; rank rows",
    "quantile": "has no counterpart of that name; rank rows",
    "percentile_cont": "becomes an approximation; rank rows",
    "percentile_disc": "becomes an approximation; rank rows",
    "approx_quantile": "is an approximation; rank rows",
    "time_bucket": "has no counterpart; use date_trunc",
    "date_sub": "has no counterpart; use date_diff('second', …)",
    "to_seconds": "has no counterpart; add n * interval 1 second",
    "epoch_ms": "has no counterpart; use epoch",
    "strftime": "formats differ; format when displaying",
    "hash": "values differ",
    "isnan": "differs on null; compare with bounds",
    "dayofweek": "is 0-based in one engine; compute from epoch days",
    "isodow": "has no counterpart; compute from epoch days",
    "histogram": "has no counterpart",
    "read_parquet": "inputs are bound by the runner; name layer.table",
    "read_csv": "inputs are bound by the runner; name layer.table",
    "random": "a model must give the same rows each time",
    "uuid": "a model must give the same rows each time",
    "now": "a model must give the same rows each time; use $end_at",
    "current_timestamp": "a model must give the same rows each time; use $end_at",
    "current_date": "a model must give the same rows each time; use $end_at",
}
_ELAPSED_UNITS = {"second", "microsecond", "millisecond"}
_WEEKDAYS = {"dow", "isodow", "dayofweek", "weekday"}
# words that sqlglot takes as names and DuckDB 2 does not
_RESERVED_NAMES = {"at"}


@dataclass(frozen=True)
class Finding:
    """One broken rule: the model's file, the rule's name, what was found and what to write instead."""

    path: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.rule}: {self.message}"


Rule = Callable[[Model], Iterable[str]]


def _function_name(node: exp.Func) -> str:
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    return node.sql_name().lower()


def _aliases(node: exp.Func) -> set[str]:
    # sqlglot files several spellings under one class, whose canonical name may be another dialect's
    if isinstance(node, exp.Anonymous):
        return {str(node.name).lower()}
    return {name.lower() for name in type(node).sql_names()} | {_function_name(node), type(node).key.lower()}


_CLASS_NAMES = {
    "percentilecont": "percentile_cont", "percentiledisc": "percentile_disc", "approxquantile": "approx_quantile",
    "argmax": "arg_max", "argmin": "arg_min", "timetostr": "strftime", "dayofweekiso": "isodow",
    "currenttimestamp": "current_timestamp", "currentdate": "current_date", "readparquet": "read_parquet",
    "readcsv": "read_csv", "datebin": "time_bucket", "datesub": "date_sub", "rand": "random",
    "unixtotime": "epoch_ms",
}  # fmt: skip


def _forbidden_functions(model: Model) -> Iterator[str]:
    for node in model.tree.find_all(exp.Func):
        names = _aliases(node) | {_CLASS_NAMES.get(type(node).key.lower(), "")}
        for name in sorted(names & _FORBIDDEN_FUNCTIONS.keys()):
            yield f"{name}() {_FORBIDDEN_FUNCTIONS[name]}"
            break
    for node in model.tree.find_all(exp.Extract, exp.Anonymous):
        part = node.this.name if isinstance(node, exp.Extract) else ""
        if isinstance(node, exp.Anonymous) and node.name.lower() == "date_part" and node.expressions:
            part = node.expressions[0].name
        if part.lower() in _WEEKDAYS:
            yield f"{node.sql(DIALECT)}: counts weekdays from another day; compute from epoch days"


def _ordered_lists(model: Model) -> Iterator[str]:
    for node in model.tree.find_all(exp.ArrayAgg, exp.First, exp.Last, exp.AnyValue):
        if isinstance(node.this, exp.Order) or node.find(exp.Order):
            yield f"{node.sql(DIALECT)}: the order is dropped by other engines; use string_agg or row_number()"


def _calendar_differences(model: Model) -> Iterator[str]:
    for node in model.tree.find_all(exp.DateDiff, exp.TimestampDiff):
        unit = str(node.args.get("unit") or "day").strip("'").lower()
        if unit not in _ELAPSED_UNITS:
            yield f"{node.sql(DIALECT)}: counts boundaries in one engine, time in the other; use 'second' and divide"


def _interval_epochs(model: Model) -> Iterator[str]:
    for node in model.tree.find_all(exp.Func):
        argument = node.args.get("this")
        if isinstance(node, exp.Anonymous) and node.expressions:
            argument = node.expressions[0]
        if "epoch" in _aliases(node) | {type(node).key} or isinstance(node, exp.TimeToUnix):
            if isinstance(argument, exp.Paren):
                argument = argument.this
            if isinstance(argument, exp.Sub):
                yield f"{node.sql(DIALECT)}: use date_diff('second', a, b)"


def _time_zones(model: Model) -> Iterator[str]:
    for node in model.tree.find_all(exp.AtTimeZone):
        yield f"{node.sql(DIALECT)}: shifts naive times in opposite directions; times are naive UTC"


def _asof_joins(model: Model) -> Iterator[str]:
    for join in model.tree.find_all(exp.Join):
        if str(join.args.get("method") or "").upper() == "ASOF":
            yield "asof join: loses overlapping matches and is not portable; join on hour and range"


def _pivots(model: Model) -> Iterator[str]:
    for _ in model.tree.find_all(exp.Pivot):
        yield "pivot: not portable; use filter (where …) or case"


def _divisions(model: Model) -> Iterator[str]:
    for node in model.tree.find_all(exp.Div, exp.IntDiv, exp.Mod):
        if not _is_safe_divisor(node.expression):
            yield f"{node.sql(DIALECT)}: the divisor may be zero; divide by nullif(…, 0) or by a literal"


def _is_safe_divisor(node: exp.Expression | None) -> bool:
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    if isinstance(node, exp.Literal):
        return node.is_number and float(node.this) != 0
    if isinstance(node, exp.Mul):
        return _is_safe_divisor(node.this) and _is_safe_divisor(node.expression)
    if isinstance(node, exp.Column) and node.name in FIELDS:
        return (FIELDS[node.name].low or 0) > 0  # the contract refuses zero
    return isinstance(node, exp.Nullif)


def _integer_casts(model: Model) -> Iterator[str]:
    for node in model.tree.find_all(exp.Cast):
        inner = node.this
        while isinstance(inner, exp.Paren):
            inner = inner.this
        fraction = isinstance(inner, exp.Div) or (isinstance(inner, exp.Literal) and "." in inner.name)
        if node.to.this in exp.DataType.INTEGER_TYPES and fraction:
            yield f"{node.sql(DIALECT)}: one engine rounds, the other truncates; say floor() or round()"


def _zoned_types(model: Model) -> Iterator[str]:
    zoned = {exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ}
    for node in model.tree.find_all(exp.DataType):
        if node.this in zoned:
            yield "timestamp with time zone: times are naive UTC"


def _lambdas(model: Model) -> Iterator[str]:
    for node in model.tree.find_all(exp.Lambda):
        yield f"{node.sql(DIALECT)}: lambdas differ between engines; unnest instead"


def _reserved_names(model: Model) -> Iterator[str]:
    found = {n.name for n in model.tree.find_all(exp.Identifier) if n.name in _RESERVED_NAMES and not n.quoted}
    for name in sorted(found):
        yield f"{name}: a reserved word of DuckDB 2; choose another name"


def _letter_case(model: Model) -> Iterator[str]:
    for token in sqlglot.tokenize(model.sql, read=DIALECT):
        # the token's own text is normalised for words like `group by`
        written = model.sql[token.start : token.end + 1]
        if token.token_type != TokenType.STRING and written[:1].isalpha() and written != written.lower():
            yield f"line {token.line}: {written}: SQL is written in lower case"


def _header(model: Model) -> Iterator[str]:
    for name in ("description", "grain", "key", "inputs", "invariant"):
        if not model.fields.get(name):
            yield f"the header comment lacks its {name}"
    said = {t.strip() for t in model.fields.get("inputs", "").split(",") if t.strip()}
    if said and said != set(model.inputs):
        yield f"the header's inputs are {sorted(said)}, the statement reads {list(model.inputs)}"


def _stars(model: Model) -> Iterator[str]:
    if "*" in model.columns:
        yield "the last select names its columns, so that a new input column cannot change the table"


RULES: dict[str, Rule] = {
    "function": _forbidden_functions,
    "ordered-list": _ordered_lists,
    "date-diff": _calendar_differences,
    "interval-epoch": _interval_epochs,
    "time-zone": _time_zones,
    "zoned-type": _zoned_types,
    "asof-join": _asof_joins,
    "pivot": _pivots,
    "division": _divisions,
    "integer-cast": _integer_casts,
    "lambda": _lambdas,
    "reserved-name": _reserved_names,
    "letter-case": _letter_case,
    "header": _header,
    "star": _stars,
}


def lint(models: Iterable[Model]) -> list[Finding]:
    """Every broken rule of every model, in the order of models and rules."""
    return [
        Finding(str(model.path), name, message)
        for model in models
        for name, rule in RULES.items()
        for message in rule(model)
    ]
